"""Shares of rows in bins and at categories: which bins and levels were asked for, column by column."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import stats
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels import kernel_of, offers
from leakcap.kernels.bounded import Bounded, Declared, Extent
from leakcap.kernels.contributions import Contributions, adds_up, bounded_contributions, contributions
from leakcap.stats.named import bin_names
from leakcap.tables.columns import numbers
from leakcap.tables.cut_points import column_and_rest, edges
from leakcap.worlds import Units, Worlds

__all__ = ["Part", "Shape", "Wishes", "codes", "levels_in", "printable", "rare", "side_by_side"]

MAX_LEVELS = 100  # found in the pool; as many as you like may be named
RARE_ROWS = 10  # a category of fewer is rare


@dataclass(frozen=True)
class Shape:
    """One column's shares: its bins, or the numbers that stand for its categories."""

    names: tuple[str, ...]
    edges: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()

    @property
    def statistic(self) -> Callable[..., Any]:
        """The shares as a function of the cells of some rows."""
        if self.edges:
            return partial(stats.histogram, edges=self.edges)
        return partial(stats.categories, levels=self.levels)


@dataclass(frozen=True, eq=False)
class Part:
    """One column of a histogram: shape, cells as numbers, lines for the certificate and for the custodian."""

    shape: Shape
    cells: Floats
    public: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _in_all_worlds(data: tuple[Any, ...], units: Units, worlds: Worlds, parts: Sequence[Shape]) -> Floats | None:
    tables = []
    for place, part in enumerate(parts):
        kernel = kernel_of(part.statistic)
        tables.append(None if kernel is None else kernel((data[0][:, place],), units, worlds))
    served = [table for table in tables if table is not None]
    return np.concatenate(served, axis=1) if len(served) == len(parts) else None


def _brought(data: tuple[Any, ...], units: Units, parts: Sequence[Shape]) -> Contributions:
    each = [contributions(part.statistic, (data[0][:, place],), units) for place, part in enumerate(parts)]
    return Contributions(np.hstack([one.values for one in each]), averaged=True)


def _within(data: tuple[Any, ...], units: Units, declared: Declared, parts: Sequence[Shape]) -> Bounded:
    """Counts of every column; a row is at one place of each."""
    each = [
        bounded_contributions(part.statistic, (data[0][:, place],), units, declared) for place, part in enumerate(parts)
    ]
    sizes = [one.values.shape[1] for one in each]
    finish = partial(_finished, sizes=sizes, finishes=[one.finish for one in each])
    return Bounded(np.hstack([one.values for one in each]), Extent.one_of(sizes, declared.rows), finish)


def _finished(total: Floats, sizes: Sequence[int], finishes: Sequence[Callable[[Floats], Any]]) -> Floats:
    counts = np.split(total, np.cumsum(sizes)[:-1])
    return np.concatenate([finish(some) for finish, some in zip(finishes, counts, strict=True)])


@adds_up(_brought, _within)
@offers(_in_all_worlds)
def side_by_side(rows: npt.ArrayLike, parts: Sequence[Shape]) -> Floats:
    """The shares of all columns in one vector."""
    table = np.asarray(rows, dtype=np.float64)
    return np.concatenate([part.statistic(table[:, place]) for place, part in enumerate(parts)])


@dataclass(frozen=True)
class Wishes:
    """Bins and categories by column, as they were asked for."""

    edges: dict[str, tuple[float, ...]]
    levels: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, kinds: dict[str, str], bins: Sequence[str], levels: Sequence[str]) -> Wishes:
        """`kinds` of the columns asked about, in order."""
        named = dict(_levels(text, kinds) for text in levels)
        need = [name for name, kind in kinds.items() if kind == "number" and name not in named]
        pairs = [column_and_rest(text, kinds) for text in bins]
        by_name = {name: ends for name, ends in pairs if name}
        for name in by_name:
            if name not in need:
                raise InputError(f"--bins are for numbers, and column {name!r} is asked for by category")
        nameless = [ends for name, ends in pairs if not name]
        rest = [name for name in need if name not in by_name]
        if rest and not nameless:
            raise InputError(
                f"column {rest[0]!r} holds numbers: say where its bins end, such as --bins 0,18,65,120 or --bins "
                f"0:100:10, or name its codes, such as --levels {rest[0]}=0,1. Edges are not read from the data, "
                "because that would publish the smallest and the largest value, which are single people's"
            )
        if nameless and not rest:
            raise InputError("--bins are for columns of numbers, and no such column is left that needs them")
        if len(nameless) not in ((0,) if not rest else (1, len(rest))):
            raise InputError(
                f"{len(nameless)} --bins for {len(rest)} columns of numbers: give one for all, one for each in their "
                "order, or name the column as in --bins age=0,18,65"
            )
        texts = by_name | dict(zip(rest, nameless * len(rest) if len(nameless) == 1 else nameless, strict=False))
        return cls({name: edges(text) for name, text in texts.items()}, named)

    def refuse_undeclared(self, kinds: dict[str, str]) -> None:
        """Under a pool cap: a category that shows because somebody has it tells that they are in the data."""
        for name, kind in kinds.items():
            if name not in self.edges and name not in self.levels:
                some = "no,yes" if kind == "yes/no" else "this,that"
                raise InputError(
                    f"under a pool cap the categories of {name!r} cannot be read from the file, because a category "
                    f"that shows tells that somebody has it: declare them, such as --levels {name}={some}"
                )

    def part(self, column: Any, name: str, kind: str) -> Part:
        """A column's part of the answer."""
        if name in self.edges:
            return Part(Shape(_bin_names(name, self.edges[name]), edges=self.edges[name]), numbers(column, name))
        if kind == "text":
            return self._text(column, name)
        cells = numbers(column, name)
        given = self.levels.get(name, ("no", "yes"))
        shape = Shape(tuple(f"{name} = {level}" for level in given), levels=codes(given, name, kind))
        return Part(shape, cells, notes=_unmatched(name, given, shape.statistic(cells), len(cells)))

    def _text(self, column: Any, name: str) -> Part:
        import pandas

        text = column.astype(object).astype(str).str.strip()
        given = self.levels.get(name)
        levels = given or levels_in(text, name)
        cells = pandas.Index(levels).get_indexer(text).astype(np.float64)  # -1: at none of them
        shape = Shape(
            tuple(f"{name} = {printable(level)}" for level in levels), levels=tuple(map(float, range(len(levels))))
        )
        if given:
            return Part(shape, cells, notes=_unmatched(name, given, shape.statistic(cells), len(cells)))
        return Part(shape, cells, (f"The categories of {name} were read from the whole pool.",), rare(text, name))


def rare(text: Any, name: str) -> tuple[str, ...]:
    rare = int((text.value_counts() < RARE_ROWS).sum())
    if not rare:
        return ()
    return (
        f"{rare} of the categories of {name} have fewer than {RARE_ROWS} rows. Their names leave with the answer and "
        f"tell that somebody in the pool has them: --levels {name}=... names those that may be known",
    )


def levels_in(cells: Any, name: str) -> tuple[str, ...]:
    """The categories in the pool, unless they look like people's own."""
    counts = cells.value_counts()
    if len(counts) > MAX_LEVELS or (counts == 1).sum() > len(counts) / 2:
        raise InputError(
            f"column {name!r} has too many different texts, or most of them only once: it may hold names or ids, and "
            "the names of categories leave with the answer. Name the categories that may be known: "
            f"--levels {name}=this,that"
        )
    return tuple(sorted(map(str, counts.index)))


def _unmatched(name: str, given: Sequence[str], shares: Floats, rows: int) -> tuple[str, ...]:
    absent = [level for level, share in zip(given, shares, strict=True) if share == 0]
    others = rows - round(float(shares.sum()) * rows)
    spelling = f"no row of {name} is at {', '.join(map(repr, absent))}: is it spelt as in the file?"
    uncounted = f"{others:,} rows of {name} are at none of the levels given, and count in none"
    return (*([spelling] if absent else []), *([uncounted] if others else []))


def _levels(text: str, columns: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    name, rest = column_and_rest(text, columns)
    levels = tuple(level.strip() for level in next(csv.reader([rest], skipinitialspace=True), []) if level.strip())
    if not name or not levels:
        raise InputError("levels are given as column=level,level,..., such as --levels sex=0,1")
    if len(set(levels)) < len(levels):
        raise InputError(f"--levels {name}=... names a level twice: name each once")
    return name, levels


def codes(levels: Sequence[str], name: str, kind: str) -> tuple[float, ...]:
    words = {"no": 0.0, "false": 0.0, "yes": 1.0, "true": 1.0} if kind == "yes/no" else {}
    try:
        return tuple(words[level.lower()] if level.lower() in words else float(level) for level in levels)
    except ValueError:
        pass
    raise InputError(f"column {name!r} holds numbers, so its levels must be numbers too, such as --levels {name}=0,1")


def _bin_names(name: str, edges: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{name}, {words}" for words in bin_names(edges))


def printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
