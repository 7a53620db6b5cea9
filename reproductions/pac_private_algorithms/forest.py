"""Forests of fixed structure: thresholds, and the classes' shares in every leaf.

Every level of a tree splits on one feature, drawn beforehand (paper, section 5.4). Naive trees choose among the
pool's own values; regularised ones among multiples of `p`, with the neighbours' entropy weighing `w1` and a penalty
`w2` on the threshold.

Differs from the paper: leaves are in the noised vector, in the paper's series too (but for those that show what its
public code does), as shares of the classes, of which the largest names the class; its public code leaves them as they
are. The text's penalty is absolute: entropy is counted in rows there. The public code's is `relative` to the rows of
the node, and its trees have `votes`; the plain accuracies that the paper states are those.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import kernels
from leakcap.kernels.forest import forest, predict_forest
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import SCALED, Split
from reproductions.pac_private_algorithms.growth import Penalty, grown
from reproductions.pac_private_algorithms.series import Study

__all__ = ["Trees", "handed_out", "trees"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
CANDIDATES = 255  # of the pool's values, at most, from which a naive node chooses


@dataclass(frozen=True)
class Trees:
    """How trees are grown; `p` None means naive."""

    count: int
    depth: int
    p: float | None = None
    w1: float = 0.0
    w2: float = 0.0  # nats for each row of a world that a threshold of 1 costs; for each row of the node if relative
    seed: int = 0
    features: tuple[tuple[int, ...], ...] | None = None  # of each level of each tree; None draws them from the seed
    relative: bool = False
    votes: bool = False  # a tree has one vote; otherwise shares of leaves add up


@dataclass(frozen=True, eq=False)
class _Ground:
    """What every world is given: features of nodes, thresholds to choose from, and what they cost."""

    nodes: Labels
    ladder: Floats
    penalties: Floats | None
    smoothing: float
    classes: int
    relative: float | None = None  # what a threshold of 1 costs a row of the node

    @staticmethod
    def of(split: Split, how: Trees) -> _Ground:
        rng, d = np.random.default_rng(how.seed), split.x.shape[1]
        order = np.array(how.features or [rng.permutation(d)[: how.depth] for _ in range(how.count)])
        level = np.repeat(np.arange(how.depth), 2 ** np.arange(how.depth))
        if how.p is None:
            steps = np.linspace(0, 1, min(CANDIDATES, len(split.x)))
            return _Ground(
                order[:, level], np.quantile(split.x, steps, axis=0, method="lower").T, None, 0, split.classes
            )
        ladder = np.tile(np.linspace(0, 1, round(1 / how.p) + 1), (d, 1))
        if how.relative:
            return _Ground(order[:, level], ladder, None, how.w1, split.classes, how.w2)
        return _Ground(order[:, level], ladder, how.w2 * len(split.x) / 2 * ladder, how.w1, split.classes)

    def grown(self, x: Floats, y: Labels, worlds: Worlds) -> Floats:
        if self.relative is not None:
            penalty = Penalty(self.ladder[0], self.smoothing, self.relative)
            masks = (worlds.mask(w) for w in range(worlds.m))
            return np.array([grown(x[mask], y[mask], self.nodes, penalty, self.classes) for mask in masks])
        found = forest(
            x,
            y,
            worlds,
            nodes=self.nodes,
            thresholds=self.ladder,
            classes=self.classes,
            smoothing=self.smoothing,
            penalties=self.penalties,
        )
        return found.reshape(worlds.m, -1)


def trees(split: Split, how: Trees, name: str | None = None) -> Study:
    """A forest's thresholds and leaves, each counted by the pool's rows that come to its node."""
    ground = _Ground.of(split, how)
    whole = ground.grown(split.x, split.y, Worlds.everybody(len(split.x)))[0]
    scale = _rows_at(whole, split.x, ground)

    def shares(numbers: Floats, nodes: Labels) -> Floats:
        return np.asarray(predict_forest(numbers, split.test_x, nodes, ground.classes))

    def score(numbers: Floats) -> float:
        if how.votes:
            each = zip(numbers.reshape(how.count, -1), ground.nodes, strict=True)
            votes = [shares(tree, nodes[None]).argmax(axis=1) for tree, nodes in each]
            found = np.sum([np.eye(ground.classes)[named] for named in votes], axis=0)
        else:
            found = shares(numbers, ground.nodes)
        return float((found.argmax(axis=1) == split.test_y).mean())

    return Study(
        name or split.name,
        functools.partial(_forest, ground=ground, scale=scale),
        (split.x, split.y),
        whole,
        lambda planned: planned / scale,
        score,
        (SCALED, "Thresholds to choose from, and the unit of the noise: the pool's values and its own forest."),
        noised=np.tile(np.arange(len(whole) // how.count) < ground.nodes.shape[1], how.count),
        handed_out=functools.partial(handed_out, count=how.count, depth=how.depth),
    )


def handed_out(noise: Floats, count: int, depth: int) -> Floats:
    """The noise that each number gets in the paper's public code before it was mended.

    Its vector starts, tree by tree, with the tree's weight, which has no noise, and goes on from left to right; but the
    nodes of *every* tree take their noise from its first places. So the leftmost node gets none, each other one that of
    its left neighbour in the first tree.
    """
    order = _left_to_right(0, depth)
    first = np.concatenate([[0.0], noise[order]])[: len(order)]
    found = np.zeros_like(noise).reshape(count, -1)
    found[:, order] = first
    return found.ravel()


def _left_to_right(node: int, depth: int) -> list[int]:
    if not depth:
        return []
    return [*_left_to_right(2 * node + 1, depth - 1), node, *_left_to_right(2 * node + 2, depth - 1)]


def _rows_at(whole: Floats, x: Floats, ground: _Ground) -> Floats:
    """Root of the share of rows (and at least one) that come to each threshold's node and to each leaf."""
    count, inner = ground.nodes.shape
    each = whole.reshape(count, -1)
    found = []
    for tree in range(count):
        at, rows = np.zeros(len(x), dtype=np.intp), np.zeros(2 * inner + 1)
        for _ in range(inner.bit_length()):
            np.add.at(rows, at, 1)
            at = 2 * at + 1 + (x[np.arange(len(x)), ground.nodes[tree, at]] >= each[tree, at])
        np.add.at(rows, at, 1)
        found += [rows[:inner], np.repeat(rows[inner:], ground.classes)]
    return np.asarray(np.sqrt(np.maximum(np.concatenate(found), 1) / len(x)))


def _all(data: tuple[Any, ...], units: Units, worlds: Worlds, *, ground: _Ground, scale: Floats) -> Floats:
    return ground.grown(data[0], data[1], worlds.over_rows(units)) * scale


@kernels.offers(_all)
def _forest(x: Floats, y: Labels, *, ground: _Ground, scale: Floats) -> Floats:
    return np.asarray(ground.grown(x, y, Worlds.everybody(len(x)))[0] * scale)
