"""Whose rows they are, and the groups people belong to: labels for every row, from columns of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.tables.columns import kind_of
from leakcap.tables.files import TableFile

__all__ = ["strata_of", "units_of"]

WHOLE = r"[-+]?\d+(\.0*)?"


def units_of(file: TableFile, left: Any, name: str, keep: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[Any], list[str]]:
    """One label per row that is left, and remarks. Whole numbers stay exact, however long they are."""
    column = left[name]
    if kind_of(column) == "other":
        raise InputError(f"column {name!r} cannot say whose rows they are: ids are numbers or text")
    if column.dtype.kind not in "iubM":
        exact = file.read_exactly(name)[keep] if kind_of(column) == "number" else file.reading.exact(column)
        column = exact if exact.dtype.kind in "iu" else _as_text(exact)
    labels = _plain(column)
    count = column.nunique()
    if count == 1:
        raise InputError(
            f"all rows belong to the same unit by column {name!r}: worlds are drawn over units, and need several"
        )
    if count == len(column):
        return labels, [
            f"every row is a unit of its own by column {name!r}: is it the column that says whose row it is?"
        ]
    return labels, []


def strata_of(left: Any, groups: list[str], people: npt.NDArray[Any] | None, whose: str | None) -> npt.NDArray[Any]:
    """One label per row: the values of all group columns, joined."""
    import pandas

    for name in groups:
        if kind_of(left[name]) == "other":
            raise InputError(f"column {name!r} cannot make strata: groups are numbers or text")
    if people is not None:
        person, _ = pandas.factorize(people)
        for name in groups:
            _refuse_split(person, pandas.factorize(left[name])[0], name, str(whose))
    text = left[groups[0]].astype(object).astype(str)
    for name in groups[1:]:
        text = text + " | " + left[name].astype(object).astype(str)
    return text.to_numpy(dtype=str)


def _refuse_split(person: npt.NDArray[np.intp], group: npt.NDArray[np.intp], name: str, whose: str) -> None:
    """Rows of one person move together, so the person needs one group."""
    last = np.empty(person.max() + 1, dtype=np.intp)
    last[person] = group
    split = len(np.unique(person[last[person] != group]))
    if split:
        raise InputError(
            f"column {name!r} changes between the rows of one {whose!r}, for {split:,} of them: strata must be the "
            "same in all rows of a unit. Use something that stays, or a new column that holds the first or the most "
            "frequent value"
        )


def _as_text(column: Any) -> Any:
    """Labels as text; numbers that are written in several ways (7, 007, 7.0) are one label, whatever others are."""
    text = column.astype(object).astype(str).str.strip()
    numbers = text.str.fullmatch(WHOLE)
    whole = text.str.replace(r"\.0*$", "", regex=True).str.replace(r"^\+", "", regex=True)
    whole = whole.str.replace(r"^(-?)0+(?=\d)", r"\1", regex=True)
    if numbers.all() and (whole.str.len() < 19).all():
        return whole.astype("int64")
    return whole.where(numbers, text)


def _plain(column: Any) -> npt.NDArray[Any]:
    kind = column.dtype.kind
    if kind in "iub":
        return np.asarray(column.to_numpy(dtype={"i": np.int64, "u": np.uint64, "b": np.bool_}[kind]))
    return np.asarray(column.to_numpy() if kind == "M" else column.to_numpy(dtype=str))
