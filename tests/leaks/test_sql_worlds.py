"""SQL on a list of worlds: with the drawn cells held fixed, everybody sees the same whichever world is the secret."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.ledger import accounts as account
from leakcap.errors import LeakcapError
from leakcap.sessions.listed_worlds import desk
from leakcap.sessions.listed_worlds.cells import Channel
from leakcap.sql import asking
from leakcap.sql.engine import LocalEngine
from leakcap.sql.in_worlds import InWorlds
from tests.leaks.test_sessions import Stopped
from tests.sql.hospital import registered, tables

WORLDS, SECRETS = 8, (0, 5)
GROUPS = "select urgent, avg(cost) as cost, max(days) as longest, count(distinct day) as days from stays "
GROUPS += "group by urgent having count(*) > 3 order by longest desc limit 1"
COUNT = "select count(*) from stays where days > 100"


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, lc.sql.Catalog]:
    folder = tmp_path_factory.mktemp("tables")
    few, many = tables(), tables(people=999)
    more = tables(seed=1, people=999)
    people = lc.sql.register(
        {"people": np_concat(many["people"], more["people"])},
        unit="id",
        bounds={"age": (0, 110), "income": (-1000, 9000)},
        path=folder / "many",
    )
    return {"worlds": registered(folder / "few", few), "cohorts": people}


def np_concat(one: Any, other: Any) -> Any:
    """Two tables of people, those of the second under other names."""
    import pandas as pd

    return pd.concat([one, other.assign(id=other["id"] + 5_000)], ignore_index=True)


def asked(session: lc.Session, design: str) -> list[Any]:
    if design == "worlds":
        return [
            lambda: session.preview_sql(GROUPS, share=0.2),
            lambda: session.sql(GROUPS, share=0.2),
            lambda: session.sql(GROUPS, share=0.2),
            lambda: session.sql(COUNT, noise=2.0),
            lambda: session.sql("select count(*) from stays", noise=1e-3),
            lambda: session.sql("select count(*) from people where age > (select avg(age) from people)", share=0.1),
            lambda: session.sql("select median(day), list(cost) from stays"),
            lambda: session.sql("select * from stays"),
        ]
    return [
        lambda: session.preview_sql("select sex, count(*), min(age) from people group by sex", share=0.2),
        lambda: session.sql("select sex, count(*), min(age) from people group by sex", share=0.2),
        lambda: session.sql("select count(distinct town), sum(income) from people", noise=300.0),
        lambda: session.sql("select sum(income) from people", noise=1.0),
        lambda: session.sql("select id from people"),
        session.count,
    ]


def everything(session: lc.Session, design: str) -> list[bytes]:
    """Answers, previews, refusals, warnings, and all that is shown of them."""
    shown: list[bytes] = []
    for ask in asked(session, design):
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found: Any = ask()
            shown += [repr([str(one.message) for one in heard]).encode(), pickle.dumps(found), repr(found).encode()]
        except LeakcapError as error:
            shown.append(f"{type(error).__name__}: {error}".encode())
    shown.append(repr((session.spent, session.remaining, session.history, session)).encode())
    cert = session.certificate
    return [*shown, cert.to_json().encode(), str(cert).encode(), cert.to_html().encode()]


class Recorded(LocalEngine):
    """What reaches the engine, letter by letter."""

    seen: list[str]  # set by each test: digests of statements and tables

    def run(self, sql: str, given: Any) -> Any:
        held = hashlib.sha256(sql.encode())
        for name, table in sorted(given.items()):
            held.update(name.encode() + repr(table.to_pydict()).encode())
        Recorded.seen.append(held.hexdigest())
        return super().run(sql, given)


def rig(monkeypatch: pytest.MonkeyPatch, world: int) -> None:
    """One key and so one list, another secret world of it, and answers that do not hang on it."""
    Recorded.seen = []
    monkeypatch.setattr(account.secrets, "token_bytes", np.random.default_rng(7).bytes)
    monkeypatch.setattr(account.secrets, "randbelow", lambda _: world)
    monkeypatch.setattr(Channel, "draw", lambda self, *_: int(len(self.values) * 0.45))
    monkeypatch.setattr(desk, "datetime", Stopped)
    monkeypatch.setattr(account, "datetime", Stopped)
    monkeypatch.setattr(asking, "WorkerEngine", Recorded)


def seen_of(
    monkeypatch: pytest.MonkeyPatch, catalogs: Any, design: str, world: int, place: Path
) -> tuple[list[bytes], list[str], Any]:
    rig(monkeypatch, world)
    monkeypatch.setenv("LEAKCAP_KEY", str(place.with_name(f"keys-{world}") / "key"))  # ledgers with one mark
    session = lc.Session(
        catalogs[design], cap=0.6, design=design, worlds=WORLDS, ledger=f"sqlite:///{place}", name="people"
    )
    assert session._desk.secret == world
    shown = everything(session, design)
    with session._desk.account.book.store.reading(session._desk.account.mark) as now:
        kept = (
            [(row.number, row.charge, len(row.body or b"")) for row in now.rows()],
            {name: len(now.value(name) or b"") for name in now.names()},
        )
    return shown, Recorded.seen, kept


@pytest.mark.parametrize("design", ["worlds", "cohorts"])
def test_all_that_is_shown_and_asked_of_the_engine_is_the_same_whichever_world_is_the_secret(
    monkeypatch: pytest.MonkeyPatch, catalogs: Any, design: str, tmp_path: Path, own_key: Path
) -> None:
    first, *rest = (seen_of(monkeypatch, catalogs, design, one, tmp_path / f"{one}.db") for one in SECRETS)
    assert all(one == first for one in rest)
    shown = b"\n".join(first[0]).decode("latin-1")
    assert "BudgetError" in shown and "NotAnswered" in shown
    assert ("People of a cohort share a bit" in shown) == (design == "cohorts")
    assert len(first[1]) > 5, "nothing reached the engine: nothing was compared"


@pytest.mark.parametrize("design", ["worlds", "cohorts"])
def test_a_planted_number_that_is_made_on_the_secret_world_alone_is_caught(
    monkeypatch: pytest.MonkeyPatch, catalogs: Any, design: str, tmp_path: Path, own_key: Path
) -> None:
    honest = InWorlds.table
    found = []
    for world in SECRETS[:2]:

        def run_again(self: InWorlds, worlds: Any, world: int = world) -> Any:
            made = honest(self, worlds)
            made[world] *= 1 + 1e-6  # as a query of its own would round otherwise
            return made

        monkeypatch.setattr(InWorlds, "table", run_again)
        found.append(seen_of(monkeypatch, catalogs, design, world, tmp_path / f"{world}.db")[0])
    assert found[0] != found[1]


def test_a_planted_statement_about_the_secret_world_is_caught(
    monkeypatch: pytest.MonkeyPatch, catalogs: Any, tmp_path: Path, own_key: Path
) -> None:
    honest = asking.in_worlds
    found = []
    for world in SECRETS[:2]:

        def looks(release: Any, catalog: Any, engine: Any, given: Any, *, cohort_of: Any, world: int = world) -> Any:
            engine.run(f"SELECT count(*) FROM unit WHERE unit % {WORLDS} = {world}", {})
            return honest(release, catalog, engine, given, cohort_of=cohort_of)

        monkeypatch.setattr(asking, "in_worlds", looks)
        found.append(seen_of(monkeypatch, catalogs, "worlds", world, tmp_path / f"{world}.db")[1])
    assert found[0] != found[1]
