"""Synthetic data as post-processing of a private release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from leakcap import checks
from leakcap.errors import InputError, MissingExtra
from leakcap.estimators.base import COMMON, Mechanism, Rows, Utility
from leakcap.estimators.moments import Covariance, spreads

__all__ = ["Gaussian"]

Floats = npt.NDArray[np.float64]
TABLES = ("pandas", "polars")


@dataclass(eq=False, repr=False)
class Gaussian(Covariance):
    __doc__ = f"""Rows that look like the data: a normal law with a private mean and covariance.

    `fit(X)` releases `mean_` and `covariance_` once, with a certificate; the matrix is the nearest one without
    negative variances. `sample(n)` draws as many rows from them as you like: they hold nothing that was not released.
    Pairs of columns keep their correlation; skewness, bounds and whole numbers are lost unless they are declared.

    Args:
        ranges: `(low, high)` for columns whose samples are to be clipped: a dict by name or number. Declare what is
            known without the data (ages from 0 to 120), not what they show.
        integers: names or numbers of columns whose samples are rounded.
    {COMMON}"""

    _: KW_ONLY
    ranges: Mapping[Any, tuple[float, float]] | None = None
    integers: Sequence[Any] = ()

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """`n` synthetic rows: an array, or a table with the columns of the one that was fitted.

        Post-processing of the release: nothing is spent, however many are drawn.
        """
        self._fitted()
        checks.count(n=n)
        drawn = check_random_state(random_state).standard_normal((n, len(self.mean_)))
        values, vectors = np.linalg.eigh(self.covariance_)
        rows = self.mean_ + drawn * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        for column in self.integers:
            place = self._place(column)
            rows[:, place] = np.rint(rows[:, place])
        for column, (low, high) in (self.ranges or {}).items():
            place = self._place(column)
            rows[:, place] = np.clip(rows[:, place], low, high)
        return self._as_given(rows)

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        _refuse_text(X)
        rows = super()._rows(X, y, weight)
        # Before anything is released: a mistake must not be found when it is too late to mend it.
        for column in self.integers:
            self._place(column)
        for column, ends in (self.ranges or {}).items():
            self._place(column)
            _check_range(ends)
        self.table_ = _library(X)
        return rows

    def _mechanism(self, rows: Rows) -> Mechanism:
        scale = spreads(rows.features)
        wanted = np.cov(rows.features.T, bias=True, aweights=rows.weight).reshape(len(scale), -1)
        size = float(np.linalg.norm(wanted / np.outer(scale, scale)))

        def score(made: Any) -> float:
            return 1 - float(np.linalg.norm((made.covariance_ - wanted) / np.outer(scale, scale))) / (size or 1.0)

        worth = Utility("share of the covariance that is right (1 less its relative error)", score)
        return replace(super()._mechanism(rows), utility=worth)

    def _publish(self, estimator: Any) -> None:
        super()._publish(estimator)
        self.mean_ = estimator.location_

    def _place(self, column: Any) -> int:
        names = list(getattr(self, "feature_names_in_", ()))
        if isinstance(column, str):
            if column in names:
                return names.index(column)
        elif isinstance(column, (int, np.integer)) and 0 <= column < self.n_features_in_:
            return int(column)
        raise InputError(f"there is no column {column!r}: name one of the table, or give its number from 0 on")

    def _as_given(self, rows: Floats) -> Any:
        if self.table_ not in TABLES:
            return rows
        names = [str(name) for name in self.feature_names_in_]
        try:
            if self.table_ == "polars":
                import polars

                return polars.DataFrame(rows, schema=names)
            import pandas
        except ImportError:
            raise MissingExtra(
                f"the fit was to a {self.table_} table: install {self.table_} to get such samples"
            ) from None
        return pandas.DataFrame(rows, columns=names)


def _library(X: Any) -> str:
    """Whose table it is; "numpy" where it has no names for columns."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return "numpy"
    return type(X).__module__.partition(".")[0]


def _check_range(ends: Any) -> None:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not low <= high:
        raise InputError("a range must be (low, high), with low at or below high")


def _refuse_text(X: Any) -> None:
    """A failed conversion would quote a cell: columns of other kinds are refused by name."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        if np.asarray(X).dtype.kind not in "biuf":
            raise InputError("rows must be numbers: leave out text and dates, or make columns of 0 and 1 of them")
        return
    kinds = X.dtypes.tolist() if hasattr(X, "iloc") else list(X.dtypes)
    numbers = [_is_number(kind) for kind in kinds]
    others = [str(name) for name, good in zip(X.columns, numbers, strict=True) if not good]
    if others:
        raise InputError(
            f"columns that are no numbers: {', '.join(others)}. Leave them out, or make columns of 0 and 1 of them"
        )


def _is_number(kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return getattr(kind, "kind", "O") in "biuf"
