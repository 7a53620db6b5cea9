"""Teachers of blocks of people: one model for each block, and what it says about public rows. Custodian side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.sessions.block_votes import as_votes
from leakcap.simulate.teaching import names_classes, own_randomness
from leakcap.worlds import Units

__all__ = ["TaughtBlocks"]


@dataclass(frozen=True, eq=False)
class TaughtBlocks:
    """Rows in blocks, a model that is taught in each, and what it is asked about."""

    teacher: Any
    features: Floats
    codes: Ints  # (rows,): -1 for rows of no class
    units: Units
    of_unit: Ints  # (units,): the block of everybody
    blocks: int
    asked: Any  # public rows
    classes: int
    whole_votes: bool  # a class for each row, not shares of one vote
    seed: int

    def votes(self, mask: Bools) -> Floats:
        """`(blocks, asked, classes)` of models that are taught the rows of those in the mask.

        A model that fails, or answers in another form, has no vote, and so has a block without rows: no other block
        hears of it. What models say while they learn is for the caller to silence.
        """
        rows = self.units.rows_in(mask)
        rows = rows[self.codes[rows] >= 0]
        block = self.of_unit[rows if self.units.of_row is None else self.units.of_row[rows]]
        found = np.zeros((self.blocks, len(self.asked), self.classes), dtype=np.float32)
        for place in range(self.blocks):
            own = rows[block == place]
            if len(own):
                found[place] = self._said(own, place)
        return found

    def _said(self, own: Ints, place: int) -> Floats:
        known = self.codes[own]
        if (known == known[0]).all():  # many classifiers refuse a single class
            return np.tile(np.eye(self.classes)[known[0]], (len(self.asked), 1))
        try:
            # A seed for each block: what one model draws from the process would show in those after it.
            with own_randomness((self.seed + place) % 2**31):
                return as_votes(self._scores(clone(self.teacher).fit(self.features[own], known)))
        except BaseException:  # whatever it is, it would tell of a person, and other blocks must not go with it
            return np.zeros((len(self.asked), self.classes))

    def _scores(self, taught: Any) -> Floats:
        found = np.zeros((len(self.asked), self.classes))
        if not self.whole_votes:
            found[:, np.asarray(taught.classes_, dtype=np.intp)] = taught.predict_proba(self.asked)
            return found
        named = np.asarray(taught.predict(self.asked))
        if names_classes(named, len(found)):
            right = (named >= 0) & (named < self.classes)
            found[np.flatnonzero(right), named[right]] = 1.0
        return found
