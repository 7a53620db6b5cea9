"""Sessions: with the answers held fixed, everything that anybody but the custodian sees is the same for all coins."""

from __future__ import annotations

import pickle
import sqlite3
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.ledger import accounts as account
from leakcap.errors import LeakcapError
from leakcap.sessions import desk
from leakcap.sessions import overview as overviews

PEOPLE = 60


class Stopped(datetime):
    """A clock that stands still: when something was asked is public and not what is compared here."""

    @classmethod
    def now(cls, tz: Any = None) -> Stopped:
        return cls(2026, 1, 1, tzinfo=UTC)


def table() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, size=(PEOPLE, 2)).astype(float)


def ask_everything(session: lc.Session) -> list[bytes]:
    """Answers, previews, refusals, retirements, and all that is shown of them."""
    shown: list[Any] = []
    asked = [
        lambda: session.count(where='"0" > 50', share=0.3),
        lambda: session.count(where='"0" > 50', share=0.31),
        lambda: session.sum("1", bounds=(0, 100), share=0.3),
        lambda: session.mean("0", bounds=(0, 100), share=0.2),
        lambda: session.mean("1", share=0.3),
        lambda: session.count(where='"0" > 50', share=0.32),  # most of them retire
        lambda: session.blocks(lambda rows: rows[:, 0].max(), blocks=5, bounds=(0, 100), share=0.1),
        lambda: session.linear(lambda rows: rows[0], norm=50.0, share=0.1),
        lambda: session.count(noise=1e-6),
        lambda: session.mean("2", bounds=(0, 1)),
        lambda: session.preview("count", share=0.3),
        lambda: session.preview("mean", "0", share=0.3),
    ]
    for ask in asked:
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found: Any = ask()
            shown.append(repr([str(one.message) for one in heard]).encode())
            shown.append(pickle.dumps(found))
            shown.append(repr(found).encode())
            if hasattr(found, "interval"):
                shown.append(np.stack(found.interval()).tobytes())
        except LeakcapError as error:
            shown.append(f"{type(error).__name__}: {error}".encode())
    shown.append(repr((session.spent, session.remaining, session.history, session)).encode())
    shown.append(session.certificate.to_json().encode())
    shown.append(str(session.certificate).encode())
    return shown


def rig(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Coins by a seed, and noise that makes the answers the same whatever they are."""
    secret = np.random.default_rng(seed)
    monkeypatch.setattr(account.secrets, "token_bytes", secret.bytes)
    monkeypatch.setattr(desk, "with_noise", lambda total, grains, deviations, _: np.arange(len(total)) + 0.5)
    monkeypatch.setattr(desk, "datetime", Stopped)


@pytest.mark.parametrize("analyst", ["ann", None])
@pytest.mark.parametrize("cap", [lc.membership(0.6), lc.pool_membership(0.6)])
def test_all_that_is_shown_is_the_same_whichever_coins_were_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path, analyst: str | None, cap: Any
) -> None:
    seen, kept = [], []
    for seed in range(3):
        rig(monkeypatch, seed)
        path = tmp_path / f"ledger-{seed}.db"
        session = lc.Session(table(), cap=cap, ledger=f"sqlite:///{path}", name="people", analyst=analyst)
        seen.append((ask_everything(session), session._desk.coins.copy()))
        with session._desk.account.book.store.reading(session._desk.account.mark) as now:
            rows = [(row.number, row.charge, len(row.body or b"")) for row in now.rows()]
            kept.append((rows, {name: len(now.value(name) or b"") for name in now.names()}))
    if not isinstance(cap, type(lc.pool_membership(0.6))):
        assert not np.array_equal(seen[0][1], seen[1][1]), "the coins are the same: nothing was compared"
    assert seen[0][0] == seen[1][0] == seen[2][0]
    # Sealed values differ in every byte; how many there are, how long, and what stands beside them must not.
    assert kept[0] == kept[1] == kept[2]


def page_for_the_custodian(place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The custodian's page, as if it were looked at at the same time in the same place."""
    monkeypatch.setattr(overviews, "datetime", Stopped)
    return replace(overviews.overview(place, "people"), place="the ledger").to_html()


@pytest.mark.parametrize("cap", [lc.membership(0.6), lc.pool_membership(0.6)])
def test_the_page_of_a_ledger_is_the_same_whichever_coins_were_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path, cap: Any
) -> None:
    pages, coins, secrets = [], [], []
    monkeypatch.setattr(account, "datetime", Stopped)
    names = [f"person-{i:04d}" for i in range(PEOPLE)]
    for seed in range(3):
        rig(monkeypatch, seed)
        place = f"sqlite:///{tmp_path / f'ledger-{seed}.db'}"
        session = lc.Session(table(), cap=cap, unit=names, rows_per_unit=1, ledger=place, name="people")
        ask_everything(session)
        coins.append(session._desk.coins.copy())
        with session._desk.account.reading() as now:
            secrets.append((now.title or {})["secret"])
        pages.append(page_for_the_custodian(place, monkeypatch))
    assert len(set(secrets)) == 3, "the secrets are the same: nothing was compared"
    assert isinstance(cap, type(lc.pool_membership(0.6))) or not np.array_equal(coins[0], coins[1])
    assert pages[0] == pages[1] == pages[2]
    assert "count where" in pages[0] and "By clock" in pages[0], "the page shows too little to be compared"
    assert not any(word in page for page in pages for word in ("person-0", *secrets))


def test_a_planted_page_that_tells_a_clock_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path
) -> None:
    honest = overviews.together

    def tells_the_coins(standing: Any) -> Any:
        return replace(honest(standing), words=f"{session._desk.coins[:8].sum()} of the first eight take part")

    pages = set()
    monkeypatch.setattr(account, "datetime", Stopped)
    for seed in range(4):
        rig(monkeypatch, seed)
        monkeypatch.setattr(overviews, "together", tells_the_coins)
        place = f"sqlite:///{tmp_path / f'ledger-{seed}.db'}"
        session = lc.Session(table(), cap=0.6, ledger=place, name="people")
        pages.add(page_for_the_custodian(place, monkeypatch))
    assert len(pages) > 1


def test_a_planted_refusal_that_reads_the_coins_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path
) -> None:
    honest = desk.paying

    def reads_the_secret(cost: Any, spent: Any, allowance: int) -> Any:
        found = honest(cost, spent, allowance)
        if session._desk.coins[:8].sum() > 4:
            raise LeakcapError("somebody cannot pay for this question any more")
        return found

    seen = []
    for seed in range(6):
        rig(monkeypatch, seed)
        monkeypatch.setattr(desk, "paying", reads_the_secret)
        session = lc.Session(table(), cap=0.6, ledger=f"sqlite:///{tmp_path / str(seed)}.db", name="people")
        seen.append(ask_everything(session))
    assert any(one != seen[0] for one in seen)


def test_an_answer_holds_nothing_of_the_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path) -> None:
    session = lc.Session(table(), cap=0.6, ledger=f"sqlite:///{tmp_path / 'ledger.db'}", name="people")
    answer = session.mean("0", share=0.2)
    content = pickle.dumps(answer)
    assert b"sessions.session" not in content and b"Brought" not in content and len(content) < 4000
    assert table()[:, 0].tobytes()[:64] not in content


def test_nothing_in_the_file_tells_the_names_of_people_or_the_answers(tmp_path: Path, own_key: Path) -> None:
    names = [f"person-{i:04d}" for i in range(PEOPLE)]
    session = lc.Session(table(), cap=0.6, unit=names, ledger=f"sqlite:///{tmp_path / 'ledger.db'}", name="the ward")
    answer = session.sum("0", share=0.2)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("ledger.db*"))
    for text in (b"person-", b"the ward", b"share", str(answer.value).encode()):
        assert text not in stored


def test_how_much_is_stored_does_not_tell_the_world(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path
) -> None:
    lengths = set()
    for world in (3, 12, 19):
        monkeypatch.setattr(account.secrets, "randbelow", lambda _, world=world: world)
        place = tmp_path / f"{world}.db"
        opened = lc.Session(table(), cap=0.55, design="worlds", worlds=20, ledger=f"sqlite:///{place}", name="people")
        assert opened._desk.secret == world
        with sqlite3.connect(place) as file:
            tables = [name for (name,) in file.execute("select name from sqlite_master where type = 'table'")]
            cells = [cell for name in tables for row in file.execute(f'select * from "{name}"') for cell in row]
        lengths.add(tuple(len(cell) for cell in cells if isinstance(cell, (bytes, str))))
    assert len(lengths) == 1
