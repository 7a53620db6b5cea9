"""Words that mean something elsewhere, and habits from elsewhere: what is said, and that it helps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import ensemble, linear_model
from sklearn.model_selection import GridSearchCV, cross_val_score

import leakcap as lc
from leakcap import errors
from leakcap.estimators import LogisticRegression, Private, RandomForestClassifier, Ridge
from tests.everyday.desk import Desk, told
from tests.everyday.lists import mistake
from tests.refusals import refusal


def ages(desk: Desk) -> np.ndarray:
    return desk.heart()[["age", "trestbps", "thalach"]].to_numpy()


def ill(desk: Desk) -> np.ndarray:
    return (desk.heart()["num"] > 0).to_numpy()


def standardised(desk: Desk) -> np.ndarray:
    X = ages(desk)
    return (X - X.mean(axis=0)) / X.std(axis=0)


@mistake("Private(Ridge), without brackets")
def brackets(desk: Desk) -> None:
    refusal(lambda: Private(linear_model.Ridge, cap=0.55), r"write Private\(Ridge\(\), cap=\.\.\.\)")
    model = Private(linear_model.Ridge(), cap=0.55).fit(standardised(desk), ill(desk).astype(float))
    assert model.coef_.shape == (3,)


@mistake("penalty=, which scikit-learn's own has")
def penalty(desk: Desk) -> None:
    words = (
        r"Leave it out, or wrap that one: Private\(sklearn.linear_model.LogisticRegression\(penalty=...\), cap=...\)"
    )
    refusal(lambda: LogisticRegression(penalty="l1", cap=0.55), words)
    assert LogisticRegression(cap=0.6).fit(standardised(desk), ill(desk)).coef_.shape == (1, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of scikit-learn would rather have l1_ratio
        plain = linear_model.LogisticRegression(penalty="l1", solver="liblinear")
        sparse = Private(plain, cap=0.6, worlds=32).fit(standardised(desk)[:200], ill(desk)[:200])
    assert sparse.coef_.shape == (1, 3)


@mistake("epsilon=, from differential privacy")
def epsilon(desk: Desk) -> None:
    words = r"cap=0\.731 in its place, or cap=lc\.pool_membership\(0\.731\)"
    for call in (lc.plan, lc.release):
        refusal(lambda call=call: call(lc.stats.mean, ages(desk), epsilon=1), words)
    refusal(lambda: Ridge(epsilon=1.0), words)
    refusal(lambda: lc.Session(ages(desk), epsilon=1), words)
    assert lc.release(lc.stats.mean, ages(desk), cap=0.731).certificate.membership_success <= 0.731
    pool = lc.release(lc.stats.mean, desk.heart()[["age"]], cap=lc.pool_membership(0.731), bounds=(0, 120))
    assert pool.certificate.kind == "pool"


@mistake("cap=55, or '55%'")
def percent(desk: Desk) -> None:
    for cap in (55, "55%"):
        refusal(lambda cap=cap: lc.plan(lc.stats.mean, ages(desk), cap=cap), r"did you mean 0\.55\?")
    assert lc.release(lc.stats.mean, ages(desk), cap=0.55).value.shape == (3,)


@mistake("cap=0.5: nobody may learn anything")
def coin(desk: Desk) -> None:
    for cap in (0.5, 0.4):
        refusal(lambda cap=cap: lc.plan(lc.stats.mean, ages(desk), cap=cap), "above 0.5, for example 0.55")
    assert lc.release(lc.stats.mean, ages(desk), cap=0.55).value.shape == (3,)


@mistake("No cap, or a cap without its name")
def no_cap(desk: Desk) -> None:
    refusal(lambda: lc.plan(lc.stats.mean, ages(desk)), r"say what may leak: plan\(\.\.\., cap=0\.55\), by its name")
    refusal(lambda: lc.plan(lc.stats.mean, ages(desk), 0.55), "by its name")
    refusal(lambda: Ridge().fit(ages(desk), ill(desk)), r"say what may leak: Ridge\(\.\.\., cap=")
    assert lc.release(lc.stats.mean, ages(desk), cap=0.55).value.shape == (3,)


@mistake("worlds=10, which ends at three known people")
def few_worlds(desk: Desk) -> None:
    def median(rows: np.ndarray) -> np.ndarray:
        return np.median(rows, axis=0)

    with told(errors.FewWorldsWarning, "10 worlds are few", "about 3 participants", "Leave worlds out"):
        plan = lc.plan(median, ages(desk), cap=0.55, worlds=10)
    assert plan.certificate.given(3) > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cured = lc.plan(median, ages(desk), cap=0.55)
        assert lc.plan(lc.stats.mean, ages(desk), cap=0.55).certificate.given(4) <= 0.55
    assert cured.certificate.given(3) < 0.8


@mistake("A function with noise of its own")
def own_noise(desk: Desk) -> None:
    def noisy(rows: np.ndarray) -> float:
        return float(rows[:, 0].mean() + np.random.default_rng().laplace(scale=5))

    with told(errors.OwnNoiseWarning, "another answer each time", "leave noise of your own out"):
        wasted = lc.plan(noisy, ages(desk), cap=0.55)
    assert wasted.certificate.membership_success <= 0.55  # the promise holds: answers are kept, not asked for again
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = lc.plan(lambda rows: rows[:, 0].mean(), ages(desk), cap=0.55)
    assert plan.summary().error[0] < wasted.summary().error[0] / 3


@mistake("A forest of scikit-learn inside Private")
def forest(desk: Desk) -> None:
    refusal(
        lambda: Private(ensemble.RandomForestClassifier(), cap=0.6), "Use leakcap.estimators.RandomForestClassifier"
    )
    model = RandomForestClassifier(n_estimators=5, max_depth=3, cap=0.6).fit(ages(desk), ill(desk))
    assert model.predict(ages(desk)).shape == ill(desk).shape


@mistake("cross_val_score around a private model")
def cross_validation(desk: Desk) -> None:
    X, y = standardised(desk), ill(desk)
    words = r"Put the search inside, Private\(GridSearchCV\(\.\.\.\), cap=\.\.\.\)"
    refusal(lambda: cross_val_score(LogisticRegression(cap=0.6), X, y), words)
    inside = Private(GridSearchCV(linear_model.LogisticRegression(), {"C": [0.01, 1]}, cv=2), cap=0.6).fit(X, y)
    assert inside.score(X, y) > 0.4


@mistake("Releasing twice")
def twice(desk: Desk) -> None:
    heart = desk.heart()[["age", "chol"]]
    plan = lc.plan(lc.stats.mean, heart, cap=0.55)
    plan.release()
    refusal(plan.release, "for more answers about the same data use a session", lc.AlreadyReleased)
    with told(lc.RepeatedReleaseWarning, "Use a session"):
        lc.release(lc.stats.mean, heart, cap=0.55)
    session = lc.Session(desk.heart()[["age", "trestbps"]], cap=0.55)
    assert session.mean("age", bounds=(0, 120), share=0.2).value != session.count(share=0.2).value


@mistake("Publishing a rehearsal: random_state was left in")
def rehearsal(desk: Desk) -> None:
    with told(errors.SimulationWarning, "Leave it out"):
        model = Ridge(cap=0.6, random_state=0).fit(standardised(desk), ill(desk).astype(float))
    with pytest.raises(lc.InputError, match="simulation"):
        model.certificate_.save(desk.folder / "certificate.html")
    Ridge(cap=0.6).fit(standardised(desk), ill(desk).astype(float)).certificate_.save(desk.folder / "certificate.html")
    assert (desk.folder / "certificate.html").stat().st_size > 1000
