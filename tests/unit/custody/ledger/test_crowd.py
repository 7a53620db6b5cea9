"""Threads and processes at one account: nothing overspent, nothing lost, whatever they do at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.accounts import Spent
from leakcap.custody.ledger.budgets import EVERYBODY
from tests.charges import Crowded, charge, crowd, open_budget

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

SIZES = [
    pytest.param(4, 4, 12, id="16 threads"),
    pytest.param(8, 8, 157, id="64 threads", marks=pytest.mark.slow),
]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db" if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.mark.parametrize(("processes", "threads", "turns"), SIZES)
def test_a_crowd_takes_what_there_is_and_no_more(
    place: str, processes: int, threads: int, turns: int, tmp_path: Path
) -> None:
    budget = processes * threads * turns * 9 // 10
    account = open_budget(open_book(place), budget)

    def work() -> Callable[[str], bool]:
        own = open_book(place).account("a crowd")
        return lambda request: charge(own, request)

    done = crowd(tmp_path, work, processes=processes, threads=threads, turns=turns)
    done.check(account, budget)
    assert len(done.told) == budget
    assert done.refused == processes * threads * turns - budget


def test_a_store_from_before_a_fork_goes_on_in_the_child(place: str, tmp_path: Path) -> None:
    account = open_budget(open_book(place), 1000)
    done = crowd(tmp_path, lambda: lambda request: charge(account, request), processes=3, threads=3, turns=8)
    done.check(account, 1000)
    assert len(done.told) == 72


@pytest.mark.parametrize("told", [["a", "a"], ["a", "b"], []])
def test_the_check_sees_a_lost_and_a_doubled_charge(told: list[str]) -> None:
    """The planted twin: the ledger holds the charge `a`, once."""
    from leakcap.custody.ledger import Book

    account = open_budget(Book.in_memory(), 10)
    charge(account, "a")
    Crowded(["a"], 0, [], 1.0).check(account, 10)
    with pytest.raises(AssertionError):
        Crowded(told, 0, [], 1.0).check(account, 10)
    with pytest.raises(AssertionError):
        Crowded(["a"], 0, [], 1.0).check(account, 0)


@pytest.mark.parametrize(("processes", "threads", "turns"), [(3, 3, 4), pytest.param(8, 8, 16, marks=pytest.mark.slow)])
def test_a_crowd_in_a_session_exceeds_nobodys_clock(
    place: str, processes: int, threads: int, turns: int, tmp_path: Path
) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 1))
    session = lc.Session(rows, cap=0.6, ledger=place, retire=False)
    attempts = processes * threads * turns
    share = 1 / (attempts * 9 // 10) * (1 - 1e-9)

    def work() -> Callable[[str], bool]:
        own = lc.Session(rows, cap=0.6, ledger=place, retire=False)
        return lambda request: not own.linear(lambda row: 1.0, bounds=(0, 1), share=share * _other(request)).again

    done = crowd(tmp_path, work, processes=processes, threads=threads, turns=turns)
    assert not done.failed, done.failed[:3]
    history = session.history
    assert len(done.told) == len(history)
    assert done.refused > 0, "too few attempts to reach the end of a clock"
    with session._desk.account.reading() as now:
        spent, allowance = Spent.read(now, EVERYBODY).ticks, now.state["allowance"]
        charges = sum(entry.charge for entry in now.entries())
    assert spent.max() <= allowance
    assert charges == now.state["declared"][EVERYBODY] <= allowance
    assert spent.max() > 0.9 * allowance


def _other(request: str) -> float:
    """Another share for every request: the same question would give a stored answer."""
    process, thread, turn = map(int, request.split("-"))
    return 1 - 1e-6 * (1 + process * 10_000 + thread * 100 + turn)
