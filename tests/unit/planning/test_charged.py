"""Releases that are charged to the account of their data: once, with one secret, beside sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.operations import account_named, set_budget, show, verify
from leakcap.errors import AlreadyReleased, BudgetError, InputError

N = 300


def table() -> Any:
    return np.random.default_rng(0).gamma(2.0, 50.0, size=(N, 2))


@pytest.fixture
def ledger(tmp_path: Path, own_key: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def test_the_same_release_again_is_the_same_value(ledger: str) -> None:
    first = lc.release(lc.stats.mean, table(), cap=0.6, design="bits", ledger=ledger)
    again = lc.release(lc.stats.mean, table(), cap=0.6, design="bits", ledger=ledger)
    assert np.array_equal(first.value, again.value) and first.certificate == again.certificate
    assert np.array_equal(first.interval(), again.interval())


@pytest.mark.parametrize(
    "other",
    [
        {"fn": lc.stats.sum},
        {"cap": 0.59},
        {"name": None, "fn": lc.stats.covariance},
    ],
)
def test_a_second_release_that_nobody_can_pay_for_is_refused(ledger: str, other: dict[str, Any]) -> None:
    how = {"fn": lc.stats.mean, "cap": 0.6, **other}
    fn = how.pop("fn")
    lc.release(lc.stats.mean, table(), cap=0.6, design="bits", ledger=ledger)
    with pytest.raises(BudgetError, match="clock does not pay"):
        lc.release(fn, table(), design="bits", ledger=ledger, **how)


def test_releases_of_worlds_take_an_account_for_themselves(ledger: str) -> None:
    how: dict[str, Any] = {"cap": 0.7, "worlds": 64, "design": "worlds", "draws": 512, "ledger": ledger}
    first = lc.release(np.median, table()[:, 0], **how)
    assert lc.release(np.median, table()[:, 0], **how).value == first.value
    with pytest.raises(AlreadyReleased, match="secret world of their own"):
        lc.release(np.max, table()[:, 0], **how)
    with pytest.raises(InputError, match="another secret"):
        lc.release(lc.stats.mean, table()[:, 0], cap=0.6, design="bits", ledger=ledger)
    with pytest.raises(InputError, match="another secret"):
        lc.Session(table()[:, 0], cap=0.6, ledger=ledger)


def test_a_release_in_the_account_of_a_session_uses_its_coins_and_its_clock(ledger: str) -> None:
    session = lc.Session(table(), cap=0.7, ledger=ledger, name="people")
    session.mean("0", share=0.1)
    plan = lc.plan(lc.stats.mean, table(), cap=0.6, design="bits", ledger=ledger, name="people")
    plan.release()
    assert plan.run.charged is not None
    assert np.array_equal(plan.run.charged.coins(), session._desk.coins)
    assert 0.3 < session.spent.share <= 1  # the release took what a cap of .6 takes of one of .7
    with pytest.raises(BudgetError):
        lc.release(lc.stats.sum, table(), cap=0.69, design="bits", ledger=ledger, name="people")


def test_pool_caps_add_up_in_squares(ledger: str) -> None:
    session = lc.Session(table(), cap=lc.pool_membership(0.7), ledger=ledger, name="people")
    for step in range(2):
        lc.release(
            lc.stats.mean, table(), cap=lc.pool_membership(0.6), bounds=(0, 500 + step), ledger=ledger, name="people"
        )
    # (2 Phi^-1(.6))^2 twice, of (2 Phi^-1(.7))^2
    assert session.spent.share == pytest.approx(2 * 0.25673 / 1.09999, rel=1e-3)


def test_an_estimator_is_charged_by_its_options(ledger: str) -> None:
    made = lc.estimators.Mean(cap=0.6, options={"design": "bits", "ledger": ledger}).fit(table())
    again = lc.estimators.Mean(cap=0.6, options={"design": "bits", "ledger": ledger}).fit(table())
    assert np.array_equal(made.mean_, again.mean_)


def test_a_simulation_has_no_ledger(ledger: str) -> None:
    with pytest.raises(InputError, match="simulation"):
        lc.plan(lc.stats.mean, table(), cap=0.6, seed=1, ledger=ledger)


def test_a_release_counts_for_its_day(tmp_path: Path, own_key: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    how = {"ledger": f"sqlite:///{tmp_path / 'ledger.db'}", "name": "people"}
    lc.Session(rows, cap=0.6, **how)
    lc.release(lc.stats.mean, rows, cap=0.52, design="bits", **how)
    book = open_book(how["ledger"])
    (standing,) = show(book)
    assert standing.analysts[""][0] == sum(standing.days.values()) == standing.declared[""] > 0
    assert verify(book).whole
    set_budget(account_named(book, "people"), who="owner", why="slowly", day=standing.declared[""])
    with pytest.raises(BudgetError, match="today"):
        lc.release(lc.stats.sum, rows, cap=0.52, design="bits", **how)
    assert lc.Session(rows, cap=0.6, analyst="ann", **how).spent.share == 0  # what it took was read off the pool
