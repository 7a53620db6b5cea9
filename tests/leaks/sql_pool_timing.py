"""Does the time that an answer takes tell whether somebody is in the tables? Two pools, asked the same in turn.

Whoever is looked for has far more rows than everybody else together in what was registered, and values with which
everything fails that can.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.sql import asking, expressions
from leakcap.sql.engine import EngineLimits, LocalEngine
from tests.leaks.sql_timing import told

PEOPLE, OWN, MOST, MANY = 3000, 5, 6, 400_000  # rows of one person, at most, and of the one who is looked for
CAPS: dict[str, Any] = {"bits": lc.membership(0.6), "pool cap": lc.pool_membership(0.55)}
FAILS = (
    *("try_cast(code as bigint)", "days * 9000000000 % ward", "days // ward", "ward << days"),
    *(f"abs(days * {at} * 9000000000)" for at in range(1, 9)),
)
KINDS = {
    "what may fail": "select count(*) from visits where days <> {other} and "
    + " and ".join(f"coalesce({one}, 1) <> {{other}}" for one in FAILS),
    "window": (
        "select count(*) from (select day, lag(day) over (partition by person order by day, days, ward) as v from "
        "visits where days <> {other}) q where v < day"
    ),
    "anti join": "select count(*) from visits v where days <> {other} and not exists "
    "(select 1 from people p where p.id = v.person and p.age > 200)",
    "exists": "select count(*) from people p where age <> {other} and exists "
    "(select 1 from visits v where v.person = p.id and v.days > p.age)",
}


class Engines:
    """One engine for each file, in this process: a process for each question would take most of the time."""

    def __init__(self) -> None:
        self.made: dict[Any, LocalEngine] = {}

    def __call__(self, path: Any) -> Engines:
        if path not in self.made:
            self.made[path] = LocalEngine(path, EngineLimits(threads=1))
        self.now = self.made[path]
        return self

    def run(self, sql: str, tables: Any) -> Any:
        return self.now.run(sql, tables)

    def close(self) -> None:
        """Another question comes."""


def pool(somebody: bool, rows: int) -> lc.sql.Catalog:
    """A pool with or without the one person, with so many rows of one person at most."""
    rng, size = np.random.default_rng(0), PEOPLE * OWN
    visits = pd.DataFrame(
        {
            "person": np.repeat(np.arange(PEOPLE), OWN),
            "days": rng.integers(0, 30, size),
            "ward": rng.integers(1, 8, size),
            "day": rng.integers(0, 1000, size),
            "code": rng.integers(0, 9, size).astype(str),
        }
    )
    people = pd.DataFrame({"id": np.arange(PEOPLE), "age": rng.integers(0, 100, PEOPLE)})
    if somebody:
        odd = {"person": PEOPLE, "days": 9_000_000_000, "ward": 0, "day": rng.integers(0, 1000, MANY), "code": "none"}
        visits = pd.concat([visits, pd.DataFrame(odd, index=range(MANY))], ignore_index=True)
        people = pd.concat([people, pd.DataFrame({"id": [PEOPLE], "age": [50]})], ignore_index=True)
    given = {"visits": visits.astype({"code": "string[pyarrow]"}), "people": people}
    return lc.sql.register(
        given,
        unit="people.id",
        links={"visits.person": "people.id"},
        rows_per_unit={"people": 1, "visits": rows},
    )


@contextmanager
def two_pools(patch: pytest.MonkeyPatch, cap: str, *, rows: int = MOST) -> Iterator[list[lc.Session]]:
    """A session over each."""
    engines = Engines()
    patch.setattr(asking, "WorkerEngine", engines)
    yield [lc.Session(pool(somebody, rows), cap=CAPS[cap], seed=1) for somebody in (False, True)]
    for one in engines.made.values():
        one.close()


def seen(sessions: list[lc.Session], kind: str, pairs: int, *, rows: int = MOST) -> float:
    """The p-value of a test that questions of a kind take the same time in both pools."""
    return told(sessions, pairs, text=KINDS[kind], noise=1e4 * rows / MOST)


def tries_again(patch: pytest.MonkeyPatch) -> None:
    """A planted fault: what may fail is tried, so that rows near one that fails are done again."""
    patch.setattr(expressions, "_with_room", lambda made: f"TRY(({made})::BIGINT)")
