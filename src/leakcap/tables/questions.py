"""What is asked of a file: from a path and a few options to what `leakcap.plan` needs. Errors never quote a cell."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import stats
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.kernels import offers
from leakcap.kernels.bounded import Bounded, Declared
from leakcap.kernels.contributions import Contributions, adds_up, bounded_contributions, contributions
from leakcap.kernels.moments import covariances
from leakcap.planning.entry import plan
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release
from leakcap.tables.columns import numbers, refuse_unusable
from leakcap.tables.cut_points import grids
from leakcap.tables.files import TableFile, listed, open_table
from leakcap.tables.functions import load, silent
from leakcap.tables.groups import By, grouped
from leakcap.tables.histograms import Wishes, side_by_side
from leakcap.tables.reading import Reading
from leakcap.tables.units import strata_of, units_of
from leakcap.worlds import Units, Worlds

__all__ = ["ON_GRID", "STATISTICS", "Question", "ask"]

STATISTICS = ("mean", "sum", "count", "share", "median", "quantile", "covariance", "histogram")
BY_GROUP = ("mean", "sum", "count", "share")
ON_GRID = ("median", "quantile")
MEDIAN = (0.5,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """What is asked of a file: a function, the rows it sees, whose rows they are. Custodian side."""

    fn: Callable[..., Any]
    data: Any = field(repr=False)
    unit: npt.NDArray[Any] | None = field(default=None, repr=False)
    strata: npt.NDArray[Any] | None = field(default=None, repr=False)
    names: tuple[str, ...] | None
    title: str
    columns: tuple[str, ...] = ()  # of numbers, in the order in which bounds are for them
    public: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rows: npt.NDArray[np.intp] | None = field(default=None, repr=False)  # of the file, where some were left out

    def planned(self, *, public: Sequence[str] = (), **options: Any) -> Plan:
        """The plan of a release: the arguments of `leakcap.plan` beside what the question holds itself."""
        return plan(
            self.fn,
            self.data,
            unit=self.rows if self.unit is None else self.unit,
            strata=self.strata,
            public=(*self.public, *public),
            outputs=self.names,
            **options,
        )

    def finished(self, released: Release) -> Release:
        """The release as it leaves."""
        return released


def ask(
    path: Path,
    fn: str,
    columns: Sequence[str] = (),
    *,
    unit: str | None = None,
    strata: Sequence[str] = (),
    missing: str = "refuse",
    q: Sequence[float] = MEDIAN,
    bins: Sequence[str] = (),
    levels: Sequence[str] = (),
    grid: Sequence[str] = (),
    by: Sequence[str] = (),
    declared: bool = False,
    read: Sequence[str] = (),
) -> Question:
    """A question to the rows of a CSV or Parquet file, or of a folder of Parquet files.

    Args:
        fn: mean, sum, count, share, median, quantile, covariance, histogram, or `module:function` for a function of
            your own, which gets a DataFrame (without the unit column).
        columns: names, also several in one word with commas between. Statistics need them, unless there is but one; a
            function of your own gets all columns otherwise.
        unit: the column that says whose row it is.
        strata: columns whose groups every world holds in proportion.
        missing: "refuse", or "drop" to leave out rows with a missing value in any column used. It is decided row by
            row, before worlds are drawn. A function of your own gets missing values as they are unless dropped.
        q: which quantiles.
        bins: ends of a histogram's bins, "0,18,65" or "0:100:10", one for all columns of numbers, one for each in
            their order, or "age=0,18,65".
        levels: categories of a column, "sex=0,1"; those of text are otherwise read from the whole pool.
        grid: cut points between which rows are counted for a median or quantiles, "0:100:5" or "age=0:100:5".
        by: columns that make groups, with the values that they may have: "ward=A,B,C".
        declared: whether nothing of the answer's form may be read from the data, as under a pool cap: groups and
            categories without declared values are refused.
        read: how cells are written, "decimal=,", "missing=n/a" and the like.
    """
    checks.choice(("refuse", "drop"), missing=missing)
    _refuse_idle(fn, q, bins, levels)
    if by and fn not in BY_GROUP:
        raise InputError(f"--by is for {', '.join(BY_GROUP)}")
    if grid and fn not in ON_GRID:
        raise InputError(f"--grid is for {' and '.join(ON_GRID)}")
    if fn == "count" and columns:
        raise InputError("a count is of rows, whatever is in them: leave out --columns; --by counts them by group")
    own = load(fn) if ":" in fn else None
    file = open_table(Path(path), Reading.of(read))
    chosen, groups = file.find(columns), file.find(strata)
    whose = _unit_column(file, unit, chosen, groups)
    parts = [By.of(text) for text in by]
    parts = [replace(one, column=file.column(one.column)) for one in parts]
    if own is None and not chosen and fn != "count":
        chosen = file.only_column(apart_from=[whose, *groups, *(one.column for one in parts)])
        if not chosen:
            raise InputError(_name_columns(file, fn, whose))
    if declared:
        for one in parts:
            one.refuse_undeclared()
    seen = chosen or ([] if fn == "count" else file.with_parts(name for name in file.columns if name != whose))
    labels = [*([whose] if whose else []), *groups, *(one.column for one in parts)]
    table = file.read(list(dict.fromkeys([*labels, *seen])) or [file.columns[0]])
    kinds = {} if own else {name: refuse_unusable(table[name], name, fn) for name in seen}
    wishes = Wishes.of(kinds, bins, levels) if fn == "histogram" else None
    if declared and wishes:
        wishes.refuse_undeclared(kinds)
    keep = _complete(table, labels, [] if own and missing == "refuse" else seen, missing)
    left = table[keep].reset_index(drop=True)
    people, notes = units_of(file, left, whose, keep) if whose else (None, [])
    group = strata_of(left, groups, people, whose) if groups else None
    public = []
    if missing == "drop":
        public.append(f"Rows with a missing value in {listed(list(table.columns))} were left out.")
        notes.append(f"{(~keep).sum():,} of {len(keep):,} rows with missing values were left out")
    if own:
        answer = Question(fn=silent(own), data=left[seen], names=None, title=fn)
    elif parts:
        answer = _by_group(fn, left, seen, parts)
    else:
        answer = _built_in(fn, left, kinds, wishes=wishes, q=tuple(map(float, q)), grid=grid)
    rows = None if keep.all() else np.flatnonzero(keep)
    return replace(
        answer, unit=people, strata=group, public=(*public, *answer.public), notes=(*notes, *answer.notes), rows=rows
    )


def _refuse_idle(fn: str, q: Sequence[float], bins: Sequence[str], levels: Sequence[str]) -> None:
    """Options that would change nothing, and names that mean nothing."""
    if ":" not in fn and fn not in STATISTICS:
        close = difflib.get_close_matches(fn.lower(), STATISTICS, n=1)
        hint = f"; did you mean {close[0]}?" if close else "."
        raise InputError(
            f"there is no statistic {fn!r}{hint} There are {', '.join(STATISTICS)}, and functions of your own as "
            "module:function"
        )
    if fn == "quantile":
        given = [checks.fraction(q=share) for share in q]
        if not given or len(set(given)) < len(given):
            raise InputError(
                "q must be one or several different numbers between 0 and 1, such as 0.25 for the lower quarter"
            )
    elif tuple(q) != MEDIAN:
        raise InputError("q is for --fn quantile only")
    if fn != "histogram" and (bins or levels):
        raise InputError("--bins and --levels are for --fn histogram only")


def _unit_column(file: TableFile, unit: str | None, chosen: list[str], groups: list[str]) -> str | None:
    whose = None if unit is None else file.column(unit)
    if whose in chosen:
        raise InputError(
            f"column {unit!r} says whose rows they are, and ids are not for the function: leave it out of --columns"
        )
    if whose in groups:
        raise InputError(f"column {unit!r} cannot be unit and stratum at once: everybody would be alone in a stratum")
    return whose


def _name_columns(file: TableFile, fn: str, whose: str | None) -> str:
    if file.nameless:
        return (
            "name the columns with --columns. They are not listed here, because the first line of "
            f"{file.path.name} looks like data: if it is, put a line with the names of the columns first"
        )
    kinds = {name: kind for name, kind in file.kinds().items() if name != whose}
    fits = ("number", "yes/no", "text") if fn == "histogram" else ("number", "yes/no")
    usable = [f"{name} ({kind})" for name, kind in kinds.items() if kind in fits]
    others = [f"{name} ({kind})" for name, kind in kinds.items() if kind not in fits]
    return (
        f"name the columns to take the {fn} of, such as --columns one,other. It can use: {listed(usable) or 'none'}"
        + (f". It cannot use: {listed(others)}" if others else "")
    )


def _complete(table: Any, labels: list[str], seen: list[str], missing: str) -> npt.NDArray[np.bool_]:
    """Which rows have all values that are needed."""
    used = list(dict.fromkeys([*labels, *seen]))
    gaps = {name: table[name].isna().to_numpy(dtype=bool) for name in used}
    keep = np.ones(len(table), dtype=bool)
    for gap in gaps.values():
        keep &= ~gap
    if missing == "drop" and not keep.any():
        raise InputError(
            f"every row has a missing value in one of {listed(used)}, so nothing is left: leave out the columns with "
            "most gaps"
        )
    if missing == "drop" or keep.all():
        return keep
    holes = [name for name, gap in gaps.items() if gap.any()]
    if any(name in holes for name in labels):
        what = f"have no label in {listed([name for name in labels if name in holes])}: fill it in"
    else:
        what = f"have a missing value in {listed(holes)}: decide about them in a function of your own"
    raise InputError(
        f"{(~keep).sum():,} of {len(keep):,} rows {what}, or leave these rows out with --missing drop (row by row, "
        "before worlds are drawn)"
    )


def _built_in(
    fn: str, left: Any, kinds: dict[str, str], *, wishes: Wishes | None, q: tuple[float, ...], grid: Sequence[str]
) -> Question:
    seen = list(kinds)
    if wishes:
        parts = [wishes.part(left[name], name, kind) for name, kind in kinds.items()]
        return Question(
            fn=partial(side_by_side, parts=tuple(part.shape for part in parts)),
            data=_side_by_side([part.cells for part in parts]),
            names=tuple(name for part in parts for name in part.shape.names),
            title=f"histogram of {listed(seen)}",
            public=tuple(line for part in parts for line in part.public),
            notes=tuple(line for part in parts for line in part.notes),
        )
    if fn == "count":
        return Question(fn=stats.count, data=np.ones(len(left)), names=("rows",), title="count of rows")
    data = _side_by_side([numbers(left[name], name) for name in seen])
    cuts = {"grid": grids(seen, grid)} if grid else {}
    if fn == "quantile":
        names = tuple(f"{name}, {_percent(share)}" for share in q for name in seen)
        title = f"quantiles ({', '.join(map(_percent, q))}) of {listed(seen)}"
        return Question(fn=partial(stats.quantile, q=q, **cuts), data=data, names=names, title=title)
    if fn == "covariance":
        pairs = [(a, b) for i, a in enumerate(seen) for b in seen[i:]]
        names = tuple(f"{a}, variance" if a == b else f"{a} × {b}" for a, b in pairs)  # noqa: RUF001
        title = f"covariance of {listed(seen)}"
        return Question(fn=_covariances, data=data, names=names, title=title, columns=tuple(seen))
    plain = {"mean": stats.mean, "median": stats.median, "sum": stats.sum, "share": stats.share}[fn]
    plain = partial(plain, **cuts) if cuts else plain
    return Question(fn=plain, data=data, names=tuple(seen), title=f"{fn} of {listed(seen)}", columns=tuple(seen))


def _by_group(fn: str, left: Any, seen: Sequence[str], by: Sequence[By]) -> Question:
    found = grouped(fn, left, seen, [(one, refuse_unusable(left[one.column], one.column, "histogram")) for one in by])
    of = "rows" if fn == "count" else listed(list(seen))
    return Question(
        fn=found.fn,
        data=found.data,
        names=found.names,
        title=f"{fn} of {of} by {listed([one.column for one in by])}",
        columns=tuple(seen),
        public=found.public,
        notes=found.notes,
    )


def _each_pair_once(data: tuple[Any, ...], units: Units, worlds: Worlds) -> npt.NDArray[np.float64]:
    above = np.triu_indices(data[0].shape[1])
    return covariances(data[0], worlds, units)[:, above[0], above[1]]


def _pairs_brought(data: tuple[Any, ...], units: Units) -> Contributions:
    return replace(contributions(stats.covariance, data, units), finish=np.asarray)  # they are each pair once already


def _pairs_bounded(data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
    found = bounded_contributions(stats.covariance, data, units, declared)
    return replace(found, finish=partial(_above, finish=found.finish))


def _above(total: npt.NDArray[np.float64], finish: Callable[..., Any]) -> npt.NDArray[np.float64]:
    square = np.atleast_2d(finish(total))
    return np.asarray(square[np.triu_indices(len(square))])


@adds_up(_pairs_brought, _pairs_bounded)
@offers(_each_pair_once)
def _covariances(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each pair of columns once."""
    return stats.covariance(rows)[np.triu_indices(rows.shape[1])]


def _side_by_side(columns: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    table = np.empty((len(columns[0]), len(columns)))
    for place, column in enumerate(columns):
        table[:, place] = column
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.10g} %"
