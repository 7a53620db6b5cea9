"""Sums by person and group, added up by us from a stream of rows: best where few rows belong together."""

from __future__ import annotations

from collections.abc import Sequence

from leakcap.sql.cells import Numbering, RowPlan
from leakcap.sql.program import SqlRelease
from leakcap.sql.relations import without_unread
from leakcap.sql.terms import Term, making
from leakcap.sql.worker import ROWS

__all__ = ["LARGEST", "streamed"]

LARGEST = 2.0**62 / ROWS  # whole number of a row, of which as many as may come have room in 64 bits


def streamed(release: SqlRelease, numbered: Numbering, terms: Sequence[Term]) -> RowPlan:
    """The rows as they are."""
    columns = [f"{release.base.unit} AS unit", f"{numbered.narrow} AS code"]
    columns += [f"{one.of_row} AS s{at}" for at, one in enumerate(terms)]
    text = f"SELECT {', '.join(columns)} FROM {numbered.rows}"
    return RowPlan(without_unread(text), numbered, making(release.sums, whole=True))
