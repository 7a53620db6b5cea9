"""The label column of a file: its cells as classes or numbers, and the file again with other cells in its place.

All other columns stay as they were, row by row. Errors never quote a cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats
from leakcap.tables.class_names import MISSING, STRANGE, Codes
from leakcap.tables.files import TableFile

__all__ = ["LabelColumn"]


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
        codes = self._codes(names, missing_as)
        if (codes == STRANGE).any():
            raise InputError(
                f"some labels in column {self.name!r} are not among --classes: name every class there may be, spelt "
                "as in the file. They are not shown here, and not taken from the file, because a class that occurs "
                "once would give its owner away"
            )
        if missing_as is None:
            otherwise = (
                "or make them a class of their own with --missing-as NAME, so that it is protected which they are"
            )
            self._refuse_missing(codes == MISSING, otherwise)
        else:
            codes[codes == MISSING] = names.index(missing_as)
        return codes

    def numbers(self) -> Floats:
        """Labels as numbers, none of them missing."""
        numbers, missing = self._numbers()
        if (np.isnan(numbers) & ~missing).any():
            raise InputError(
                f"some labels in column {self.name!r} are not numbers, and bins from --low to --high need numbers: "
                "correct them, or name the classes with --classes"
            )
        self._refuse_missing(missing, "and bins have no place for them")
        return numbers

    @abstractmethod
    def named(self, codes: Codes, names: Sequence[str], missing_as: str | None) -> Any:
        """Names as cells of the kind that the column has."""

    @abstractmethod
    def names(self, names: Sequence[str], missing_as: str | None) -> list[Any]:
        """The names as a reader of the published file finds them."""

    def refuse_names(self, columns: Sequence[str]) -> None:
        """Columns that are to be written, and are there already."""
        for name in columns:
            if name != self.name and name in self.file.columns:
                raise InputError(f"the file has a column {name!r} already, where privatised labels would go: rename it")

    @abstractmethod
    def public_cells(self, name: str) -> npt.NDArray[Any]:
        """Another column, which is public: numbers, NaN where one is missing, or text without blanks around it."""

    @abstractmethod
    def written(self, cells: Mapping[str, Any]) -> bytes:
        """The file with these columns in place of the label column."""

    def _refuse_missing(self, missing: Bools, otherwise: str) -> None:
        if missing.any():
            raise InputError(
                f"some labels in column {self.name!r} are missing: drop those rows if it is public which they are, "
                f"{otherwise}"
            )

    @abstractmethod
    def _codes(self, names: Sequence[str], missing_as: str | None) -> Codes: ...

    @abstractmethod
    def _numbers(self) -> tuple[Floats, Bools]: ...
