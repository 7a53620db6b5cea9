"""What everybody may know of the tables that can be asked about: columns, ranges, keys, and whose rows they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.sql.failures import in_words
from leakcap.sql.prints import people_prints, public_print, together

__all__ = ["FACTS", "UNIT", "Catalog", "CatalogColumn", "CatalogFile", "CatalogTable", "key_name"]

UNIT = "unit"  # the hidden column of every private table, and the table of people
FACTS = "catalog"  # the table of the file that keeps all this
DATES = {"date": date, "timestamp": datetime}
CHANGED = (
    "the file of the registered tables was changed, replaced or taken away: register the tables again, and open the "
    "session on the new catalog. In its ledger, under its name, everybody's clock goes on as it is"
)


@dataclass(frozen=True)
class CatalogColumn:
    """A column as queries see it.

    `identity` names the key whose equal values belong to one person; `refers` the key of a public table whose values
    the column takes. `levels` are all of its values, where they are declared or few.
    """

    name: str
    place: str  # its name in the file
    kind: str  # bool, int, decimal, float, text, date, timestamp
    digits: tuple[int, int] | None = None  # of a decimal: all, and after the point
    low: Any = None
    high: Any = None
    levels: tuple[Any, ...] | None = None
    declared: bool = False  # whether the levels were declared; otherwise they are those of this pool
    identity: str | None = None
    refers: str | None = None
    unique: bool = False  # in its table
    gaps: bool = True  # whether values are missing in this pool
    key: bool = False  # whether none ever is
    found: bool = False  # whether its kind was found in its values
    noised: float | None = None  # values to group by are those that so many people have, by a noised count


@dataclass(frozen=True)
class CatalogTable:
    """A table as queries see it."""

    name: str
    place: str
    private: bool
    columns: tuple[CatalogColumn, ...]
    most_rows: int | None = None  # of one person, as declared; None where nothing was

    def column(self, name: str) -> CatalogColumn | None:
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Catalog:
    """Tables in a file of ours, ready to be asked about. Custodian side: the file holds all rows.

    Attributes:
        path: the DuckDB file.
        tables: what is public about each table, by its name.
        people: how many persons there are.
        report: what registration left out, cut or changed, in sentences. Custodian side.
    """

    path: Path
    tables: Mapping[str, CatalogTable]
    people: int
    print: str  # of everybody's rows as they were given
    report: tuple[str, ...] = field(default=(), repr=False)
    person: str = ""  # the key whose values are the people
    public_print: str = ""  # of the contents of public tables
    kept: str = ""  # a print of everybody's rows as they are kept
    contents: tuple[str, ...] = ()  # by which a ledger knows the same people's tables, however they are registered
    engine: str = ""  # the version of DuckDB that made the prints
    parts: int = 1  # of people, in which so many rows are worked on at a time
    seen: tuple[int, ...] | None = field(default=None, compare=False, repr=False)  # of the file, from outside

    def table(self, name: str) -> CatalogTable | None:
        """The table of that name, whatever the case of its letters."""
        return next((one for key, one in self.tables.items() if key.lower() == name.lower()), None)

    @property
    def name(self) -> str:
        """What a ledger calls these tables where the custodian does not: the same, however they are registered."""
        return f"tables {self.print[:32]}"

    def end(self, key: str) -> tuple[CatalogTable, CatalogColumn]:
        """The table and the column that a key is called by, as `key_name` does."""
        return next(
            (table, one)
            for table in self.tables.values()
            for one in table.columns
            if key_name(table.name, one.name) == key
        )

    def as_it_is(self) -> Catalog:
        """With a note of what the file looks like from outside, by which a later change is noticed."""
        return replace(self, seen=_looks(self.path))

    def refuse_changed(self) -> None:
        """Nothing is asked of a file that is another one than when this catalog was made or loaded."""
        if self.seen is not None and _looks(self.path) != self.seen:
            raise InputError(CHANGED)

    def session_data(self) -> tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], list[Any]]:
        """Prints of everybody's rows, of all that is public, and who people are, in the order of their hidden numbers.

        Raises:
            InputError: the rows are not those that were registered.
        """
        self.refuse_changed()
        with CatalogFile(self.path) as file:
            found = file.execute(f"SELECT name, print, {UNIT} FROM {UNIT} ORDER BY {UNIT}").fetchall()
            self._refuse_other_rows(file, np.array([row[1:] for row in found], dtype=np.int64).reshape(-1, 2))
        prints = np.array([[row[1]] for row in found], dtype=np.int64)
        declared = json.dumps([self._facts(), self.public_print, self.kept], default=str)
        digest = int(hashlib.sha256(declared.encode()).hexdigest()[:15], 16)
        # Of two parts: the second is the same for everybody, and with other declarations an answer is another one.
        return (prints, np.full_like(prints, digest)), [row[0] for row in found]

    def _refuse_other_rows(self, file: Any, kept: npt.NDArray[np.int64]) -> None:
        import duckdb

        if together(kept[:, 0]) != self.print or (kept[:, 1] != np.arange(self.people)).any():
            raise InputError(CHANGED)
        if self.engine != duckdb.__version__:
            return  # prints are made by the engine, and another version may make others
        try:
            same = together(*people_prints(file, self.tables.values(), UNIT)) == self.kept
            same &= public_print(file, self.tables.values()) == self.public_print
        except duckdb.Error:
            same = False
        if not same:
            raise InputError(CHANGED)

    def _facts(self) -> dict[str, Any]:
        return {"tables": [asdict(one) for one in self.tables.values()], "people": self.people, "person": self.person}

    def to_json(self) -> str:
        """All facts but the file's place."""
        held = self._facts() | {
            "print": self.print,
            "report": list(self.report),
            "public_print": self.public_print,
            "engine": self.engine,
            "kept": self.kept,
            "contents": list(self.contents),
            "parts": self.parts,
        }
        return json.dumps(held, default=str)

    @classmethod
    def load(cls, path: str | Path) -> Catalog:
        """The catalog of a file that `register` made.

        Args:
            path: of the file.

        Returns:
            The catalog, as `register` returned it.

        Raises:
            InputError: there is no such file, or it is of another kind.
        """
        place = Path(path)
        if not place.is_file():
            raise InputError(f"there is no file {place.name!r}: register(...) makes one")
        with CatalogFile(place) as file:
            try:
                held = json.loads(file.execute(f"SELECT facts FROM {FACTS}").fetchone()[0])
                tables = {one["name"]: _table(one) for one in held.pop("tables")}
                held |= {"report": tuple(held["report"]), "contents": tuple(held["contents"])}
                return cls(place, tables, **held).as_it_is()
            except Exception:
                pass  # of another kind, or of another version
        raise InputError(f"{place.name!r} was not made by leakcap.sql.register of this version: register its tables")


class CatalogFile:
    """A connection for the custodian's own use, read only, closed at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        import duckdb

        try:
            self.file = duckdb.connect(str(self.path), read_only=True)
        except duckdb.Error as error:
            raise InputError(in_words(error, self.path.name)) from None
        return self.file

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _table(held: dict[str, Any]) -> CatalogTable:
    columns = tuple(_column(one) for one in held.pop("columns"))
    return CatalogTable(columns=columns, **held)


def _column(held: dict[str, Any]) -> CatalogColumn:
    kind = DATES.get(held["kind"])
    if kind is not None:
        held["low"], held["high"] = (
            None if one is None else kind.fromisoformat(one) for one in (held["low"], held["high"])
        )
        if held["levels"] is not None:
            held["levels"] = [kind.fromisoformat(one) for one in held["levels"]]
    if held["levels"] is not None:
        held["levels"] = tuple(held["levels"])
    if held["digits"] is not None:
        held["digits"] = tuple(held["digits"])
    return CatalogColumn(**held)


def key_name(table: str, column: str) -> str:
    """What a key is called; two keys never share a name, whatever letters tables and columns have."""
    return ".".join(json.dumps(one) if "." in one or '"' in one else one for one in (table, column))


def _looks(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
