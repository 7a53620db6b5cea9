"""The data of a fit: checked rows, their classes and weights, and columns that say whose they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.twins import refuse_twin_columns

__all__ = ["Rows", "checked_weight", "column_of", "validated", "without_column", "without_text"]

T = TypeVar("T")
SCORED = 2000  # rows of the pool on which utility is judged


@dataclass(frozen=True, eq=False)
class Rows:
    """The checked data of a fit. A class is stored as its place among `classes`."""

    features: Any
    target: npt.NDArray[Any] | None = None
    classes: npt.NDArray[Any] | None = None
    weight: Floats | None = None
    form: Any = None  # of a wrapped estimator: what it takes from the pool before it learns

    @property
    def some(self) -> slice:
        """The rows on which utility is judged: enough of them, not all."""
        return slice(None, None, max(1, self.features.shape[0] // SCORED))


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """scikit-learn's own checks of data, under the name that they have in the installed version."""

    def check() -> Any:
        try:
            from sklearn.utils.validation import validate_data
        except ImportError:  # before 1.6
            if checks.pop("skip_check_array", False):
                checks["cast_to_ndarray"] = False
            return estimator._validate_data(X, y, **checks)
        return validate_data(estimator, X, y, **checks)

    return without_text(X, check)


def without_text(X: Any, work: Callable[[], T]) -> T:
    """What `work` makes of X. Of text scikit-learn quotes the first cell: columns are named here, and what to do."""
    refuse_twin_columns(X)
    try:
        return work()
    except ValueError as error:
        if "Input X contains NaN" in str(error):  # scikit-learn goes on to name estimators of its own
            raise InputError(
                "Input X contains NaN, and the fit takes numbers: fill empty cells inside, Private(make_pipeline("
                "SimpleImputer(), ...), cap=...), or leave out rows or columns that have them"
            ) from None
        if "could not convert string" not in str(error):
            raise
    names = [str(name) for name in getattr(X, "columns", ()) if _is_text(X[name])]
    where = f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:3]))} of X" if names else "X"
    raise InputError(
        f"{where} {'hold' if len(names) > 1 else 'holds'} text, and the fit takes numbers: leave "
        f"{'them' if len(names) > 1 else 'it'} out, or encode categories inside, Private(make_pipeline("
        "ColumnTransformer([('categories', OneHotEncoder(), [...])], remainder='passthrough'), ...), cap=...)"
    )


def _is_text(column: Any) -> bool:
    return np.asarray(column[:1]).dtype.kind in "OUT"


def checked_weight(weight: Any, features: Any) -> Floats | None:
    """Weights of the rows, or None where all of them are 1."""
    if weight is None:
        return None
    from sklearn.utils.validation import _check_sample_weight

    found = np.asarray(_check_sample_weight(weight, features, dtype=np.float64))
    if (found < 0).any() or not found.any():
        raise InputError("sample_weight must be positive or zero, and not all zero")
    return None if (found == found[0]).all() and found[0] == 1 else found


def column_of(X: Any, name: str) -> Any:
    """A column of a table by its name."""
    if not hasattr(X, "columns") or name not in list(X.columns):
        raise InputError(f"there is no column {name!r}: give an array, or X as a table with that column")
    return X[name]


def without_column(X: Any, unit: Any) -> tuple[Any, Any]:
    """The table without the column that names the units, and the units."""
    if not isinstance(unit, str):
        return X, unit
    whose = np.asarray(column_of(X, unit))
    return X[[name for name in X.columns if name != unit]], whose
