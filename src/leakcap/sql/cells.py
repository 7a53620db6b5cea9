"""Which group a row is in: a code that is computed from its keys, or a join with the list of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.ground.arrays import Ints
from leakcap.sessions.cell_rows import Block, CellRows, Making
from leakcap.sql.expressions import Expression, quoted_text
from leakcap.sql.program import SqlRelease

__all__ = ["Numbering", "RowPlan", "numbering"]

FEW = 64  # texts, up to which a text is looked for in a list
SMALL = 4096  # codes, up to which it does not matter how many of them are groups
LARGE = 2**22  # codes
KINDS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32}  # of codes, in bits


@dataclass(frozen=True)
class Numbering:
    """How rows get the number of their group.

    Attributes:
        rows: the rows, in SQL, with columns of the relation.
        code: a small whole number of each row, in SQL; NULL, or beyond the list, for rows in no group.
        least: the first code.
        cells: the group of each code from there on; -1 for none.
        tables: what the rows are joined with.
        apart: columns that tell groups apart, in SQL, and the code in terms of them, as k0, k1 and so on: texts are
            looked for in a list once a person and group, not once a row.
    """

    rows: str
    code: str
    least: int
    cells: Any
    tables: dict[str, Any]
    apart: tuple[tuple[str, ...], str]

    @property
    def narrow(self) -> str:
        """The code in as few bytes as its list and one code before it need; NULL for others that do not fit."""
        first, last = self.least - 1, self.least + len(self.cells) - 1
        kind = next(one for one, bits in KINDS.items() if -(2 ** (bits - 1)) <= first and last < 2 ** (bits - 1))
        return f"TRY_CAST({self.code} AS {kind})"

    def summed(self, unit: str, sums: Sequence[str]) -> str:
        """A row for each person and group, with sums, in SQL."""
        keys, code = self.apart
        listed = [f"{unit} AS unit", *(f"{one} AS k{at}" for at, one in enumerate(keys))]
        listed += [f"{one} AS s{at}" for at, one in enumerate(sums)]
        places = ", ".join(map(str, range(1, len(keys) + 2)))
        inner = f"SELECT {', '.join(listed)} FROM {self.rows} GROUP BY {places}"
        return f"SELECT unit, {code} AS code, {', '.join(f's{at}' for at in range(len(sums)))} FROM ({inner})"

    def of(self, found: Any, people: int, *, making: Making, factors: Sequence[float] = ()) -> CellRows:
        """Rows that were found by these codes; `factors` are of their columns."""
        blocks = []
        for batch in found.to_batches():
            codes = batch.column(1)
            codes = codes.fill_null(self.least - 1) if codes.null_count else codes
            columns = [numbers_of(one) for one in batch.columns[2:]]
            columns = [one * factor for one, factor in zip(columns, factors, strict=True)] if factors else columns
            blocks.append(Block(batch.column(0).to_numpy(), codes.to_numpy(), tuple(columns)))
        groups = int(self.cells.max(initial=-1)) + 1
        return CellRows.of(people, groups, blocks, least=self.least, cells=self.cells, making=making)


@dataclass(frozen=True)
class RowPlan:
    """One SELECT over rows of whole people, and how they become what everybody brings to each group."""

    sql: str
    numbered: Numbering
    making: Making
    factors: tuple[float, ...] = ()

    def rows(self, run: Callable[[str, dict[str, Any]], Any], people: int) -> CellRows:
        """What `run` finds, of so many people."""
        found = run(self.sql, self.numbered.tables)
        return self.numbered.of(found, people, making=self.making, factors=self.factors)

    def nobody(self) -> CellRows:
        """What nobody brings."""
        cells = self.numbered.cells
        groups, least = int(cells.max(initial=-1)) + 1, self.numbered.least
        return CellRows(0, groups, (), least, cells=cells, making=self.making)


def numbers_of(column: Any) -> Any:
    """A column as numbers, decimals in their last digit; 0 for what is missing."""
    import pyarrow

    if not pyarrow.types.is_decimal(column.type):
        return (column.fill_null(0) if column.null_count else column).to_numpy()
    width = column.type.bit_width // 8
    kind = np.dtype(f"<i{min(width, 8)}")  # of 128 bits the lower half: they have room in it
    words, step = np.frombuffer(column.buffers()[1], dtype=kind), width // kind.itemsize
    whole = words[step * column.offset : step * (column.offset + len(column)) : step]
    return np.where(column.is_null().to_numpy(zero_copy_only=False), 0, whole) if column.null_count else whole


@dataclass(frozen=True)
class _Coded:
    """One key as a number from 0."""

    key: str  # in SQL
    code: Callable[[str], str]  # the number, from the key or a name for it
    span: int
    places: Ints  # of the groups' own values
    raw: int | None = None  # the least value, where the key itself will do: what is too large for a code is none
    few: bool = False  # whether the key has few values in all: groups may be told apart by them

    @property
    def sql(self) -> str:
        return self.code(self.key)


def numbering(release: SqlRelease, keys: Any) -> Numbering:
    """Codes where keys are whole numbers, dates or few texts, and close together; a join otherwise."""
    rows = f"({release.base.sql})"
    if not release.keys:
        return Numbering(rows, "0", least=0, cells=np.zeros(1, dtype=np.int32), tables={}, apart=((), "0"))
    coded = [_coded(one, keys.column(name)) for one, name in zip(release.keys, release.key_names, strict=True)]
    spans = [one.span for one in coded if one is not None]
    codes = int(np.prod(spans, dtype=np.float64))
    if len(spans) == len(coded) and codes <= max(SMALL, 2 * keys.num_rows) and codes <= LARGE:
        return _by_code(rows, [one for one in coded if one is not None], codes)
    match = " AND ".join(
        f"{one.safe} IS NOT DISTINCT FROM keys.{name}"
        for one, name in zip(release.keys, release.key_names, strict=True)
    )
    cells = np.arange(keys.num_rows, dtype=np.int32)
    joined, tables = f"{rows} JOIN keys ON {match}", {"keys": _numbered(keys, cells)}
    return Numbering(joined, "cell", least=0, cells=cells, tables=tables, apart=(("cell",), "k0"))


def _by_code(rows: str, coded: Sequence[_Coded], codes: int) -> Numbering:
    places = np.zeros(len(coded[0].places), dtype=np.int64)
    for one in coded:
        places = places * one.span + one.places
    cells = np.full(codes, -1, dtype=np.int32)
    cells[places] = np.arange(len(places))
    if len(coded) == 1 and coded[0].raw is not None:
        key, least = coded[0].key, coded[0].raw
        return Numbering(rows, key, least=least, cells=cells, tables={}, apart=((f"TRY_CAST({key} AS INTEGER)",), "k0"))
    code = _together(coded, [one.sql for one in coded])
    apart = (
        tuple(one.key if one.few else one.sql for one in coded),
        _together(coded, [one.code(f"k{at}") if one.few else f"k{at}" for at, one in enumerate(coded)]),
    )
    return Numbering(rows, code, least=0, cells=cells, tables={}, apart=apart)


def _together(coded: Sequence[_Coded], codes: Sequence[str]) -> str:
    made = codes[0]
    for one, code in zip(coded[1:], codes[1:], strict=True):
        made = f"({made}) * {one.span} + ({code})"
    return made


def _coded(key: Expression, column: Any) -> _Coded | None:
    """A key by its listed values; None where they are not of a kind that is counted."""
    import pyarrow
    from pyarrow import compute

    there, own = column.drop_null(), key.safe
    if key.kind == "text" and pyarrow.types.is_string(column.type):
        listed = sorted(set(there.to_pylist()))
        if len(listed) > FEW or not listed:
            return None
        code, span, raw = _in_list(f"[{', '.join(map(quoted_text, listed))}]"), len(listed), None
        places = compute.index_in(column, value_set=pyarrow.array(listed, type=column.type))
    elif key.kind in ("int", "date", "bool") and len(there):
        whole = _whole(there)
        if whole is None:
            return None
        least, most = int(whole.min()), int(whole.max())
        span = most - least + 1
        if span > LARGE or max(abs(least), abs(most)) >= 2**31:
            return None
        own, low, high = _in_sql(key, least, most)
        code = _between(low, high)
        raw = least if key.kind == "int" and len(there) == len(column) else None
        places = compute.subtract(_as_whole(column), least)
    else:
        return None
    if column.null_count:  # what is missing is a group of its own, behind the others
        code, places, span = _or_missing(code, span), places.fill_null(span), span + 1
    few = key.kind == "text" and key.levels is not None and not key.declared  # declared ones may not be all
    return _Coded(own, code, span, np.asarray(places.to_numpy(), dtype=np.int64), raw=raw, few=few)


def _in_list(listing: str) -> Callable[[str], str]:
    return lambda key: f"list_position({listing}, {key}) - 1"


def _between(low: str, high: str) -> Callable[[str], str]:
    return lambda key: f"CASE WHEN {key} BETWEEN {low} AND {high} THEN ({key} - {low})::INTEGER END"


def _or_missing(code: Callable[[str], str], span: int) -> Callable[[str], str]:
    return lambda key: f"CASE WHEN {key} IS NULL THEN {span} ELSE {code(key)} END"


def _in_sql(key: Expression, least: int, most: int) -> tuple[str, str, str]:
    """The key and its ends as SQL that can be subtracted."""
    if key.kind == "date":
        return key.safe, f"(DATE '1970-01-01' + ({least}))", f"(DATE '1970-01-01' + ({most}))"
    return (f"{key.safe}::INTEGER" if key.kind == "bool" else key.safe), f"({least})", f"({most})"


def _as_whole(column: Any) -> Any:
    import pyarrow

    days = pyarrow.types.is_date32(column.type)
    return (column.cast(pyarrow.int32()) if days else column).cast(pyarrow.int64())


def _whole(column: Any) -> Any:
    """Values as whole numbers; None where they are stored as something else."""
    import pyarrow

    kind = column.type
    if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_date32(kind) or pyarrow.types.is_boolean(kind)):
        return None
    return _as_whole(column).to_numpy()


def _numbered(keys: Any, cells: Any) -> Any:
    import pyarrow

    return keys.append_column("cell", pyarrow.array(cells))
