"""Synthetic data as post-processing of a private release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from leakcap.errors import InputError, MissingExtra
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.computation import Computation, Utility
from leakcap.estimators.count_sums import CountedCells, CountSums, fitted_tree, moved_shares, shares
from leakcap.estimators.data import Rows, checked_weight
from leakcap.estimators.moments import Covariance, spreads
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.stats.cells import bin_edges, bin_of, numbers, places

__all__ = ["Gaussian", "Tables"]

TABLES = ("pandas", "polars")
DRAWN = 4000  # synthetic rows from which utility is judged


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
        return _as_table(dict(zip(names, rows.T, strict=True)), self.table_)


@dataclass(eq=False, repr=False)
class Tables(PrivateEstimator):
    """Rows that look like the data: drawn from private counts of declared cells, of columns and of pairs of columns.

    `fit(table)` counts how many rows are in each bin or at each level of every declared column, and of every pair of
    them, and releases the noised shares once, with a certificate. `sample(n)` draws rows from them, column after column
    along a tree of the pairs that tell most of each other: they hold nothing that was not released. Columns of text are
    welcome; what is not declared is not looked at. What three columns have in common only together is lost.

    Args:
        bins: edges for columns of numbers, by name: `{"age": [0, 18, 40, 65, 120]}`. What lies outside counts in the
            first or last bin. Samples lie anywhere in their bin. Declare what is known without the data.
        levels: values for columns of categories, by name: `{"sex": ["F", "M"]}`. Rows with another count nowhere.
        integers: names of columns with bins whose samples are rounded.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: the name of a column, for worlds that hold its values in proportion; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"design": "bits"}`.

    Attributes:
        order_: `(columns, 2)`: the columns in the order in which they are drawn, each with the one that it is drawn
            given; -1 for the first. Columns with bins come before those with levels, as declared.
        margins_: released shares of the cells of each column.
        given_: for each column in `order_`, shares of its cells given the cell of the other.
        table_: the library whose tables `sample` gives: "pandas" or "polars".
        estimator_: holds the released law and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import pandas
        >>> import leakcap as lc
        >>> rng = np.random.default_rng(0)
        >>> people = pandas.DataFrame({"age": rng.uniform(0, 90, 500), "sex": rng.choice(["F", "M"], 500)})
        >>> cells = {"bins": {"age": [0, 30, 60, 90]}, "levels": {"sex": ["F", "M"]}}
        >>> law = Tables(**cells, cap=lc.pool_membership(0.6), random_state=0).fit(people)
        >>> law.sample(3, random_state=0).shape
        (3, 2)
    """

    bins: Mapping[str, Sequence[float]] | None = None
    levels: Mapping[str, Sequence[Any]] | None = None
    integers: Sequence[str] = ()

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """Synthetic rows from the released law.

        Guarantee: post-processing of the release. Nothing is spent, however many rows are drawn.

        Args:
            n: number of rows.
            random_state: seed or generator of the rows, as in scikit-learn. It has no part in privacy.

        Returns:
            A table with the declared columns.

        Raises:
            MissingExtra: the fit was to a table of a library that is not installed here.
        """
        law, rng = self._fitted(), check_random_state(random_state)
        drawn = law.draw(checks.count(n=n), rng)
        columns: dict[str, Any] = {}
        for place, (name, cells) in enumerate(self._declared().items()):
            if name in (self.bins or {}):
                edges = np.asarray(cells, dtype=np.float64)
                low, high = edges[drawn[:, place]], edges[drawn[:, place] + 1]
                found = low + (high - low) * rng.random_sample(n)
                columns[name] = np.clip(np.floor(found), np.ceil(low), high) if name in self.integers else found
            else:
                columns[name] = [cells[cell] for cell in drawn[:, place]]
        return _as_table(columns, self.table_)

    def _declared(self) -> dict[str, list[Any]]:
        """The cells of every column."""
        bins, levels = self.bins or {}, self.levels or {}
        if not all(isinstance(given, Mapping) for given in (bins, levels)) or not (bins or levels):
            raise InputError(
                'declare the cells, such as Tables(bins={"age": [0, 30, 60, 90]}, levels={"sex": ["F", "M"]}): they '
                "must not come from the data"
            )
        both = [name for name in bins if name in levels]
        if both:
            raise InputError(f"column {both[0]!r} has bins and levels: declare one of them")
        unknown = [name for name in self.integers if name not in bins]
        if unknown:
            raise InputError(f"integers names {unknown[0]!r}, which has no bins")
        return {name: list(bin_edges(edges)) for name, edges in bins.items()} | {
            name: list(values) for name, values in levels.items()
        }

    def _cells(self) -> CountedCells:
        return CountedCells(tuple(len(cells) - (name in (self.bins or {})) for name, cells in self._declared().items()))

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        declared, self.table_ = self._declared(), _library(X)
        if self.table_ not in TABLES:
            raise InputError("Tables needs a table whose columns have names: a pandas or polars DataFrame")
        absent = [name for name in declared if name not in list(X.columns)]
        if absent:
            raise InputError(f"the table has no column {absent[0]!r}")
        if not len(X):
            raise InputError("there are no rows")
        codes = np.column_stack([self._codes(X[name], name, cells) for name, cells in declared.items()])
        self.feature_names_in_, self.n_features_in_ = np.array(list(declared), dtype=object), len(declared)
        return Rows(codes, weight=checked_weight(weight, codes))

    def _codes(self, column: Any, name: str, cells: list[Any]) -> Ints:
        if name not in (self.bins or {}):
            place = places(column, cells)
            return np.where(place < len(cells), place, -1)
        found = numbers(column)
        if not np.isfinite(found).all():
            raise InputError(f"missing or infinite values in column {name!r}: fill them in, or leave the rows out")
        return bin_of(found, np.asarray(cells, dtype=np.float64))

    def _computation(self, rows: Rows) -> Computation:
        cells = self._cells()
        return Computation(
            answer=partial(shares, cells=cells),
            data=(rows.features, _weights(rows)),
            build=partial(fitted_tree, cells=cells),
            utility=_alike(rows, cells),
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        answer = moved_shares(rows.features, _weights(rows), self._cells())
        known = ("What the coins move: shares of the cells in the whole pool.",)
        return replace(self._computation(rows), answer=answer, pool_public=known)

    def _sums_of_all(self, rows: Rows) -> Computation:
        return replace(self._computation(rows), answer=CountSums(self._cells()), data=(rows.features,), weights=None)


def _weights(rows: Rows) -> Floats:
    return np.ones(len(rows.features)) if rows.weight is None else rows.weight


def _alike(rows: Rows, cells: CountedCells) -> Utility:
    """1 less the mean distance (total variation) of two-way tables, or of one-way tables where there is one column."""
    one, two = cells.tables(shares(rows.features, _weights(rows), cells=cells)["shares"])
    wanted = list(two.values()) or one

    def apart(tables: list[Floats]) -> float:
        return 1 - float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(tables, wanted, strict=True)]))

    def score(made: Any) -> float:
        drawn = made.draw(DRAWN, np.random.RandomState(0))
        again, pairs = cells.tables(shares(drawn, np.ones(DRAWN), cells=cells)["shares"])
        return apart(list(pairs.values()) or again)

    nothing = apart([np.full(table.shape, 1 / table.size) for table in wanted])
    return Utility("share of the two-way tables that is right (1 less their distance)", score, nothing)


def _as_table(columns: dict[str, Any], library: str) -> Any:
    try:
        if library == "polars":
            import polars

            return polars.DataFrame(columns)
        import pandas
    except ImportError:
        raise MissingExtra(f"the fit was to a {library} table: install {library} to get such samples") from None
    return pandas.DataFrame(columns)


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
