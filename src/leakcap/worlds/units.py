"""Whose row is it: rows that belong to one person move together from world to world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.worlds.names import as_labels, canonical_names, merges_people

__all__ = ["Units"]


@dataclass(frozen=True, eq=False)
class Units:
    """`of_row[i]` is the unit that row `i` belongs to; `None` when every row is a unit of its own."""

    rows: int
    count: int
    of_row: npt.NDArray[np.intp] | None = None
    labels: npt.NDArray[np.generic] | None = None  # whose rows they are, one for each unit

    @property
    def names(self) -> npt.NDArray[np.generic]:
        """One for each unit: its label, which stays when others leave; otherwise its place."""
        return np.arange(self.count) if self.labels is None else self.labels

    @property
    def owners(self) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.int64]] | None:
        """Whose rows are whose, for fingerprints: names of the units in their order, and the place of each row's.

        The order counts: worlds know people by their places. `None` when every row is a unit of its own.
        """
        if self.of_row is None or self.labels is None:
            return None
        return canonical_names(self.labels).astype(str), self.of_row.astype(np.int64)

    @classmethod
    def of(cls, rows: int, labels: npt.ArrayLike | None) -> Units:
        """Units from one label per row (person ids of any kind)."""
        if labels is None:
            return cls(rows, rows)
        given = one_label_per_row("unit", labels, rows)
        if merges_people(given):
            raise InputError(
                "unit holds numbers that are not whole, or so large that floats do not tell them apart, and ids may "
                "have been lost: give ids as text or as whole numbers"
            )
        if given.dtype.kind not in "iufU":  # of those, different labels have different names
            given = canonical_names(given).astype(str)
        names, of_row = np.unique(given, return_inverse=True)
        return cls(rows, len(names), of_row.astype(np.intp), names)

    def rows_in(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Positions of the rows whose unit takes part."""
        return np.flatnonzero(mask if self.of_row is None else mask[self.of_row]).astype(np.intp)

    def strata(self, labels: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """One stratum number per unit; rows of one unit must agree."""
        _, of_row = np.unique(one_label_per_row("strata", labels, self.rows), return_inverse=True)
        if self.of_row is None:
            return of_row.astype(np.intp)
        stratum = np.empty(self.count, dtype=np.intp)
        stratum[self.of_row] = of_row
        if not np.array_equal(stratum[self.of_row], of_row):
            raise InputError("strata must be the same for all rows of a unit; give each unit one stratum")
        return stratum


def one_label_per_row(name: str, labels: npt.ArrayLike, rows: int) -> npt.NDArray[np.generic]:
    """Labels as a vector with one entry per row, none of them missing."""
    try:
        given = as_labels(labels)
    except ValueError:  # ragged
        given = np.empty((0, 0))
    if given.ndim != 1 or len(given) != rows:
        raise InputError(f"{name} must hold one label per row: {rows} rows, labels of shape {given.shape}")
    if given.dtype == object:
        missing = any(map(_is_missing, given))
        given = given if missing or name == "unit" else canonical_names(given).astype(str)
    else:
        missing = bool((given != given).any())  # NaN and NaT  # noqa: PLR0124
    if missing:
        raise InputError(f"{name} has missing labels: say whose rows these are, or leave them out")
    return given


def _is_missing(label: object) -> bool:
    try:
        return label is None or not bool(label == label)  # NaN  # noqa: PLR0124
    except TypeError:  # pandas.NA refuses to be compared
        return True
