"""How long the server takes for an answer does not tell the coins: a thousand answers of two servers that differ in
them alone, asked in turn. CPU time, since machines are busy; honest servers are said to differ once in 1,000 times.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import wilcoxon

pytest.importorskip("fastapi", reason="the server is an extra: pip install 'leakcap[server]'")
pytest.importorskip("httpx2", reason="no httpx2 here: pip install 'leakcap[dev]' brings it")
pytest.importorskip("duckdb", reason="no duckdb here: pip install 'leakcap[sql]' brings it")

from leakcap.server import asking
from leakcap.server.settings import ServerLimits
from leakcap.sql.engine import LocalEngine
from tests.leaks.test_server import _quick_hashes  # noqa: F401 - a fixture
from tests.leaks.test_sessions import rig
from tests.unit.server.running import Running, filled

ALPHA = 1e-3
ANSWERS, FEW = 500, 30  # of each server; a planted fault is seen in fewer
SEEDS = (4, 6)  # of the coins: with the first, the first person takes part, and not with the second
UNHURRIED = ServerLimits(requests_per_minute=10**6, questions_per_minute=10**6, ahead=0)


def two_servers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    """Two servers over the same people; the first person takes part in one of them."""
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)  # it never sees a coin
    monkeypatch.setenv("LEAKCAP_KEY", str(folder / "key"))
    found: list[Running] = []
    for seed, takes_part in zip(SEEDS, (True, False), strict=True):
        with monkeypatch.context() as patch:
            rig(patch, seed)
            found.append(filled(folder / f"server-{seed}", UNHURRIED))
        with found[-1].state.datasets.session("clinic", "ann") as session:
            assert bool(session._desk.coins[0]) == takes_part, "coins are drawn otherwise now: choose other SEEDS"
    return found


def differ(servers: list[Running], answers: int, asked: int = 0) -> float:
    """How likely such times are, if servers with other coins take the same time; so many were asked before."""
    programs: list[Any] = [one.program("ann") for one in servers]
    taken = np.empty((answers + 5, 2))
    for turn in range(len(taken)):
        body = {"sql": "select count(*) as n from people where age > 40", "share": 1e-5 * (1 + 1e-3 * (asked + turn))}
        for at in (0, 1) if turn % 2 else (1, 0):
            began = time.process_time_ns()
            found = programs[at].post("/api/datasets/clinic/ask", json=body)
            taken[turn, at] = time.process_time_ns() - began
            assert found.headers.get("leakcap-stored") == "no", found.text
    return float(wilcoxon(taken[5:, 0], taken[5:, 1]).pvalue)


@pytest.mark.slow
def test_a_thousand_answers_take_the_same_time_whichever_coins_were_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differ(two_servers(tmp_path, monkeypatch), ANSWERS) > ALPHA


def test_a_planted_run_on_the_secret_is_seen_in_times_that_are_alike_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, current = two_servers(tmp_path, monkeypatch), list[Any]()
    assert differ(servers, FEW) > ALPHA
    shares, honest = asking._share_of, asking.body_of

    def remembers(session: Any, answer: Any) -> float:
        current[:] = [session]
        return shares(session, answer)

    def slower(answer: Any, share: float) -> bytes:
        if current[0]._desk.coins[0]:
            sum(range(1_000_000))  # as long again as an answer, where somebody takes part
        return honest(answer, share)

    monkeypatch.setattr(asking, "_share_of", remembers)
    monkeypatch.setattr(asking, "body_of", slower)
    assert differ(servers, FEW, 2 * FEW) < ALPHA
