"""Trees whose form nobody's label touches: features drawn beforehand, thresholds from declared or pool-public ranges.

What is learnt are the values of their leaves. Every row is in one leaf of each tree, so that leaves add up over people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from leakcap.estimators.trees import drawn_nodes, drawn_rungs
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.forest import leaves_of

__all__ = ["Leading", "PublicTrees", "SummingTrees", "even_ladder", "quantile_ladder"]

FAINT = 1e-9  # share of the largest variance below which leaves do not tell rows apart
LEAST = 1e-3  # share of a class, as a probability


def quantile_ladder(features: Floats, rungs: int) -> Floats:
    """`(columns, rungs)`: thresholds that cut the rows of each column into equal parts."""
    return np.asarray(np.quantile(features, np.linspace(0, 1, rungs + 2)[1:-1], axis=0).T)


def even_ladder(low: Floats, high: Floats, rungs: int) -> Floats:
    """`(columns, rungs)`: thresholds evenly spaced between the ends."""
    return np.asarray(low[:, None] + (high - low)[:, None] * np.linspace(0, 1, rungs + 2)[1:-1])


@dataclass(frozen=True, eq=False)
class PublicTrees:
    """Complete trees of one depth, level by level. Public side."""

    nodes: Ints  # (trees, 2**depth - 1): features
    thresholds: Floats  # of the same shape

    @staticmethod
    def drawn(ladder: Floats, trees: int, depth: int, rng: np.random.Generator) -> PublicTrees:
        """Trees with features and thresholds drawn from a ladder of each column."""
        nodes = drawn_nodes(len(ladder), trees, depth, rng)
        return PublicTrees(nodes, ladder[nodes, drawn_rungs(nodes.shape, ladder.shape[1], rng)])

    @property
    def leaves(self) -> int:
        """Of one tree."""
        return int(self.nodes.shape[1]) + 1

    def places(self, features: Floats) -> Ints:
        """`(rows, trees)`: the number of each row's leaf in each tree, counted through all trees."""
        pairs = enumerate(zip(self.nodes, self.thresholds, strict=True))
        found = [tree * self.leaves + leaves_of(features, *own) for tree, own in pairs]
        return np.stack(found, axis=1)

    def inside(self, features: Floats) -> Floats:
        """`(rows, all leaves)`: equal numbers for the leaves that a row is in, of length 1 together; otherwise 0."""
        found = np.zeros((len(features), self.nodes.shape[0] * self.leaves))
        np.put_along_axis(found, self.places(features), 1 / math.sqrt(len(self.nodes)), axis=1)
        return found


@dataclass(frozen=True, eq=False)
class Leading:
    """The few directions in which the leaves of rows differ most: the more leaves two rows share, the closer they are.

    They come from the features of the whole pool, without labels.
    """

    centre: Floats  # (all leaves,): shares of the rows
    directions: Floats  # (all leaves, r)

    @staticmethod
    def of(places: Ints, leaves: int, most: int) -> Leading:
        """At most so many directions, of rows in these leaves."""
        n, trees = places.shape
        inside = sparse.csr_array(
            (np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, trees)), shape=(n, leaves)
        )
        centre = np.asarray(inside.sum(axis=0)).ravel() / n
        scatter = (inside.T @ inside).toarray() / n - np.outer(centre, centre)
        variances, turned = np.linalg.eigh(scatter / trees)
        kept = np.flatnonzero(variances > FAINT)[::-1][:most]
        return Leading(centre, turned[:, kept] / np.sqrt(trees))

    def of_rows(self, places: Ints) -> Floats:
        """`(rows, r)`: where rows lie along the directions."""
        found = np.zeros((len(places), self.directions.shape[1]))
        for column in places.T:
            found += self.directions[column]
        return found - self.centre @ self.directions

    def values(self, coefficients: Floats, intercept: Floats, trees: int) -> Floats:
        """`(all leaves, k)`: what each leaf adds to scores that are linear along the directions."""
        return np.asarray(
            self.directions @ coefficients.T + (intercept - self.centre @ self.directions @ coefficients.T) / trees
        )


@dataclass(eq=False, repr=False)
class SummingTrees(ClassifierMixin, BaseEstimator):
    """A forest that adds up released values of leaves. Made from released numbers, it may be published.

    Attributes:
        nodes_: `(trees, 2**depth - 1)`: the feature of every node, level by level.
        thresholds_: of the same shape: a row goes right where its value is at or above.
        votes_: `(trees, 2**depth, classes)`: what each leaf adds to the score of each class, as released.
        classes_: the classes.
    """

    @classmethod
    def of(cls, trees: PublicTrees, votes: Floats, classes: npt.NDArray[Any]) -> Self:
        """A forest with these trees and values of leaves."""
        made = cls()
        made.nodes_, made.thresholds_, made.classes_ = trees.nodes, trees.thresholds, classes
        made.votes_ = votes.reshape(len(trees.nodes), -1, len(classes))
        return made

    def scores(self, X: Any) -> Floats:
        """`(rows, classes)`: what the leaves of each row add up to."""
        rows = np.asarray(X, dtype=np.float64)
        votes = self.votes_.reshape(-1, len(self.classes_))
        found = np.zeros((len(rows), len(self.classes_)))
        for column in PublicTrees(self.nodes_, self.thresholds_).places(rows).T:
            found += votes[column]
        return found

    def predict_proba(self, X: Any) -> Floats:
        """`(rows, classes)`: scores as shares, positive and adding to 1."""
        found = np.maximum(self.scores(X), LEAST)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the largest score, for each row."""
        return np.asarray(self.classes_[self.scores(X).argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "votes_")
