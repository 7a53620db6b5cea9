"""What the kernels fitted by Newton steps share: classes as numbers, and gradients over the rows of every world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores, threads
from leakcap.worlds import Worlds

__all__ = ["coded", "gradients", "in_threads"]

Numbers = npt.NDArray[np.int64]
TOGETHER = 128  # worlds of a task: their weights and gradients stay in the second cache


def coded(labels: npt.ArrayLike, classes: npt.ArrayLike | None, rows: int) -> tuple[Numbers, int]:
    """Each row's place among the classes, and how many classes there are; without `classes`, those of the pool."""
    given = np.asarray(labels)
    if given.shape != (rows,):
        raise InputError(f"labels must be one for each of {rows} rows")
    known, code = np.unique(given, return_inverse=True)
    if classes is not None:
        wanted = np.asarray(classes).ravel().tolist()
        place = {name: at for at, name in enumerate(wanted)}
        if len(place) < len(wanted):
            raise InputError("classes must differ from each other")
        if any(name not in place for name in known.tolist()):
            raise InputError("some labels are not among the classes")
        code = np.array([place[name] for name in known.tolist()], dtype=np.int64)[code]
        known = np.asarray(wanted)
    if len(known) < 2:
        raise InputError("a classifier needs at least two classes")
    return code.astype(np.int64).ravel(), len(known)


def in_threads(work: Callable[[npt.NDArray[np.intp]], Any], count: int, together: int = TOGETHER) -> None:
    """`work` on the numbers below `count`, some together, on all cores."""
    pieces = min(count, max(threads(), -(-count // together)))
    on_all_cores(work, np.array_split(np.arange(count), max(pieces, 1)))


def gradients(
    columns: Floats,
    code: Numbers,
    worlds: Worlds,
    weights: Floats,
    loss: Literal["softmax", "hinge"],
    which: npt.NDArray[np.intp] | None = None,
) -> Floats:
    """`(m, k, d)`: gradient of the summed loss at each world's weights, `(m, k, d)`, over all rows of that world.

    `columns` is the data turned over, `(d, n)`. The hinge is squared, each class against the rest. For softmax the
    last class has no weights; where a score is beyond what an exponential can hold, or weights are not finite, the
    gradient is NaN. With `which`, weights are those of these worlds only.
    """
    from leakcap.kernels.linear._newton_loops import HINGE, SOFTMAX, add_gradients

    chosen = np.arange(worlds.m) if which is None else which
    finite = np.isfinite(weights).all(axis=(1, 2), keepdims=True)
    given = np.ascontiguousarray(np.where(finite, weights, 0.0))
    found = np.zeros_like(given)
    kind = SOFTMAX if loss == "softmax" else HINGE

    def add(some: npt.NDArray[np.intp]) -> None:
        part = slice(some[0], some[-1] + 1)
        add_gradients(columns, code, worlds.packed, chosen[part], given[part], kind, found[part])

    if len(chosen):
        in_threads(add, len(chosen))
    return np.where(finite, found, np.nan)
