"""Does the time that an answer takes tell who took part? Two sessions on the same tables, asked the same in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

import leakcap as lc
from leakcap.sql import asking
from leakcap.sql.engine import EngineLimits, LocalEngine

PEOPLE, MANY, FEW = 400, 300, 10  # rows of every other person, and of the rest
ALPHA = 1e-3  # how often honest sessions are said to differ


class OneEngine:
    """An engine for all questions, in this process: a process for each would take most of the time."""

    def __init__(self, path: Any) -> None:
        self.engine = LocalEngine(path, EngineLimits(threads=1))

    def __call__(self, *_: Any) -> OneEngine:
        return self

    def run(self, sql: str, tables: Any) -> Any:
        return self.engine.run(sql, tables)

    def close(self) -> None:
        """Another question comes."""


def visits() -> lc.sql.Catalog:
    """A table in which every other person has thirty times the rows of the next."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), np.where(np.arange(PEOPLE) % 2 == 0, MANY, FEW))
    table = pd.DataFrame(
        {"person": person, "days": rng.integers(0, 30, len(person)), "ward": rng.integers(0, 8, len(person))}
    )
    return lc.sql.register(
        {"visits": table}, unit="person", bounds={"days": (0, 30), "ward": (0, 7)}, rows_per_unit=MANY
    )


@contextmanager
def two_sessions(patch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """One in which those with many rows take part, and one in which the others do."""
    catalog = visits()
    engine = OneEngine(catalog.path)
    patch.setattr(asking, "WorkerEngine", engine)
    sessions = [lc.Session(catalog, cap=0.6, seed=1) for _ in range(2)]
    for at, session in enumerate(sessions):
        object.__setattr__(session._desk, "coins", np.arange(PEOPLE) % 2 == at)
    yield sessions
    engine.engine.close()


def runs_on_members_alone(patch: pytest.MonkeyPatch, sessions: list[Any]) -> None:
    """The planted fault: the engine is asked about those who take part, and nobody else."""
    honest, coins = asking.cell_sums, {}

    def asked(catalog: Any, desk: Any, text: str, how: Any, **more: Any) -> Any:
        coins["now"] = desk.coins
        return true(catalog, desk, text, how, **more)

    def members(release: Any, catalog: Any, engine: Any, tables: Any) -> Any:
        import pyarrow

        base = release.base
        listed = pyarrow.table({"member": np.flatnonzero(coins["now"]).astype(np.int32)})
        sql = f"SELECT * FROM ({base.sql}) WHERE {base.unit} IN (SELECT member FROM members)"
        return honest(replace(release, base=replace(base, sql=sql)), catalog, engine, {**tables, "members": listed})

    true = asking.asked
    patch.setattr(asking, "cell_sums", members)
    patch.setattr(asking, "asked", asked)


ASKED = "select ward, count(*), sum(days) from visits where days <> {other} group by ward"


def told(
    sessions: list[Any],
    pairs: int,
    clock: Callable[[], float] = time.process_time,
    *,
    text: str = ASKED,
    noise: float = 1e5,
) -> float:
    """The p-value of a rank test that both take the same time, each pair of answers being of one question."""
    rng, seconds = np.random.default_rng(1), np.empty((pairs, 2))
    for pair in range(-3, pairs):  # the first answers warm up
        for at in rng.permutation(2):
            began = clock()
            sessions[at].sql(text.format(other=pair + 1000), noise=noise)
            if pair >= 0:
                seconds[pair, at] = clock() - began
    return float(wilcoxon(seconds[:, 0], seconds[:, 1]).pvalue)
