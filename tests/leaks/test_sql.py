"""Questions in SQL: with the released numbers held fixed, all that is shown or handed on is the same for all coins."""

from __future__ import annotations

import logging
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import LeakcapError
from leakcap.sessions.cell_rows import CellRows
from leakcap.sql import asking
from leakcap.sql.engine import EngineLimits, LocalEngine
from leakcap.sql.worker import written
from tests.leaks import sql_timing
from tests.leaks.test_sessions import rig
from tests.sql.hospital import registered

DECLARED = {"people.sex": ["f", "m"], "people.town": ["A", "B", "C", None]}
Asked = list[tuple[str, dict[str, float]]]
ASKED: Asked = [
    ("select count(*) from people", {"share": 0.2}),
    ("select sex, count(*), avg(age) from people group by sex", {"share": 0.2}),
    ("select s.urgent, w.name, sum(s.days) from stays s, wards w where s.ward = w.ward group by 1, 2", {"share": 0.2}),
    ("select count(*) from people where age > (select avg(age) from people)", {"share": 0.3}),
    ("select year(s.day), var_pop(s.cost), corr(s.days, s.cost) from stays s group by 1", {"share": 0.1}),
    ("select sex, sum(age) as a from people group by sex having sum(age) > 40 order by a desc", {"share": 0.1}),
    ("select count(distinct stay) from tests where level > 0", {"share": 0.3}),  # some retire
    ("select count(*) from people where income > 8000", {"share": 0.5}),  # most do
    ("select count(*) from people", {"noise": 1e-9}),
    ("select count(*) from people", {"share": 2.0}),
    ("select name, beds from wards order by beds", {}),
    ("select age from people", {}),
    ("select count(*) from people where id = 5", {}),
    ("select max(age) from people", {}),
    ("drop table people", {}),
]


class WatchedEngine(LocalEngine):
    """Writes down everything that it is told and that it gives back."""

    heard: list[bytes]

    def run(self, sql: str, tables: Any) -> Any:
        self.heard += [sql.encode(), *(name.encode() + written(one) for name, one in tables.items())]
        found = super().run(sql, tables)
        self.heard.append(written(found.sort_by([(name, "ascending") for name in found.column_names])))
        return found


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return registered(keys=DECLARED)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What goes to the engine and comes back."""
    found: list[bytes] = []

    def engine(path: Path) -> WatchedEngine:
        made = WatchedEngine(path, EngineLimits(threads=1))
        made.heard = found
        return made

    monkeypatch.setattr(asking, "WorkerEngine", engine)
    return found


def ask_everything(session: lc.Session, asked: Asked, caplog: pytest.LogCaptureFixture) -> list[bytes]:
    """Answers, previews, refusals, warnings and logs, as bytes."""
    shown: list[bytes] = []
    for text, how in asked:
        for ask in (session.preview_sql, session.sql, session.sql):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    found = ask(text, **how)
                    shown += [repr(found).encode(), pickle.dumps(found)]
                    if hasattr(found, "frame"):
                        shown.append(found.frame.to_csv().encode())
                except LeakcapError as error:
                    shown.append(f"{type(error).__name__}: {error}".encode())
            shown.append(repr([str(one.message) for one in told]).encode())
    shown.append(repr((session.spent, session.remaining, session.history, session)).encode())
    shown += [session.certificate.to_json().encode(), str(session.certificate).encode()]
    return [*shown, caplog.text.encode()]


def in_worlds(
    count: int,
    asked: Asked,
    catalog: lc.sql.Catalog,
    heard: list[bytes],
    monkeypatch: Any,
    caplog: Any,
    folder: Path,
    **more: Any,
) -> list[tuple[list[bytes], list[bytes], np.ndarray]]:
    """What is shown, what the engine hears, and the coins, of so many secrets."""
    caplog.set_level(logging.DEBUG)
    found = []
    for seed in range(count):
        rig(monkeypatch, seed)
        caplog.clear()
        heard.clear()
        session = lc.Session(catalog, ledger=f"sqlite:///{folder}/ledger-{seed}.db", name="hospital", **more)
        found.append((ask_everything(session, asked, caplog), list(heard), session._desk.coins.copy()))
    return found


@pytest.mark.parametrize(
    ("analyst", "cap", "asked"),
    [
        ("ann", lc.membership(0.6), ASKED),
        (None, lc.membership(0.6), ASKED[1::2]),
        ("ann", lc.pool_membership(0.6), ASKED[::2]),
    ],
    ids=["analyst", "custodian", "pool cap"],
)
def test_all_that_is_shown_and_all_that_the_engine_hears_is_the_same_whichever_coins_were_secret(
    catalog: lc.sql.Catalog,
    heard: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    own_key: Path,
    tmp_path: Path,
    analyst: str | None,
    cap: Any,
    asked: Asked,
) -> None:
    first, second = in_worlds(2, asked, catalog, heard, monkeypatch, caplog, tmp_path, cap=cap, analyst=analyst)
    if not isinstance(cap, type(lc.pool_membership(0.6))):
        assert not np.array_equal(first[2], second[2]), "the coins are the same: nothing was compared"
    assert first[0] == second[0]
    assert first[1] == second[1] and len(first[1]) > 2 * len(asked)


@pytest.mark.parametrize("planted", ["members alone", "a refusal", "a log"])
def test_planted_leaks_of_the_coins_are_caught(
    catalog: lc.sql.Catalog,
    heard: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    own_key: Path,
    tmp_path: Path,
    planted: str,
) -> None:
    honest = asking._question

    def reads_the_coins(words: Any, made: Any, desk: Any, rows: Any) -> Any:
        taking_part = desk.coins[made.units]
        if planted == "members alone":
            kept = [getattr(made, name)[taking_part] for name in ("units", "cells", "values")]
            made = replace(made, rows=CellRows.of_entries(made.people, made.groups, *kept))
        elif planted == "a refusal" and desk.coins[0]:
            raise LeakcapError("the first of all people has not enough left")
        elif planted == "a log":
            logging.getLogger("leakcap").info("%d rows", taking_part.sum())
        return honest(words, made, desk, rows)

    monkeypatch.setattr(asking, "_question", reads_the_coins)
    found = in_worlds(3, ASKED[6:8], catalog, heard, monkeypatch, caplog, tmp_path, cap=0.6)
    assert any(one[:2] != found[0][:2] for one in found)


@pytest.mark.slow
def test_the_time_of_an_answer_does_not_tell_who_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU time. Honest sessions are said to differ once in 1,000 times."""
    with sql_timing.two_sessions(monkeypatch) as sessions:
        assert sql_timing.told(sessions, 100) > sql_timing.ALPHA


@pytest.mark.slow
def test_the_time_of_a_run_on_the_members_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with sql_timing.two_sessions(monkeypatch) as sessions:
        sql_timing.runs_on_members_alone(monkeypatch, sessions)
        assert sql_timing.told(sessions, 60) < sql_timing.ALPHA
