"""Synthetic data as post-processing of a private release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from leakcap.errors import InputError, MissingExtra
from leakcap.estimators.base import Rows, Utility
from leakcap.estimators.moments import Covariance, spreads
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["Gaussian"]

TABLES = ("pandas", "polars")


@dataclass(eq=False, repr=False)
class Gaussian(Covariance):
    """Rows that look like the data: a normal law with a private mean and covariance.

    `fit(X)` releases `mean_` and `covariance_` once, with a certificate; the matrix is the nearest one without
    negative variances. `sample(n)` draws as many rows from them as you like: they hold nothing that was not released.
    Pairs of columns keep their correlation; skewness, bounds and whole numbers are lost unless they are declared.

    Args:
        ranges: `(low, high)` for columns whose samples are to be clipped: a dict by name or number. Declare what is
            known without the data (ages from 0 to 120), not what they show.
        integers: names or numbers of columns whose samples are rounded.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated, or "auto".
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        mean_: released means, `(columns,)`; also `location_`.
        covariance_: released matrix, `(columns, columns)`.
        precision_: its inverse.
        table_: the library whose tables `sample` gives: "pandas", "polars", or "numpy" for arrays.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(200, 2))
        >>> law = Gaussian(cap=lc.membership(0.9), worlds=32, random_state=0, options={"draws": 512}).fit(rows)
        >>> law.sample(3, random_state=0).shape
        (3, 2)
    """

    _: KW_ONLY
    ranges: Mapping[Any, tuple[float, float]] | None = None
    integers: Sequence[Any] = ()

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """Synthetic rows from the released law.

        Guarantee: post-processing of the release. Nothing is spent, however many rows are drawn.

        Args:
            n: number of rows.
            random_state: seed or generator of the rows, as in scikit-learn. It has no part in privacy.

        Returns:
            An array, or a table with the columns of the table that was fitted.

        Raises:
            MissingExtra: the fit was to a table of a library that is not installed here.
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
        # Checked before the release: after it a mistake could no longer be mended.
        for column in self.integers:
            self._place(column)
        for column, ends in (self.ranges or {}).items():
            self._place(column)
            _check_range(ends)
        self.table_ = _library(X)
        return rows

    def _worth(self, rows: Rows) -> Utility:
        scale = spreads(rows.features)
        wanted = np.cov(rows.features.T, bias=True, aweights=rows.weight).reshape(len(scale), -1)
        size = float(np.linalg.norm(wanted / np.outer(scale, scale)))

        def score(made: Any) -> float:
            return 1 - float(np.linalg.norm((made.covariance_ - wanted) / np.outer(scale, scale))) / (size or 1.0)

        return Utility("share of the covariance that is right (1 less its relative error)", score)

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
    """The library whose table it is; "numpy" where the columns have no names."""
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
    """Refuse columns of other kinds by name: a failed conversion would quote a cell."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        if np.asarray(X).dtype.kind not in "biuf":
            raise InputError("rows must be numbers: leave out text and dates, or turn them into columns of 0 and 1")
        return
    kinds = X.dtypes.tolist() if hasattr(X, "iloc") else list(X.dtypes)
    numbers = [_is_number(kind) for kind in kinds]
    others = [str(name) for name, good in zip(X.columns, numbers, strict=True) if not good]
    if others:
        raise InputError(
            f"columns without numbers: {', '.join(others)}. Leave them out, or turn them into columns of 0 and 1"
        )


def _is_number(kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return getattr(kind, "kind", "O") in "biuf"
