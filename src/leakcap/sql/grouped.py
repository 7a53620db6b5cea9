"""Sums by person and group, added up by DuckDB: best where everybody has many rows in few groups."""

from __future__ import annotations

from collections.abc import Sequence

from leakcap.sql.cells import Numbering, RowPlan
from leakcap.sql.program import SqlRelease
from leakcap.sql.relations import without_unread
from leakcap.sql.terms import ROWS, Term, making

__all__ = ["grouped"]


def grouped(release: SqlRelease, numbered: Numbering, terms: Sequence[Term]) -> RowPlan:
    """A row for each person and group."""
    text = numbered.summed(str(release.base.unit), [one.summed for one in (ROWS, *terms)])
    grains = 1.0, *(one.grain for one in terms)
    return RowPlan(without_unread(text), numbered, making(release.sums, whole=False), grains)
