"""A session on a list of worlds: any function, number by number, refused before anything is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.certificates.session import SessionCertificate
from leakcap.custody.ledger.operations import set_budget
from leakcap.errors import BudgetError, CapError, InputError, LeakcapError
from leakcap.sessions.listed_worlds import opening
from leakcap.sessions.listed_worlds.charges import TICKS

N, WORLDS = 120, 64


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 90, N), "cost": rng.gamma(2, 50, N)})


def session(**how: Any) -> lc.Session:
    return lc.Session(people(), **{"cap": 0.6, "design": "worlds", "worlds": WORLDS, "seed": 1, **how})


@pytest.fixture
def ledger(tmp_path: Path, own_key: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def summary(rows: pd.DataFrame) -> dict[str, Any]:
    return {"median": float(rows["age"].median()), "means": rows.mean().to_numpy()}


QUESTIONS: dict[str, Any] = {
    "count": (lambda s, **how: s.count(where="age > 40", **how), lambda d: (d.age > 40).sum()),
    "sum": (lambda s, **how: s.sum("cost", **how), lambda d: d.cost.sum()),
    "mean": (lambda s, **how: s.mean(["age", "cost"], **how), lambda d: d[["age", "cost"]].mean()),
    "quantile": (lambda s, **how: s.quantile("age", 0.5, **how), lambda d: d.age.median()),
    "covariance": (lambda s, **how: s.covariance("age", **how), lambda d: d.age.var()),
    "histogram": (
        lambda s, **how: s.histogram("age", bounds=(0, 100), bins=2, **how),
        lambda d: [(d.age < 50).mean(), (d.age >= 50).mean()],
    ),
    "query": (lambda s, **how: s.query(lambda r: r["age"].max() - r["age"].min(), **how), lambda d: 71.0),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_question_is_answered_near_the_truth_within_its_share(kind: str) -> None:
    ask, truth = QUESTIONS[kind]
    one = session()
    answer = ask(one, share=0.2)
    off = np.abs(np.ravel(answer.value) - np.ravel(truth(people())))
    assert (off < 6 * np.broadcast_to(answer.noise, off.shape) + 0.3 * np.abs(np.ravel(truth(people())))).all()
    assert 0 < answer.share <= 0.2 * 1.0001 and answer.whole
    assert 0 < one.spent.share <= answer.share * 1.0001


def test_vectors_leave_number_by_number_in_the_functions_own_form() -> None:
    one = session()
    answer = one.query(summary, share=0.3)
    assert set(answer.value) == {"median", "means"} and answer.value["means"].shape == (2,)
    (past,) = one.history
    assert past.numbers == (answer.value["median"], *answer.value["means"]) and past.share == answer.share
    assert one.certificate.answered == 3


def moments(rows: pd.DataFrame) -> Any:
    return np.concatenate([rows.mean().to_numpy(), rows.std().to_numpy()])


def test_a_vector_that_is_refused_half_way_delivers_what_was_drawn() -> None:
    one, size = session(), people().std().to_numpy() / np.sqrt(N)
    noise = (4.2 * np.tile(size, 2)).tolist()
    one.count(where="age > 50", share=0.25)
    part = one.query(moments, noise=noise)
    assert not part.whole and 2 <= one.certificate.answered < 5
    assert one.history[1].numbers == tuple(part.value)
    spent = one.spent
    again = one.query(moments, noise=noise)
    assert np.array_equal(again.value, part.value) and one.spent == spent


def test_stored_numbers_come_again_for_nothing_also_in_another_process_of_thought(ledger: str) -> None:
    one = session(seed=None, ledger=ledger, name="people")
    first = one.mean("age", noise=12.0)
    spent = one.spent
    other = session(seed=None, ledger=ledger, name="people")
    assert other.mean("age", noise=12.0).value == first.value and other.spent == spent
    assert np.array_equal(one._desk.engine.worlds.packed, other._desk.engine.worlds.packed)
    assert one._desk.secret == other._desk.secret


def test_what_nobody_can_pay_for_is_refused_before_anything_is_drawn() -> None:
    one = session()
    with pytest.raises(BudgetError, match="cannot pay"):
        one.mean("age", noise=1e-3)
    assert one.spent.share == 0 and not one.history


def test_clocks_never_fall_below_zero_and_sessions_end() -> None:
    one = session()
    refused = 0
    for step in range(60):
        try:
            one.count(where=f"age > {18 + step}", noise=20)
        except BudgetError:
            refused += 1
    assert refused
    with one._desk.account.reading() as now:
        assert 0 <= one._desk._state(now).clocks.min() <= TICKS
    assert len(one.history) > 5


def test_previews_tell_the_price_and_how_many_answers_the_worlds_can_carry() -> None:
    one = session()
    seen = one.preview("mean", "age", noise=5.0)
    answer = one.mean("age", noise=5.0)
    assert seen.share == answer.share and seen.fits
    assert seen.more is not None and seen.more > 1
    assert not one.preview("mean", "age", noise=1e-3).fits


def test_always_holds_on_every_course() -> None:
    one = session(always=True)
    answered = 0
    for step in range(40):
        try:
            one.count(where=f"age > {20 + step}", noise=60)
            answered += 1
        except BudgetError:
            pass
        assert one._desk.posterior_success().max() <= 0.6
        surest = one._desk.posterior_success().max()
        assert one.spent.share == pytest.approx((surest - 0.5) / 0.1)
        assert one.remaining.share == pytest.approx(1 - one.spent.share)
    assert answered > 0 and one.certificate.always
    assert one.spent.success == one.remaining.success == 0.6
    assert "of the clock" not in str(one.certificate)
    one._desk = replace(one._desk, analyst="ann")
    assert np.isnan(one.spent.share) and np.isnan(one.remaining.share)


def test_a_share_of_no_clock_is_no_budget(ledger: str) -> None:
    one = session(always=True, seed=None, ledger=ledger, name="people")
    for budget in ({"analysts": {"ann": TICKS}}, {"day": TICKS}):
        with pytest.raises(InputError, match="no clock runs down"):
            set_budget(one._desk.account, who="owner", why="slowly", **budget)


@pytest.mark.parametrize(
    ("caps", "promised"),
    [
        (0.6, 0.6),
        (0.9, 0.9),
        ([lc.true_positive_rate(0.01, 0.02)], 1.0),
        ([lc.true_positive_rate(0.01, 0.02), lc.membership(0.7)], 0.7),
    ],
)
def test_no_success_is_told_that_one_question_beats(caps: Any, promised: float) -> None:
    """In which set the half is, almost without noise: of all questions of a price, those tell most."""
    table, best = np.arange(8.0)[:, None], 0.0
    rng = np.random.default_rng(0)
    for part in np.repeat(np.linspace(0.55, 0.7, 4), 3):
        one = lc.Session(table, cap=caps, design="worlds", worlds=256, seed=1)
        assert one.spent.success == 0.5 and one.remaining.success == promised
        masks = one._desk.engine.worlds.masks()
        halves = rng.permutation(np.unique(masks, axis=0))
        with_first, without = (halves[halves[:, 0] == first] for first in (True, False))
        chosen = {
            tuple(np.flatnonzero(half))
            for some in (with_first[: round(part * len(with_first))], without[: round((1 - part) * len(without))])
            for half in some
        }
        yes = np.array([tuple(np.flatnonzero(half)) in chosen for half in masks])
        try:
            one.query(lambda rows, chosen=chosen: float(tuple(rows[:, 0].astype(int)) in chosen), noise=1e-3)
        except BudgetError:
            continue
        sides = masks[yes], masks[~yes]
        success = sum(np.maximum(side.sum(axis=0), (~side).sum(axis=0)) for side in sides).max() / len(masks)
        assert success <= one.spent.success == promised
        best = max(best, success)
    assert best > 0.53


def test_the_certificate_says_where_it_ends() -> None:
    one = session()
    one.mean("age", share=0.1)
    cert = one.certificate
    assert SessionCertificate.from_json(cert.to_json()) == cert
    assert not cert.whoever_is_known and cert.worlds == WORLDS
    text = " ".join(str(cert).split())
    assert "about 6 people who are known leave one of 64 halves" in text and "4.16 nats" in text
    assert cert.true_positive_rate(0.01) == pytest.approx(0.21, abs=1e-6)


REFUSED: dict[str, tuple[Any, type[LeakcapError], str]] = {
    "noise of nothing": (lambda s: s.mean("age", noise=0), InputError, "above 0"),
    "infinite noise": (lambda s: s.mean("age", noise=float("inf")), InputError, "finite"),
    "no share": (lambda s: s.mean("age", share=0), InputError, "above 0"),
    "both": (lambda s: s.mean("age", noise=1, share=1), InputError, "not both"),
    "groups": (lambda s: s.count(by={"age": [1]}), InputError, "design='bits'"),
    "linear": (lambda s: s.linear(len, bounds=(0, 1)), InputError, "design='bits'"),
    "fits": (lambda s: s.fit(lc.estimators.Mean()), InputError, "design='bits'"),
    "nobody": (lambda s: s.count(where="age > 500", noise=1), InputError, "nobody"),
    "fails in one world": (lambda s: s.query(lambda r: 1 / (len(r) - N // 2 + 0 * 1), noise=1), LeakcapError, "world"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_costs_nothing_and_says_what_to_do(what: str) -> None:
    ask, kind, words = REFUSED[what]
    one = session()
    with pytest.raises(kind, match=words):
        ask(one)
    assert one.spent.share == 0 and not one.history


def test_designs_caps_and_data_do_not_mix(ledger: str) -> None:
    session(seed=None, ledger=ledger, name="people")
    for other, words in (
        ({"design": "bits", "worlds": None}, "another secret"),
        ({"worlds": 32}, "64 worlds"),
        ({"cap": 0.7}, "other caps"),
    ):
        with pytest.raises(InputError, match=words):
            session(seed=None, ledger=ledger, name="people", **other)
    with pytest.raises(InputError, match="worlds were listed"):
        lc.Session(people().iloc[:-1], cap=0.6, design="worlds", worlds=WORLDS, ledger=ledger, name="people")
    with pytest.raises(CapError, match="nothing about being in the pool"):
        session(cap=lc.pool_membership(0.6))
    with pytest.raises(InputError, match="always"):
        lc.Session(people(), cap=0.6, always=True, seed=1)


def test_clocks_lean_the_same_way_in_another_process(ledger: str) -> None:
    how = {"cap": 0.6, "design": "worlds", "worlds": WORLDS, "ledger": ledger, "name": "people"}
    one = lc.Session(people(), **how)
    for step in range(20):
        one.count(where=f"age > {20 + 3 * step}", noise=60.0 + step)
    other = lc.Session(people(), **how)
    priced = []
    for opened in (one, other):
        with opened._desk.account.reading() as now:
            state = opened._desk._state(now)
        assert len(state.recent) == 20
        priced.append(opened._desk.engine.price(state, np.linspace(0, 1, WORLDS), 5.0))
    assert priced[0].lean is not None
    assert (priced[0].lean == priced[1].lean).all() and (priced[0].charges == priced[1].charges).all()


def test_a_cap_is_raised_by_whoever_says_why_and_the_larger_one_is_certified(ledger: str) -> None:
    how = {"cap": 0.55, "design": "worlds", "worlds": WORLDS, "ledger": ledger, "name": "people"}
    one = lc.Session(people(), **how)
    for step in range(100):
        try:
            one.count(where="age > 40", noise=20.0 + 1e-3 * step)
        except BudgetError:
            break
    assert step < 99
    answered = one.certificate.answered
    one.raise_cap(0.6, who="owner", why="a larger study")
    assert one.count(where="age > 40", noise=21.0).value == pytest.approx(N / 3, abs=200)
    for cap in (0.55, 0.6):  # what it was opened with, and what it is now
        again = lc.Session(people(), **how | {"cap": cap})
        assert again.certificate.to_json() == one.certificate.to_json()
        assert again.caps == one.caps == (lc.membership(0.6),)
    with pytest.raises(InputError, match=r"other caps .*60 %"):
        lc.Session(people(), **how | {"cap": 0.65})
    after = lc.Session(people(), **how)
    assert after.certificate.membership_success == after.certificate.capped[0].certified == 0.6
    assert after.certificate.answered == answered + 1
    assert after.remaining.success == 0.6
    assert after.spent.share > 1 and after.remaining.share > 0
    for cap in (0.6, 0.58, lc.true_positive_rate(0.01, 0.5), [0.7, lc.true_positive_rate(0.01, 0.9)]):
        with pytest.raises(InputError, match="raised"):
            after.raise_cap(cap, who="owner", why="again")
    with pytest.raises(InputError, match="written down"):
        after.raise_cap(0.7, who="", why="again")
    with pytest.raises(InputError, match="custodian"):
        lc.Session(people(), analyst="ann", **how).raise_cap(0.7, who="ann", why="please")


def test_whoever_knows_one_other_person_is_promised_nothing() -> None:
    assert session().certificate.given(0) == 0.6
    assert session().certificate.given(1) == 1.0
    assert "given a single person" in str(session().certificate)
    assert lc.Session(people(), cap=0.6, seed=1).certificate.given(N - 1) == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize("bounds", [{}, {"size": (0, 1)}, (1,), "wide", (5, 1), (0, float("nan"))])
@pytest.mark.parametrize("kind", ["mean", "sum", "covariance", "histogram"])
def test_bounds_that_are_none_are_refused_in_our_words(kind: str, bounds: Any) -> None:
    with pytest.raises(InputError, match="bounds"):
        getattr(session(), kind)("age", bounds=bounds)


def test_bounds_by_name_cut_as_a_pair_does() -> None:
    by_name = session().mean(["age", "cost"], bounds={"cost": (0, 100), "age": (20, 60)}, noise=5.0)
    pair = session().mean(["age", "cost"], bounds=([20, 0], [60, 100]), noise=5.0)
    assert (by_name.value == pair.value).all()


def test_halves_that_another_version_draws_otherwise_are_refused(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"cap": 0.6, "design": "worlds", "worlds": WORLDS, "ledger": ledger, "name": "people"}
    lc.Session(people(), **how).count(where="age > 40", noise=60.0)
    drawn = opening.draw_worlds
    monkeypatch.setattr(opening, "draw_worlds", lambda n, m, rng: drawn(n, m, np.random.default_rng(0)))
    with pytest.raises(InputError, match="halves are not the ones"):
        lc.Session(people(), **how).count(where="age > 40", noise=61.0)
