"""`python -m reproductions.label_dp.table5`: 1,000 planted labels in one training, beside ten trainings of 100.

Makes the runs that have no file yet (ALIBI at one epsilon, one JSON a run) and writes the table of those that have one,
Figure 1, and, once all are there, a row of docs/benchmarks.md that says whether both intervals overlap. `--smoke` makes
them tiny, on a processor, and keeps no row. Counts of several trainings are added: together they are one private
mechanism, with the canaries of all (proof page `memorisation`, 5).
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.records import record

from leakcap.audit.attacks.appendix_b import weighted_interval
from leakcap.audit.attacks.memorisation import CanaryGuesses, largest_lower_end
from reproductions.label_dp import figure1, published, tables, tuning
from reproductions.label_dp.recipe import Recipe
from reproductions.label_dp.runs import Conditions, run_all

SHOWN = 0.05  # error of all lower ends of a line together
SMOKE = {"network": "resnet9", "width": 0.125, "epochs": 2, "batch": 40, "peak_lr": 0.2, "limit": 400}


@dataclass(frozen=True)
class Pooled:
    """What trainings show together."""

    counts: tuple[CanaryGuesses, ...]
    all_decoys: dict[str, Any]

    @classmethod
    def of(cls, found: Sequence[dict[str, Any]]) -> Pooled:
        """Counts of the same game added up, and counts of single canaries side by side."""
        games = zip(*(one["counts"] for one in found), strict=True)
        counts = tuple(
            CanaryGuesses(
                game[0]["game"],
                game[0]["candidates"],
                *(sum(one[name] for one in game) for name in ("canaries", "guesses", "right")),
            )
            for game in games
        )
        decoys = {
            at: np.concatenate([np.asarray(one["all_decoys"][at]) for one in found]) for at in found[0]["all_decoys"]
        }
        return cls(counts, decoys)

    def ends(self, game: str) -> tuple[float, float]:
        """Epsilon that a game shows with all canaries guessed: at least, exactly; at most, as if independent."""
        count = max((one for one in self.counts if one.game == game), key=lambda one: one.guesses)
        share = SHOWN / len(self.counts)
        return count.epsilon_lower(0.0, share), count.epsilon_upper(share)

    @property
    def lower(self) -> float:
        """The largest of all lower ends."""
        return largest_lower_end(self.counts, 0.0, SHOWN)

    def heuristic(self, threshold: str) -> tuple[float, float]:
        """Ends of the paper's interval."""
        right, guesses = self.all_decoys[threshold].T
        return weighted_interval(right, guesses).epsilons[1:]


def pooled(runs: Sequence[tables.Run], wanted: Sequence[Recipe]) -> tuple[Pooled, Pooled] | None:
    """The one training and the ten; None where some have no file yet."""
    most = max(recipe.canaries for recipe in wanted)
    whole = [_found(runs, recipe) for recipe in wanted if recipe.canaries == most]
    parts = [_found(runs, recipe) for recipe in wanted if recipe.canaries != most]
    if None in whole or None in parts:
        return None
    one, ten = (Pooled.of([run for run in some if run is not None]) for some in (whole, parts))
    return one, ten


def overlap(both: tuple[Pooled, Pooled]) -> str:
    """For each game both intervals, and whether they have an epsilon in common."""
    found = []
    for game in dict.fromkeys(count.game for count in both[0].counts):
        one, ten = (pool.ends(game) for pool in both)
        shared = max(one[0], ten[0]) <= min(one[1], ten[1])
        words = "they overlap" if shared else "they do NOT overlap"
        found.append(f"{game}: {_interval(one)} in one training, {_interval(ten)} in ten: {words}")
    return "; ".join(found)


def keep(both: tuple[Pooled, Pooled], wanted: Sequence[Recipe], device: str) -> None:
    """A row of docs/benchmarks.md."""
    epsilon, few = wanted[0].epsilon, min(recipe.canaries for recipe in wanted)
    record(
        f"labels-table5-{wanted[0].data}-{epsilon:g}".replace(".", "-"),
        overlap(both),
        machine="one " + device.removeprefix("NVIDIA "),
        topic="Reproductions",
        claim=f"Table 5, {tables.NAMES[wanted[0].data]}, ALIBI at epsilon {epsilon:g}: epsilon shown by "
        f"{wanted[0].canaries:,} planted labels in one training, and by {few:,} in each of {len(wanted) - 1}",
        command=f"python -m reproductions.label_dp.table5 --epsilon {epsilon:g}",
        asked="both intervals overlap",
    )


def lines(runs: Sequence[tables.Run], wanted: Sequence[Recipe]) -> list[tuple[str, ...]]:
    """A row for each rule: published, one training, ten trainings."""
    both = pooled(runs, wanted)
    if both is None:
        return []
    one, ten = both
    games = dict.fromkeys(count.game for count in one.counts)
    rows = [("largest lower end, exact", f"{one.lower:.2f}", f"{ten.lower:.2f}")]
    rows += [(f"{game}, all canaries", _interval(one.ends(game)), _interval(ten.ends(game))) for game in games]
    for at in one.all_decoys:
        name = f"Appendix B, threshold {at} (heuristic)"
        rows.append((name, _interval(one.heuristic(at)), _interval(ten.heuristic(at))))
    printed = published.TABLE_5.get((wanted[0].data, wanted[0].epsilon or 0.0), ("-", "-"))
    return [*rows, ("published (best of seven thresholds)", *printed)]


def _found(runs: Sequence[tables.Run], recipe: Recipe) -> dict[str, Any] | None:
    kept = next((run.record["memorisation"] for run in runs if run.recipe == recipe), None)
    return kept if isinstance(kept, dict) else None


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.2f} to {'∞' if np.isinf(ends[1]) else f'{ends[1]:.2f}'}"


def page(runs: Sequence[tables.Run], wanted: Sequence[Recipe]) -> str:
    """The table in Markdown."""
    found = lines(runs, wanted)
    heading = f"Table 5, {tables.NAMES[wanted[0].data]}, ALIBI at epsilon {wanted[0].epsilon:g}\n\n"
    most, few = (pick(r.canaries for r in wanted) for pick in (max, min))
    head = ("epsilon that is shown", f"1 x {most:,} labels", f"{len(wanted) - 1} x {few:,} labels")
    return heading + (tables.markdown(head, found) if found else "Not all runs have a file yet.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=2.1)
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp"))
    parser.add_argument("--smoke", action="store_true", help="tiny runs on a processor, to see that it works")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing that ends later")
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args(arguments)
    wanted = tuning.table5(given.epsilon)
    device = "cpu"
    if given.smoke:
        wanted = [replace(recipe, canaries=recipe.canaries // 5, **SMOKE) for recipe in wanted]
    elif importlib.import_module("torch").cuda.is_available():
        device = "cuda"
    left = run_all(wanted, Conditions(given.out, device, given.compile, time.time() + given.seconds), given.workers)
    runs = tables.read([given.out])
    text = page(runs, wanted)
    (given.out / "table5.md").write_text(text, encoding="utf-8")
    figure1.draw([run for run in runs if run.recipe.canaries], given.out / "figure1.png")
    both = pooled(runs, wanted)
    if both is not None and not given.smoke:
        keep(both, wanted, next(str(run.record["device"]) for run in runs if run.recipe == wanted[0]))
    print(text)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
