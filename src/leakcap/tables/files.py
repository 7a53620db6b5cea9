"""Tables in files: what their columns are called, and the columns that are wanted. Errors never quote a cell."""

from __future__ import annotations

import difflib
import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from leakcap.errors import InputError
from leakcap.ground.twins import twins_of
from leakcap.tables.columns import kind_of, kind_of_arrow
from leakcap.tables.dates import PARTS, date_parts, part_of
from leakcap.tables.parquet_files import PARQUET, arrow_schema, arrow_table, parts_of
from leakcap.tables.reading import Reading

__all__ = ["TableFile", "digest_of", "listed", "open_table", "tried"]

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
INDEX = r"__index_level_\d+__"  # row numbers that pandas has written
MAGIC: dict[bytes, tuple[tuple[str, ...], str]] = {
    b"PAR1": (PARQUET, "a Parquet file: let its name end in .parquet"),
    b"PK\x03\x04": ((), "a spreadsheet or an archive: save the sheet as CSV"),
    b"\x1f\x8b": ((".gz",), "packed with gzip: let its name end in .gz"),
}
MAX_NAMES = 24  # in one message
SAMPLE_ROWS = 1000  # rows of a text file that tell the kinds of its columns
DELIMITERS = {"\t": "tab", "|": "pipe"}  # that are offered; semicolons are taken for what they are
T = TypeVar("T")


@dataclass(frozen=True)
class TableFile:
    """A CSV or Parquet file and the names of its columns; rows are read when they are asked for."""

    path: Path
    columns: tuple[str, ...]
    separator: str | None  # None: Parquet
    nameless: bool = False  # the first line looks like data: its entries are not for messages
    reading: Reading = field(default_factory=Reading)

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """The rows of some columns, in the given order, as a DataFrame; of all columns when None.

        Parts of dates are columns too, where they were asked for: `born.year`.
        """
        wanted = self.with_parts(self.columns) if columns is None else list(columns)
        stored = list(dict.fromkeys(self._stored(name) for name in wanted))
        if self.separator is None:
            table = tried(self.path, lambda _: arrow_table(self.path, stored).to_pandas(ignore_metadata=True))
        else:
            self.refuse_long_lines()
            table = self.read_csv(usecols=stored)[stored]
        return self._with_rows(self._as_told(table, wanted)).reset_index(drop=True)

    def read_exactly(self, column: str) -> Any:
        """One column without rounding: whole numbers of any size, and whatever CSV holds, as text."""
        if self.separator is None:
            found = tried(self.path, lambda _: _unrounded(arrow_table(self.path, [column]).column(0)))
        else:
            found = self.read_csv(usecols=[column], dtype={column: str})[column]
        return self.reading.exact(found)

    def kinds(self) -> dict[str, str]:
        """What kind each column is, from the first rows of a CSV file or the schema of a Parquet file."""
        if self.separator is None:
            schema = tried(self.path, lambda _: arrow_schema(self.path))
            return {str(one.name): kind_of_arrow(one.type) for one in schema if str(one.name) in self.columns}
        rows = self._with_rows(self.read_csv(nrows=SAMPLE_ROWS))
        return {name: kind_of(self.reading.cells(rows[name])) for name in self.columns}

    def find(self, names: Iterable[str]) -> list[str]:
        """Columns by name, or several in one word with commas between; or what to write instead."""
        columns: list[str] = []
        for name in names:
            parts = [name] if name in self.columns else [part.strip() for part in name.split(",") if part.strip()]
            columns += map(self.column, parts)
        for name in columns:
            if columns.count(name) > 1:
                raise InputError(f"column {name!r} is named twice: name every column once")
        return columns

    def only_column(self, apart_from: Iterable[str | None] = ()) -> list[str]:
        """The column that need not be named, because there is no other; none where there are several."""
        left = [name for name in self.columns if name not in apart_from]
        return left if len(left) == 1 and not self.nameless else []

    def column(self, name: str) -> str:
        """The name itself, if there is such a column, or such a part of a date."""
        if self._stored(name) not in self.columns:
            raise InputError(self._unknown(name))
        return name

    def with_parts(self, names: Iterable[str]) -> list[str]:
        """The columns, with the parts of dates in place of the dates, where that was asked for."""
        if not self.reading.dates:
            return list(names)
        kinds = self.kinds()
        return [
            part
            for name in names
            for part in ([f"{name}.{part}" for part in PARTS[:-1]] if kinds.get(name) == "date" else [name])
        ]

    def _stored(self, name: str) -> str:
        """The column that holds it: of a part of a date, that of the date."""
        part = part_of(name) if self.reading.dates and name not in self.columns else None
        return part[0] if part else name

    def _as_told(self, table: Any, wanted: Sequence[str]) -> Any:
        """The columns that are wanted, their cells read as `--read` says."""
        import pandas

        if not self.reading.of_cells and not self.reading.dates:
            return table
        found: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        read = {name: self.reading.cells(table[name]) for name in table.columns}
        for name in wanted:
            stored = self._stored(name)
            if stored != name and stored not in parts:
                parts[stored] = date_parts(read[stored], stored, self.reading.dates)
            found[name] = read[name] if stored == name else parts[stored][name.rpartition(".")[2]]
        return pandas.DataFrame(found, index=table.index)

    def _with_rows(self, table: Any) -> Any:
        if not len(table):
            raise InputError(f"{self.path.name} has column names and no rows: there is nothing to ask about")
        return table

    def _unknown(self, name: str) -> str:
        if self.nameless:
            return (
                f"{self.path.name} has no column {name!r}, and its first line looks like data (it holds numbers, so it "
                "is not shown here): put a line with the names of the columns first"
            )
        lower = {known.casefold(): known for known in self.columns}
        close = difflib.get_close_matches(name.casefold(), lower, n=1)
        hint = f"; did you mean {lower[close[0]]!r}?" if close else "."
        return f"{self.path.name} has no column {name!r}{hint} The columns are: {listed(self.columns)}"

    def read_csv(self, **options: Any) -> Any:
        """Rows of a CSV file, by the options of pandas."""
        names = list(self.columns)
        return tried(self.path, lambda pandas: pandas.read_csv(self.path, names=names, **self._layout, **options))

    @property
    def _layout(self) -> dict[str, Any]:
        told = {"sep": self.separator, "encoding": self.reading.encoding, "decimal": self.reading.decimal}
        return {"header": 0, "index_col": False, "low_memory": False} | told

    def refuse_long_lines(self) -> None:
        """Lines with more fields than names: an unquoted comma has moved their cells into other columns.

        pandas does not see them when it reads some columns only. It complains about a name too many where every
        line is in order, and so finds cells for that name only where one is not.
        """
        import pandas

        beyond = "one field too many"
        try:
            extra = pandas.read_csv(self.path, names=[*self.columns, beyond], usecols=[beyond], **self._layout)[beyond]
            long = int(extra.notna().sum())
        except Exception:  # in order, or unreadable: the reading that follows will say so
            return
        if long:
            raise InputError(
                f"{self.path.name} has {long:,} line(s) with more fields than the {len(self.columns)} names in its "
                "first line: text or numbers with a comma in them must be in quotes"
            )


def open_table(path: Path, reading: Reading | None = None) -> TableFile:
    """The columns of a file, or of a folder of Parquet files, or what is wrong with it."""
    told = reading or Reading()
    folder = tried(path, lambda _: path.is_dir())
    if folder and not tried(path, lambda _: parts_of(path)):
        raise InputError(f"{path.name or path} is a folder without Parquet files: name one file in it")
    if not tried(path, lambda _: path.exists()):
        raise InputError(f"there is no file {path}: check the name and the folder you are in")
    ending = path.name.lower()
    if folder or ending.endswith(PARQUET):
        _refuse_disguise(path)
        if told.delimiter or told.encoding != Reading.encoding:
            raise InputError(
                "--read delimiter= and encoding= are for text files: Parquet needs neither. Leave them out"
            )
        names = tried(path, lambda _: [str(name) for name in arrow_schema(path).names])
        file = TableFile(path, tuple(name for name in names if not re.fullmatch(INDEX, name)), None, reading=told)
    elif ending.endswith(CSV):
        _refuse_disguise(path)
        file = _open_csv(path, told)
    else:
        raise InputError(
            f"cannot tell what kind of file {path.name} is: its name must end in {', '.join(CSV + PARQUET)}. "
            "Save the table as CSV (a spreadsheet's 'save as') or as Parquet"
        )
    _refuse_twins(file)
    return file


def digest_of(path: Path) -> str:
    """Of the bytes of a file, or of all files of a folder: the same whatever is asked, and however they are read."""
    digest = hashlib.sha256()
    for part in parts_of(path) if path.is_dir() else (path,):
        if part is not path:
            digest.update(f"{part.relative_to(path).as_posix()}\0{part.stat().st_size}\0".encode())
        with part.open("rb") as file:
            while some := file.read(2**20):
                digest.update(some)
    return digest.hexdigest()


def _refuse_disguise(path: Path) -> None:
    """Files whose first bytes say that they are not what their names say."""
    ending = path.name.lower()
    if not path.is_dir():
        start = tried(path, lambda _: _first_bytes(path))
        for magic, (endings, what) in MAGIC.items():
            if start.startswith(magic) and not ending.endswith(endings):
                raise InputError(f"{path.name} is {what}")


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first few of many."""
    shown = ", ".join(name if name.isprintable() else ascii(name) for name in names[:MAX_NAMES])
    return f"{shown} and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else shown


def _open_csv(path: Path, reading: Reading) -> TableFile:
    separator = reading.delimiter or ("\t" if ".tsv" in path.name.lower() else ",")
    options: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    options |= {"encoding": reading.encoding, "index_col": False}

    def first_line(pandas: Any, sep: str) -> list[str]:
        return [str(name) for name in pandas.read_csv(path, sep=sep, **options).iloc[0]]

    names = tried(path, lambda pandas: first_line(pandas, separator))
    if len(names) == 1 and not reading.delimiter:
        if separator == "," and ";" in names[0]:  # as spreadsheets write it where 0,5 is a half
            separator = ";"
            names = tried(path, lambda pandas: first_line(pandas, separator))
        for mark, word in DELIMITERS.items():
            if mark in names[0]:
                raise InputError(
                    f"the first line of {path.name} looks like several names with a {word} between them: add --read "
                    f"delimiter={word}; or delimiter=comma, if it is one name"
                )
    named = tuple(name.strip() or f"unnamed {place}" for place, name in enumerate(names, 1))
    return TableFile(path, named, separator, nameless=any(map(_like_data, named)), reading=reading)


def _like_data(text: str) -> bool:
    """Numbers and dates: seldom the name of a column."""
    return re.fullmatch(r"[-+]?[\d.,:/-]*\d[\d.,:/-]*(e[-+]?\d+)?", text, re.IGNORECASE) is not None


def _refuse_twins(file: TableFile) -> None:
    twins = twins_of(file.columns)
    if not twins:
        return
    if file.nameless:
        raise InputError(
            f"the first line of {file.path.name} looks like data (it holds numbers, some of them twice): put a line "
            "with the names of the columns first"
        )
    raise InputError(
        f"{file.path.name} has several columns of the same name: {twins}. Rename them in the file: a name must "
        "stand for one column"
    )


def tried(path: Path, read: Callable[[Any], T]) -> T:
    """What `read` makes of pandas, or an error in our own words: those of pandas and pyarrow quote cells."""
    import pandas

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings may quote cells too
            return read(pandas)
    except (ImportError, InputError):  # one says nothing of the file, the other is in our own words
        raise
    except Exception as error:
        what = _in_words(path, error)
    raise InputError(what)


def _in_words(path: Path, error: Exception) -> str:
    kind, name = type(error).__name__, path.name
    if isinstance(error, PermissionError):
        return f"{name} may not be read by you: ask its owner, or change its permissions"
    if isinstance(error, OSError) and error.errno:
        return f"{name} cannot be opened ({error.strerror}): check its name and where it is"
    if kind == "EmptyDataError" or (path.is_file() and path.stat().st_size == 0):
        return f"{name} is empty: there is nothing in it to ask about"
    if isinstance(error, UnicodeError):
        return _not_text(path, getattr(error, "encoding", "utf-8"))
    if isinstance(error, EOFError) or kind in ("BadGzipFile", "error"):
        return f"{name} cannot be unpacked ({kind}): it is cut off, or not a gzip file. Copy it again"
    fields = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if fields:
        return (
            f"line {fields[2]} of {name} has {fields[3]} fields where the lines before it have {fields[1]}: text or "
            "numbers with a comma in them must be in quotes"
        )
    if "inside string" in str(error):
        return f"{name} has a quotation mark that is opened and never closed: double those inside of quoted text"
    return (
        f"{name} cannot be read as {'CSV' if name.lower().endswith(CSV) else 'Parquet'} ({kind}; the text of the "
        "error is withheld, it may quote the data). Open it in the program that made it, and save it again"
    )


def _not_text(path: Path, encoding: str) -> str:
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        return f"{path.name} is not text in {encoding}: --read encoding= names another, if it is a CSV file at all"
    likely = "utf-16" if _first_bytes(path).startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"
    return (
        f"{path.name} is not text in UTF-8: add --read encoding={likely} if that is how it was written (cp1252: by "
        "Windows in western Europe), or save it as 'CSV UTF-8', if it is a CSV file at all"
    )


def _unrounded(column: Any) -> Any:
    """Whole numbers with gaps would become floats in pandas, and long ids would be rounded."""
    from pyarrow import string, types  # type: ignore[import-untyped]

    return (column.cast(string()) if types.is_integer(column.type) else column).to_pandas()
