"""Forests of fixed structure: thresholds, and the classes' shares in every leaf.

Every level of a tree splits on one feature, drawn beforehand (paper, section 5.4). Naive trees choose among the
pool's own values; regularised ones among multiples of `p`, with the neighbours' entropy weighing `w1` and a penalty
`w2` on the threshold.

Differs from the paper: leaves are in the noised vector, in the paper's series too, as shares of the classes, of which
the largest names the class; its public code leaves them as they are. The penalty is absolute, as in the text (entropy
is counted in rows there), not relative to the node as in the public code.
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
from reproductions.pac_private_algorithms.series import Study

__all__ = ["Trees", "trees"]

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
    w2: float = 0.0  # nats for each row of a world that a threshold of 1 costs
    seed: int = 0


@dataclass(frozen=True, eq=False)
class _Ground:
    """What every world is given: features of nodes, thresholds to choose from, and what they cost."""

    nodes: Labels
    ladder: Floats
    penalties: Floats | None
    smoothing: float
    classes: int

    @staticmethod
    def of(split: Split, how: Trees) -> _Ground:
        rng, d = np.random.default_rng(how.seed), split.x.shape[1]
        order = np.array([rng.permutation(d)[: how.depth] for _ in range(how.count)])
        level = np.repeat(np.arange(how.depth), 2 ** np.arange(how.depth))
        if how.p is None:
            steps = np.linspace(0, 1, min(CANDIDATES, len(split.x)))
            return _Ground(
                order[:, level], np.quantile(split.x, steps, axis=0, method="lower").T, None, 0, split.classes
            )
        ladder = np.tile(np.linspace(0, 1, round(1 / how.p) + 1), (d, 1))
        return _Ground(order[:, level], ladder, how.w2 * len(split.x) / 2 * ladder, how.w1, split.classes)

    def grown(self, x: Floats, y: Labels, worlds: Worlds) -> Floats:
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

    def score(numbers: Floats) -> float:
        named = predict_forest(numbers, split.test_x, ground.nodes, ground.classes).argmax(axis=1)
        return float((named == split.test_y).mean())

    return Study(
        name or split.name,
        functools.partial(_forest, ground=ground, scale=scale),
        (split.x, split.y),
        whole,
        lambda planned: planned / scale,
        score,
        (SCALED, "Thresholds to choose from, and the unit of the noise: the pool's values and its own forest."),
    )


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
