"""`python -m reproductions.label_dp.told`: what the runs in `measured/` reached, for docs/benchmarks.md."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.records import record, stored

from reproductions.label_dp import published, table5, tables, tuning
from reproductions.label_dp.central import told as central
from reproductions.label_dp.recipe import Recipe

MEASURED = Path(__file__).parent / "measured"
CENTRAL = Path(__file__).parent / "central" / "measured"
PLANTED = 2.1  # epsilon of the runs of Table 5
PLANTED_WHOLE = 1000  # labels planted in one training
RIGHT, AS_RUN = "with the right noise", "as the paper's code ran it"


def gaussian(runs: Sequence[tables.Run]) -> list[dict[str, Any]]:
    """Lines of Gaussian noise: published, with the right noise and posterior, and as the paper's code ran it."""
    every = (*published.TABLE_1, *published.TABLE_6)
    printed = {row.epsilon: row.accuracy for row in every if (row.data, row.method) == ("cifar10", "agibi")}
    found = []
    for right, as_run in zip(tuning.agibi(), tuning.agibi_as_run(), strict=True):
        cells = {name: _accuracy(runs, recipe) for name, recipe in ((RIGHT, right), (AS_RUN, as_run))}
        found.append({"epsilon": right.epsilon, "published": printed[right.epsilon or 0.0], **cells})
    return found


def gaussian_table(runs: Sequence[tables.Run]) -> str:
    rows = [
        [f"{line['epsilon']:g}", *(_cell(line[name]) for name in ("published", RIGHT, AS_RUN))]
        for line in gaussian(runs)
    ]
    return tables.markdown(("ε", "published", f"here, {RIGHT}", f"here, {AS_RUN}"), rows)


def table_5(runs: Sequence[tables.Run]) -> str:
    return table5.page(runs, tuning.table5(PLANTED)).split("\n\n", 1)[1]


def pate_fm(folder: Path = MEASURED) -> str:
    """The runs of PATE-FM that are kept, in words."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("pate-fm-*.json"))]
    return "; ".join(
        f"{run['teachers']} teachers: {100 * run['accuracy']:.1f} % at {run['epsilon']:.3g} "
        f"({run['epsilon_by_votes']:.3g} by the votes), {run['answers']} answers, "
        f"{100 * run['answers_right']:.0f} % of them right"
        for run in runs
    )


def planted(runs: Sequence[tables.Run], folder: Path = CENTRAL) -> str:
    """What a thousand planted labels show, by method: responses, a curator's sums, and no protection."""
    whole = [run for run in runs if run.recipe.canaries == PLANTED_WHOLE]
    found = [
        (tables.called(run.recipe), run.recipe.epsilon, _lower(run))
        for run in sorted(whole, key=lambda run: (run.recipe.epsilon or math.inf, run.recipe.name))
    ]
    for path in sorted(folder.glob("planted-eps*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        found.append(("noised sums and self-training", run["epsilon"], run["memorisation"]["epsilon_lower"]))
    return "; ".join(
        f"{name}{'' if epsilon is None else f' {epsilon:g}'}: {lower:.2f}" for name, epsilon, lower in found
    )


def fast_route() -> str:
    """What the same labels give in a minute on embeddings, at a certified 1.6 and less: beside PATE-FM."""
    seen = {one.name: one.seen for one in stored()}
    votes, sums = seen["labels-votes-with-sums"], seen["labels-statistics-large"]
    alone, taught = central.sums()[1.6], central.runs()[1.6]
    return (
        f"does not beat the fast route: PATE on embeddings {votes.split(' %')[0]} % at .29, 1.6, noised sums there "
        f"{sums.split(' %')[0]} % at .5, 1, 1.6; nor sums of the same kind of encoder, {alone:.1f} % at 1.6 and "
        f"{sum(taught) / len(taught):.1f} % with self-training"
    )


def main() -> None:
    runs = tables.read([MEASURED])
    keep = partial(record, machine="one H200", topic="Reproductions")
    lines = gaussian(runs)
    attacked = [run for run in runs if run.recipe.canaries and run.recipe.epsilon is not None]
    above = [run for run in attacked if _lower(run) > (run.recipe.epsilon or 0.0)]
    keep(
        "label-dp-gaussian",
        f"{_series(lines, RIGHT)} {RIGHT}, {_series(lines, AS_RUN)} {AS_RUN} (one seed each); of {len(attacked)} "
        f"private runs with planted labels {len(above)} have a lower end above their epsilon",
        claim="The Gaussian rows of the label tables, as the paper's formulas say and as its public code ran them, and "
        "the measured epsilon of Tables 1 and 6",
        command="python -m reproductions.label_dp.runs --list agibi agibi-as-run table5",
        asked=f"{_series(lines, 'published')} published; no lower end above its epsilon",
    )
    wanted = tuning.table5(PLANTED)
    both = table5.pooled(runs, wanted)
    if both is not None:
        table5.keep(both, wanted, "H200")
    keep(
        "label-dp-planted",
        planted(runs),
        claim="1,000 labels planted among 50,000 CIFAR-10 pictures: method, its epsilon, and what one training shows",
        command="python -m reproductions.label_dp.runs --list memorisation planted",
        asked="never above its epsilon; above 4 without protection",
    )
    if pate_fm():
        keep(
            "label-dp-pate-fm",
            f"{pate_fm()}; {fast_route()}",
            claim="PATE-FM on CIFAR-10 pictures, as far as a few minutes go, beside the fast route on embeddings",
            command="python -m reproductions.label_dp.pate_fm --paper 1.6",
            asked="one line of Table 1 (93.7 % published at 1.6), as far as it goes",
        )


def _accuracy(runs: Sequence[tables.Run], recipe: Recipe) -> float | None:
    mine = tables.of(runs, recipe)
    return sum(run.per_cent for run in mine) / len(mine) if mine else None


def _cell(value: float | None) -> str:
    return "not run" if value is None else f"{value:.1f}"


def _series(lines: Sequence[dict[str, Any]], name: str) -> str:
    return ", ".join(_cell(line[name]) for line in lines) + " %"


def _lower(run: tables.Run) -> float:
    """The largest lower end that planted labels show."""
    found = run.record["memorisation"]
    if isinstance(found, dict):
        return float(found["epsilon_lower"])
    return max(float(attack["epsilon_lower"]) for attack in found)


if __name__ == "__main__":
    main()
