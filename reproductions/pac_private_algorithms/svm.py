"""Linear support vector machines, each class against the rest.

The loss is the squared hinge, that of scikit-learn's `LinearSVC`, which the paper's public code runs; the formula in
the paper (equation 4) has the plain hinge and an offset that costs nothing, which is what libsvm solves: `Hinge`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import SVC

from leakcap import kernels
from leakcap.estimators.coordinates import Coordinates
from leakcap.kernels.linear import linear_svm
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import SCALED, Split
from reproductions.pac_private_algorithms.series import Hinge, Study

__all__ = ["machine"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
MANY, FEW = 5000, 128  # from so many rows on, the plain hinge (seconds a fit) is fitted in so few worlds


def machine(split: Split, C: float) -> Study:
    """Planned in moves of the scores along directions in which the pool has variance one."""
    space = Coordinates.of(split.x)
    lines = split.classes if split.classes > 2 else 1

    def natural(planned: Floats) -> Floats:
        slopes, offsets = space.decode(planned.reshape(lines, -1))
        return np.column_stack([slopes, offsets]).ravel()

    def score(numbers: Floats) -> float:
        each = numbers.reshape(lines, -1)
        scores = split.test_x @ each[:, :-1].T + each[:, -1]
        named = scores.argmax(axis=1) if lines > 1 else (scores[:, 0] > 0).astype(int)
        return float((named == split.test_y).mean())

    return Study(
        split.name,
        functools.partial(_machine, C=C, classes=split.classes, space=space),
        (split.x, split.y),
        _fit(split.x, split.y, C, split.classes).ravel(),
        natural,
        score,
        (SCALED, "Unit of the noise: mean and covariance of the whole pool."),
        hinge=Hinge(
            lambda worlds: np.array([_plain(split, C, worlds.mask(w)).ravel() for w in range(worlds.m)]),
            _plain(split, C, np.ones(len(split.x), dtype=bool)).ravel(),
            FEW if len(split.x) > MANY else 1024,
        ),
    )


def _plain(split: Split, C: float, rows: Any) -> Floats:
    """Slopes and offset of each class against the rest by the plain hinge."""
    x, y = split.x[rows], split.y[rows]
    lines = range(split.classes) if split.classes > 2 else (1,)
    found = [SVC(C=C, kernel="linear", tol=1e-4, cache_size=500).fit(x, y == line) for line in lines]
    return np.array([np.append(fit.coef_[0], fit.intercept_[0]) for fit in found])


def _all(data: tuple[Any, ...], units: Units, worlds: Worlds, *, C: float, classes: int, space: Coordinates) -> Floats:
    found = linear_svm(data[0], data[1], worlds.over_rows(units), C=C, classes=np.arange(classes))
    return space.encode(found[:, :, :-1], found[:, :, -1]).reshape(worlds.m, -1)


@kernels.offers(_all, tolerance=1e-6)
def _machine(x: Floats, y: Labels, *, C: float, classes: int, space: Coordinates) -> Floats:
    found = _fit(x, y, C, classes)
    return np.asarray(space.encode(found[:, :-1], found[:, -1]).ravel())


def _fit(x: Floats, y: Labels, C: float, classes: int) -> Floats:
    """One plain fit: the world of all rows."""
    return np.asarray(linear_svm(x, y, Worlds.everybody(len(x)), C=C, classes=np.arange(classes))[0])
