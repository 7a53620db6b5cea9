"""The audit of a session: what its answers tell is what the clock says, faults are found, and nothing is touched."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.audit.attacks.answers import ATTACK, NOISE
from leakcap.audit.sessions import MIN_TRIALS, session_attacked
from leakcap.errors import InputError, LeftOutWarning
from leakcap.sessions import desk as at_desk
from leakcap.sessions.session import desk_of

PEOPLE = 60
CAPS = {"bits": lc.membership(0.6), "pool": lc.pool_membership(0.6)}
TRIALS = 400


def asked(cap: Any, seed: int | None = 1, **how: Any) -> lc.Session:
    """A session that was asked three questions, of half of everybody's clock."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 100, PEOPLE), "ward": rng.choice(["a", "b"], PEOPLE)})
    session = lc.Session(table, cap=cap, seed=seed, **how)
    session.count(share=0.1)
    session.count(by={"ward": ["a", "b"]}, share=0.2)
    session.sum("age", bounds=(0, 100), share=0.2)
    return session


def shares(report: Any) -> list[Any]:
    return [one for one in report.findings if one.attack == ATTACK]


@pytest.mark.parametrize("design", CAPS)
def test_a_session_is_held_to_its_clock_and_to_its_cap(design: str) -> None:
    report = lc.audit.run(asked(CAPS[design]), trials=TRIALS)
    assert report.verdict != "refuted", report
    so_far, in_the_end = shares(report)
    assert in_the_end.certified == pytest.approx(0.6, abs=1e-6)
    assert 0.53 < so_far.certified < 0.58  # of those who bring the most, half of the clock


@pytest.mark.slow
@pytest.mark.parametrize("design", CAPS)
def test_guesses_are_right_as_often_as_the_clock_says(design: str) -> None:
    """Whoever the answers move most is found, and the rest of the clock is used up, so that the cap is reached."""
    trials = 10_000
    report = lc.audit.run(asked(CAPS[design]), trials=trials)
    so_far, in_the_end = shares(report)
    error = 4.5 * 0.5 / np.sqrt(trials)  # one audit in 70,000 is further off
    assert abs(in_the_end.measured - in_the_end.certified) < error
    assert abs(so_far.measured - so_far.certified) < error


@pytest.mark.parametrize("design", CAPS)
def test_a_session_whose_noise_is_too_small_is_refuted(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, with_noise = asked(CAPS[design]), at_desk.with_noise

    def quieter(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        class Quarter:
            def normals(self, size: int) -> Any:
                return randomness.normals(size) / 4

        return with_noise(total, grains, deviations, Quarter())  # type: ignore[arg-type]

    monkeypatch.setattr(at_desk, "with_noise", quieter)
    report = lc.audit.run(session, trials=400)
    refuted = {one.attack for one in report.findings if one.verdict == "refuted"}
    assert refuted == {ATTACK, NOISE}, report


def test_a_clock_that_charges_too_little_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    session, paying = all_but_spent(), at_desk.paying
    monkeypatch.setattr(at_desk, "paying", lambda cost, spent, allowance: paying(cost // 30, spent, allowance))
    report = lc.audit.run(session, trials=TRIALS)
    assert "refuted" in {one.verdict for one in shares(report)}, report
    assert "refuted" not in {one.verdict for one in report.findings if one.attack == NOISE}


def test_somebody_who_cannot_pay_is_not_in_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: where they stay in, the answers tell more than the clock says."""
    with pytest.warns(LeftOutWarning):
        session = all_but_spent(questions=4)
    assert lc.audit.run(session, trials=MIN_TRIALS).verdict != "refuted"
    paying = at_desk.paying
    monkeypatch.setattr(
        at_desk, "paying", lambda cost, spent, allowance: replace(paying(cost, spent, allowance), pays=cost > -1)
    )
    # Four answers of nearly a whole clock each are right 91 times in 100: 7 deviations of 400 trials above the cap.
    assert lc.audit.run(session, trials=TRIALS).verdict == "refuted"


def all_but_spent(questions: int = 1) -> lc.Session:
    """A session in which every question takes nearly all of somebody's clock."""
    session = lc.Session(np.arange(PEOPLE, dtype=float)[:, None] % 8, cap=0.75, seed=1)
    for step in range(questions):
        session.sum("0", bounds=(-1, 7), share=0.95 + step / 1000)
    return session


class Untouched:
    """Coins that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the session's own coins were looked at: {name}")


@pytest.mark.parametrize("design", CAPS)
def test_nothing_is_charged_and_the_real_coins_are_not_looked_at(design: str, tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    session = asked(CAPS[design], seed=None, ledger=f"sqlite:///{file}", name="clinic")
    session._desk = replace(session._desk, coins=Untouched(), randomness=Untouched())
    before = session.spent, session.history, file.read_bytes()
    lc.audit.run(session, trials=200)
    assert (session.spent, session.history, file.read_bytes()) == before


def test_every_clock_is_attacked_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    session = asked(0.6, seed=None, ledger=place, name="clinic")
    session.linear(lambda rows: 1.0, bounds=(0, 1), share=0.05)
    account = desk_of(session).account
    lc.custody.ledger.operations.set_budget(account, who="carla", why="two rooms", groups={"night": ["nora"]})
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 100, PEOPLE), "ward": rng.choice(["a", "b"], PEOPLE)})
    nora = lc.Session(table, cap=0.6, ledger=place, name="clinic", analyst="nora", rows_per_unit=1)
    nora.count(share=0.3)
    questions = [one.question for one in shares(lc.audit.run(session, trials=200))]
    rest = ", and one more that takes the rest of the clock"
    one, other = (
        "whether a person took part, from 3 of 4 answers",
        "whether a person took part, from 1 answer to night",
    )
    assert questions == [one, one + rest, other, other + rest]


def test_questions_in_sql_are_asked_again_with_all_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is asked is looked at, no rate.
    monkeypatch.setattr(import_module("leakcap.audit.sessions"), "MIN_TRIALS", 20)
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": np.arange(300), "age": rng.integers(0, 100, 300)})
    tables = lc.sql.register({"people": people}, unit="id", bounds={"age": (0, 110)}, rows_per_unit=1)
    session = lc.Session(tables, cap=0.7, seed=1)
    session.sql("select count(*) from people where age > (select avg(age) from people)", share=0.3)
    (so_far, _) = shares(lc.audit.run(session, trials=20))
    assert so_far.question == "whether a person took part, from 2 answers"


def test_too_few_trials_for_any_verdict_are_refused() -> None:
    with pytest.raises(InputError, match="at least 200"):
        session_attacked(asked(0.6), MIN_TRIALS - 1, 1e-6)


def test_what_cannot_be_audited_says_so() -> None:
    rows = np.arange(400, dtype=float)[:, None]
    listed = lc.Session(rows, cap=0.6, design="worlds", seed=1)
    untouched = lc.Session(rows, cap=0.6, seed=1)
    for session, words in ((listed, "audit a plan"), (untouched, "none of this session's answers")):
        with pytest.raises(InputError, match=words):
            lc.audit.run(session, trials=200)
    with pytest.raises(InputError, match="leave attacks="):
        lc.audit.run(untouched, attacks=["bayes"], trials=200)
    analysts = lc.Session(rows, cap=0.6, seed=1, analyst="ann", rows_per_unit=1)
    with pytest.raises(InputError, match="for the custodian"):
        lc.audit.run(analysts, trials=200)
