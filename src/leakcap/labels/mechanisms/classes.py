"""The classes that labels may have: public names, and labels as whole numbers. Errors never quote a label."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks

__all__ = ["Classes", "column"]

_MISSING = (
    "some labels are missing: drop those rows if it is public which they are, or add a class 'missing' "
    "(classes=[..., 'missing'], with all labels as text), so that it is protected like any other"
)


class Classes:
    """The classes of the labels: so many, or these names."""

    def __init__(self, n_classes: int | None, names: Sequence[Any] | None) -> None:
        if names is None:
            if n_classes is None:
                raise InputError("say how many classes there are (n_classes=) or what they are called (classes=)")
            self.count = checks.count(at_least=2, n_classes=n_classes)
            self.names: tuple[Any, ...] = tuple(range(self.count))
        else:
            if isinstance(names, str | set | frozenset):
                raise InputError("classes= must be a list of names, in the order of the columns to come")
            self.names = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
            self.count = len(self.names)
            if n_classes is not None and n_classes != self.count:
                raise InputError("n_classes and the number of names in classes= differ")
            if self.count < 2:
                raise InputError("labels of one class hold nothing to protect: name at least two classes")
            if any(not isinstance(name, Hashable) or isinstance(name, tuple) for name in self.names):
                raise InputError("classes= must hold names or numbers")
            if len(set(self.names)) != self.count or any(_is_missing(name) for name in self.names):
                raise InputError("classes= must hold different names, none of them missing")
        self.named = names is not None
        self._place = {name: place for place, name in enumerate(self.names)}

    def codes(self, y: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Labels as places among the classes."""
        given = column(y)
        return self._of_names(given) if self.named else self._of_numbers(given)

    def seen(self, observed: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Observed labels as places. They look like true ones, unless what leaves is of another kind."""
        return self.codes(observed)

    def of(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Places as labels, in the smallest type that holds them."""
        if not self.named:
            return codes.astype(np.min_scalar_type(self.count - 1))
        names = np.asarray(self.names)
        if names.tolist() != list(self.names):  # names of several types would become one
            names = np.empty(self.count, dtype=object)
            names[:] = self.names
        return names[codes]

    def _of_numbers(self, given: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        if given.dtype.kind == "O":
            given = _plain(given)
        if given.dtype.kind == "f":
            if np.isnan(given).any():
                raise InputError(_MISSING)
            whole = given == np.floor(given)
        elif given.dtype.kind in "biu":
            whole = np.ones(1, dtype=bool)
        else:
            raise InputError("labels that are not numbers need names: list every possible class in classes=[...]")
        if not whole.all() or given.min() < 0 or given.max() >= self.count:
            raise InputError(
                f"labels must be whole numbers from 0 to {self.count - 1}: set n_classes, or name them by classes=[...]"
            )
        return given.astype(np.int64)

    def _of_names(self, given: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        try:
            places = [self._place.get(one, -1) for one in given.tolist()]
        except TypeError:
            places = [-1] * len(given)  # some label cannot be a name at all
        found = np.array(places, dtype=np.int64)
        if (found < 0).any():
            strange = given[found < 0]
            if any(_is_missing(one) for one in strange.tolist()):
                raise InputError(_MISSING)
            raise InputError("some labels are not among classes=[...]: list every possible class, spelt as in the data")
        return found


def column(y: npt.ArrayLike) -> npt.NDArray[Any]:
    """Labels as one column, none of them hidden behind a mask."""
    if np.ma.is_masked(y):
        raise InputError(_MISSING)
    try:
        given = np.asarray(y)
    except ValueError:
        given = np.empty((0, 0))  # rows of different lengths
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1 or len(given) == 0:
        raise InputError("labels must be one column with at least one entry")
    return given


def _plain(given: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Python objects as an array of numbers, where they are numbers."""
    if any(_is_missing(one) for one in given.tolist()):
        raise InputError(_MISSING)
    if any(isinstance(one, str) for one in given.tolist()):
        return given.astype(str)
    try:
        found = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:  # raised outside of the handler: an error in hand would be kept, and it quotes the label
        raise InputError("labels must be whole numbers, or names listed in classes=[...]")
    return found


def _is_missing(one: Any) -> bool:
    return one is None or type(one).__name__ == "NAType" or (isinstance(one, float) and math.isnan(one))
