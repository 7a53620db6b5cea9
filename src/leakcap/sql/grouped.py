"""Sums by person and group, added up by DuckDB: best where everybody has many rows in few groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakcap.sessions.cell_rows import CellRows
from leakcap.sql.cells import Numbering
from leakcap.sql.program import SqlRelease
from leakcap.sql.terms import ROWS, Term, making

__all__ = ["grouped"]


def grouped(release: SqlRelease, numbered: Numbering, terms: Sequence[Term], *, run: Any, people: int) -> CellRows:
    """A row for each person and group."""
    sums = [one.summed for one in (ROWS, *terms)]
    found = run(numbered.summed(str(release.base.unit), sums), numbered.tables)
    made = making(release.sums, whole=False)
    return numbered.of(found, people, making=made, factors=[1.0, *(one.grain for one in terms)])
