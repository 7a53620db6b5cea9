"""Trees of fixed structure: what is settled before a world is known, how trees grow, and how released ones predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin

from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.forest import forest, leaves_of
from leakcap.kernels.moments import shares
from leakcap.worlds import Worlds

__all__ = ["Rulers", "Skeleton", "VotingTrees", "drawn_nodes", "drawn_rungs", "shrunk"]

SPREAD = 4  # numbers whose mean is a random threshold's place in its range: the middle is likelier than the ends
RELIANCE = 3.0  # times the noise of a vote: a node with so many votes counts as much as all that is above it
SLOPE = 1e-4  # share of rows by which a ruler rises over a whole ladder without rows, so that places stay apart
TIE = 1e-9  # relative: costs that differ by less are equal


def drawn_nodes(features: int, trees: int, depth: int, rng: np.random.Generator) -> Ints:
    """`(trees, 2**depth - 1)`: the feature of every node; none twice on the way to a leaf, while they suffice."""
    found = np.empty((trees, 2**depth - 1), dtype=np.intp)
    for nodes in found:
        for a in range(len(nodes)):
            level = (a + 1).bit_length() - 1
            above = [((a + 1) >> up) - 1 for up in range(level, 0, -1)][level // features * features :]
            nodes[a] = rng.choice(np.setdiff1d(np.arange(features), nodes[above]))
    return found


def drawn_rungs(shape: tuple[int, ...], rungs: int, rng: np.random.Generator) -> Ints:
    """For every node a number below `rungs`, more often from the middle."""
    return np.floor(rng.random((SPREAD, *shape)).mean(axis=0) * rungs).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Skeleton:
    """What is settled about trees before a world is known."""

    nodes: Ints  # (trees, inner): features
    ladder: Floats  # (features, rungs): thresholds to choose from
    penalties: Floats | None  # of the same shape, in nats times rows
    smoothing: float
    class_weight: Floats | str | None
    classes: int
    pool: int  # rows of the pool
    drawn: Ints | None  # (trees, inner): rungs, where they are drawn and not chosen

    @property
    def inner(self) -> int:
        """Nodes of a tree that have children."""
        return int(self.nodes.shape[1])

    def grown(self, features: Floats, codes: Ints, worlds: Worlds) -> tuple[Ints, Floats]:
        """In all worlds: rungs `(m, trees, inner)`, and votes `(m, trees, leaves, classes)` as shares of the world."""
        if self.drawn is not None:
            place = self._leaves(features) * self.classes + codes[:, None]
            found = shares(place, (self.inner + 1) * self.classes, worlds)
            rungs = np.broadcast_to(self.drawn, (worlds.m, *self.drawn.shape))
            return rungs, self._weighed(found.reshape(worlds.m, len(self.nodes), -1, self.classes))
        found = forest(
            features,
            codes,
            worlds,
            nodes=self.nodes,
            thresholds=self.ladder,
            classes=self.classes,
            smoothing=self.smoothing,
            penalties=self.penalties,
            class_weight=self.class_weight,
            share_of="world",
            pool=self.pool,
        )
        rungs = np.empty((worlds.m, *self.nodes.shape), dtype=np.intp)
        for tree, nodes in enumerate(self.nodes):
            for a, feature in enumerate(nodes):
                rungs[:, tree, a] = np.searchsorted(self.ladder[feature], found[:, tree, a])
        return rungs, found[:, :, self.inner :].reshape(worlds.m, len(self.nodes), -1, self.classes)

    def grown_by_weight(self, features: Floats, codes: Ints, weight: Floats) -> tuple[Ints, Floats]:
        """The same in one world, for rows of different weight; in plain NumPy."""
        totals: Floats = np.bincount(codes, weights=weight, minlength=self.classes).astype(np.float64)
        own: Floats = weight * self._scale(totals)[codes]
        if own.any():
            own *= weight.sum() / own.sum()  # a row still counts one on average
        rungs = np.zeros(self.nodes.shape, dtype=np.intp) if self.drawn is None else self.drawn
        if self.drawn is None:
            for tree, nodes in enumerate(self.nodes):
                rungs[tree] = self._chosen(nodes, features, codes, own)
        leaves = self._leaves(features, rungs)
        votes = np.zeros((len(self.nodes), self.inner + 1, self.classes))
        for tree, leaf in enumerate(leaves.T):
            np.add.at(votes[tree], (leaf, codes), own)
        return rungs, votes / own.sum() if own.any() else np.full(votes.shape, 1 / votes[0].size)

    def _chosen(self, nodes: Ints, features: Floats, codes: Ints, own: Floats) -> Ints:
        """The rung of every node of one tree."""
        rungs = np.zeros(len(nodes), dtype=np.intp)
        at = np.zeros(len(features), dtype=np.intp)
        for a, feature in enumerate(nodes):
            if a & (a + 1) == 0 and a:  # a new level: all rows go down
                up = nodes[at]
                at = 2 * at + 1 + (features[np.arange(len(at)), up] >= self.ladder[up, rungs[at]])
            here = at == a
            bins = np.searchsorted(self.ladder[feature], features[here, feature], side="right")
            count = self.ladder.shape[1] + 1
            cells = np.bincount(bins * self.classes + codes[here], weights=own[here], minlength=count * self.classes)
            left = cells.reshape(count, -1).cumsum(axis=0)
            # The last threshold cuts nothing off, and neither does one below all values.
            entropy = _entropy(left) + _entropy(left[-1] - left)
            around = np.concatenate([entropy[-1:], entropy])
            costs = (1 - self.smoothing) * around[1:-1] + self.smoothing * (around[:-2] + around[2:])
            if self.penalties is not None:
                costs = costs + self.penalties[feature]
            rungs[a] = np.argmax(costs <= costs.min() + TIE * (1 + np.abs(costs).max()))
        return rungs

    def _leaves(self, features: Floats, rungs: Ints | None = None) -> Ints:
        """`(rows, trees)`: the leaf of each row in each tree."""
        chosen = self.drawn if rungs is None else rungs
        assert chosen is not None
        pairs = zip(self.nodes, chosen, strict=True)
        return np.stack([leaves_of(features, nodes, self.ladder[nodes, own]) for nodes, own in pairs], axis=1)

    def _scale(self, totals: Floats) -> Floats:
        """What a row of each class counts, where the classes have these totals."""
        if isinstance(self.class_weight, str):
            return np.asarray(self.pool / self.classes / np.where(totals > 0, totals, np.inf))
        return np.ones(self.classes) if self.class_weight is None else np.asarray(self.class_weight)

    def _weighed(self, votes: Floats) -> Floats:
        """Votes of equal rows, by the weights of their classes."""
        if self.class_weight is None:
            return votes
        found = votes * np.array([[self._scale(one) for one in tree] for tree in votes.sum(axis=2)])[:, :, None]
        total = found.sum(axis=(2, 3), keepdims=True)
        return np.asarray(np.where(total > 0, found / np.where(total > 0, total, 1), 1 / votes[0, 0].size))


def _entropy(counts: Floats) -> Floats:
    """Entropy of the classes on the last axis, times their total."""
    held = np.maximum(counts, 0.0)  # differences of sums may fall below by rounding
    return np.asarray(xlogy(held.sum(axis=-1), held.sum(axis=-1)) - xlogy(held, held).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Rulers:
    """Thresholds as shares of the pool's rows: those that come to the threshold's node and lie below it.

    An error then counts by the rows it moves, whatever the units of the feature and however many rows the node has.
    """

    marks: Floats  # (trees, inner, rungs), ascending
    thresholds: Floats  # of the same shape

    @staticmethod
    def of(features: Floats, skeleton: Skeleton, rungs: Ints) -> Rulers:
        """Rulers from the whole pool, sent down trees with these rungs."""
        count = skeleton.ladder.shape[1]
        marks = np.zeros((*skeleton.nodes.shape, count + 1))
        every = np.arange(len(features))
        columns = zip(skeleton.ladder, features.T, strict=True)
        place = np.stack([np.searchsorted(line, own, side="right") for line, own in columns], axis=1)
        for tree, nodes in enumerate(skeleton.nodes):
            at = np.zeros(len(features), dtype=np.intp)
            for _ in range(len(nodes).bit_length()):
                own = place[every, nodes[at]]
                np.add.at(marks[tree], (at, own), 1 / len(features))
                at = 2 * at + 1 + (own > rungs[tree, at])
        below = marks.cumsum(axis=2)[:, :, :-1] + np.linspace(0, SLOPE, count)
        return Rulers(below, skeleton.ladder[skeleton.nodes])

    def read(self, rungs: Ints) -> Floats:
        """`(..., trees, inner)`: the marks of these rungs."""
        trees, inner = self.marks.shape[:2]
        return self.marks[np.arange(trees)[:, None], np.arange(inner), rungs]

    def find(self, marks: Floats) -> Floats:
        """`(trees, inner)`: the thresholds at these marks, inside their ladders."""
        found = np.empty(marks.shape)
        for tree, own in enumerate(marks):
            for a, mark in enumerate(own):
                found[tree, a] = np.interp(mark, self.marks[tree, a], self.thresholds[tree, a])
        return found


@dataclass(eq=False, repr=False)
class VotingTrees(ClassifierMixin, BaseEstimator):
    """A forest that predicts from its thresholds and votes alone. Made from released numbers, it may be published.

    Attributes:
        nodes_: `(trees, 2**depth - 1)`: the feature of every node, level by level.
        thresholds_: of the same shape: a row goes right where its value is at or above.
        votes_: `(trees, 2**depth, classes)`: which share of all rows each leaf and class has, as released: noise may
            have taken some below 0.
        classes_: the classes.
    """

    @staticmethod
    def of(nodes: Ints, thresholds: Floats, votes: Floats, classes: npt.NDArray[Any]) -> VotingTrees:
        """A forest with these nodes, thresholds and votes."""
        made = VotingTrees()
        made.nodes_, made.thresholds_, made.votes_, made.classes_ = nodes, thresholds, votes, classes
        return made

    def predict_proba(self, X: Any) -> Floats:
        """`(rows, classes)`: the mean over the trees of the shares of the classes in each row's leaf."""
        rows = np.asarray(X, dtype=np.float64)
        found = np.zeros((len(rows), len(self.classes_)))
        for nodes, thresholds, leaves in zip(self.nodes_, self.thresholds_, shrunk(self.votes_), strict=True):
            found += leaves[leaves_of(rows, nodes, thresholds)]
        return found / len(self.nodes_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the largest share, for each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "votes_")


def shrunk(votes: Floats) -> Floats:
    """`(trees, leaves, classes)`: shares within each leaf, from noised votes; they are positive and add to 1.

    True votes cannot be negative, so negative ones show how large the noise is. Where a node has few votes beside
    that, its shares are drawn towards those of the node above.
    """
    below = votes[votes < 0]
    strength = 1e-9 + (RELIANCE * float(np.sqrt((below**2).mean())) if below.size else 0.0)
    levels = [votes]
    while levels[-1].shape[1] > 1:
        levels.append(levels[-1][:, 0::2] + levels[-1][:, 1::2])
    found = np.full((len(votes), 1, votes.shape[2]), 1 / votes.shape[2])
    for level in levels[::-1]:
        above = np.repeat(found, level.shape[1] // found.shape[1], axis=1)
        own = np.maximum(level, 0)
        found = (own + strength * above) / (own.sum(axis=2, keepdims=True) + strength)
    return found
