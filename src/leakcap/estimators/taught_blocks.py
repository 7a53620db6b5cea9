"""Teachers of blocks of people: one model for each block, and what it says about public rows. Custodian side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.simulate.teaching import names_classes, own_randomness
from leakcap.worlds import Units

__all__ = ["TaughtBlocks", "as_votes"]

KEPT = 2  # masks whose votes are kept: of one fit there is one, and an audit has a person in and out


def as_votes(scores: Floats) -> Floats:
    """Scores, `(rows, classes)`, as shares of one vote for each row; an even share where they are none."""
    shares = np.clip(np.where(np.isfinite(scores), scores, 0.0), 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / scores.shape[1])


@dataclass(frozen=True, eq=False)
class TaughtBlocks:
    """Rows in blocks, a model that is taught in each, and what it is asked about."""

    teacher: Any
    features: Floats
    codes: Ints  # (rows,): -1 for rows of no class
    units: Units
    of_unit: Ints  # (units,): the block of everybody
    blocks: int
    asked: Floats  # public rows
    basis: Floats  # (asked, directions): what is kept of the votes
    classes: int
    whole_votes: bool  # a class for each row, not shares of one vote
    seed: int
    _last: dict[bytes, Floats] = field(default_factory=dict)

    def vectors(self, mask: Bools) -> Floats:
        """`(blocks, directions x classes)`: votes less even shares, along the directions, of models that are taught the
        rows of those in the mask.

        A model that fails, or answers in another form, votes for all classes alike, and so does a block without rows:
        no other block hears of it. What models say while they learn is for the caller to silence.
        """
        key = mask.tobytes()
        if key not in self._last:
            if len(self._last) == KEPT:
                self._last.pop(next(iter(self._last)))
            self._last[key] = self._taught(mask)
        return self._last[key]

    def of_block(self, mask: Bools, place: int) -> Floats:
        """The same of one block."""
        rows, block = self._rows(mask)
        return self._vector(rows[block == place], place)

    def _taught(self, mask: Bools) -> Floats:
        rows, block = self._rows(mask)
        return np.stack([self._vector(rows[block == place], place) for place in range(self.blocks)])

    def _rows(self, mask: Bools) -> tuple[Ints, Ints]:
        """Rows of those in the mask, and the block of each."""
        rows = self.units.rows_in(mask)
        rows = rows[self.codes[rows] >= 0]
        return rows, self.of_unit[rows if self.units.of_row is None else self.units.of_row[rows]]

    def _vector(self, own: Ints, place: int) -> Floats:
        if not len(own):
            return np.zeros(self.basis.shape[1] * self.classes)
        return np.asarray((self.basis.T @ (self._votes(own, place) - 1 / self.classes)).ravel())

    def _votes(self, own: Ints, place: int) -> Floats:
        known = self.codes[own]
        if (known == known[0]).all():  # many classifiers refuse a single class
            return np.tile(np.eye(self.classes)[known[0]], (len(self.asked), 1))
        try:
            # A seed for each block: what one model draws from the process would show in those after it.
            with own_randomness((self.seed + place) % 2**31):
                return as_votes(self._scores(clone(self.teacher).fit(self.features[own], known)))
        except BaseException:  # whatever it is, it would tell of a person, and other blocks must not go with it
            return np.full((len(self.asked), self.classes), 1 / self.classes)

    def _scores(self, taught: Any) -> Floats:
        found, asked = np.zeros((len(self.asked), self.classes)), self.asked.copy()  # it may be changed in place
        if not self.whole_votes:
            found[:, np.asarray(taught.classes_, dtype=np.intp)] = taught.predict_proba(asked)
            return found
        named = np.asarray(taught.predict(asked))
        if names_classes(named, len(found)):
            right = (named >= 0) & (named < self.classes)
            found[np.flatnonzero(right), named[right]] = 1.0
        return found
