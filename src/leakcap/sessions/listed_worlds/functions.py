"""Questions to one of a list of worlds: functions of the rows of those who take part."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from leakcap import stats
from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.kernels.bits import picked
from leakcap.kernels.bounded import ColumnNames, Declared
from leakcap.sessions.questions import for_json
from leakcap.sessions.table import SessionTable
from leakcap.simulate import Outputs, Pool, run_worlds
from leakcap.stats.cells import bin_edges
from leakcap.worlds import Units, Worlds

__all__ = ["AskedOfWorlds", "WorldFunctions", "WorldQuestion"]


class AskedOfWorlds(Protocol):
    """A question as the desk asks it: words, and numbers in every world."""

    @property
    def scale(self) -> float:
        """From the answer of a half to that of all."""
        ...

    def text(self, **how: Any) -> str:
        """The same for the same question."""
        ...

    def in_worlds(self, worlds: Worlds) -> Outputs:
        """The answer in every world, made without looking at the secret."""
        ...


@dataclass(frozen=True, eq=False)
class WorldQuestion:
    """One question: a function of the rows of a world."""

    fn: Callable[..., Any]
    rows: Callable[[], tuple[tuple[Any, ...], Units]]  # what it is asked about, and whose rows they are
    words: dict[str, Any]
    scale: float = 1.0  # from a half of the people to all of them
    backend: Any = None  # where it is run

    def text(self, **how: Any) -> str:
        """The same for the same question."""
        return json.dumps({**self.words, **how}, sort_keys=True, default=for_json)

    def in_worlds(self, worlds: Worlds) -> Outputs:
        """The answer in every world; an error where it fails in one of them."""
        data, units = self.rows()
        if units.of_row is None:
            return run_worlds(self.fn, Pool(data), units, worlds, backend=self.backend)
        # Of people without rows nothing is asked.
        present, of_row = np.unique(units.of_row, return_inverse=True)
        if not len(present):
            raise InputError("nobody has rows that this question is about: ask another")
        some = Units(units.rows, len(present), of_row.astype(np.intp))
        if len(present) < worlds.n:
            worlds = replace(worlds, packed=picked(worlds.packed, present), n=len(present))
        return run_worlds(self.fn, Pool(data), some, worlds, backend=self.backend)


@dataclass(frozen=True, eq=False)
class WorldFunctions:
    """What can be asked of a table of which a half takes part."""

    table: SessionTable
    backend: Any = None

    def query(self, fn: Callable[..., Any]) -> WorldQuestion:
        """Any function."""
        if not callable(fn):
            raise InputError("query takes a function of the rows of those who take part")
        words = {"kind": "query", "fn": fingerprint(fn)[:16]}
        return WorldQuestion(fn, lambda: (self.table.pool.data, self.table.units), words, backend=self.backend)

    def count(self, *, where: Any = None, by: Any = None) -> WorldQuestion:
        """How many rows there are."""
        return self._of("count", None, where, stats.sum, scale=2.0, by=by)

    def sum(self, columns: Any, *, where: Any = None, by: Any = None, bounds: Any = None) -> WorldQuestion:
        """Sums of columns."""
        return self._of("sum", columns, where, stats.sum, scale=2.0, by=by, bounds=bounds)

    def mean(self, columns: Any, *, where: Any = None, by: Any = None, bounds: Any = None) -> WorldQuestion:
        """Means of columns."""
        return self._of("mean", columns, where, stats.mean, by=by, bounds=bounds)

    def covariance(self, columns: Any, *, where: Any = None, bounds: Any = None) -> WorldQuestion:
        """Covariances of columns."""
        return self._of("covariance", columns, where, stats.covariance, bounds=bounds)

    def quantile(
        self, columns: Any, q: Any = 0.5, *, bounds: Any = None, grid: Any = None, where: Any = None
    ) -> WorldQuestion:
        """Quantiles of columns."""
        fn = partial(stats.quantile, q=q, grid=grid)
        return self._of("quantile", columns, where, fn, bounds=bounds, q=q, grid=grid)

    def histogram(
        self, columns: Any, *, edges: Any = None, bounds: Any = None, bins: int = 20, where: Any = None
    ) -> WorldQuestion:
        """Shares of the rows in bins."""
        if (edges is None) == (bounds is None):
            raise InputError("give the edges of the bins, or bounds=(low, high) for bins of equal width")
        if edges is None:
            (low,), (high,) = Declared(bounds).of_columns(None, 1)
            edges = np.linspace(low, high, checks.count(bins=bins) + 1)
        ends = bin_edges(edges)
        return self._of("histogram", columns, where, partial(stats.histogram, edges=ends), edges=ends)

    def linear(self, *_: Any, **__: Any) -> WorldQuestion:
        """Not here."""
        raise InputError("linear is for design='bits': here query(fn) takes any function of the rows that take part")

    blocks = linear

    def _of(
        self, kind: str, columns: Any, where: Any, fn: Callable[..., Any], *, scale: float = 1.0, **details: Any
    ) -> WorldQuestion:
        if details.get("by") is not None:
            raise InputError("groups are for design='bits'; here ask for each group, or with query(fn)")
        names, alone = ([], True) if columns is None else self.table.names(columns)
        bounds, ends = details.get("bounds"), None
        if bounds is not None:
            ends = Declared(bounds).of_columns(ColumnNames(tuple(names)), len(names))

        def rows() -> tuple[tuple[Any, ...], Units]:
            found = self.table.rows(self.table.mask(where), names)
            cells = found.cells if names else np.ones((len(found.cells), 1))
            if ends is not None:
                cells = np.clip(cells, *ends)
            return (cells[:, 0] if alone else cells,), found.units

        told = where if where is None or isinstance(where, str) else f"function {fingerprint(where)[:16]}"
        words = {"kind": kind, "columns": names or None, "where": told, **details}
        return WorldQuestion(fn, rows, {name: value for name, value in words.items() if value is not None}, scale)
