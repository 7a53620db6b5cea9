"""The label column of a file: its cells as classes or numbers, and the file again with other cells in its place.

All other columns stay as they were, row by row. Errors never quote a cell.
"""

from __future__ import annotations

import gzip
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.cli.files import TableFile, open_table, parquet, tried
from leakcap.errors import InputError

__all__ = ["LabelColumn", "open_labels"]

Codes = npt.NDArray[np.int64]
MISSING, STRANGE = -1, -2
# What an empty cell is called in text; a class of such a name comes first.
MARKS = {"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A"}
TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, eq=False)
class LabelColumn(ABC):
    """One column of a table. Custodian side: it holds the labels and says nothing about them."""

    file: TableFile
    name: str
    table: Any

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    @abstractmethod
    def ending(self) -> str:
        """Of a file in the same format."""

    def codes(self, names: Sequence[str], missing_as: str | None) -> Codes:
        """Labels as places among the names; empty cells as the place of `missing_as`."""
        found = self._codes(names, missing_as)
        if (found == STRANGE).any():
            raise InputError(
                f"some labels in column {self.name!r} are not among --classes: name every class there may be, spelt "
                "as in the file. They are not shown here, and not taken from the file, because a class that occurs "
                "once would give its owner away"
            )
        if missing_as is None:
            otherwise = (
                "or make them a class of their own with --missing-as NAME, so that it is protected which they are"
            )
            self._refuse_missing(found == MISSING, otherwise)
        else:
            found[found == MISSING] = names.index(missing_as)
        return found

    def numbers(self) -> npt.NDArray[np.float64]:
        """Labels as numbers, none of them missing."""
        found, missing = self._numbers()
        if (np.isnan(found) & ~missing).any():
            raise InputError(
                f"some labels in column {self.name!r} are no numbers, and bins from --low to --high need numbers: mend "
                "them, or name the classes with --classes"
            )
        self._refuse_missing(missing, "and bins have no place for them")
        return found

    @abstractmethod
    def named(self, codes: Codes, names: Sequence[str], missing_as: str | None) -> Any:
        """Names as cells of the kind that the column has."""

    @abstractmethod
    def names(self, names: Sequence[str], missing_as: str | None) -> list[Any]:
        """The names as whoever reads the file finds them."""

    def refuse_names(self, columns: Sequence[str]) -> None:
        """Columns that are to be written, and are there already."""
        for name in columns:
            if name != self.name and name in self.file.columns:
                raise InputError(f"the file has a column {name!r} already, where privatised labels would go: rename it")

    @abstractmethod
    def written(self, cells: Mapping[str, Any]) -> bytes:
        """The file with these columns in place of the label column."""

    def _refuse_missing(self, missing: npt.NDArray[np.bool_], otherwise: str) -> None:
        if missing.any():
            raise InputError(
                f"some labels in column {self.name!r} are missing: drop those rows if it is public which they are, "
                f"{otherwise}"
            )

    @abstractmethod
    def _codes(self, names: Sequence[str], missing_as: str | None) -> Codes: ...

    @abstractmethod
    def _numbers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]: ...


def open_labels(path: Path, column: str) -> LabelColumn:
    """The table in a CSV or Parquet file, all of it, and which of its columns holds the labels."""
    file = open_table(path)
    name = file.column(column)
    found = (_Arrow if file.separator is None else _Text).of(file, name)
    if not found.rows:
        raise InputError(f"{path.name} has column names and no rows: there are no labels in it")
    return found


class _Text(LabelColumn):
    """CSV: every cell is the text that it was."""

    @classmethod
    def of(cls, file: TableFile, name: str) -> _Text:
        file.refuse_long_lines()
        # In a file of one column, an empty line is a row whose label is missing.
        whole = file.read_csv(dtype=str, na_filter=False, skip_blank_lines=len(file.columns) > 1)
        return cls(file, name, whole)

    @property
    def ending(self) -> str:
        packed = self.file.path.name.lower().endswith(".gz")
        return (".tsv" if self.file.separator == "\t" else ".csv") + (".gz" if packed else "")

    def named(self, codes: Codes, names: Sequence[str], missing_as: str | None) -> Any:
        return np.asarray(names, dtype=object)[codes]

    def names(self, names: Sequence[str], missing_as: str | None) -> list[Any]:
        return list(names)

    def _codes(self, names: Sequence[str], missing_as: str | None) -> Codes:
        places, kinds = self.table[self.name].factorize()
        return _Words(names).places(kinds.tolist())[places]

    def _numbers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        return _numbers_in(self.table[self.name])

    def written(self, cells: Mapping[str, Any]) -> bytes:
        columns: dict[str, Any] = {}
        for name in self.file.columns:
            columns |= cells if name == self.name else {name: self.table[name]}
        text = _as_csv(columns, str(self.file.separator))
        return gzip.compress(text, compresslevel=6, mtime=0) if self.ending.endswith(".gz") else text


class _Arrow(LabelColumn):
    """Parquet: every column has the type that it had.

    But for numbers of which some may be missing: pandas writes whole ones as fractions as soon as one is. There the
    type would tell whether any is, and so it follows from the names of the classes.
    """

    @classmethod
    def of(cls, file: TableFile, name: str) -> _Arrow:
        # A path such as year=2024/labels.parquet must not add a column.
        whole = tried(file.path, lambda _: parquet().read_table(file.path, partitioning=None))
        return cls(file, name, whole)

    @property
    def ending(self) -> str:
        return ".parquet"

    def named(self, codes: Codes, names: Sequence[str], missing_as: str | None) -> Any:
        import pyarrow  # type: ignore[import-untyped]

        return self._cells(names, missing_as).take(pyarrow.array(codes))

    def names(self, names: Sequence[str], missing_as: str | None) -> list[Any]:
        return list(self._cells(names, missing_as).to_pylist())

    def _cells(self, names: Sequence[str], missing_as: str | None) -> Any:
        import pyarrow

        try:
            if missing_as is None or self._is_text or pyarrow.types.is_boolean(self._type):
                return pyarrow.array(self._typed(names), type=self._type)
            whole, numbers = [_whole(name) for name in names], [_number(name) for name in names]
            if None not in whole:
                return pyarrow.array(whole, type=pyarrow.int64())
            if None not in numbers:
                return pyarrow.array([float(one) for one in numbers if one is not None], type=pyarrow.float64())
        except (InputError, pyarrow.ArrowException, OverflowError):
            pass
        return pyarrow.array(names, type=pyarrow.string())  # a class 'missing' among numbers

    def _codes(self, names: Sequence[str], missing_as: str | None) -> Codes:
        self._typed([])  # refuses what can be no label
        places, kinds = self._encoded()
        if self._is_text:
            return np.append(_Words(names).places(kinds), MISSING)[places]
        found = [name for name in names if name != missing_as or self._could_hold(name)]
        place = dict(zip(self._typed(found), map(names.index, found), strict=True))
        if len(place) < len(found):
            raise InputError(f"two of --classes mean the same in column {self.name!r}: name each class once")
        known = [place.get(one, MISSING if one is None else STRANGE) for one in map(_without_nan, kinds)]
        return np.array([*known, MISSING], dtype=np.int64)[places]

    def _could_hold(self, name: str) -> bool:
        try:
            self._typed([name])
        except InputError:
            return False
        return True

    def _encoded(self) -> tuple[Codes, list[Any]]:
        """Which of a few different cells each row has, -1 where it is empty."""
        column = self._column.dictionary_encode()
        return column.indices.fill_null(-1).to_numpy().astype(np.int64), column.dictionary.to_pylist()

    @property
    def _column(self) -> Any:
        column = self.table.column(self.name).combine_chunks()
        return column if column.type.equals(self._type) else column.cast(self._type)

    @property
    def _type(self) -> Any:
        """The type of the cells; the names that a column of categories lists are labels too, and stay here."""
        from pyarrow import types  # type: ignore[import-untyped]

        found = self.table.schema.field(self.name).type
        return found.value_type if types.is_dictionary(found) else found

    @property
    def _is_text(self) -> bool:
        from pyarrow import types

        return types.is_string(self._type) or types.is_large_string(self._type)

    def _typed(self, names: Sequence[str]) -> list[Any]:
        """Names as cells of this column."""
        from pyarrow import types

        kind = self._type
        found: list[Any]
        if self._is_text:
            return list(names)
        if types.is_boolean(kind):
            found, what = [TRUTH.get(name.lower()) for name in names], "yes or no: name true and false"
        elif types.is_integer(kind):
            found, what = [_whole(name) for name in names], "whole numbers: name numbers, such as --classes 0,1"
        elif types.is_float32(kind) or types.is_float64(kind):
            size = kind.to_pandas_dtype()
            found = [None if _number(name) is None else float(size(float(name))) for name in names]
            what = "numbers: name numbers, such as --classes 0,1"
        elif types.is_decimal(kind):
            found, what = [_number(name) for name in names], "numbers: name numbers, such as --classes 0,1"
        else:
            raise InputError(
                f"column {self.name!r} is of type {kind}, and labels are numbers, text, or yes and no: turn it into one"
            )
        if None in found:
            raise InputError(f"the labels in column {self.name!r} are {what}")
        return found

    def _numbers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        if self._is_text:
            return _numbers_in(self._column.fill_null("").to_pandas())
        self._typed([])
        found = self._column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return found, np.isnan(found)

    def written(self, cells: Mapping[str, Any]) -> bytes:
        import pyarrow

        place = self.table.schema.names.index(self.name)
        # Notes in the file may tell about the labels: pandas writes how many categories there are, for instance.
        whole = self.table.replace_schema_metadata(None).remove_column(place)
        if whole.num_columns:
            whole = whole.cast(pyarrow.schema([field.remove_metadata() for field in whole.schema]))
        for further, (name, one) in enumerate(cells.items()):
            cell = one if isinstance(one, pyarrow.Array) else pyarrow.array(one)
            whole = whole.add_column(place + further, pyarrow.field(name, cell.type), cell)
        text = io.BytesIO()
        parquet().write_table(whole, text)
        return text.getvalue()


class _Words:
    """Names as they are found in text: letter by letter, or the same number written otherwise."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name: place for place, name in enumerate(names)}
        self._numbers: dict[Decimal, int] = {}
        for place, name in enumerate(names):
            number = _number(name)
            if number is not None and self._numbers.setdefault(number, place) != place:
                raise InputError(f"--classes names the number {number:g} twice: name each class once")

    def places(self, cells: Sequence[str]) -> Codes:
        return np.array([self._place(cell.strip()) for cell in cells], dtype=np.int64)

    def _place(self, word: str) -> int:
        if word in self._names:
            return self._names[word]
        number = _number(word)
        return MISSING if word in MARKS else STRANGE if number is None else self._numbers.get(number, STRANGE)


def _without_nan(cell: Any) -> Any:
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _number(word: str) -> Decimal | None:
    try:
        found = Decimal(word)
    except InvalidOperation:
        return None
    return found if found.is_finite() and "_" not in word else None


def _whole(word: str) -> int | None:
    number = _number(word)
    return int(number) if number is not None and abs(number) < 2**64 and number == int(number) else None


def _numbers_in(text: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    import pandas

    cells = text.str.strip()
    found = pandas.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
    return found, cells.isin(MARKS).to_numpy(dtype=bool)


def _as_csv(columns: Mapping[str, Any], separator: str) -> bytes:
    """Columns side by side as text, cells in quotes where they need it; many times as fast as row by row."""
    parquet()  # says which extra to install
    import pyarrow
    from pyarrow import compute  # type: ignore[import-untyped]

    def word(text: str) -> Any:
        return pyarrow.scalar(text, pyarrow.large_string())

    def joined(parts: list[Any], between: str) -> Any:
        return compute.binary_join_element_wise(*parts, word(between))

    def quoted(cells: Any) -> Any:
        text = pyarrow.array(cells).cast(pyarrow.large_string())
        need = compute.match_substring_regex(text, f'["\r\n{separator}]')
        if not compute.any(need).as_py():
            return text
        doubled = compute.replace_substring(text, '"', '""')
        return compute.if_else(need, joined([word('"'), doubled, word('"')], ""), text)

    rows = [quoted([name]) for name in columns], [quoted(_plain(cells)) for cells in columns.values()]
    lines = [line for part in rows for line in joined(part, separator).to_pylist()]
    return ("\n".join(lines) + "\n").encode()


def _plain(cells: Any) -> Any:
    return cells.astype(np.uint8) if cells.dtype == bool else cells
