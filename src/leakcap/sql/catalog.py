"""What everybody may know of the tables that can be asked about: columns, ranges, keys, and whose rows they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError

__all__ = ["FACTS", "UNIT", "Catalog", "CatalogColumn", "CatalogFile", "CatalogTable", "named"]

UNIT = "unit"  # the hidden column of every private table, and the table of people
FACTS = "catalog"  # the table of the file that keeps all this
DATES = {"date": date, "timestamp": datetime}


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
    print: str  # of the contents
    report: tuple[str, ...] = field(default=(), repr=False)
    person: str = ""  # the key whose values are the people

    def table(self, name: str) -> CatalogTable | None:
        """The table of that name, whatever the case of its letters."""
        return next((one for key, one in self.tables.items() if key.lower() == name.lower()), None)

    def session_data(self) -> tuple[npt.NDArray[np.int64], list[Any]]:
        """A print of everybody's rows, and who they are, in the order of their hidden numbers."""
        with CatalogFile(self.path) as file:
            found = file.execute(f"SELECT name, print FROM {UNIT} ORDER BY {UNIT}").fetchall()
        return np.array([[row[1]] for row in found], dtype=np.int64), [row[0] for row in found]

    def to_json(self) -> str:
        """All facts but the file's place."""
        held = {
            "tables": [asdict(one) for one in self.tables.values()],
            "people": self.people,
            "print": self.print,
            "report": list(self.report),
            "person": self.person,
        }
        return json.dumps(held, default=str)

    @classmethod
    def load(cls, path: str | Path) -> Catalog:
        """The catalog of a file that `register` made."""
        place = Path(path)
        if not place.is_file():
            raise InputError(f"there is no file {place.name!r}: register(...) makes one")
        with CatalogFile(place) as file:
            try:
                text = file.execute(f"SELECT facts FROM {FACTS}").fetchone()[0]
            except Exception:
                raise InputError(f"{place.name!r} was not made by leakcap.sql.register: register its tables") from None
        held = json.loads(text)
        tables = {one["name"]: _table(one) for one in held["tables"]}
        return cls(place, tables, held["people"], held["print"], tuple(held["report"]), held["person"])


class CatalogFile:
    """A connection for the custodian's own use, read only, closed at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        import duckdb

        try:
            self.file = duckdb.connect(str(self.path), read_only=True)
        except duckdb.Error:
            raise InputError(
                f"{self.path.name!r} cannot be opened as a DuckDB file: register the tables again"
            ) from None
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


def named(tables: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Places that a name such as "age" or "stays.age" may mean, by table and column."""
    table, _, column = name.rpartition(".")
    for key, columns in tables.items():
        if table in ("", key) and column in columns:
            yield key, column
