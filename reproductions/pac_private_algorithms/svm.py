"""Linear support vector machines, each class against the rest.

The loss is the squared hinge, that of scikit-learn's `LinearSVC`, which the paper's public code runs; the formula in
the paper has the plain hinge.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import kernels
from leakcap.estimators.coordinates import Coordinates
from leakcap.kernels.linear import linear_svm
from leakcap.worlds import Units, Worlds
from reproductions.pac_private_algorithms.data import SCALED, Split
from reproductions.pac_private_algorithms.series import Study

__all__ = ["machine"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]


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
    )


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
