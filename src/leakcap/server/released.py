"""Everything that was released so far, of every data set: fit to be filed in an impact assessment."""

from __future__ import annotations

import json
from dataclasses import dataclass

from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import export, show
from leakcap.server.datasets import Datasets

UNCHARGED = ("release", "alone")  # releases that have an account to themselves, or none

__all__ = ["ReleasedLine", "asked_words", "released_so_far"]


@dataclass(frozen=True)
class ReleasedLine:
    """One answer that somebody got. Custodian side: questions are analysts' own words."""

    dataset: str
    number: int
    at: str  # ISO time, UTC
    who: str
    question: str
    share: float  # of the clock of whoever paid the most
    numbers: int  # how many were released


def released_so_far(datasets: Datasets) -> list[ReleasedLine]:
    """All answers, in the order of their times."""
    found = []
    for name in (one.name for one in show(datasets.book)):  # also what was published outside of sessions
        for row in export(datasets.account(name)):
            if row["charge"] > 0 or row["kind"] in UNCHARGED:
                found.append(
                    ReleasedLine(
                        dataset=name,
                        number=row["number"],
                        at=row["at"],
                        who=str(row["who"]),
                        question=asked_words(str(row["text"])),
                        share=row["charge"] / TICKS,
                        numbers=len(row["numbers"]),
                    )
                )
    return sorted(found, key=lambda one: (one.at, one.dataset, one.number))


def asked_words(question: str) -> str:
    """A question as it was asked: its SQL, where it was in SQL."""
    try:
        told = json.loads(question)
    except ValueError:
        return question
    return str(told.get("sql", question)) if isinstance(told, dict) else question
