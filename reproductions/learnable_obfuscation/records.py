"""Rows for docs/benchmarks.md from the records of the cells: what was asked and what was seen, in a line each."""

from __future__ import annotations

from pathlib import Path

from benchmarks.records import FOLDER as RECORDS
from benchmarks.records import Record

from reproductions.learnable_obfuscation import beside, told
from reproductions.learnable_obfuscation.cells import MEASURED, cells_of
from reproductions.learnable_obfuscation.told import Measured
from reproductions.marked import NOT_RUN

__all__ = ["made", "store"]

TOLD = {
    "printed": (
        "Tables 3 and 5 of Learnable Obfuscation: nats behind the printed figures beside the entropy of the bit",
        "more than the entropy in all 36 cells",
    ),
    "unencoded": (
        "Learnable Obfuscation, Table 1 without noise, CIFAR-10 embeddings, beside the same rows un-encoded",
        "within 3 points",
    ),
    "certified": ("Learnable Obfuscation, Table 3: balanced success certified for all rows of the pool", "-"),
    "learnable": ("Learnable Obfuscation, Tables 2 and 5: what public rows add at equal certified success", "-"),
}


def made(folder: Path = MEASURED) -> list[Record]:
    """A record for each finding whose cells were measured."""
    records = Measured(folder)
    seen = {
        "printed": told.printed_figures(),
        "unencoded": told.unencoded(records),
        "certified": certified(records),
        "learnable": beside.learnable_words(records),
    }
    dates = [found["date"] for kind, cell in told.wanted() if (found := records(kind, cell))]
    return [
        Record(
            name=f"learnable-obfuscation-{name}",
            topic="Reproductions",
            claim=TOLD[name][0],
            command="python -m reproductions.learnable_obfuscation page",
            machine="one H200",
            date=max(dates),
            asked=TOLD[name][1],
            seen=_line(words),
        )
        for name, words in seen.items()
        if words != NOT_RUN and dates
    ]


def certified(records: Measured) -> str:
    """The range of what is certified in the cells of Table 3."""
    found = [one for cell in cells_of(3) if (one := records("member", cell))]
    if not found:
        return NOT_RUN
    worst, mean = ([one[name] for one in found] for name in ("success_certified", "mean_success_certified"))
    return (
        f"worst row {told.success(min(worst))} to {told.success(max(worst))}, mean {told.success(min(mean))} to "
        f"{told.success(max(mean))}, in {len(found)} cells"
    )


def _line(words: str) -> str:
    """A finding as one line without marks of lists."""
    return "; ".join(line.removeprefix("* ").rstrip(".") for line in words.strip().splitlines())


def store(folder: Path = RECORDS) -> None:
    """Write them; `python -m benchmarks page` shows them."""
    for one in made():
        one.store(folder)
