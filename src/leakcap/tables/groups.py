"""Groups of a table: which columns make them, which values they may have, and how the answer's rows are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from leakcap import stats
from leakcap.errors import InputError
from leakcap.stats.group_by import GroupBy
from leakcap.tables.columns import numbers
from leakcap.tables.histograms import codes, levels_in, printable, rare

__all__ = ["By", "Grouped", "grouped"]


@dataclass(frozen=True)
class By:
    """A column that makes groups, and the values that were declared for it, as text; none: those in the pool."""

    column: str
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> By:
        """From `ward` or `ward=A,B,C`."""
        name, told, given = text.partition("=")
        levels = tuple(level.strip() for level in given.split(",") if level.strip())
        if not name.strip() or (told and not levels) or len(set(levels)) < len(levels):
            raise InputError("groups are declared by their values, all different, such as --by ward=A,B,C")
        return cls(name.strip(), levels)

    def refuse_undeclared(self) -> None:
        """Under a pool cap: a group that shows because somebody is in it tells that they are in the data."""
        if not self.levels:
            raise InputError(
                f"under a pool cap the groups of {self.column!r} cannot be read from the file, because a group that "
                f"shows tells that somebody is in it: declare them, such as --by {self.column}=this,that"
            )


@dataclass(frozen=True, eq=False)
class Grouped:
    """The function, the table it sees, the names of its outputs; lines for the certificate and for the custodian."""

    fn: GroupBy
    data: Any
    names: tuple[str, ...]
    public: tuple[str, ...]
    notes: tuple[str, ...]


def grouped(fn: str, left: Any, seen: Sequence[str], by: Sequence[tuple[By, str]]) -> Grouped:
    """A statistic of columns by groups; every column that makes groups comes with its kind."""
    import pandas

    data = pandas.DataFrame({name: numbers(left[name], name) for name in seen})
    keys: dict[str, tuple[Any, ...]] = {}
    words: list[list[str]] = []
    public: list[str] = []
    notes: list[str] = []
    for one, kind in by:
        if kind == "text":
            cells = left[one.column].astype(object).astype(str).str.strip()
            levels: tuple[Any, ...] = one.levels or levels_in(cells, one.column)
            if not one.levels:
                public.append(f"The groups of {one.column} were read from the whole pool.")
                notes.extend(rare(cells, one.column))
            shown = levels
        else:
            cells = pandas.Series(numbers(left[one.column], one.column))
            shown = one.levels or (("no", "yes") if kind == "yes/no" else ())
            if not shown:
                raise InputError(
                    f"column {one.column!r} holds numbers: declare its groups, such as --by {one.column}=1,2,3"
                )
            levels = codes(shown, one.column, kind)
        data[_key(one.column)] = cells.to_numpy()
        keys[_key(one.column)] = levels
        words.append([f"{one.column} = {printable(str(level))}" for level in shown])
    made = stats.group_by(keys, fn, of=tuple(seen))
    rows = [", ".join(parts) for parts in product(*words)]
    names = tuple(rows) if fn == "count" else tuple(f"{name}, {row}" for row in rows for name in seen)
    return Grouped(fn=made, data=data, names=names, public=tuple(public), notes=tuple(notes))


def _key(column: str) -> str:
    """A name of its own: the same column may be averaged too."""
    return f"by {column}"
