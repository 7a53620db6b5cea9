"""A question in SQL, asked of a session: released sum by sum, charged to the same clocks as any other question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import sqlglot

from leakcap.cluster.sealed import SealedWorkers
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.kernels.bounded import Extent
from leakcap.sessions.answers import Preview
from leakcap.sessions.brought import Sums, Within
from leakcap.sessions.desk import Desk
from leakcap.sessions.listed_worlds.desk import WorldsDesk
from leakcap.sessions.questions import SessionQuestion
from leakcap.sql.answer import Released, SqlAnswer, answer_of
from leakcap.sql.catalog import Catalog
from leakcap.sql.compile import compiled
from leakcap.sql.domains import domain
from leakcap.sql.engine import WorkerEngine
from leakcap.sql.evaluate import CellSums, Engine, GroupCells, cell_sums, public_table
from leakcap.sql.in_worlds import SqlOfWorlds, in_worlds
from leakcap.sql.parted import AT_ONCE, CellsOfParts, cells_of_parts
from leakcap.sql.program import Program, SqlRelease
from leakcap.sql.refusals import NotAnswered

__all__ = ["asked", "limits_of", "previewed"]

DEFAULT_SHARE = 0.01
RATIOS = ("avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "covar_samp", "covar_pop", "corr")


def asked(
    catalog: Catalog,
    desk: Any,
    text: str,
    how: Mapping[str, Any],
    *,
    rows: int | None = None,
    workers: SealedWorkers | None = None,
) -> SqlAnswer:
    """The answer to a question in SQL."""
    rows = _fewer(rows, desk)
    catalog.refuse_changed()
    program, engine = _compiled(text, catalog, desk, rows), WorkerEngine(catalog.path)
    try:
        tables: dict[str, Any] = {}
        answers: list[Released] = []
        for at, release in enumerate(program.releases):
            made, question = _asked_of(
                desk, program, at, catalog=catalog, engine=engine, tables=tables, rows=rows, workers=workers
            )
            catalog.refuse_changed()  # before anything is charged: hidden numbers are those of this very file
            if not made.groups:  # by public facts: nothing is asked of anybody
                tables[release.table] = public_table(made, np.empty((0, release.numbers)))
                continue
            answer = desk.answer(question, **_part(how, program, at))
            released = Released.of(made, answer, halves=not getattr(desk, "everybody", False))
            answers.append(released)
            tables[release.table] = released.table
        return answer_of(program, engine.run(program.last, tables), answers)
    finally:
        engine.close()


def previewed(
    catalog: Catalog,
    desk: Any,
    text: str,
    how: Mapping[str, Any],
    *,
    rows: int | None = None,
    workers: SealedWorkers | None = None,
) -> Preview | None:
    """What the first release of a question would cost; None where nothing is released, and it costs nothing."""
    rows = _fewer(rows, desk)
    catalog.refuse_changed()
    program, engine = _compiled(text, catalog, desk, rows), WorkerEngine(catalog.path)
    try:
        if not program.releases:
            return None
        if len(program.releases) > 1:
            raise NotAnswered("this question is answered in several steps: its price is the share= that it is given")
        _, question = _asked_of(desk, program, 0, catalog=catalog, engine=engine, tables={}, rows=rows, workers=workers)
        catalog.refuse_changed()
        found: Preview = desk.preview(question, **_part(how, program, 0))
        return found
    finally:
        engine.close()


def _fewer(rows: Any, desk: Any) -> int | None:
    """Rows of one person that are enough for a question, as a whole number."""
    if rows is None:
        return None
    if isinstance(desk, WorldsDesk):
        raise InputError("rows= is for sessions with design='bits': worlds have noise for what their people bring")
    return checks.count(rows=rows)


def _part(how: Mapping[str, Any], program: Program, at: int) -> dict[str, Any]:
    """Noise, or a share for each release; of a request, a name for each."""
    given = dict(how)
    count = len(program.releases)
    if given.get("noise") is not None and count > 1:
        raise InputError("this question is answered in several steps: give share= in place of noise=")
    if given.get("noise") is None:
        share = DEFAULT_SHARE if given.get("share") is None else given["share"]
        given["share"] = checks.positive(share=share) / count
    if given.get("request") is not None and count > 1:
        given["request"] = f"{given['request']} {at}"
    return given


def _compiled(text: str, catalog: Catalog, desk: Any, rows: int | None) -> Program:
    listed = isinstance(desk, WorldsDesk)
    program = compiled(text, catalog, hidden_pool=getattr(desk, "everybody", False), worlds=listed)
    if not listed:
        _refuse_early(program, catalog, desk, rows)
    return program


def _refuse_early(program: Program, catalog: Catalog, desk: Desk, rows: int | None) -> None:
    """What the declarations do not allow is refused before anything runs, and before a first step is charged."""
    for release in program.releases:
        if desk.everybody and not domain(release, catalog).declared:
            raise NotAnswered(
                "under a pool cap the values to group by are declared: register with keys={'column': [...]}"
            )
        if desk.quiet and release.base.most is None and rows is None:
            raise NotAnswered(
                "how many rows of one person this question counts is not known: register with rows_per_unit=, and join "
                "public tables on their keys, or say with rows= how many are enough"
            )


def _asked_of(
    desk: Any,
    program: Program,
    at: int,
    *,
    catalog: Catalog,
    engine: Engine,
    tables: dict[str, Any],
    rows: int | None,
    workers: SealedWorkers | None,
) -> tuple[GroupCells, Any]:
    """A release evaluated on the whole pool, at once or in parts, and the question that it is at the desk."""
    release = program.releases[at]
    words = {"kind": "sql", "sql": " ".join(program.text.split()), "step": at, "meaning": _meaning(program)}
    if isinstance(desk, WorldsDesk):
        mates = None if desk.cohorts is None else desk.cohorts.of_unit
        known = in_worlds(release, catalog, engine, tables, cohort_of=mates)
        return known.made, SqlOfWorlds(words, known)
    made: CellSums | CellsOfParts
    # Where nothing was declared noise is made for the most that somebody brings, which is found in all rows together.
    if (workers is not None or catalog.parts > AT_ONCE) and _bounded(release, rows):
        made = cells_of_parts(release, catalog, engine, tables, workers=workers)
    else:
        made = cell_sums(release, catalog, engine, tables)
    return made, _question(words if rows is None else {**words, "rows": rows}, made, desk, rows)


def _bounded(release: SqlRelease, rows: int | None) -> bool:
    """Whether it is known how many rows somebody may bring."""
    return release.base.most is not None or rows is not None


def _question(words: dict[str, Any], made: CellSums | CellsOfParts, desk: Desk, rows: int | None) -> SessionQuestion:
    release = made.release
    bounded = _bounded(release, rows)

    def sums(_: bool) -> Sums:
        simple = release.tree is None and all(one.name not in RATIOS for one in release.aggregates)
        return made.brought(
            desk.coins,
            within=limits_of(made, rows) if bounded else None,
            cut=rows is not None,
            finish=np.ravel,
            public=bounded and made.domain.declared,
            scale=1.0 if simple else None,
        )

    return SessionQuestion(words, sums, lambda _: bounded, pool_made=not (bounded and made.domain.declared))


def _meaning(program: Program) -> str:
    """A print of the text but for its blanks: within quotes, and after comments, blanks make another question."""
    words = [(one.token_type.name, one.text) for one in sqlglot.tokenize(program.text, read="duckdb")]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]


def limits_of(made: GroupCells, rows: int | None = None) -> Within:
    """The most of one person: all rows in one group, each as large as declared; or so many rows."""
    most = min(one for one in (made.release.base.most, rows) if one is not None)
    if made.release.tree is not None:
        return Within(made.release.tree.extent(most, made.groups // made.release.tree.nodes))
    sizes = np.array([one.in_all(most) for one in made.release.sums])
    limits = np.tile(np.maximum(sizes, 1e-100), made.groups)
    block = np.repeat(np.arange(made.groups), len(sizes))
    return Within(Extent(limits, np.zeros_like(block), block, limits**-2.0))
