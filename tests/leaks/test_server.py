"""The server: with the released numbers held fixed, everything that leaves it is the same for all coins."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server is an extra: pip install 'leakcap[server]'")
pytest.importorskip("httpx2", reason="no httpx2 here: pip install 'leakcap[dev]' brings it")
pytest.importorskip("duckdb", reason="no duckdb here: pip install 'leakcap[sql]' brings it")

from leakcap.server import accounts, asking
from leakcap.server.settings import ServerLimits
from leakcap.sql.engine import LocalEngine
from tests.leaks.test_sessions import rig
from tests.unit.server.running import BY_SEX, COUNT, Running, filled, form_word

# Numbers that the server draws, for ids, keys of forms and the time: they have nothing to do with the data.
DRAWN = re.compile(
    rb"[0-9a-f]{64}|[0-9a-f]{24}|(?<=name=\"request\" value=\")[\w-]+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?"
)
SEEDS = (1, 2)  # of the coins: with the second the first person takes part, and not with the first
LIMITS = ServerLimits()
ASKED: list[dict[str, Any]] = [
    {"sql": COUNT, "share": 0.2},
    {"sql": BY_SEX, "share": 0.2},
    {"sql": "select count(*) from people where age > (select avg(age) from people)", "share": 0.3},
    {"sql": "select count(*) from people where vip", "share": 0.3},  # more than is left
    {"sql": COUNT, "noise": 1e-9},
    {"sql": "select age from people", "share": 0.1},
    {"sql": "select count(*) from people where person = 90001", "share": 0.1},
    {"sql": "select count(*) from nothing", "share": 0.1},
]


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    from argon2 import PasswordHasher

    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(accounts, "_hasher", lambda: quick)


def told(response: Any) -> bytes:
    headers = {name: value for name, value in response.headers.items() if name != "set-cookie"}
    return DRAWN.sub(b"*", repr((response.status_code, headers)).encode() + response.content)


def everything(running: Running) -> list[bytes]:
    """What an analyst is sent, by programs and by pages, and whatever is logged."""
    program, browser = running.program("ann"), running.browser("ann")
    word, found = form_word(browser), []
    for body in ASKED:
        for path in ("preview", "ask", "ask"):
            found.append(told(program.post(f"/api/datasets/clinic/{path}", json=body)))
    for path in ("", "/clinic/schema", "/clinic/budget", "/clinic/answers", "/clinic/certificate"):
        found.append(told(program.get(f"/api/datasets{path}")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)  # programs had a process for each question
        for body in ASKED[1::2]:
            found += by_hand(browser, word, body)
    for path in ("/data", "/data/clinic", "/data/clinic/answers", "/data/clinic/certificate"):
        found.append(told(browser.get(path)))
    return found


def by_hand(browser: Any, word: str, body: dict[str, Any]) -> list[bytes]:
    """A question by a form, and the pages of its answer."""
    form = {"form_word": word, "way": "sql", "sql": body["sql"], "share": str(100 * body.get("share", 0.1))}
    found = [told(browser.post("/data/clinic/preview", data=form))]
    answer = browser.post("/data/clinic/ask", data=form)
    found.append(told(answer))
    if answer.status_code == 303:
        place = answer.headers["location"]
        found += [told(browser.get(place)), told(browser.get(f"{place}/table.csv"))]
    return found


def in_worlds(folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> Iterator[tuple[Any, Any]]:
    """One server after the other, as they are looked at."""
    caplog.set_level(logging.DEBUG)
    for seed in SEEDS:
        monkeypatch.setenv("LEAKCAP_KEY", str(folder / f"key-{seed}"))
        with monkeypatch.context() as patch:
            rig(patch, seed)
            caplog.clear()
            running = filled(folder / f"server-{seed}", LIMITS)
            shown = everything(running)
            with running.state.datasets.session("clinic", "ann") as session:
                coins = session._desk.coins.copy()
        logged = re.sub(r"server-\d", "server", caplog.text)
        yield [*shown, DRAWN.sub(b"*", logged.encode())], coins


def test_all_that_leaves_is_the_same_whichever_coins_were_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (first, coins), (second, others) = in_worlds(tmp_path, monkeypatch, caplog)
    assert not np.array_equal(coins, others), "the coins are the same: nothing was compared"
    assert sum(b'"rows":' in one for one in first) >= 6, "hardly anything was answered"
    differing = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    assert differing == []


@pytest.mark.parametrize("planted", ["a header", "a refusal", "a log"])
def test_planted_leaks_of_the_coins_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, planted: str
) -> None:
    honest = asking.body_of

    def leaks(answer: Any, share: float) -> bytes:
        coins = current[0]._desk.coins
        if planted == "a header":
            return honest(answer, share).replace(b'"whole":true', b'"whole":true' + b" " * int(coins[0]))
        if planted == "a refusal" and coins[0]:
            raise asking.Refusal(409, "somebody has not enough left")
        if planted == "a log":
            logging.getLogger("leakcap").info("%d rows", coins.sum())
        return honest(answer, share)

    current: list[Any] = []
    shares = asking._share_of

    def remembers(session: Any, answer: Any) -> float:
        current[:] = [session]
        return shares(session, answer)

    monkeypatch.setattr(asking, "_share_of", remembers)
    monkeypatch.setattr(asking, "body_of", leaks)
    monkeypatch.setattr("tests.leaks.test_server.ASKED", ASKED[:1])
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)
    monkeypatch.setattr("tests.leaks.test_server.LIMITS", ServerLimits(ahead=0))
    (first, _), (second, _) = in_worlds(tmp_path, monkeypatch, caplog)
    assert first != second
