"""`python -m reproductions.label_dp.central.told`: what the runs in `measured/` reached, beside what was published."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.records import record

from reproductions.label_dp.published import pate_fm

MEASURED = Path(__file__).parent / "measured"
ASKED = "at least 90 % at .18, 90.5 % at .29 and 94 % at 1.6"


def runs(folder: Path = MEASURED) -> dict[float, list[float]]:
    """Test accuracies in per cent by epsilon, a figure for each seed."""
    found: dict[float, list[float]] = {}
    for path in sorted(folder.glob("central-eps*-seed*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        if run["judged_on"] == "test pictures":
            found.setdefault(float(run["epsilon"]), []).append(100 * run["accuracy"])
    return dict(sorted(found.items()))


def sums(folder: Path = MEASURED) -> dict[float, float]:
    """Test accuracies of the noised sums alone: means over the encoders that were asked."""
    found: dict[float, list[float]] = {}
    for path in sorted(folder.glob("sums-seed*.json")):
        for epsilon, told in json.loads(path.read_text(encoding="utf-8"))["sums_accuracy"].items():
            found.setdefault(float(epsilon), []).append(100 * told)
    return {epsilon: sum(here) / len(here) for epsilon, here in sorted(found.items())}


def crossed(folder: Path = MEASURED) -> list[float]:
    """Test accuracies at 1.6 with beliefs from networks that never saw a picture's response."""
    kept = sorted(folder.glob("crossed-eps1.6-seed*.json"))
    return [100 * json.loads(path.read_text(encoding="utf-8"))["accuracy"] for path in kept]


def sums_only(folder: Path = MEASURED) -> list[float]:
    """Test accuracies at 1.6 where further sums spend what responses cost elsewhere."""
    kept = sorted(folder.glob("sums-only-eps1.6-seed*.json"))
    return [100 * json.loads(path.read_text(encoding="utf-8"))["accuracy"] for path in kept]


def table(folder: Path = MEASURED) -> str:
    found, alone, published = runs(folder), sums(folder), pate_fm("cifar10")
    lines = [
        "| ε | noised sums alone | with self-training | seeds | PATE-FM, published |",
        "| --- | --- | --- | --- | --- |",
    ]
    for epsilon in sorted({*found, *alone, *published}):
        here = found.get(epsilon)
        mean = "" if here is None else f"{sum(here) / len(here):.1f}"
        cells = [f"{epsilon:g}", f"{alone[epsilon]:.1f}" if epsilon in alone else "", mean, str(len(here or []) or "")]
        lines.append(f"| {' | '.join([*cells, f'{published[epsilon]:.1f}' if epsilon in published else ''])} |")
    return "\n".join(lines)


def main() -> None:
    print(table())
    found = runs()
    record(
        "label-dp-central",
        ", ".join(
            f"{sum(here) / len(here):.1f} % at {e:g} ({len(here)} seed{'s' * (len(here) > 1)})"
            for e, here in found.items()
        )
        + f"; at 1.6 with crossed beliefs {', '.join(f'{one:.1f}' for one in crossed())} %"
        + f", with sums in six parts and no responses {', '.join(f'{one:.1f}' for one in sums_only())} %"
        + "; sums alone "
        + ", ".join(f"{told:.1f} at {e:g}" for e, told in sums().items()),
        machine="one H200",
        topic="Reproductions",
        claim="CIFAR-10 pictures, no other data, central label privacy, delta 1e-5: representation without labels, "
        "noised sums, self-training; PATE-FM published 73.4, 86.9 and 93.7 %",
        command="python -m reproductions.label_dp.central",
        asked=ASKED,
    )


if __name__ == "__main__":
    main()
