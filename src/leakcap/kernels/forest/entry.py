"""Forests of fixed structure in all worlds at once: thresholds chosen by entropy, class shares in the leaves.

Every tree is complete, and the feature of each of its nodes is fixed beforehand, so that the answers of all worlds
have the same form (PAC-Private Algorithms, section 5.4). All that a forest predicts from is in the answer:
thresholds and leaves. `smoothing` and `penalties` are the paper's two ways to let fewer worlds choose differently.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores, threads
from leakcap.kernels.bits.words import as_words, place_of
from leakcap.kernels.forest.state import SMOOTHING_PARTS, TreeInputs, WorldGroup
from leakcap.kernels.moments.sums import masked_sums
from leakcap.kernels.rows import table_of
from leakcap.worlds import Worlds

__all__ = ["class_scales", "counted_logs", "forest", "leaves_of", "predict_forest", "steadied"]

MAX_TREE_BITS = 2**29  # bits, of rows in worlds, that go down a tree together
MIN_BATCH_WORLDS = 64  # worlds that share too little to be split further among threads
LOG_SCALE = 2.0**24


def forest(
    features: Floats,
    labels: npt.ArrayLike,
    worlds: Worlds,
    *,
    nodes: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    classes: int,
    smoothing: float = 0.0,
    penalties: npt.ArrayLike | None = None,
    class_weight: npt.ArrayLike | str | None = None,
    share_of: str = "leaf",
    pool: int | None = None,
) -> Floats:
    """`(m, trees, inner + leaves * classes)`: for every world and tree the inner nodes' thresholds, then the leaves.

    `labels` are whole numbers from 0 to `classes - 1`. `nodes`, of shape `(trees, 2**depth - 1)`, holds the feature
    of each inner node, level by level: the children of node `a` are `2 a + 1` and `2 a + 2`, and a row goes to the
    second where its value is at or above the threshold. `thresholds`, of shape `(features, candidates)`, lists in
    ascending order what a node may choose from. Neither may depend on who is in a world. The last axis holds the
    thresholds of the inner nodes, then `classes` shares for each leaf from left to right; `predict_forest` reads it.

    A node takes the threshold with the least entropy of the classes, weighted by rows, on its two sides; the lowest
    of those that are equal, which makes it the lowest of all where no row comes or all rows are of one class.
    Equal means: from the whole numbers of `counted_logs`, so that rounding never decides. A leaf without rows
    has the shares of the nearest node above that has some; a world without rows has equal shares. A class that a
    world lacks has share 0 there.

    Args:
        smoothing: `w` of the cost `(1 - w) H(v) + w (H(v - 1) + H(v + 1))` of threshold `v`, with `H` the weighted
            entropy and `v - 1`, `v + 1` its neighbours on the ladder; beyond both ends stands the entropy of rows that
            are not cut. Rounded to a multiple of 1/1024, which keeps all costs whole numbers.
        penalties: of the ladder's shape: added to the cost of each threshold, in nats times rows, as the entropy is.
        class_weight: what a row of each class counts, `(classes,)`, or "balanced": every class of a world alike, by
            that world's own counts. Rounded to whole numbers as `class_scales` says; on average a row counts one.
        share_of: "leaf", shares within each leaf, or "world": then all leaves of a tree together add to 1, a leaf
            without rows has 0, and a world without rows the same everywhere.
        pool: how many rows there are in all, where these are only some of them: weights of classes are rounded by it.
    """
    from leakcap.kernels.forest._loops import finish, grow

    table, kinds, of_node, ladder = _checked(
        features, labels, worlds=worlds, nodes=nodes, thresholds=thresholds, classes=classes
    )
    checks.choice(("leaf", "world"), share_of=share_of)
    n, m, bins = len(table), worlds.m, ladder.shape[1] + 1
    trees, inner = of_node.shape
    depth = inner.bit_length()
    used, line = np.unique(of_node, return_inverse=True)
    line = line.reshape(of_node.shape)
    codes = np.empty((len(used), n), dtype=np.uint32)
    words = as_words(worlds.packed)
    rows = np.minimum(place_of(np.arange(64 * words.shape[1], dtype=np.uint32)), np.uint32(n - 1))  # the last for none
    totals = np.empty((m, classes), dtype=np.uint32)
    for c in range(0, classes, 8):
        totals[:, c : c + 8] = masked_sums((kinds[:, None] == np.arange(c, min(c + 8, classes))) / 1.0, worlds)
    scales = class_scales(totals, class_weight, pool or n)
    weighed = (totals.astype(np.int64) * scales).sum(axis=1)
    row_units = np.maximum(1, weighed // np.maximum(1, totals.sum(axis=1, dtype=np.int64)))
    logs = counted_logs(int(weighed.max()))
    near, extra = steadied(
        smoothing, penalties, shape=ladder.shape, size=len(logs), classes=classes, row_unit=int(row_units.max())
    )
    empty = extra.argmin(axis=1) if extra.size else np.zeros(len(ladder), dtype=np.intp)
    found = np.empty((trees, m, inner + (inner + 1) * classes))
    step = _batch(m, n, trees)

    def place(f: int) -> None:
        codes[f] = np.searchsorted(ladder[used[f]], table[:, used[f]], side="right") * classes + kinds

    def plant(task: tuple[int, int]) -> None:
        tree, start = task
        stop = min(start + step, m)
        group = WorldGroup(words[start : start + step], totals[start:stop], np.arange(stop - start), rows)
        cuts = np.tile(empty[of_node[tree]].astype(np.int64), (stop - start, 1))
        leaves = np.zeros((stop - start, inner + 1, classes), dtype=np.uint32)
        own = np.ascontiguousarray(scales[start:stop])
        ground = TreeInputs(
            codes=codes,
            nodes=line[tree],
            logs=logs,
            bins=bins,
            classes=classes,
            depth=depth,
            scales=own,
            units=row_units[start:stop],
            near=near,
            penalties=extra[used],
        )
        grow(ground, group, 0, 0, cuts, leaves)
        finish(cuts, leaves, of_node[tree], ladder, own, share_of == "world", found[tree, start:stop])

    on_all_cores(place, range(len(used)))
    on_all_cores(plant, [(tree, start) for tree in range(trees) for start in range(0, m, step)])
    return np.ascontiguousarray(found.swapaxes(0, 1))


def predict_forest(answer: Floats, features: Floats, nodes: npt.ArrayLike, classes: int) -> Floats:
    """`(rows, classes)`: the class shares that a forest gives to new rows, the mean over its trees.

    `answer` is what `forest` gives for one world, `(trees, inner + leaves * classes)`, flat or not, or the same with
    noise: then shares may fall outside 0 to 1, and the largest names the class all the same.
    """
    table, of_node = np.asarray(features, dtype=np.float64), np.asarray(nodes)
    trees, inner = of_node.shape
    each = np.reshape(answer, (trees, -1))
    mean = np.zeros((len(table), classes))
    for tree in range(trees):
        leaf = leaves_of(table, of_node[tree], each[tree, :inner])
        mean += each[tree, inner:].reshape(-1, classes)[leaf]
    return mean / trees


def leaves_of(rows: Floats, nodes: npt.NDArray[np.intp], thresholds: Floats) -> npt.NDArray[np.intp]:
    """The leaf of one tree to which each row comes, counted from left to right."""
    at, every = np.zeros(len(rows), dtype=np.intp), np.arange(len(rows))
    for _ in range(len(nodes).bit_length()):
        at = 2 * at + 1 + (rows[every, nodes[at]] >= thresholds[at])
    return at - len(nodes)


def counted_logs(n: int) -> npt.NDArray[np.int64]:
    """`k log k` for `k` from 0 to `n` in multiples of 2^-24: entropies of counts become exact sums of whole numbers.

    Two cuts that leave the same counts, on either side or among other classes, are equal then, in whatever order the
    terms are added.
    """
    k = np.arange(1.0, n + 1)
    return np.concatenate([[0], np.rint(LOG_SCALE * k * np.log(k)).astype(np.int64)])


def class_scales(totals: npt.NDArray[Any], class_weight: npt.ArrayLike | str | None, n: int) -> npt.NDArray[np.uint32]:
    """`(m, classes)`: what a row of each class counts in each world, as a whole number, from the world's class counts.

    A pool of `n` rows counts up to a million, or up to 4 `n`: weights are rounded to that, "balanced" ones down.
    """
    count = totals.astype(np.int64)
    most = max(2**20, 4 * n)
    if class_weight is None:
        return np.ones(count.shape, dtype=np.uint32)
    if isinstance(class_weight, str):
        checks.choice(("balanced",), class_weight=class_weight)
        return np.maximum(1, most // (count.shape[1] * np.maximum(count, 1))).astype(np.uint32)
    weight = np.asarray(class_weight, dtype=np.float64)
    if weight.shape != count.shape[1:] or not np.isfinite(weight).all() or weight.min() < 0 or not weight.any():
        raise InputError("class_weight must hold a number for each class, not below 0 and not all 0")
    return np.tile(np.rint(weight / weight.max() * (most // n)).astype(np.uint32), (len(count), 1))


def steadied(
    smoothing: float, penalties: npt.ArrayLike | None, shape: tuple[int, ...], size: int, classes: int, row_unit: int
) -> tuple[int, npt.NDArray[np.int64]]:
    """The weight of neighbours, and each threshold's penalty (no columns where there is none), as whole numbers."""
    checks.probability(smoothing=smoothing)
    if penalties is None:
        extra = np.zeros((shape[0], 0), dtype=np.int64)
    else:
        given = np.asarray(penalties, dtype=np.float64)
        if given.shape != shape or not np.isfinite(given).all() or given.min() < 0:
            raise InputError("penalties must be finite numbers from 0, one for each of the thresholds")
        if given.max() * LOG_SCALE * SMOOTHING_PARTS * row_unit >= 2.0**61:
            raise InputError("penalties are so high that no threshold but the lowest is ever chosen: lower them")
        extra = np.rint(given * (LOG_SCALE * SMOOTHING_PARTS)).astype(np.int64)
    if (smoothing or penalties is not None) and 2 * SMOOTHING_PARTS * LOG_SCALE * size * math.log(
        classes + 1
    ) >= 2.0**61:
        raise InputError("too many rows for smoothing and penalties: leave them out; large worlds need neither")
    return round(smoothing * SMOOTHING_PARTS), extra


def _batch(m: int, n: int, trees: int) -> int:
    """How many worlds go down a tree together: such that all threads have the same work, where worlds suffice."""
    parts = threads() // math.gcd(threads(), trees)
    return max(8, min(max(MIN_BATCH_WORLDS, -(-m // (8 * parts)) * 8), MAX_TREE_BITS // n // 8 * 8))


def _checked(
    features: Floats,
    labels: npt.ArrayLike,
    worlds: Worlds,
    nodes: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    classes: int,
) -> tuple[Floats, npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
    table, kinds, of_node = table_of(features, worlds), np.asarray(labels), np.asarray(nodes)
    ladder = np.ascontiguousarray(thresholds, dtype=np.float64)
    checks.count(classes=classes)
    if kinds.shape != (worlds.n,) or kinds.dtype.kind not in "biu" or not 0 <= kinds.min() <= kinds.max() < classes:
        raise InputError("labels must be whole numbers from 0 to classes - 1, one for each row")
    if (
        of_node.ndim != 2
        or of_node.dtype.kind not in "iu"
        or (of_node.shape[1] + 1).bit_count() != 1
        or not of_node.size
    ):
        raise InputError("nodes must hold feature numbers, a row of 2**depth - 1 for each tree")
    if not 0 <= of_node.min() <= of_node.max() < table.shape[1]:
        raise InputError("nodes must be numbers of features, from 0")
    if ladder.ndim != 2 or len(ladder) != table.shape[1] or not ladder.shape[1] or not np.isfinite(ladder).all():
        raise InputError("thresholds must be a table of finite numbers with a row for each feature")
    if (np.diff(ladder, axis=1) < 0).any():
        raise InputError("thresholds must ascend for each feature")
    return table, kinds.astype(np.intp), of_node.astype(np.intp), ladder
