"""Analysts, and anybody under a pool cap: nothing but noised sums tells that somebody is in the pool.

One more person, as odd as can be, is added to a pool, and does not take part: every word, warning, refusal, price and
noise must stay the same, and so must the sums, because what the others bring hangs on their own rows alone.
"""

from __future__ import annotations

import datetime
import decimal
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap import estimators
from leakcap.sessions import answers, desk
from tests.later import others_later
from tests.leaks.test_sessions import Stopped

PEOPLE = 14
BUFFER = np.zeros(())
Ask = Callable[[lc.Session], Any]


@cache
def pool() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(PEOPLE),
            "age": rng.integers(20, 80, PEOPLE).astype(float),
            "size": rng.normal(size=PEOPLE),
            "smokes": rng.random(PEOPLE) < 0.5,
            "ward": rng.choice(["A", "B"], PEOPLE),
            "day": pd.to_datetime("2026-01-01") + pd.to_timedelta(rng.integers(0, 90, PEOPLE), "D"),
            "rare": np.nan,
            "y": rng.normal(size=PEOPLE),
            "kind": pd.Categorical(rng.choice(["x", "y"], PEOPLE)),
            "visits": rng.integers(0, 5, PEOPLE),
            "seen": pd.to_datetime("2026-01-01", utc=True) + pd.to_timedelta(rng.integers(0, 9, PEOPLE), "D"),
        }
    ).astype({"day": "datetime64[ns]"})


SOMEBODY = pool().iloc[:1].assign(id=999)
ODD = {
    "of other kinds": pd.DataFrame(
        {
            "id": [999],
            "age": ["old"],
            "size": [None],
            "smokes": [None],
            "ward": [3],
            "day": ["spring"],
            "rare": [1.0],
            "y": ["high"],
            "kind": ["z"],
            "visits": [None],
            "seen": [None],
        }
    ),
    "of no kind": SOMEBODY.assign(age=[10**400], ward=[[1, 2]], day=[None], size=[1j], y=[0.5], rare=1.0),
    "at the end of time": SOMEBODY.assign(
        age=[decimal.Decimal("sNaN")],
        day=[datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-9)))],
        ward=["A\0"],
        rare=[10**400],
        kind=[None],
        visits=["many"],
        seen=["never"],
    ),
    "far away": SOMEBODY.assign(age=1e308, size=np.inf, rare=2.0, y=-1e308),
}
ASKED: dict[str, Ask] = {
    "a function of them alone": lambda s: s.linear(
        lambda r: 1.0 if "old" in list(r["age"]) else np.nan, bounds=(0, 1), shape=()
    ),
    "a shape of theirs": lambda s: s.linear(lambda r: np.ones(3 if "old" in list(r["age"]) else 2), bounds=(0, 1)),
    "a length": lambda s: s.linear(lambda r: r[["age", "rare"]].to_numpy(float).ravel() * 1e3, norm=1.0, shape=2),
    "a condition": lambda s: s.count(where=lambda r: r["age"].iloc[0] == "old"),
    "kinds of columns": lambda s: s.linear(lambda r: float(r["age"].dtype == object), bounds=(0, 1)),
    "whole numbers": lambda s: s.linear(lambda r: float(r["visits"].dtype.kind == "i"), bounds=(0, 1)),
    "text of numbers": lambda s: s.count(where=lambda r: r["visits"].astype(str).iloc[0] in ("1", "1.0")),
    "the same buffer": lambda s: s.linear(lambda r: np.copyto(BUFFER, r["visits"].iloc[0]) or BUFFER, bounds=(0, 9)),
    "dates with a zone": lambda s: s.count(by={"seen": [pd.Timestamp("2026-01-03", tz="UTC")]}),
    "kinds in a condition": lambda s: s.count(where=lambda r: r["day"].dtype.kind == "M"),
    "categories": lambda s: s.linear(lambda r: pd.get_dummies(r["kind"]).sum().to_numpy(), bounds=([0, 0], [1, 1])),
    "kinds in blocks": lambda s: s.blocks(lambda r: float(r["age"].dtype == object), blocks=4, bounds=(0, 1)),
    "words": lambda s: s.linear(lambda r: print(r["rare"].notna().any()) or np.nanmean(r["rare"]), bounds=(0, 1)),
    "an end": lambda s: s.linear(lambda r: sys.exit() if r["rare"].notna().any() else 1.0, bounds=(0, 1)),
    "an end in a condition": lambda s: s.count(where=lambda r: sys.exit() if r["rare"].notna().any() else True),
    "narrow bounds": lambda s: s.mean("age", bounds=(1.0, 1 + 2**-52), where="rare is not null"),
    "rather narrow bounds": lambda s: s.covariance("age", bounds=(1.0, 1 + 2**-28)),
    "tiny bounds": lambda s: s.sum("age", bounds=(0, 5e-324)),
    "a tiny length": lambda s: s.linear(lambda r: float(r["y"].iloc[0]), norm=5e-324),
    "dates as numbers": lambda s: s.sum("day", bounds=(0, 2e18)),
    "groups of dates": lambda s: s.count(by={"day": [pd.Timestamp("2026-01-05"), pd.Timestamp("2026-02-05")]}),
    "groups of text": lambda s: s.count(by={"ward": ["A", "A\0"]}),
    "yes": lambda s: s.count(where="smokes"),
    "no": lambda s: s.count(where="not smokes"),
    "true": lambda s: s.count(where="smokes = true"),
    "days": lambda s: s.count(where="day > '2026-02-01'"),
    "no day": lambda s: s.count(where="day > 'spring'"),
    "days beside days": lambda s: s.count(where="day >= day"),
    "a day beside a number": lambda s: s.count(where="day > 3"),
    "two columns": lambda s: s.count(where="age > size or age = ward"),
    "text beside numbers": lambda s: s.count(where="age = 'x' or ward > 3"),
    "missing": lambda s: s.count(where="age is null or rare is not null"),
    "lists": lambda s: s.count(where="ward in ('A', 3) and age between 30 and 60"),
    "groups": lambda s: s.count(by={"ward": ["A", "B"]}),
    "groups of another kind": lambda s: s.count(by={"ward": [1, 2], "age": ["x", "y"]}),
    "sums by group": lambda s: s.sum("age", by={"smokes": [True, False]}, bounds=(0, 100)),
    "means by group": lambda s: s.mean(["age", "size"], by={"ward": ["A", "B"]}, bounds=(0, 100)),
    "many groups": lambda s: s.count(by={"age": list(range(900)), "ward": ["A", "B"]}),
    "means": lambda s: s.mean(["age", "size"], bounds=(0, 100)),
    "means without bounds": lambda s: s.mean("age"),
    "means of text": lambda s: s.mean("ward", bounds=(0, 1)),
    "sums of nobody": lambda s: s.sum("rare", bounds=(0, 2)),
    "bins": lambda s: s.histogram(["age", "rare"], bounds=(0, 100)),
    "many bins": lambda s: s.histogram("age", bounds=(0, 100), bins=5000),
    "quantiles": lambda s: s.quantile("age", [0.2, 0.5], bounds=(0, 100)),
    "quantiles of nobody": lambda s: s.quantile(["rare", "size"], bounds=(0, 100)),
    "covariances": lambda s: s.covariance(["age", "size"], bounds=(0, 100)),
    "covariances of nobody": lambda s: s.covariance(["rare", "size"], bounds=(0, 100)),
    "no such column": lambda s: s.mean("height", bounds=(0, 1)),
    "a function of all": lambda s: s.query(len),
    "a function that looks at all": lambda s: s.query(lambda r: print(len(r)) or 1 / r["rare"].isna().all()),
    "a preview of it": lambda s: s.preview("query", lambda r: print(len(r)) or 1 / r["rare"].isna().all()),
    "covariances without bounds": lambda s: s.covariance(["age", "size"]),
    "covariances without bounds of nobody": lambda s: s.covariance("age", where="rare is not null"),
    "a preview of them": lambda s: s.preview("covariance", "age", where="rare is not null"),
    "means with noise": lambda s: s.mean("y", bounds=(0, 1), noise=1, where="rare is not null"),
    "sums without bounds": lambda s: s.sum("y"),
    "groups of nobody": lambda s: s.count(by={"ward": ["A", "B"]}, where="rare is not null"),
}
FITS: dict[str, tuple[Callable[[], Any], str | None]] = {
    "Mean": (estimators.Mean, None),
    "Covariance": (estimators.Covariance, None),
    "StandardScaler": (estimators.StandardScaler, None),
    "PCA": (lambda: estimators.PCA(1), None),
    "KMeans": (lambda: estimators.KMeans(2), None),
    "Ridge": (lambda: estimators.Ridge(target_bounds=(-5, 5)), "y"),
    "GaussianNB": (lambda: estimators.GaussianNB(classes=["A", "B"]), "ward"),
    "NearestClassMean": (lambda: estimators.NearestClassMean(classes=[0, 1]), "y"),
    "LogisticRegression": (lambda: estimators.LogisticRegression(classes=["A", "B"], max_iter=2), "ward"),
    "LogisticRegression without classes": (estimators.LogisticRegression, "smokes"),
}
for _name, (_made, _target) in FITS.items():
    for _columns in (["age", "size"], ["rare"], None):
        ASKED[f"{_name} of {_columns}"] = lambda s, made=_made, target=_target, columns=_columns: s.fit(
            made(), columns, target, bounds=(-100, 100)
        )
    ASKED[f"{_name} without bounds"] = lambda s, made=_made, target=_target: s.fit(made(), ["age", "size"], target)
WHO: dict[str, dict[str, Any]] = {
    "an analyst": {"cap": 0.6, "analyst": "ann"},
    "a pool cap": {"cap": lc.pool_membership(0.55)},
}


Hear = Callable[..., list[Any]]


@pytest.fixture
def hear(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Hear:
    """Everything that is heard of a question, and the sums before noise."""
    sums: list[Any] = []

    def instead_of_noise(total: Any, grains: Any, deviations: Any, _: Any) -> Any:
        sums.append((np.asarray(total).tolist(), np.asarray(deviations).tolist()))
        return np.linspace(1, 2, len(total)) * deviations

    monkeypatch.setattr(desk, "with_noise", instead_of_noise)
    monkeypatch.setattr(desk, "datetime", Stopped)
    monkeypatch.setattr(answers, "SIMULATED", 4)  # error bars follow from what was released

    def heard(data: pd.DataFrame, who: str, ask: Ask, quiet: bool = True) -> list[Any]:
        sums.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            session = lc.Session(data, unit="id", rows_per_unit=1, seed=1, **WHO[who])
            coins = np.arange(len(data)) % 2 == 0
            coins[PEOPLE:] = False
            session._desk = replace(session._desk, coins=coins)
            asked = session._questions
            session._questions = replace(asked, quiet=quiet, table=replace(asked.table, quiet=quiet))
            said: list[Any] = []
            try:
                answer = ask(session)
                said += [type(answer).__name__, repr(answer)]
                if hasattr(answer, "value"):
                    said += [repr(answer.value), np.asarray(answer.noise).tolist(), answer.share]
            except (lc.LeakcapError, SystemExit, KeyboardInterrupt) as error:
                said += [type(error).__name__, str(error)]
            said += [session.spent, session.remaining, session.certificate.to_json(), capsys.readouterr()]
        return [*sums, *said, sorted({str(one.message) for one in warned})]

    return heard


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("in_turn", others_later([True, False], True))
def test_nothing_but_their_own_part_of_the_sums_tells_that_somebody_is_there(
    hear: Hear, who: str, asked: str, in_turn: bool
) -> None:
    """All of them together, and one alone, another one for every question: in turn, under one cap and the other."""
    expected = hear(pool(), who, ASKED[asked])
    people = {one: row.assign(id=900 + place) for place, (one, row) in enumerate(ODD.items())}
    place = list(ASKED).index(asked)
    there: list[Any] = [ODD, [list(ODD)[place % len(ODD)]]]
    for odd in [there[(place + list(WHO).index(who)) % 2]] if in_turn else there:
        found = hear(pd.concat([pool(), *(people[one] for one in odd)], ignore_index=True), who, ASKED[asked])
        assert found == expected, f"with somebody {' and somebody '.join(odd)} in the pool"


LOUD = ["yes", "a function of them alone", "groups of another kind", "means of text"]


@pytest.mark.parametrize("asked", LOUD)
def test_where_nothing_is_kept_quiet_they_are_heard_of(hear: Hear, asked: str) -> None:
    expected = hear(pool(), "an analyst", ASKED[asked], False)
    pools = (pd.concat([pool(), person], ignore_index=True) for person in ODD.values())
    assert any(hear(one, "an analyst", ASKED[asked], False) != expected for one in pools)


def test_an_analyst_is_told_of_the_custodians_questions_that_there_are_some() -> None:
    session = lc.Session(pool(), cap=0.6, unit="id", rows_per_unit=1, seed=1)
    session.count(share=0.1)
    before = lc.Session.spent.fget(session).share
    session.mean("age", noise=9.0, where="ward != 'a name'")
    session._desk = replace(session._desk, analyst="ann")
    told = session.certificate.to_json() + str(session.certificate)
    assert "a name" not in told
    assert "questions of the custodian" in told
    assert session.certificate.answered == 2
    assert session.spent.share == pytest.approx(before)
    with pytest.raises(lc.InputError, match="rows_per_unit"):
        lc.Session(pool(), cap=0.6, unit="id", analyst="ann", seed=1)
    for nobody in ("", 0, 5):
        with pytest.raises(lc.InputError, match="analyst must be a name"):
            lc.Session(pool(), cap=0.6, analyst=nobody, seed=1)


def test_the_custodians_answers_about_the_pool_are_not_in_an_analysts_history() -> None:
    session = lc.Session(pool(), cap=0.6, unit="id", rows_per_unit=1, seed=1)
    about_the_pool = session.mean("age", share=0.1)
    within_bounds = session.mean("age", bounds=(0, 100), share=0.1)
    assert [past.number for past in session.history] == [about_the_pool.number, within_bounds.number]
    session._desk = replace(session._desk, analyst="ann")
    assert [past.number for past in session.history] == [within_bounds.number]


def test_answers_for_the_most_rows_that_somebody_has_are_not_in_an_analysts_history() -> None:
    session = lc.Session(pd.concat([pool(), pool().iloc[:1]]), cap=0.6, unit="id", seed=1)
    session.count(noise=50.0)
    assert len(session.history) == 1 and session.spent.share > 0
    session._desk = replace(session._desk, analyst="ann")
    assert not session.history and session.spent.share == 0
    assert "- count" not in str(session.certificate)
