"""Ridge classifiers on disjoint parts of a table, all of them at once: one batched solve for parts of one size.

Parts are small and share no rows, so nothing is gained from what worlds share; what a loop of fits costs is the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from leakcap.ground.arrays import Floats, Ints

__all__ = ["ridge_votes"]

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
