"""Noise that teaches: public rows, mixed and masked by a mask of their own, are added to the private ones.

The server learns both tasks at once; labels are those of the private means, followed by those of the public ones. A
query is added to many public rows in turn, and their votes decide. Public rows are nobody's secret: they are in no
sample, and no figure of a certificate is about them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError, LeakcapWarning
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.callers import frames_of_ours
from leakcap.noise.entropy import Randomness
from leakcap.obfuscation.design import MixingDesign
from leakcap.obfuscation.mixing import mixed_rows, pair_labels
from leakcap.obfuscation.rows import RowRule, classes_of, numbers

__all__ = ["VOTERS", "PublicRows", "PublicShare"]

VOTERS = 100  # public rows that a query is added to


@dataclass(frozen=True)
class PublicShare:
    """What public rows bring to every released row, before it is masked; the attacker may know all of it."""

    mixed: Floats  # (rows_released, columns)
    labels: Floats  # (rows_released, public classes)


@dataclass(frozen=True)
class PublicRows:
    """Public rows and their classes."""

    rows: Floats
    codes: Ints
    classes: int

    @classmethod
    def of(cls, public: Any, rule: RowRule, columns: int) -> PublicRows:
        if not isinstance(public, (tuple, list)) or len(public) != 2:
            raise InputError("public= must be (X, y): public rows of the same columns, and their labels")
        rows = rule(numbers(public[0], columns))
        names, codes = classes_of(public[1], len(rows))
        return cls(rows, codes, len(names))

    def warn_of_shared(self, pool: Floats) -> None:
        """Rows that are in the pool, too, are somebody's secret: what the certificate leaves out for public rows."""
        private = {row.tobytes() for row in pool}
        if any(row.tobytes() in private for row in self.rows):
            warnings.warn(
                "some public rows are rows of the pool, too. Public rows are taken for known to the server, and "
                "nothing is promised about them: leave them out of the pool, or out of public=. Go on if different "
                "units merely have the same values",
                LeakcapWarning,
                stacklevel=1 + frames_of_ours(),
            )

    def share(self, design: MixingDesign, randomness: Randomness) -> PublicShare:
        """Means of public rows of two classes drawn at random, one for each released row; columns in a random order."""
        members = [np.flatnonzero(self.codes == one) for one in range(self.classes)]
        mix = min(design.mix, *(len(one) for one in members))
        drawn = randomness.bits().integers(0, self.classes, size=2 * design.rows_released)
        halves = drawn[: design.rows_released], drawn[design.rows_released :]
        labels = pair_labels(*halves, self.classes)[:, randomness.bits().permutation(self.classes)]
        return PublicShare(mixed_rows(self.rows, members, halves, mix=mix, randomness=randomness), labels)

    def voters(self, randomness: Randomness) -> Floats:
        """The public rows that queries are added to."""
        return self.rows[randomness.bits().permutation(len(self.rows))[:VOTERS]]
