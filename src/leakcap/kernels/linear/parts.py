"""Linear classifiers on disjoint parts of a table, all of them at once: one solve for parts of one size, or for all.

Parts are small and share no rows, so nothing is gained from what worlds share; what a loop of fits costs is the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from leakcap.ground.arrays import Floats, Ints

__all__ = ["ridge_votes", "shared_ridge_votes", "shared_weights"]

AT_ONCE = 2**24  # numbers of gathered rows, or of scores


def ridge_votes(
    features: Floats, codes: Ints, parts: Sequence[Ints], asked: Floats, *, classes: int, alpha: float, intercept: bool
) -> Ints:
    """`(asked, classes)`: how many of scikit-learn's `RidgeClassifier(alpha)`, one a part, name each class for a row.

    Args:
        features: `(n, d)`, all rows.
        codes: `(n,)`, their classes as numbers from 0.
        parts: rows of each classifier.
        asked: `(rows, d)` to vote on.
        classes: how many; one that a part has no row of is never named by it.
        alpha: penalty, above 0.
        intercept: whether scores have one; it is not penalised.
    """
    votes = np.zeros((len(asked), classes), dtype=np.int64)
    for rows in _chunks(parts, features.shape[1]):
        signs = np.where(codes[rows][:, :, None] == np.arange(classes), 1.0, -1.0)
        weights, level = _solved(features[rows], signs, alpha, intercept=intercept)
        level[(signs < 0).all(axis=1)] = -np.inf
        _add_votes(votes, asked, weights, level)
    return votes


def shared_ridge_votes(
    features: Floats, codes: Ints, parts: Sequence[Ints], asked: Floats, *, classes: int, alpha: float
) -> Ints:
    """`(asked, classes)`: as `ridge_votes`, for classifiers that all take their Gram matrix from all rows.

    Their labels alone are apart: one factorisation serves them all, and a class's sum of rows is all that each adds.
    """
    centre, root = shared_weights(features, alpha)
    sums, shares = _class_sums(features, codes, parts, classes)
    size = np.array([len(part) for part in parts])[:, None]
    held = shares / size
    weights = sums / size[:, :, None] - held[:, :, None] * (sums.sum(axis=1) / size)[:, None, :]  # (parts, classes, d)
    weights = (weights.reshape(-1, features.shape[1]) @ root).reshape(weights.shape).transpose(0, 2, 1)
    level = held - np.einsum("d,pdc->pc", centre, weights)
    level[shares == 0] = -np.inf
    votes = np.zeros((len(asked), classes), dtype=np.int64)
    some = max(1, AT_ONCE // (classes * features.shape[1]))
    for first in range(0, len(parts), some):
        _add_votes(votes, asked, weights[first : first + some], level[first : first + some])
    return votes


def shared_weights(features: Floats, alpha: float) -> tuple[Floats, Floats]:
    """The centre of all rows, and the inverse of their covariance plus `alpha` times its mean variance."""
    centre = features.mean(axis=0)
    covariance = features.T @ features / len(features) - np.outer(centre, centre)
    variance = float(np.trace(covariance)) / len(centre)
    inverse = np.linalg.inv(covariance + (alpha * variance or 1.0) * np.eye(len(centre)))
    return np.asarray(centre), np.asarray(inverse, dtype=np.float64)


def _class_sums(features: Floats, codes: Ints, parts: Sequence[Ints], classes: int) -> tuple[Floats, Floats]:
    """`(parts, classes, d)` sums of rows by part and class, and `(parts, classes)` how many there are."""
    rows, place = np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    bins = place * classes + codes[rows]
    order = np.argsort(bins, kind="stable")
    counts = np.bincount(bins, minlength=len(parts) * classes)
    found = np.flatnonzero(counts)
    sums = np.zeros((len(counts), features.shape[1]))
    sums[found] = np.add.reduceat(features[rows[order]], np.searchsorted(bins[order], found), axis=0)
    return sums.reshape(len(parts), classes, -1), counts.reshape(len(parts), classes).astype(np.float64)


def _chunks(parts: Sequence[Ints], columns: int) -> Iterator[Ints]:
    """Parts of one size, `(some, size)`, as many as memory likes."""
    for size, alike in groupby(sorted(parts, key=len), key=len):
        rows, some = np.stack(list(alike)), max(1, AT_ONCE // max(1, size * columns))
        yield from (rows[first : first + some] for first in range(0, len(rows), some))


def _solved(tables: Floats, signs: Floats, alpha: float, *, intercept: bool) -> tuple[Floats, Floats]:
    """`(parts, d, classes)` and `(parts, classes)`: weights and intercepts, by the smaller of the two Gram matrices."""
    centre, mean = np.zeros((len(tables), 1, tables.shape[2])), np.zeros((len(tables), 1, signs.shape[2]))
    if intercept:
        centre, mean = tables.mean(axis=1, keepdims=True), signs.mean(axis=1, keepdims=True)
        tables, signs = tables - centre, signs - mean
    turned, size = tables.transpose(0, 2, 1), min(tables.shape[1:])
    if size == tables.shape[1]:
        weights = turned @ np.linalg.solve(tables @ turned + alpha * np.eye(size), signs)
    else:
        weights = np.linalg.solve(turned @ tables + alpha * np.eye(size), turned @ signs)
    return weights, (mean - centre @ weights)[:, 0]


def _add_votes(votes: Ints, asked: Floats, weights: Floats, level: Floats) -> None:
    parts, columns, classes = weights.shape
    together = weights.transpose(1, 0, 2).reshape(columns, parts * classes)
    step = max(1, AT_ONCE // (parts * classes))
    for first in range(0, len(asked), step):
        scores = (asked[first : first + step] @ together).reshape(-1, parts, classes) + level
        named = scores.argmax(axis=2)
        for place in range(classes):
            votes[first : first + step, place] += (named == place).sum(axis=1)
