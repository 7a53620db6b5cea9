"""Analysts, and anybody under a pool cap: nothing but noised sums tells that somebody is in the pool.

One more person, as odd as can be, is added to a pool, and does not take part: every word, warning, refusal, price and
noise must stay the same, and so must the sums, because what the others bring hangs on their own rows alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap import estimators
from leakcap.sessions import desk

PEOPLE = 40
Ask = Callable[[lc.Session], Any]


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
        }
    )


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
        }
    ),
    "of no kind": SOMEBODY.assign(age=[10**400], ward=[[1]], day=[None], size=[1j], y=[0.5]),
    "far away": SOMEBODY.assign(age=1e308, size=np.inf, rare=2.0, y=-1e308),
}
ASKED: dict[str, Ask] = {
    "a function of them alone": lambda s: s.linear(lambda r: 1.0 if "old" in list(r["age"]) else np.nan, bounds=(0, 1)),
    "a shape of theirs": lambda s: s.linear(lambda r: np.ones(3 if "old" in list(r["age"]) else 2), bounds=(0, 1)),
    "a length": lambda s: s.linear(lambda r: r[["age", "rare"]].to_numpy(float).ravel() * 1e3, norm=1.0, shape=2),
    "a condition": lambda s: s.count(where=lambda r: r["age"].iloc[0] == "old"),
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


def told(monkeypatch: pytest.MonkeyPatch, data: pd.DataFrame, who: str, ask: Ask, *, quiet: bool = True) -> list[Any]:
    """Everything that is heard, and the sums before noise."""
    found: list[Any] = []

    def instead_of_noise(total: Any, grains: Any, deviations: Any, _: Any) -> Any:
        found.append((np.asarray(total).tolist(), np.asarray(deviations).tolist()))
        return np.linspace(1, 2, len(total)) * deviations

    monkeypatch.setattr(desk, "with_noise", instead_of_noise)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        session = lc.Session(data, unit="id", rows_per_unit=2, seed=1, **WHO[who])
        coins = np.arange(len(data)) % 2 == 0
        coins[PEOPLE:] = False
        session._desk = replace(session._desk, coins=coins)
        asked = session._questions
        session._questions = replace(asked, quiet=quiet, table=replace(asked.table, quiet=quiet))
        try:
            answer = ask(session)
            found.append((type(answer).__name__, repr(answer)))
            if hasattr(answer, "value"):
                found.append((repr(answer.value), np.asarray(answer.noise).tolist(), answer.share))
        except lc.LeakcapError as error:
            found.append((type(error).__name__, str(error)))
    # A fit in 100 steps ends in the same sums, or it does not: the last ones show it.
    return [*found[:2], *found[-3:], len(found), sorted({str(one.message) for one in heard})]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("who", WHO)
def test_nothing_but_their_own_part_of_the_sums_tells_that_somebody_is_there(
    monkeypatch: pytest.MonkeyPatch, who: str, asked: str
) -> None:
    ask, without = ASKED[asked], pool()
    expected = told(monkeypatch, without, who, ask)
    for odd, person in ODD.items():
        found = told(monkeypatch, pd.concat([without, person], ignore_index=True), who, ask)
        assert found == expected, f"with somebody {odd} in the pool"


@pytest.mark.parametrize("asked", ["yes", "a function of them alone", "groups of another kind", "means of text"])
def test_where_nothing_is_kept_quiet_they_are_heard_of(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    ask, without = ASKED[asked], pool()
    expected = told(monkeypatch, without, "an analyst", ask, quiet=False)
    pools = (pd.concat([without, person], ignore_index=True) for person in ODD.values())
    assert any(told(monkeypatch, one, "an analyst", ask, quiet=False) != expected for one in pools)


def test_the_custodians_answers_about_the_pool_are_not_in_an_analysts_history() -> None:
    session = lc.Session(pool(), cap=0.6, unit="id", rows_per_unit=2, seed=1)
    about_the_pool = session.mean("age", share=0.1)
    within_bounds = session.mean("age", bounds=(0, 100), share=0.1)
    assert [past.number for past in session.history] == [about_the_pool.number, within_bounds.number]
    session._desk = replace(session._desk, analyst="ann")
    assert [past.number for past in session.history] == [within_bounds.number]
