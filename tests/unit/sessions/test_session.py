"""A session as its users meet it: answers, replays, prices, what is refused and in which words."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import leakcap as lc
from leakcap.certificates.session import SessionCertificate
from leakcap.custody.ledger.accounts import Secret
from leakcap.errors import BudgetError, CapError, InputError, RepeatedReleaseWarning
from leakcap.sessions.clock import TICKS
from leakcap.worlds.keyed import keyed_bits
from tests.refusals import refusal

N = 1500


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "cost": rng.gamma(2, 50, N),
            "ward": rng.choice(["A", "B", "C"], N, p=[0.5, 0.3, 0.2]),
        }
    )


@pytest.fixture
def ledger(tmp_path: Path, own_key: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@contextmanager
def refused(kind: type[Exception], words: str) -> Iterator[None]:
    with pytest.raises(kind, match=re.escape(words)) as caught:
        yield
    refusal(lambda: _raise(caught.value))


def _raise(error: BaseException) -> None:
    raise error


def session(**how: Any) -> lc.Session:
    return lc.Session(people(), **{"cap": 0.6, "seed": 1, **how})


QUESTIONS: dict[str, Any] = {
    "count": lambda s: (s.count(where="age > 40"), lambda d: (d.age > 40).sum()),
    "groups": lambda s: (s.count(by={"ward": ["A", "B"]}), lambda d: [(d.ward == w).sum() for w in "AB"]),
    "sum": lambda s: (s.sum("cost", bounds=(0, 1000)), lambda d: d.cost.sum()),
    "sum of the pool": lambda s: (s.sum("cost"), lambda d: d.cost.sum()),
    "mean": lambda s: (s.mean("age", bounds=(0, 120)), lambda d: d.age.mean()),
    "mean of the pool": lambda s: (s.mean(["age", "cost"]), lambda d: d[["age", "cost"]].mean()),
    "mean with noise": lambda s: (s.mean("age", noise=0.5), lambda d: d.age.mean()),
    "means by group": lambda s: (
        s.mean("age", by={"ward": ["A", "B"]}, bounds=(0, 120)),
        lambda d: [d.age[d.ward == w].mean() for w in "AB"],
    ),
    "sums by group": lambda s: (
        s.sum("age", by={"ward": ["A", "B"]}, bounds=(0, 120)),
        lambda d: [d.age[d.ward == w].sum() for w in "AB"],
    ),
    "histogram": lambda s: (
        s.histogram("age", bounds=(0, 100), bins=4),
        lambda d: np.histogram(d.age, [0, 25, 50, 75, 100])[0],
    ),
    "covariance": lambda s: (s.covariance("age", bounds=(0, 120)), lambda d: d.age.var()),
    "covariance of the pool": lambda s: (s.covariance(["age", "cost"]), lambda d: np.cov(d[["age", "cost"]].T)),
    "quantile": lambda s: (s.quantile("age", 0.5, bounds=(0, 128)), lambda d: d.age.median()),
    "linear": lambda s: (s.linear(lambda r: float(r.age.iloc[0] > 40), bounds=(0, 1)), lambda d: (d.age > 40).sum()),
    "query": lambda s: (s.query(lambda r: r[["age", "cost"]].sum().to_numpy()), lambda d: d[["age", "cost"]].sum()),
    "blocks": lambda s: (s.blocks(lambda r: np.median(r.age), blocks=40, bounds=(0, 120)), lambda d: d.age.median()),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_question_is_answered_near_the_truth_with_its_share(kind: str) -> None:
    ask = QUESTIONS[kind]
    one = session()
    answer, truth = _with_share(one, ask, 0.2)
    low, high = answer.interval(0.99)
    wide = (high - low) / 2
    if not answer.covers_halving:  # half of the people: what that does is bounded here, not by the interval
        wide = wide + 0.1 * np.abs(np.ravel(truth(people())))
    assert (np.abs(np.ravel(np.asarray(answer.value, dtype=float)) - np.ravel(truth(people()))) < 1.5 * wide).all()
    assert 0 < answer.share <= 0.2 * (1 + 1e-9)
    assert one.spent.share <= answer.share
    assert len(one.history) == 1 and one.certificate.answered == 1


def _with_share(one: lc.Session, ask: Any, share: float) -> Any:
    class WithShare:
        def __getattr__(self, kind: str) -> Any:
            def asked(*args: Any, **how: Any) -> Any:
                return getattr(one, kind)(*args, **({} if "noise" in how else {"share": share}), **how)

            return asked

    return ask(WithShare())


def test_the_same_question_gets_the_same_answer_for_nothing(ledger: str) -> None:
    one = lc.Session(people(), cap=0.6, ledger=ledger, name="people")
    first = one.count(where="age > 40", share=0.1)
    spent = one.spent
    again = one.count(where="age > 40", share=0.1)
    assert (again.value, again.again, one.spent) == (first.value, True, spent)
    elsewhere = lc.Session(people(), cap=0.6, ledger=ledger, name="people")
    assert elsewhere.count(where="age > 40", share=0.1).value == first.value
    other = one.count(where="age > 40", share=0.1001)
    assert not other.again and other.value != first.value


def test_a_request_is_answered_once_and_is_for_one_question(ledger: str) -> None:
    one = lc.Session(people(), cap=0.6, ledger=ledger)
    first = one.mean("age", bounds=(0, 120), request="monday")
    assert one.mean("age", bounds=(0, 120), request="monday").value == first.value
    with refused(InputError, "request= was used for another question"):
        one.mean("cost", bounds=(0, 120), request="monday")
    assert one.certificate.answered == 1


def test_whoever_cannot_pay_is_left_out_and_nobody_overspends() -> None:
    one = session()
    for step in range(30):
        one.count(where="age > 40", share=0.3 + 1e-6 * step)
    assert one.spent.share <= 1
    last = one.count(where="age > 40", share=0.31)
    assert abs(last.value) < 8 * last.noise[0]  # noise alone: everybody who matches has retired
    young = one.count(where="age <= 40", share=0.31)
    assert young.value > 100  # others have their own clocks


def test_a_session_that_does_not_retire_refuses_instead() -> None:
    one = session(retire=False)
    for step in range(3):
        one.count(share=0.3 + 1e-6 * step)
    with refused(BudgetError, "cannot pay"):
        one.count(share=0.4)
    assert one.certificate.answered == 3


def test_previews_cost_nothing_and_tell_the_price() -> None:
    one = session()
    seen = one.preview("count", where="age > 40", share=0.25)
    assert one.certificate.answered == 0 and seen.fits and seen.retired == 0
    answer = one.count(where="age > 40", share=0.25)
    assert (answer.share, answer.noise[0]) == (seen.share, seen.noise[0])
    for step in range(3):
        one.count(where="age > 40", share=0.25 + 1e-9 * (step + 1))
    assert one.preview("count", where="age > 40", share=0.25).retired == int((people().age > 40).sum())


def test_noise_and_share_are_two_words_for_one_thing() -> None:
    one = session()
    seen = one.preview("sum", "cost", bounds=(0, 1000), share=0.04)
    noise = float(seen.noise[0])
    assert one.preview("sum", "cost", bounds=(0, 1000), noise=noise).share == pytest.approx(0.04, rel=1e-9)
    assert one.preview("sum", "cost", bounds=(0, 1000), noise=2 * noise).share == pytest.approx(0.01, rel=1e-9)


def test_a_pool_cap_uses_everybody_and_takes_declared_bounds_alone() -> None:
    one = session(cap=lc.pool_membership(0.6))
    answer = one.count(share=0.5)
    assert abs(answer.value - N) < 6 * answer.noise[0]  # no sampling error at all
    assert one.certificate.design == "pool"
    for ask in (lambda: one.mean("age"), lambda: one.mean("age", bounds=(0, 120), noise=1.0), lambda: one.sum("cost")):
        with refused(InputError, "pool cap"):
            ask()


def test_the_certificate_says_about_the_pool_only_what_holds() -> None:
    one = session()
    one.count(share=0.1)
    assert one.certificate.pool_membership_success == pytest.approx(0.55, abs=1e-6)
    one.mean("age", share=0.1)
    assert one.certificate.pool_membership_success is None
    assert any("around which" in text for text in one.certificate.pool_public)


def test_certificates_come_back_from_json_and_nothing_else_does() -> None:
    one = session()
    one.count(share=0.1)
    cert = one.certificate
    assert SessionCertificate.from_json(cert.to_json()) == cert
    assert "at most" in str(cert) and "60.00 %" in str(cert)
    for text in (
        "{}",
        "no",
        cert.to_json().replace('"square"', '"round"'),
        cert.to_json().replace('"bits"', '"coins"'),
    ):
        with pytest.raises(InputError):
            SessionCertificate.from_json(text)


def test_changed_data_keep_their_account_where_people_have_names(ledger: str) -> None:
    data = people().assign(person=np.arange(N) + 1000)
    one = lc.Session(data, cap=0.6, ledger=ledger, name="people", unit="person")
    one.count(where="age > 40", share=0.7)
    coins = dict(zip(one._table.units.names.tolist(), one._desk.coins.tolist(), strict=True))
    rest = data.iloc[::-1].iloc[100:]
    other = lc.Session(rest, cap=0.6, ledger=ledger, name="people", unit="person")
    kept = dict(zip(other._table.units.names.tolist(), other._desk.coins.tolist(), strict=True))
    assert all(coins[name] == coin for name, coin in kept.items())
    assert other.spent.share == one.spent.share
    again = other.count(where="age > 40", share=0.7)
    assert not again.again and abs(again.value) < 8 * again.noise[0]  # all of them have spent too much


def test_one_data_set_has_one_secret(ledger: str) -> None:
    lc.Session(people(), cap=0.6, ledger=ledger, name="people")
    with refused(InputError, "known to the ledger as 'people'"):
        lc.Session(people(), cap=0.6, ledger=ledger, name="others")
    with refused(InputError, "known to the ledger as 'people'"):
        lc.Session(people().iloc[::-1], cap=0.6, ledger=ledger, name="turned round")
    with refused(InputError, "other caps"):
        lc.Session(people(), cap=0.7, ledger=ledger, name="people")
    with refused(InputError, "and its membership cap"):
        lc.Session(people(), cap=lc.pool_membership(0.6), ledger=ledger, name="people")
    with refused(InputError, "unit="):
        lc.Session(people().iloc[1:], cap=0.6, ledger=ledger, name="people")


def test_sessions_without_a_ledger_warn_of_each_other() -> None:
    lc.Session(people(), cap=0.6)
    with pytest.warns(RepeatedReleaseWarning, match="session with a ledger"):
        lc.Session(people(), cap=0.6)


def test_a_session_with_a_ledger_warns_of_what_was_released_without(ledger: str) -> None:
    lc.release(lc.stats.mean, people()[["age"]], cap=0.6, design="bits")
    with pytest.warns(RepeatedReleaseWarning, match="released before"):
        lc.Session(people()[["age"]], cap=0.6, ledger=ledger)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no noise": (lambda s: s.count(noise=0), InputError, "above 0"),
    "negative noise": (lambda s: s.count(noise=-1), InputError, "above 0"),
    "infinite noise": (lambda s: s.count(noise=float("inf")), InputError, "finite"),
    "noise that is none": (lambda s: s.count(noise=float("nan")), InputError, "finite"),
    "text for noise": (lambda s: s.count(noise="much"), InputError, "finite"),
    "negative share": (lambda s: s.count(share=-0.1), InputError, "above 0"),
    "infinite share": (lambda s: s.count(share=float("inf")), InputError, "finite"),
    "too large a share": (lambda s: s.count(share=1.5), BudgetError, "whole clock"),
    "tiny noise": (lambda s: s.count(noise=1e-9), BudgetError, "whole clock"),
    "both": (lambda s: s.count(noise=1, share=0.1), InputError, "not both"),
    "no such column": (lambda s: s.mean("height", bounds=(0, 1)), InputError, "there are 'age'"),
    "text": (lambda s: s.mean("ward", bounds=(0, 1)), InputError, "does not hold numbers"),
    "no columns": (lambda s: s.mean([], bounds=(0, 1)), InputError, "name the columns"),
    "a condition that cannot be read": (lambda s: s.count(where="age >"), InputError, "condition"),
    "a condition that is none": (lambda s: s.count(where=3), InputError, "where must be"),
    "groups that are not declared": (lambda s: s.count(by="ward"), InputError, "declare the groups"),
    "means by group without bounds": (lambda s: s.mean("age", by={"ward": ["A"]}), InputError, "bounds"),
    "quantiles without a grid": (lambda s: s.quantile("age"), InputError, "cut points"),
    "a histogram without edges": (lambda s: s.histogram("age"), InputError, "edges"),
    "noise for a covariance": (lambda s: s.covariance("age", bounds=(0, 1), noise=1), InputError, "share="),
    "wrong number of noises": (lambda s: s.mean(["age", "cost"], noise=[1, 2, 3]), InputError, "one for each"),
    "linear without a limit": (lambda s: s.linear(len), InputError, "bounds="),
    "linear that fails": (lambda s: s.linear(lambda r: 1 / 0, bounds=(0, 1)), InputError, "no finite numbers"),
    "a query that is no sum": (lambda s: s.query(lambda r: r.age.max()), InputError, "blocks"),
    "bounds upside down": (lambda s: s.mean("age", bounds=(1, 0)), InputError, "low below high"),
    "a preview of something else": (lambda s: s.preview("median", "age"), InputError, "kind"),
    "a preview of a fit": (lambda s: s.preview("fit", lc.estimators.Mean()), InputError, "nothing to preview"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_costs_nothing_and_says_what_to_do(what: str) -> None:
    ask, kind, words = REFUSED[what]
    one = lc.Session(people().iloc[:50], cap=0.6, seed=1)  # a function of one person's rows is called for everybody
    with refused(kind, words):
        ask(one)
    assert one.spent.share == 0 and one.certificate.answered == 0


def test_caps_that_are_not_about_one_person_are_refused_with_the_reason() -> None:
    for cap in (lc.identification(0.5), lc.name_a_member(0.9), lc.mutual_information(1), lc.any_inference(0.1, 0.5)):
        with refused(CapError, "one person named in advance"):
            session(cap=cap)
    with refused(CapError, "stands alone"):
        session(cap=[lc.pool_membership(0.6), 0.6])
    with refused(CapError, "limits nothing"):
        session(cap=1.0)


def test_other_ways_that_do_not_go_together_are_refused(ledger: str) -> None:
    with refused(InputError, "simulation"):
        session(ledger=ledger)
    with refused(InputError, "rows_per_unit"):
        session(cap=lc.pool_membership(0.6), unit=np.arange(N) // 2)
    with refused(InputError, "no rows"):
        lc.Session(people().iloc[:0], cap=0.6, seed=1)
    with refused(InputError, "missing labels"):
        lc.Session(people(), cap=0.6, seed=1, unit=[None, *range(1, N)])
    with refused(InputError, "ledger must be"):
        lc.Session(people(), cap=0.6, ledger="mysql://here")


def test_missing_numbers_are_left_out_of_the_question() -> None:
    data = people()
    data.loc[::2, "cost"] = np.nan
    one = lc.Session(data, cap=0.6, seed=1)
    mean = one.mean("cost", bounds=(0, 1000), share=0.4)
    assert abs(mean.value - data.cost.mean()) < 25
    assert abs(one.count(where="cost is not null", share=0.4).value - N / 2) < 400


def test_tables_of_polars_and_arrays_are_asked_alike() -> None:
    frame = people()
    plain = lc.Session(frame, cap=0.6, seed=1).mean("age", bounds=(0, 120))
    assert lc.Session(polars.from_pandas(frame), cap=0.6, seed=1).mean("age", bounds=(0, 120)).value == plain.value
    array = lc.Session(frame[["age"]].to_numpy(), cap=0.6, seed=1).mean(0, bounds=(0, 120))
    assert array.value == plain.value
    both = lc.Session((frame[["cost"]].to_numpy(), frame.age.to_numpy()), cap=0.6, seed=1)
    assert both.mean("1", bounds=(0, 120)).value == plain.value


def test_several_rows_of_one_person_count_together() -> None:
    data = people()
    one = lc.Session(data, cap=0.6, seed=1, unit=np.arange(N) // 4, rows_per_unit=4)
    single = lc.Session(data, cap=0.6, seed=1)
    assert one.preview("count", share=0.1).noise[0] == pytest.approx(4 * single.preview("count", share=0.1).noise[0])
    undeclared = lc.Session(data, cap=0.6, seed=1, unit=np.arange(N) // 4)
    undeclared.count(share=0.1)
    assert undeclared.certificate.pool_membership_success is None


def test_a_condition_may_be_a_function_of_one_persons_rows() -> None:
    one = session()
    found = one.count(where=lambda rows: rows.cost.sum() > 100, share=0.3)
    assert abs(found.value - (people().cost > 100).sum()) < 400
    assert "function" in found.question


def test_a_session_is_not_pickled() -> None:
    with refused(InputError, "not pickled"):
        pickle.dumps(session())


def test_charges_in_the_ledger_are_whole_ticks() -> None:
    one = session()
    one.count(share=0.125)
    with one._desk.account.reading() as now:
        charges = [entry.charge for entry in now.entries() if entry.kind == "answer"]
    assert charges == [pytest.approx(0.125 * TICKS, rel=1e-9)] and isinstance(charges[0], int)


def test_analysts_ask_within_declared_bounds() -> None:
    """Without bounds the answer is built around the pool's own: of one person that is the person's value."""
    one = session(analyst="ann")
    for ask in (
        lambda: one.mean("cost", where="age = 44"),
        lambda: one.sum("cost", share=0.1),
        lambda: one.mean("cost", bounds=(0, 1000), noise=1.0),
        lambda: one.preview("mean", "cost"),
    ):
        with refused(InputError, "declared bounds"):
            ask()
    assert one.mean("cost", bounds=(0, 1000)).value > 0


def test_keys_for_different_purposes_are_different() -> None:
    secret = Secret(bytes(32))
    keys = {secret.key(purpose) for purpose in ("coins", "blocks", "people", "worlds")}
    assert len(keys) == 4
    names = np.arange(4000)
    blocks = keyed_bits(names, secret.key("blocks"))
    assert abs((secret.coins(names) == blocks).mean() - 0.5) < 0.04


def test_an_answer_of_which_nothing_can_be_made_is_charged_all_the_same() -> None:
    """Taking it back because of what was drawn would be an answer for nothing."""
    one = session()
    question = one._questions.count()
    sums = question.sums(False)

    def fails(total: Any) -> Any:
        raise ValueError("negative")

    broken = replace(question, sums=lambda _: replace(sums, finish=fails))
    with pytest.raises(ValueError, match="negative"):
        one._desk.answer(broken, share=0.3)
    assert one.spent.share == pytest.approx(0.3)


def test_a_cap_is_raised_in_the_session_as_on_the_command_line() -> None:
    session = lc.Session(np.arange(50.0)[:, None], cap=0.55, seed=1)
    session.raise_cap(0.6, who="owner", why="a larger study")
    assert 0.5999 < session.certificate.membership_success <= 0.6
    for wrong in (0.58, lc.pool_membership(0.7)):
        with pytest.raises(InputError, match=r"raise"):
            session.raise_cap(wrong, who="owner", why="again")


def test_a_fit_is_one_line_of_the_certificate() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=300), "size": rng.normal(size=300), "y": rng.integers(0, 2, 300)})
    session = lc.Session(table, cap=0.6, seed=1)
    session.count(share=0.01)
    session.fit(lc.estimators.LogisticRegression(classes=[0, 1]), ["age", "size"], "y", bounds=(-3, 3), share=0.1)
    lines = str(session.certificate).splitlines()
    about = [line for line in lines if "LogisticRegression" in line]
    assert about == [
        f"  - LogisticRegression of age, size for y, {session.certificate.answered - 1} answers: 10 % of the clock"
    ]
    assert "  - count: 1 % of the clock" in lines
