"""Many questions, one cap."""

from __future__ import annotations

import numpy as np
from sklearn import linear_model

import leakcap as lc
from leakcap.estimators import Ridge
from tests.everyday.desk import Desk, error
from tests.everyday.lists import task


@task("Count with conditions, in a session", within=0.15)
def conditions(desk: Desk) -> float:
    adult = desk.adult()
    session = lc.Session(adult, cap=0.6)
    older = session.count(where="age > 50", share=0.1)
    women = session.count(where="sex = 'Female' and hours_per_week >= 40", share=0.1)
    plain = [(adult["age"] > 50).sum(), ((adult["sex"] == "Female") & (adult["hours_per_week"] >= 40)).sum()]
    return error([older.value, women.value], plain)


@task("Means by group, bounds given, in a session", within=0.1)
def by_group(desk: Desk) -> float:
    adult = desk.adult()
    session = lc.Session(adult, cap=0.6)
    answer = session.mean("age", by={"sex": ["Female", "Male"]}, bounds=(16, 100), share=0.2)
    return error(np.ravel(answer.value), adult.groupby("sex")["age"].mean())


@task("Go on tomorrow: the ledger remembers", within=0.1)
def tomorrow(desk: Desk) -> float:
    adult, ledger = desk.adult(), f"sqlite:///{desk.folder / 'ledger.db'}"
    today = lc.Session(adult, cap=0.6, ledger=ledger, name="census").count(where="age > 40", share=0.2)
    session = lc.Session(adult, cap=0.6, ledger=ledger, name="census")
    again = session.count(where="age > 40", share=0.2)
    assert again.value == today.value and abs(session.spent.share - 0.2) < 0.01
    return error(again.value, (adult["age"] > 40).sum())


@task("A regression trained in a session", within=0.3)
def trained(desk: Desk) -> float:
    adult = desk.adult()[["age", "education_num", "hours_per_week"]]
    session = lc.Session(adult, cap=0.6)
    model = session.fit(Ridge(alpha=100.0), ["age", "education_num"], "hours_per_week", share=0.5)
    X = adult[["age", "education_num"]]
    return error(model.predict(X), linear_model.Ridge(alpha=100.0).fit(X, adult["hours_per_week"]).predict(X))
