"""The page of what a run did, stage by stage: for the custodian, since it says how many rows there are."""

from __future__ import annotations

from typing import Any

from leakcap.report.html import render
from leakcap.report.numbers import neat
from leakcap.simulate.run_report import RunReport, StageRan
from leakcap.version import __version__

__all__ = ["run_fragment", "run_page"]

HEADS = ("stage", "steps", "seconds", "steps a second", "rows a second", "MB moved", "workers", "of an earlier run")
WORDS = {
    "rows": "rows read and dealt by whose they are",
    "worlds": "the function in possible worlds",
    "noise": "the least noise that keeps the cap",
    "certificate": "certified against the best attacker",
    "shards": "people in shards, for an answer",
}
COUNTED = ("rows", "worlds", "shards")


def run_page(made: RunReport) -> str:
    """A whole HTML document for the custodian."""
    return render("runs/page.html", version=__version__, **_facts(made))


def run_fragment(made: RunReport) -> str:
    """A part of a notebook."""
    return render("runs/fragment.html", **_facts(made))


def _facts(made: RunReport) -> dict[str, Any]:
    stages = made.stages
    moved = sum(one.moved for one in stages)
    return {
        "sentence": f"{len(stages)} {'stage' if len(stages) == 1 else 'stages'} in {neat(made.seconds, 3)} s"
        + (f"; {neat(moved / 1e6, 3)} MB travelled to and from workers." if moved else ", nothing travelled."),
        "heads": HEADS,
        "rows": [_row(one) for one in stages],
    }


def _row(one: StageRan) -> tuple[str, ...]:
    counted = one.name in COUNTED
    return (
        WORDS.get(one.name, one.name),
        f"{one.done:,}" if counted else "-",
        neat(one.seconds, 3),
        neat(one.per_second, 3) if counted and one.per_second else "-",
        neat(one.rows_per_second, 3) if one.rows else "-",
        neat(one.moved / 1e6, 3) if one.moved else "-",
        str(one.workers),
        f"{one.resumed:,}" if one.resumed else "-",
    )
