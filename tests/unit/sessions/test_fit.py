"""Estimators fitted in a session: near the plain fit, made of answers alone, the same again for nothing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs

import leakcap as lc
from leakcap import estimators as private
from leakcap.errors import InputError
from leakcap.sessions.clock import Clock
from leakcap.sessions.products import Factor, PairProducts
from leakcap.worlds import Units

COLUMNS = ["mean radius", "mean texture", "mean smoothness"]
BOUNDS = {"mean radius": (0, 40), "mean texture": (0, 50), "mean smoothness": (0, 0.3)}


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """The rows of breast cancer eight times, each moved a little: enough of them for a session."""
    table = load_breast_cancer(as_frame=True).frame
    rng = np.random.default_rng(0)
    many = pd.concat([table] * 8, ignore_index=True)
    many[COLUMNS] *= 1 + 0.01 * rng.standard_normal((len(many), len(COLUMNS)))
    return many.assign(target=np.where(many["target"], "benign", "malignant"))


def session(data: Any, **how: Any) -> lc.Session:
    return lc.Session(data, **{"cap": 0.7, "seed": 2, **how})


@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_moments_are_near_those_of_the_pool(cells: pd.DataFrame, bounds: Any) -> None:
    one = session(cells)
    mean = one.fit(private.Mean(), COLUMNS, bounds=bounds, share=0.3)
    assert np.allclose(mean.mean_, cells[COLUMNS].mean(), rtol=0.1)
    scaler = one.fit(private.StandardScaler(), COLUMNS, bounds=bounds, share=0.3)
    assert np.allclose(scaler.scale_, cells[COLUMNS].std(), rtol=0.5)
    covariance = one.fit(private.Covariance(), COLUMNS, bounds=bounds, share=0.3)
    wanted = np.cov(cells[COLUMNS].T)
    assert abs(covariance.covariance_[0, 0] - wanted[0, 0]) < 0.4 * wanted[0, 0]
    assert one.spent.share <= 0.9 * (1 + 1e-9)


@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_regressions_and_components_follow_the_pool(cells: pd.DataFrame, bounds: Any) -> None:
    one = session(cells)
    goal = (0, 5000) if bounds else None
    ridge = one.fit(private.Ridge(1.0, target_bounds=goal), COLUMNS, "mean area", bounds=bounds, share=0.5)
    assert ridge.score(cells[COLUMNS], cells["mean area"]) > 0.8
    parts = one.fit(private.PCA(1), COLUMNS, bounds=bounds, share=0.5)
    assert abs(parts.components_[0] @ np.linalg.svd(cells[COLUMNS] - cells[COLUMNS].mean())[2][0]) > 0.8


@pytest.mark.parametrize("kind", [private.GaussianNB, private.NearestClassMean, private.LogisticRegression])
@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_classifiers_are_worth_their_share(cells: pd.DataFrame, kind: Any, bounds: Any) -> None:
    classes = {"classes": ["benign", "malignant"]} if bounds else {}
    made = session(cells).fit(kind(**classes), COLUMNS, "target", bounds=bounds, share=1.0)
    assert made.score(cells[COLUMNS], cells["target"]) > 0.8
    assert set(made.predict(cells[COLUMNS][:50])) <= {"benign", "malignant"}
    assert made.certificate_.kind == "simulation"


@pytest.mark.parametrize("bounds", [(-12, 12), None])
def test_centres_find_the_blobs(bounds: Any) -> None:
    rows, of = make_blobs(4000, centers=3, cluster_std=1.0, center_box=(-8, 8), random_state=3)
    made = session(rows).fit(private.KMeans(3), bounds=bounds, share=1.0)
    found = made.predict(rows)
    purity = sum(np.bincount(of[found == one]).max() for one in set(found)) / len(rows)
    assert purity > 0.9


def test_the_same_fit_again_is_the_same_for_nothing(cells: pd.DataFrame) -> None:
    one = session(cells)
    first = one.fit(private.LogisticRegression(), COLUMNS, "target", bounds=BOUNDS, share=0.5)
    spent = one.spent
    again = one.fit(private.LogisticRegression(), COLUMNS, "target", bounds=BOUNDS, share=0.5)
    assert np.array_equal(first.coef_, again.coef_) and one.spent == spent
    other = one.fit(private.LogisticRegression(), COLUMNS, "target", bounds=BOUNDS, share=0.4)
    assert not np.array_equal(first.coef_, other.coef_)


def test_a_fit_spends_its_share_and_no_more(cells: pd.DataFrame) -> None:
    one = session(cells)
    one.fit(private.LogisticRegression(), COLUMNS, "target", bounds=BOUNDS, share=0.5)
    with one._desk.account.reading() as now:
        declared = sum(entry.charge for entry in now.entries())
    assert one.spent.share <= declared / 1e12 <= 0.5 * (1 + 1e-9)


def test_what_is_fitted_can_be_pickled_and_holds_nothing_of_the_session(cells: pd.DataFrame) -> None:
    made = session(cells).fit(private.LogisticRegression(), COLUMNS, "target", bounds=BOUNDS, share=0.5)
    content = pickle.dumps(made)
    assert not any(word in content for word in (b"sessions.session", b"Brought", b"Fitting", b"Table", b"Secret"))
    assert cells[COLUMNS].to_numpy()[:4].tobytes() not in content
    loaded = pickle.loads(content)
    assert np.array_equal(loaded.predict(cells[COLUMNS]), made.predict(cells[COLUMNS]))


def test_a_pool_cap_takes_declared_bounds_and_classes(cells: pd.DataFrame) -> None:
    one = session(cells, cap=lc.pool_membership(0.7))
    made = one.fit(
        private.LogisticRegression(classes=["benign", "malignant"]), COLUMNS, "target", bounds=BOUNDS, share=1.0
    )
    assert made.score(cells[COLUMNS], cells["target"]) > 0.8
    for ask, words in (
        (lambda: one.fit(private.LogisticRegression(), COLUMNS, "target", bounds=BOUNDS), "classes"),
        (lambda: one.fit(private.KMeans(3), COLUMNS), "bounds"),
        (lambda: one.fit(private.Mean(), COLUMNS), "bounds"),
    ):
        with pytest.raises(InputError, match=words):
            ask()


def test_estimators_that_are_no_sums_are_refused_with_the_way_on(cells: pd.DataFrame) -> None:
    one = session(cells)
    for ask, words in (
        (lambda: one.fit(object(), COLUMNS), "not made of sums"),
        (lambda: one.fit(private.Mean(cap=0.6), COLUMNS), "session's own cap"),
        (lambda: one.fit(private.LogisticRegression(C=2.0), COLUMNS, "target"), "leave out C"),
        (lambda: one.fit(private.LogisticRegression(), COLUMNS), "what is to be predicted"),
        (lambda: one.fit(private.LinearSVC(), COLUMNS, "target", bounds=BOUNDS), "sums over people"),
    ):
        with pytest.raises(InputError, match=words):
            ask()
    assert one.spent.share == 0


def test_pairs_are_charged_by_the_least_of_their_noises() -> None:
    rows = Factor.of(np.eye(3) / 2, 1.0)
    pairs = PairProducts(rows, rows, Units.of(3, None), most=1.0, finish=np.asarray)
    clock, even = Clock(0.25, 0.0), pairs.limits.least(0.1)
    charged = pairs.charges(even, clock, everybody=True)
    assert (pairs.charges(np.where(np.arange(6) == 1, 0.9, 1.0) * even, clock, everybody=True) > 1.2 * charged).all()
    assert pairs.limits.worst(np.where(np.arange(6) == 1, 0.9, 1.0) * even) > 1.2 * pairs.limits.worst(even)
