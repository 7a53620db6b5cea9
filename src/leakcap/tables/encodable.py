"""A table or a folder of pictures as rows of numbers for an encoder, and the recipe by which queries become such rows.

Scales and categories that are known without the data are given; where they are not, the pool's own are taken, and said
to be facts of the pool. Errors name columns, never cells.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.errors import InputError, LeakcapError
from leakcap.ground.arrays import Floats
from leakcap.tables.columns import kind_of
from leakcap.tables.files import TableFile, open_table
from leakcap.tables.functions import load, silent
from leakcap.tables.histograms import levels_in
from leakcap.tables.reading import Reading

__all__ = ["EncodableColumn", "PictureRecipe", "TableRecipe", "known_by", "recipe_of"]

SCALES = (
    "The scale of {} column(s) of numbers: the smallest and the largest value in the pool, where no bounds were given."
)
LEVELS = "The categories of {} column(s): those in the pool, where no levels were given."


@dataclass(frozen=True)
class EncodableColumn:
    """How the cells of one column become numbers: from -1 at `low` to 1 at `high`, or a 1 at their level."""

    name: str
    low: float = 0.0
    high: float = 0.0
    levels: tuple[str, ...] = ()

    def numbers(self, cells: Any) -> Floats:
        """One column of numbers, or one for each level; what is at no level gets zeros."""
        if self.levels:
            texts = _texts(cells)
            return np.stack([texts == level for level in self.levels], axis=1).astype(np.float64)
        values = _values(cells, self.name)
        middle, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        return np.clip((values - middle) / (half or 1.0), -1.0, 1.0)[:, None]


@dataclass(frozen=True)
class TableRecipe:
    """How the rows of a table become rows of numbers. Owner's side: it may hold facts of the pool."""

    columns: tuple[EncodableColumn, ...]
    label: str
    read: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, file: TableFile, label: str, *, bounds: Sequence[str], levels: Sequence[str], read: Sequence[str]
    ) -> tuple[TableRecipe, Any, tuple[str, ...]]:
        """The recipe, the table that it was made for, and what it took from the pool, in words."""
        table = file.read()
        names = [name for name in file.columns if name != file.column(label)]
        known_bounds, known_levels = _bounds(bounds, names), _levels(levels, names)
        if not names:
            raise InputError("there is no column but the label: a server has nothing to learn from")
        columns, scaled, listed = [], 0, 0
        for name in names:
            cells, kind = table[name], kind_of(table[name])
            if kind in ("date", "other", "empty"):
                raise InputError(f"column {name!r} holds neither numbers nor categories: leave it out of the file")
            if name in known_levels or kind in ("text", "yes/no"):
                listed += name not in known_levels
                found = known_levels.get(name) or levels_in(cells.astype(str), name)
                columns.append(EncodableColumn(name, levels=tuple(found)))
                continue
            values = _values(cells, name)
            scaled += name not in known_bounds
            low, high = known_bounds.get(name, (float(values.min()), float(values.max())))
            columns.append(EncodableColumn(name, low, high))
        told = (SCALES.format(scaled),) * bool(scaled) + (LEVELS.format(listed),) * bool(listed)
        return cls(tuple(columns), label, tuple(read)), table, told

    def rows(self, table: Any) -> Floats:
        return np.concatenate([column.numbers(table[column.name]) for column in self.columns], axis=1)

    def labels(self, table: Any) -> Any:
        cells = table[self.label]
        if cells.isna().any():
            raise InputError(f"column {self.label!r} has missing labels: leave these rows out")
        return cells.to_numpy() if kind_of(cells) == "number" else cells.astype(str).to_numpy(dtype=str)

    def queries(self, path: Path) -> Floats:
        """New rows, from a file with the same columns; the label's may be missing."""
        file = open_table(path, Reading.of(self.read))
        return self.rows(file.read([file.column(column.name) for column in self.columns]))

    def to_text(self) -> str:
        return json.dumps({"kind": "table", **asdict(self)})


@dataclass(frozen=True)
class PictureRecipe:
    """How pictures become rows of numbers: by an embedding of the user's, which gets a list of files."""

    embedding: str

    def pool(self, folder: Path) -> tuple[Floats, Any, list[Path]]:
        """Rows, labels and files of pictures in folders named after their classes."""
        classes = sorted(one for one in _listed(folder) if one.is_dir())
        files = [[one for one in _listed(place) if one.is_file()] for place in classes]
        if len(classes) < 2 or not all(files):
            raise InputError(f"{folder.name} must hold a folder of pictures for each of at least two classes")
        labels = np.repeat([one.name for one in classes], [len(some) for some in files])
        listed = [one for some in files for one in some]
        return self._embedded(listed), labels, listed

    def queries(self, path: Path) -> Floats:
        return self._embedded(self.files(path))

    def files(self, folder: Path) -> list[Path]:
        """Pictures in a folder, then those in folders in it: of new pictures nobody knows the class."""
        listed = _listed(folder)
        inside = [one for place in listed if place.is_dir() for one in _listed(place)]
        return [one for one in (*listed, *inside) if one.is_file()]

    def to_text(self) -> str:
        return json.dumps({"kind": "pictures", **asdict(self)})

    def _embedded(self, files: list[Path]) -> Floats:
        if not files:
            raise InputError("there are no pictures in this folder")
        embed = silent(load(self.embedding))
        kind = ""
        try:
            rows = np.asarray(embed(files), dtype=np.float64)
        except LeakcapError:
            raise
        except Exception as error:  # its text may quote the data
            rows, kind = np.empty(0), f" ({type(error).__name__}; the text of the error is withheld)"
        if rows.ndim < 2 or len(rows) != len(files):
            raise InputError(f"{self.embedding} must return a row of numbers for each of a list of files{kind}")
        return rows


def known_by(files: Sequence[Path]) -> Any:
    """A table by which the ledger knows pictures, whichever embedding makes rows of them."""
    import pandas

    try:
        return pandas.DataFrame({"picture": [hashlib.sha256(one.read_bytes()).hexdigest() for one in files]})
    except OSError as error:
        reason = error.strerror
    raise InputError(f"a picture cannot be read ({reason}): look at who may read the folder, or leave it out")


def recipe_of(text: str) -> TableRecipe | PictureRecipe:
    """The recipe in a key; an InputError where rows were encoded in Python."""
    given = json.loads(text) if text else {}
    kind = given.pop("kind", "")
    if kind == "pictures":
        return PictureRecipe(**given)
    if kind != "table":
        raise InputError("this key was made in Python, from rows of numbers: predict there, Key.load(file).predict")
    columns = tuple(EncodableColumn(**{**one, "levels": tuple(one["levels"])}) for one in given["columns"])
    return TableRecipe(columns, given["label"], tuple(given["read"]))


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        reason = error.strerror
    raise InputError(f"{folder} cannot be read ({reason}): name a folder of pictures")


def _texts(cells: Any) -> Any:
    return cells.astype(str).to_numpy(dtype=str)


def _values(cells: Any, name: str) -> Floats:
    try:
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise InputError(
            f"column {name!r} must hold numbers, none missing: fill them in by a public rule, or leave it out"
        )
    return np.asarray(values)


def _bounds(words: Sequence[str], names: Sequence[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for word in words:
        name, _, given = word.rpartition("=")
        try:
            low, high = (float(number) for number in given.split(","))
        except ValueError:
            low = high = np.nan
        if name not in names or not -np.inf < low < high < np.inf:
            raise InputError("--bounds are two numbers for a column that is there, such as --bounds age=0,120")
        found[name] = low, high
    return found


def _levels(words: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found = {}
    for word in words:
        name, _, given = word.partition("=")
        levels = tuple(one.strip() for one in next(csv.reader([given], skipinitialspace=True), []) if one.strip())
        if name not in names or len(set(levels)) < max(1, len(levels)):
            raise InputError("--levels are names for a column that is there, such as --levels sex=female,male")
        found[name] = levels
    return found
