"""The numbers that a release asks its source for: fine enough, and never the same twice.

Releases are rounded to a grid, which hides coarse or repeated numbers from most eyes, not from a patient attacker. So
these are looked at before they are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leakcap.audit.attacks.law import shape_and_tails
from leakcap.audit.statistics import rates
from leakcap.audit.verdicts import SHOWN, Finding, checked
from leakcap.ground.arrays import Floats

__all__ = ["draws"]

NAME = "numbers drawn"
QUESTIONS = 4
COARSE = 2.0**-20  # chance of a number that fits into single precision; of an honest one about 2^-29
ALIKE = 2.0**-45  # chance of any one value; of an honest number at most about 2^-52
SLACK = 0.01  # a share of the numbers


def draws(drawn: Floats, alpha: float) -> Iterator[Finding]:
    """Whether they have all their digits, repeat each other, and are normal. Nothing where nothing is drawn.

    A number that repeats an earlier one has a chance of at most (how many there are) times `ALIKE`, given all before
    it, so their count is below a binomial one; likewise for numbers of too few digits.
    """
    if not drawn.size:
        return
    share = alpha / QUESTIONS
    with np.errstate(over="ignore"):
        short = int((drawn.astype(np.float32).astype(np.float64) == drawn).sum())
    again = drawn.size - len(np.unique(drawn))
    yield _rare("numbers that fit into single precision", short, drawn.size, chance=COARSE, alpha=share)
    yield _rare("numbers drawn a second time", again, drawn.size, chance=min(1.0, drawn.size * ALIKE), alpha=share)
    yield from shape_and_tails(NAME, drawn.reshape(-1, 1), drawn.reshape(-1, 1)[:, :0], share)


def _rare(question: str, found: int, numbers: int, *, chance: float, alpha: float) -> Finding:
    """A count that is binomial with at most this chance: its exact upper tail."""
    ends = rates.interval(found, numbers, SHOWN)
    return checked(
        NAME,
        question,
        measured=found / numbers,
        interval=(0.0 if found == 0 else ends[0], ends[1]),
        claim=0.0,
        slack=SLACK,
        p=float(rates.p_value(found, numbers, chance)),
        alpha=alpha,
        trials=numbers,
        reading="a share of {} of them, where 0 is expected",
    )
