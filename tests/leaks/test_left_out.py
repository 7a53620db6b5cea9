"""That people were left out is for the custodian: no coin shows in it, and nothing of it in what is public."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import LeftOutWarning
from leakcap.sessions import desk
from leakcap.sessions.linear import Payment, paying

PEOPLE = 60


def table(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, size=(PEOPLE, 2)).astype(float)


def heard_of(session: lc.Session) -> list[str]:
    """What is said while people retire."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for step in range(4):
            session.count(where='"0" > 50', share=0.4 + 0.01 * step)
        session.mean("1", bounds=(0, 100), share=0.7)
        session.fit(lc.estimators.Mean(), ["0"], bounds=(0, 100), share=0.8)
    return [str(one.message) for one in heard if issubclass(one.category, LeftOutWarning)]


def public_bytes(session: lc.Session) -> list[bytes]:
    """All that may be published of a session in which people retire."""
    answers = [session.count(where='"0" > 50', share=0.4 + 0.01 * step) for step in range(4)]
    shown = [pickle.dumps(answer) for answer in answers] + [repr(answer).encode() for answer in answers]
    shown += [np.stack(answer.interval()).tobytes() for answer in answers]
    shown += [session.certificate.to_json().encode(), str(session.certificate).encode()]
    lines = [(line.number, line.question, line.share, line.numbers) for line in session.history]
    return [*shown, repr((lines, session.spent, session.remaining)).encode()]


def test_what_is_public_is_the_same_to_the_byte_with_and_without_the_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    session = lc.Session(table(), cap=0.6, seed=3)
    with pytest.warns(LeftOutWarning):
        warned = public_bytes(session)
    monkeypatch.setattr(desk.Desk, "_left_out", lambda *_, **__: None)  # as if there were no such thing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert public_bytes(lc.Session(table(), cap=0.6, seed=3)) == warned


def test_a_planted_answer_that_tells_who_is_missing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = desk.Desk._settled

    def tells(self: Any, *given: Any) -> Any:
        found = honest(self, *given)
        return found if found.left_out is None else replace(found, deviations=found.deviations + found.left_out.people)

    with pytest.warns(LeftOutWarning):
        plain = public_bytes(lc.Session(table(), cap=0.6, seed=3))
    monkeypatch.setattr(desk.Desk, "_settled", tells)
    with pytest.warns(LeftOutWarning):
        assert public_bytes(lc.Session(table(), cap=0.6, seed=3)) != plain


def test_no_coin_shows_in_what_the_custodian_hears() -> None:
    sessions = [lc.Session(table(), cap=0.6, seed=seed) for seed in range(4)]
    assert not all(np.array_equal(one._desk.coins, sessions[0]._desk.coins) for one in sessions)
    heard = [heard_of(one) for one in sessions]
    assert heard[0] and heard == heard[:1] * 4


def test_a_planted_payment_that_reads_coins_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []
    for seed in range(4):
        session = lc.Session(table(), cap=0.6, seed=seed)
        coins = session._desk.coins

        def reads(cost: Any, spent: Any, allowance: int, coins: Any = coins) -> Payment:
            return paying(np.where(coins, cost, cost // 2), spent, allowance)

        monkeypatch.setattr(desk, "paying", reads)
        heard.append(heard_of(session))
    assert any(one != heard[0] for one in heard)


@pytest.mark.parametrize("cap", [lc.membership(0.6), lc.pool_membership(0.6)])
def test_an_analyst_hears_nothing(cap: Any) -> None:
    session = lc.Session(table(), cap=cap, seed=3, analyst="ann")
    assert heard_of(session) == []
    with session._desk.account.reading() as now:
        assert len([entry for entry in now.entries() if entry.kind == "answer"]) >= 6


def test_under_a_pool_cap_the_same_is_heard_whatever_the_pool() -> None:
    """In one pool everybody retires, in the other nobody is asked about at all."""
    pools = [np.full((PEOPLE, 2), 99.0), np.zeros((PEOPLE, 2))]
    heard = [heard_of(lc.Session(pool, cap=lc.pool_membership(0.6), seed=3)) for pool in pools]
    assert heard[0] and heard[0] == heard[1]


def test_a_planted_warning_about_a_hidden_pool_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def counts(self: Any, sums: Any, payment: Payment, allowance: int, declared: int) -> Any:
        people = int((~payment.pays).sum())
        return desk.LeftOut(people, len(self.people), 0) if people else None

    monkeypatch.setattr(desk.Desk, "_left_out", counts)
    pools = [np.full((PEOPLE, 2), 99.0), np.zeros((PEOPLE, 2))]
    heard = [heard_of(lc.Session(pool, cap=lc.pool_membership(0.6), seed=3)) for pool in pools]
    assert heard[0] != heard[1]
    assert heard_of(lc.Session(table(), cap=0.6, seed=3, analyst="ann"))
