"""`python -m reproductions.label_dp.fixmatch --labels 250 --seconds 480 --out FOLDER`: a few true labels of CIFAR-10.

No privacy: this is what teachers and student of PATE-FM can do by themselves. One JSON a run; a run whose file exists
is not repeated. As many labelled pictures of each class, drawn by the seed. `--smoke`: toys, on two cores. `--told`:
what the kept runs reached, for the docs. `--encoder FOLDER`: start from the encoder that
`reproductions.label_dp.central` left there; the seconds of its training count as part of `--seconds`, as all before the
last step does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.records import record

import leakcap as lc
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.settings import SMOKE as SMALL
from reproductions.label_dp.central.settings import Settings
from reproductions.label_dp.central.store import write_json
from reproductions.label_dp.network import network
from reproductions.label_dp.pictures import Pictures, pictures
from reproductions.label_dp.started import Started, StartedFixMatch

MEASURED = Path(__file__).parent / "measured"
ASKED = 480.0  # seconds at most
SMOKE = {"steps": 20, "batch_size": 16, "mu": 2}


def some_labels(y: np.ndarray, labels: int, classes: int, seed: int) -> np.ndarray:
    """The labels with all but `labels` of them unknown, as many of each class."""
    draw, known = np.random.default_rng(seed), np.full(len(y), -1)
    for name in range(classes):
        rows = draw.choice(np.flatnonzero(y == name), labels // classes, replace=False)
        known[rows] = name
    return known


def classifier(kind: str, width: float, device: str, **settings: Any) -> Any:
    """FixMatch with a network of this folder."""
    module = network(kind, 10, width, torch.device("cpu"))
    return lc.labels.FixMatch(module, device=device, **settings)


def run(data: Pictures, model: Any, labels: int, seed: int) -> dict[str, Any]:
    """Train and judge on the test pictures, with and without their mirror images."""
    began = time.perf_counter()
    model.fit(data.x_train, some_labels(data.y_train, labels, data.n_classes, seed))
    passed = time.perf_counter() - began
    alone = model.predict_proba(data.x_test)
    both = alone + model.predict_proba(np.ascontiguousarray(data.x_test[:, :, ::-1]))
    return {
        "labels": labels,
        "seed": seed,
        "accuracy": float((both.argmax(1) == data.y_test).mean()),
        "accuracy_without_flip": float((alone.argmax(1) == data.y_test).mean()),
        "judged_on": "test pictures",
        "steps": model.n_steps_,
        "taught_share": model.taught_share_,
        "seconds": passed,
        "pictures_per_second": model.n_steps_ * model.batch_size * (1 + 2 * model.mu) / passed,
        "settings": {name: value for name, value in model.get_params(deep=False).items() if name != "module"},
        "torch": torch.__version__,
        "leakcap": lc.__version__,
    }


def told(folder: Path = MEASURED) -> str:
    """The kept runs in words."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("fixmatch-*.json"))]
    return "; ".join(
        f"{_beginning(run)}, {run['labels']} labels: {100 * run['accuracy']:.1f} % ({run['steps']:,} steps, "
        f"{_seconds(run)}, seed {run['seed']})"
        for run in sorted(runs, key=lambda run: ("encoder_seconds" in run, -run["accuracy"]))
    )


def _beginning(run: dict[str, Any]) -> str:
    if "encoder_seconds" not in run:
        return "from random weights"
    more = ", guesses aligned" if run["settings"].get("aligned") else ""
    more += f", {run['rounds']} rounds of guesses" if run.get("rounds") else ""
    more += f", {run['school']:.0f} s of school" if run.get("school") else ""
    return f"from an encoder that learned from the pictures alone ({run['encoder_seconds']:.0f} s of these){more}"


def _seconds(run: dict[str, Any]) -> str:
    """What a run took, and by how much that is more than it may."""
    passed = run["seconds"] + run.get("encoder_seconds", 0)
    return f"{passed:.0f} s in all" + (f", {passed - ASKED:.0f} more than asked" if passed > ASKED else "")


def keep_told() -> None:
    """The row of docs/benchmarks.md."""
    record(
        "label-dp-fixmatch",
        told(),
        machine="one H200",
        topic="Reproductions",
        claim="FixMatch on CIFAR-10, no privacy: what teachers and student of PATE-FM can do in eight minutes",
        command="python -m reproductions.label_dp.fixmatch",
        asked=f"at least 88 % with 250 labels, in {ASKED:.0f} s at most",
    )


def started(data: Pictures, folder: Path, device: str, *, smoke: bool) -> tuple[Started, float]:
    """The encoder of a folder with its features of all pictures, and what it took in all."""
    began = time.perf_counter()
    found = Started(folder, data.x_train, SMALL if smoke else Settings(), torch.device(device))
    return found, found.seconds + time.perf_counter() - began


def prepared(device: str) -> None:
    """The fast ways of a GPU."""
    if device == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")


def _kind(given: argparse.Namespace) -> str:
    """What the name of a run's file says of how it was made."""
    kind = "aligned-" if given.aligned else ""
    if given.encoder:
        kind += "encoder-" + (f"rounds{given.rounds}-" if given.rounds else "")
        kind += f"school{given.school:g}-" if given.school else ""
    return kind


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--labels", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=ASKED, help="of encoder and fit together")
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp_fixmatch"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", type=Path, help="a folder of reproductions.label_dp.central, to start from")
    parser.add_argument("--network", default="resnet9")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=0.03)
    parser.add_argument("--steps", type=int, default=2**20)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--aligned", action="store_true", help="guesses have the classes' shares, on the run")
    parser.add_argument("--rounds", type=int, default=20, help="of guesses from the encoder, before training")
    parser.add_argument("--school", type=float, default=0.0, help="seconds on the surest of these, before FixMatch")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--told", action="store_true")
    given = parser.parse_args(arguments)
    if given.told:
        keep_told()
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"fixmatch-{_kind(given)}{given.labels}-seed{given.seed}.json"
    if path.is_file():
        print(f"{path.name}: done before")
        return 0
    prepared(given.device)
    torch.manual_seed(given.seed)
    data = toy_pictures() if given.smoke else pictures("cifar10")
    settings = {"steps": given.steps, "seconds": given.seconds, "learning_rate": given.learning_rate}
    settings |= {
        "random_state": given.seed,
        "compiled": given.compile,
        "aligned": given.aligned,
        **(SMOKE if given.smoke else {}),
    }
    begun: dict[str, Any] = {"network": given.network, "width": given.width}
    if given.encoder:
        encoder, passed = started(data, given.encoder, given.device, smoke=given.smoke)
        begun = {"network": "resnet9", "width": encoder.settings.width, "encoder_seconds": passed}
        begun |= {"rounds": given.rounds, "school": given.school}
        if passed + given.school >= given.seconds:
            parser.error(f"encoder and school take {passed + given.school:.0f} s: give more --seconds")
        settings["seconds"] = given.seconds - passed
        start = {"rounds": given.rounds, "school": given.school, "device": given.device}
        model = StartedFixMatch(encoder, data.n_classes, **start, **settings)
    else:
        model = classifier(given.network, 0.125 if given.smoke else given.width, given.device, **settings)
    found = run(data, model, given.labels, given.seed) | begun
    write_json(path, found)
    print(f"accuracy {found['accuracy']:.4f}, {found['accuracy_without_flip']:.4f}; {found['steps']} steps, ")
    print(f"{found['pictures_per_second']:,.0f} pictures/s, took part {found['taught_share']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
