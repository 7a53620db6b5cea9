"""People who could not pay for a question and were left out of its answer: what the custodian is warned of.

Who is left out depends on the pool, the questions and the answers so far, never on a coin (docs/proofs/retire.md). How
many they are is a figure of the pool all the same: analysts hear nothing of it, and under a pool cap the custodian
hears what follows from declarations alone. Nothing of it is written into answers, histories or certificates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from leakcap.custody.ledger.accounts import TICKS
from leakcap.errors import LeftOutWarning
from leakcap.ground.callers import frames_of_ours

__all__ = ["LeftOut", "warn_of_left_out", "warn_of_rows_left_out"]

DIGITS = 3  # of a share that is proposed, rounded down


@dataclass(frozen=True)
class LeftOut:
    """Those who were left out of one answer; custodian side."""

    people: int | None  # how many; None under a pool cap, where nobody may hear it
    of: int  # people in the session
    left: int  # ticks, of the clock of whoever has the least left afterwards

    @property
    def words(self) -> str:
        """Who is missing, and why."""
        if self.people is None:
            return (
                "people may be missing from this answer: by what was declared, the clock is used up. Whoever cannot "
                "pay is left out, the answer is about the others alone, and no interval knows of it"
            )
        who = f"{self.people:,} of {self.of:,} people were" if self.people < self.of else "everybody was"
        about = "about the others alone" if self.people < self.of else "noise alone"
        return (
            f"{who} left out of this answer, because too little of their clock is left for it: the answer is {about}, "
            "and no interval knows of it"
        )

    @property
    def cure(self) -> str:
        """What can be asked from here on."""
        share = math.floor(self.left / TICKS * 10**DIGITS) / 10**DIGITS
        if share:
            return f"From now on everybody can pay for share={share:g} or less"
        somebody = "Somebody may have nothing left" if self.people is None else "Somebody has next to nothing left"
        return f"{somebody}: session.raise_cap(...) gives everybody more"

    @property
    def shown_before(self) -> str:
        """Where it can be seen before anything is spent."""
        return ".fits says whether everybody can pay" if self.people is None else ".retired says how many cannot pay"


def warn_of_left_out(answers: Iterable[LeftOut | None], *, fit: bool = False) -> None:
    """Warn the custodian once, of the answer from which most are missing."""
    missing = [one for one in answers if one is not None]
    if not missing:
        return
    most = max(missing, key=lambda one: one.people or 0)
    look = "session.remaining.share says how much is left" if fit else f"session.preview(...){most.shown_before}"
    warnings.warn(
        f"{most.words}. {missing[-1].cure}; {look}, before anything is spent. This is for you alone: do not publish it",
        LeftOutWarning,
        stacklevel=1 + frames_of_ours(),
    )


def warn_of_rows_left_out(left_out: int, rows: int, most: int | None) -> None:
    """Warn the custodian of rows that are in no answer, because those whose they are have more than were declared."""
    if not left_out or most is None:
        return
    warnings.warn(
        f"{left_out:,} of {left_out + rows:,} rows are in no answer: people have more than rows_per_unit={most:,}, and "
        "so many of theirs count. A larger rows_per_unit= counts more, and makes more noise. This is for you alone: do "
        "not publish it",
        LeftOutWarning,
        stacklevel=1 + frames_of_ours(),
    )
