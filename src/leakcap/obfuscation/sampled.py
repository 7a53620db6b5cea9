"""Draws of what stays secret in an obfuscation: who is sampled, how rows are mixed, and who is swapped with whom.

In every class some of its rows are sampled. A released row of the classes (i, j) is the mean of `mix` sampled rows of
class i and `mix` of class j. One draw serves every unit of the pool: who is in the sample is swapped for a uniform
outsider of the class, who is not takes the place of a uniform insider (proof page: obfuscation-confidence).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats, Ints

__all__ = [
    "MixedDraw",
    "MixingLaw",
    "RowSwaps",
    "all_class_pairs",
    "draw_mixed",
    "draw_rows",
    "draw_swaps",
    "mixing_weights",
    "starts_of",
]

NUMBERS = 2**22  # random numbers held at once


def all_class_pairs(classes: int, rows: int) -> Ints:
    """`(classes^2 rows, 2)`: the two classes of every released row, `rows` of each ordered pair."""
    first, second = np.divmod(np.arange(classes * classes), classes)
    return np.repeat(np.stack([first, second], axis=1), rows, axis=0).astype(np.intp)


@dataclass(frozen=True, eq=False)
class MixingLaw:
    """The public rules of an obfuscation: everything about its law but the pool's rows and the noise.

    Attributes:
        labels: `(N,)` class of every unit of the pool, numbered from 0.
        sampled: how many rows of each class are sampled; fewer than the class has.
        mix: how many rows of a class each released row is mixed from.
        pairs: `(m, 2)` the two classes of every released row.
        columns: how many columns are released (of one block).
    """

    labels: Ints
    sampled: int
    mix: int
    pairs: Ints
    columns: int

    def __post_init__(self) -> None:
        checks.count(sampled=self.sampled)
        checks.count(mix=self.mix)
        checks.count(columns=self.columns)
        sizes = np.bincount(self.labels)
        if not len(self.labels) or (sizes == 0).any():
            raise InputError("labels must be numbered from 0, without a class that has no rows")
        if (sizes <= self.sampled).any():
            raise InputError("every class needs more rows than are sampled: otherwise everybody is known to take part")
        if self.mix > self.sampled:
            raise InputError("mix must not exceed the rows that are sampled of a class")
        if self.pairs.ndim != 2 or self.pairs.shape[1] != 2 or not len(self.pairs):
            raise InputError("pairs must have one row of two classes for every released row")
        if self.pairs.min() < 0 or self.pairs.max() >= len(sizes):
            raise InputError("pairs must name classes of the pool")

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def members(self) -> int:
        """How many rows are sampled together."""
        return self.classes * self.sampled

    @property
    def rates(self) -> Floats:
        """`(N,)`: with what probability every unit is sampled."""
        return np.asarray(self.sampled / np.bincount(self.labels)[self.labels])

    @property
    def heaviest(self) -> float:
        """The largest squared length that a column of the mixing can have: somebody in every row of the class."""
        shares = (self.pairs[:, :, None] == np.arange(self.classes)).sum(axis=1) / (2 * self.mix)
        return float((shares**2).sum(axis=0).max())


@dataclass(frozen=True, eq=False)
class MixedDraw:
    """One draw.

    Attributes:
        rows: `(n,)` the sampled units of the pool, class by class.
        weights: `(m, n)` sparse: how released rows are mixed from them.
    """

    rows: Ints
    weights: sparse.csr_matrix


@dataclass(frozen=True, eq=False)
class RowSwaps:
    """Swaps of one draw: everybody of the pool with somebody of the class on the other side.

    Attributes:
        places: `(swaps, N)` columns of the mixing whose row is exchanged.
        joins: `(swaps, N)` units of the pool that take the place.
        inside: `(N,)` who is in the sample of the draw and leaves it.
    """

    places: Ints
    joins: Ints
    inside: Bools


def draw_mixed(law: MixingLaw, rng: np.random.Generator) -> MixedDraw:
    """A sample and a mixing by the law of the secret. The order of released rows is left out: it changes no bound."""
    rows = draw_rows(law, rng)
    picks = [_choices(len(law.pairs), law.sampled, law.mix, rng) + starts_of(law)[:, side, None] for side in (0, 1)]
    return MixedDraw(rows, mixing_weights(law, np.hstack(picks)))


def draw_rows(law: MixingLaw, rng: np.random.Generator) -> Ints:
    """`(n,)`: a uniform sample of every class, class by class."""
    of_class = [np.flatnonzero(law.labels == one) for one in range(law.classes)]
    return np.concatenate([rng.permutation(rows)[: law.sampled] for rows in of_class]).astype(np.intp)


def starts_of(law: MixingLaw) -> Ints:
    """`(m, 2)`: at which place of the sample the two classes of every released row begin."""
    return np.asarray(law.pairs * law.sampled)


def mixing_weights(law: MixingLaw, picks: Ints) -> sparse.csr_matrix:
    """`(m, n)` sparse, from the places `(m, 2 mix)` of the sample that every released row is mixed from."""
    m, both = picks.shape
    values = np.full(m * both, 1 / both)
    weights = sparse.csr_matrix((values, picks.ravel(), np.arange(m + 1) * both), shape=(m, law.members))
    weights.sum_duplicates()  # rows of one class with itself may draw somebody twice
    return weights


def _choices(times: int, size: int, mix: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """`(times, mix)`: so many of `size` without replacement, each time anew."""
    chosen = np.empty((times, mix), dtype=np.intp)
    step = max(1, NUMBERS // size)
    for start in range(0, times, step):
        keys = rng.random((min(step, times - start), size))
        chosen[start : start + step] = np.argpartition(keys, mix - 1, axis=1)[:, :mix]
    return chosen


def draw_swaps(law: MixingLaw, sample: Ints, swaps: int, rng: np.random.Generator) -> RowSwaps:
    """So many swaps of every unit of the pool, each with a uniform partner."""
    units = len(law.labels)
    inside = np.zeros(units, dtype=np.bool_)
    inside[sample] = True
    places, joins = np.empty((swaps, units), dtype=np.intp), np.empty((swaps, units), dtype=np.intp)
    place = np.empty(units, dtype=np.intp)
    place[sample] = np.arange(len(sample))
    for one in range(law.classes):
        of_class = law.labels == one
        members, others = np.flatnonzero(of_class & inside), np.flatnonzero(of_class & ~inside)
        places[:, members] = place[members]
        joins[:, members] = others[rng.integers(len(others), size=(swaps, len(members)))]
        joins[:, others] = others
        places[:, others] = place[members[rng.integers(len(members), size=(swaps, len(others)))]]
    return RowSwaps(places, joins, inside)
