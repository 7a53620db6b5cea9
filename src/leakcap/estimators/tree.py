"""A private decision tree: level by level, by noised counts of the classes along its columns."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.estimators.classifiers import Probabilities
from leakcap.estimators.rounds import ClassifierInRounds, RoundRows
from leakcap.estimators.settings import seed_of
from leakcap.estimators.trees import VotingTrees
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints

__all__ = ["DecisionTreeClassifier"]

LEAVES_SHARE = 0.5  # of the clock, for counts in the leaves; the rest is for choosing splits
MAX_DEPTH = 10


@dataclass(eq=False, repr=False)
class DecisionTreeClassifier(Probabilities, ClassifierInRounds):
    """A decision tree with private splits and leaves: every level is one more noised sum over people, of one session.

    At each level the classes are counted in every node along some columns, drawn beforehand, each cut into bins: at the
    pool's quantiles, or evenly within declared bounds. Every node takes the split that, by these noised counts, leaves
    least impurity. Counts of the leaves are asked last. The cap holds for all of them together.

    Guarantee: what `certificate_` states: against whoever knows everybody else's coins; under a pool cap, about being
    in the data at all.

    Args:
        max_depth: depth of the tree, which has `2**max_depth` leaves.
        max_features: columns that each level looks at, drawn beforehand: a number, "sqrt" for the root of their number,
            or None for all. More of them need more noise.
        n_thresholds: thresholds of each column.
        classes: under a pool cap, the classes there may be, known without the data. Rows of others count nowhere.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`, or `lc.pool_membership(0.55)`.
        worlds: not taken: everybody has a coin of their own.
        strata: not taken.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: not taken: the certificate is that of a session.
        options: `{"bounds": (low, high), "rows_per_unit": 1, "ledger": ..., "name": ...}`, as for `leakcap.Session`.

    Attributes:
        nodes_: `(1, 2**depth - 1)`, released: the feature of every node, level by level.
        thresholds_: of the same shape, released: a row goes right where its value is at or above.
        votes_: `(1, 2**depth, classes)`, released counts; noise may have taken some below 0.
        classes_: the classes that occur in the pool, or those declared.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: there is none: rounds are answers of a session.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(400, centers=2, random_state=0)
        >>> model = DecisionTreeClassifier(2, cap=lc.membership(0.6), random_state=0)
        >>> model.fit(X, y).votes_.shape
        (1, 4, 2)
    """

    max_depth: int = 3
    _: KW_ONLY
    max_features: Any = "sqrt"
    n_thresholds: int = 7

    def _learnt(self, rows: RoundRows, classes: npt.NDArray[Any]) -> VotingTrees:
        depth = checks.count(max_depth=self.max_depth)
        if depth > MAX_DEPTH:
            raise InputError(f"max_depth must be {MAX_DEPTH} at most: a tree of noised counts gains nothing beyond")
        rng, share = np.random.default_rng(seed_of(self.random_state) or 0), rows.fitting.share
        bins = _bins(rows.features, rows.ladder)
        nodes, rungs = np.zeros(2**depth - 1, dtype=np.intp), np.zeros(2**depth - 1, dtype=np.intp)
        at = np.zeros(len(bins), dtype=np.intp)  # the node of each row, counted in its level
        for level in range(depth):
            seen = rng.permutation(bins.shape[1])[: self._looked_at(bins.shape[1])]
            counts = _counted(rows, bins[:, seen], at, level=level, share=share * (1 - LEAVES_SHARE) / depth)
            own = slice(2**level - 1, 2 ** (level + 1) - 1)
            column, rungs[own] = _purest(counts)
            nodes[own] = seen[column]
            at = 2 * at + (np.take_along_axis(bins, nodes[own][at][:, None], axis=1)[:, 0] > rungs[own][at])
        leaves, _ = rows.asked(np.eye(2**depth)[at], rows.kinds, most=1.0, share=share * LEAVES_SHARE, step="leaves")
        return VotingTrees.of(nodes[None], rows.ladder[nodes, rungs][None], leaves[None], classes)

    def _looked_at(self, columns: int) -> int:
        if self.max_features is None:
            return columns
        if self.max_features == "sqrt":
            return math.ceil(math.sqrt(columns))
        return min(checks.count(max_features=self.max_features), columns)


def _bins(features: Floats, ladder: Floats) -> Ints:
    """`(rows, columns)`: how many thresholds of its column each number is at or above."""
    pairs = zip(ladder, features.T, strict=True)
    return np.stack([np.searchsorted(line, own, side="right") for line, own in pairs], axis=1)


def _counted(rows: RoundRows, bins: Ints, at: Ints, *, level: int, share: float) -> Floats:
    """Noised counts, `(nodes, columns, bins, classes)`. A row counts once for each column."""
    columns, count = bins.shape[1], rows.ladder.shape[1] + 1
    inside = np.zeros((len(bins), 2**level * columns * count))
    places = (at[:, None] * columns + np.arange(columns)) * count + bins
    np.put_along_axis(inside, places, 1 / math.sqrt(columns), axis=1)
    sums, _ = rows.asked(inside, rows.kinds, most=1.0, share=share, step=level)
    return (sums * math.sqrt(columns)).reshape(2**level, columns, count, -1)


def _purest(counts: Floats) -> tuple[Ints, Ints]:
    """For every node, the column and the threshold that leave least impurity (Gini) on both sides."""
    left = counts.cumsum(axis=2)[:, :, :-1]
    # Every column counts the same rows: their mean has the least noise.
    whole = counts.sum(axis=2).mean(axis=1)[:, None, None]
    gained = _squared_share(left) + _squared_share(whole - left)
    best = gained.reshape(len(counts), -1).argmax(axis=1)
    return np.asarray(best // gained.shape[2]), np.asarray(best % gained.shape[2])


def _squared_share(counts: Floats) -> Floats:
    """The number of rows times the probability that two of them are of one class."""
    held = np.maximum(counts, 0.0)
    return np.asarray((held**2).sum(axis=-1) / np.maximum(held.sum(axis=-1), 1.0))
