"""A question in SQL about people in parts: one engine for each, here or on workers, and cells that are added up.

A plan is unit-local, so that the rows of some people give what these people bring. Registered rows lie person by
person: a part is the rows of neighbours in all private tables, with the public tables whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from leakcap.cluster.sealed import SealedWorkers
from leakcap.ground.arrays import Bools, Ints
from leakcap.ground.proofs import proves
from leakcap.sessions.brought import Sums
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sessions.partitioned import OverShards
from leakcap.sql.catalog import UNIT, Catalog, CatalogFile
from leakcap.sql.cells import RowPlan
from leakcap.sql.engine import TOO_LONG, EngineLimits, WorkerEngine, limits_in_force
from leakcap.sql.evaluate import Engine, GroupCells, planned, run_beside
from leakcap.sql.program import SqlRelease
from leakcap.sql.refusals import NotAnswered

__all__ = ["AT_ONCE", "CellsOfParts", "cells_of_parts"]

AT_ONCE = 16  # parts that one engine can be asked about, without a cluster


@dataclass(frozen=True, eq=False)
class CatalogPart:
    """Some people in the registered file; custodian side."""

    catalog: Catalog = field(repr=False)
    people: slice

    @property
    def count(self) -> int:
        return int(self.people.stop - self.people.start)

    @property
    def tables(self) -> dict[str, Any]:
        """Their rows with numbers from 0, and public tables, read now."""
        first, last = self.people.start, self.people.stop - 1
        self.catalog.refuse_changed()
        with CatalogFile(self.catalog.path) as file:
            found = {
                one.place: file.sql(
                    f"SELECT * REPLACE ({UNIT} - {first} AS {UNIT}) FROM {one.place} WHERE {UNIT} BETWEEN {first} AND "
                    f"{last}"
                    if one.private
                    else f"SELECT * FROM {one.place}"
                ).to_arrow_table()
                for one in self.catalog.tables.values()
            }
        self.catalog.refuse_changed()
        return found

    def carried(self) -> CarriedPart:
        """The same, to be carried to another process."""
        return CarriedPart(self.count, self.tables)


@dataclass(frozen=True, eq=False)
class CarriedPart:
    """Some people with their rows; custodian side."""

    count: int
    tables: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Everybody, as `OverShards` goes through them."""

    shards: Sequence[CatalogPart]
    people: Ints
    coins: Bools


@dataclass(frozen=True, eq=False)
class _AskingParts:
    """One release, as it is asked of every part."""

    plan: RowPlan
    tables: Mapping[str, Any]  # released before
    declared: Mapping[str, Any]  # of what people bring
    limits: EngineLimits
    until: float | None  # the moment by which all parts are done with; None where they are worked on beside each other

    def brought(self, part: CatalogPart | CarriedPart, _: bool) -> BroughtByCell:
        """What the people of a part bring."""
        left = math.inf if self.until is None else self.until - time.monotonic()
        if left <= 0:
            raise NotAnswered(TOO_LONG.format(seconds=self.limits.seconds))
        engine = WorkerEngine(None, replace(self.limits, seconds=min(left, self.limits.seconds)), part.tables)
        try:
            rows = self.plan.rows(partial(run_beside, engine, dict(self.tables)), part.count)
        finally:
            engine.close()
        return BroughtByCell(rows=rows, **self.declared)

    def first(self, *_: Any) -> BroughtByCell:
        """What is the same for all parts: nobody's, for all of it is declared."""
        return BroughtByCell(rows=self.plan.nobody(), **self.declared)


@dataclass(frozen=True, eq=False)
class CellsOfParts(GroupCells):
    """What everybody brings to each group of a release, made part by part when somebody is charged for it."""

    catalog: Catalog = field(repr=False)
    plan: RowPlan = field(repr=False)
    tables: Mapping[str, Any] = field(repr=False)
    workers: SealedWorkers | None

    @proves("partitions")
    def brought(self, coins: Bools, **declared: Any) -> Sums:
        """The same as a question of a session, within declared limits."""
        people = self.catalog.people
        edges = [people * at // self.catalog.parts for at in range(self.catalog.parts + 1)]
        parts = [CatalogPart(self.catalog, slice(*ends)) for ends in pairwise(edges)]
        limits = limits_in_force()
        until = None if self.workers is not None else time.monotonic() + limits.seconds
        making = _AskingParts(self.plan, self.tables, declared, limits, until=until)
        return OverShards(_Parts(parts, np.arange(people), coins), making, noise_given=False, workers=self.workers)


def cells_of_parts(
    release: SqlRelease, catalog: Catalog, engine: Engine, tables: dict[str, Any], *, workers: SealedWorkers | None
) -> CellsOfParts:
    """The groups of a release; nobody's rows are looked at yet, unless they say which groups there are."""
    cells, plan = planned(release, catalog, engine, tables)
    made: dict[str, Any] = {"catalog": catalog, "plan": plan, "tables": dict(tables), "workers": workers}
    return CellsOfParts(cells.release, cells.domain, cells.keys, **made)
