"""Clocks that lean: what they show after an answer hangs a little on the answer, by a rule that is fixed before.

Where an answer leaves few worlds in play, all that is asked later tells more about everybody. After such an answer
clocks show more, and after others less, so that sessions end after about as many answers, whichever they are. Any such
rule keeps the cap if the mean of the potential does not rise (docs/proofs/clock.md); this one gives some five per cent
more answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats

__all__ = ["RECENT", "Lean", "lean_of"]

RECENT, FEWEST = 256, 16  # past questions that stand for those to come: at most, and from how many on clocks lean
PART = 0.25  # of what would make up for all: clocks that lean cost something themselves
SMALL = 0.5  # deviations: questions that spread more are answered in leaps, and slopes say nothing about leaps
FURTHEST = 0.1  # of one answer: a tenth of what a clock shows
LEAST = 0.1  # of the average price: what costs next to nothing has no slope


@dataclass(frozen=True, eq=False)
class Lean:
    """How prices of questions like the recent ones move with the next answer.

    Attributes:
        now: `(worlds, questions)`, weights of worlds times what the recent questions are there, centred.
        moved: by how much that grows with the answer, in deviations of its noise.
        shift: `(worlds,)`, by how much the weights grow with it.
        offsets: `(cells,)`, the answers, in deviations from what is expected.
    """

    now: Floats
    moved: Floats
    shift: Floats
    offsets: Floats

    def of(self, columns: Floats, members: Floats) -> Floats:
        """Factors of what clocks show after each answer, `(cells, units)`."""
        columns = columns.astype(self.now.dtype)
        apart, moved = self.now.T @ columns, self.moved.T @ columns - np.outer(self.moved.sum(axis=0), members)
        price = (apart**2).sum(axis=0)
        slope = 2 * (apart * moved).sum(axis=0) / (price + LEAST * price.mean() + np.finfo(float).tiny)
        # Prices are in units of what is not known yet about a person.
        both = np.maximum(members * (1 - members), 1e-6)
        slope = slope - 2 * (1 - 2 * members) / both * (self.shift @ columns)
        return np.exp(np.clip(PART * np.outer(self.offsets, slope), -FURTHEST, FURTHEST))


def lean_of(weights: Floats, asked: Floats, recent: npt.NDArray[np.floating[Any]], values: Floats) -> Lean | None:
    """The lean of clocks at a question; None where they stand upright.

    Args:
        weights: of the worlds.
        asked: `(worlds,)`, the number in every world, in deviations of its noise.
        recent: `(questions, worlds)`, those before it.
        values: `(cells,)`, the answers, in the same units.
    """
    centred = asked - weights @ asked
    if len(recent) < FEWEST or not 0 < weights @ centred**2 <= SMALL**2:
        return None
    questions = recent - (recent @ weights)[:, None]
    now = (questions * weights).T
    shift = weights * centred
    return Lean(
        now.astype(np.float32),
        (questions * shift).T.astype(np.float32),
        shift.astype(np.float32),
        values - weights @ asked,
    )
