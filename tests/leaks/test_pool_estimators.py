"""Estimators under a pool cap: all of a fitted one is the same with and without a person, noisy sums held fixed."""

from __future__ import annotations

import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import UselessReleaseWarning
from leakcap.estimators.base import planned, publish
from leakcap.synthetic import Gaussian, Tables
from tests.leaks.rigged import JITTERS, new_token, public_artefacts
from tests.leaks.test_pool import Rigged

ROWS = np.random.default_rng(4).normal(50, 20, size=(30, 3))
ROWS[0] = 1e7, -3.0, 0.5  # the person: an outlier, of a class that nobody else has
TARGET = np.append([1e6], ROWS[1:, 0] / 50)
CLASS = np.array(["alone"] + list("ab") * 14 + ["a"])
TABLE = pd.DataFrame(ROWS, columns=["cost", "stay", "size"]).assign(kind=CLASS)
BOUNDED: dict[str, Any] = {"cap": lc.pool_membership(0.55), "options": {"bounds": (0, 100)}}
CELLS = {"bins": {"cost": [0, 50, 100]}, "levels": {"kind": ["a", "b", "alone", "nobody"]}}
CASES: dict[str, tuple[Any, Any]] = {
    "Mean": (le.Mean(**BOUNDED), None),
    "Covariance": (le.Covariance(**BOUNDED), None),
    "Gaussian": (Gaussian(**BOUNDED), None),
    "StandardScaler": (le.StandardScaler(**BOUNDED), None),
    "PCA": (le.PCA(2, **BOUNDED), None),
    "Ridge": (le.Ridge(target_bounds=(0, 2), **BOUNDED), TARGET),
    "LinearRegression": (le.LinearRegression(target_bounds=(0, 2), fit_intercept=False, **BOUNDED), TARGET),
    "GaussianNB": (le.GaussianNB(classes=["a", "b", "alone"], **BOUNDED), CLASS),
    "a class that is not declared": (le.GaussianNB(classes=["a", "b"], **BOUNDED), CLASS),
    "NearestClassMean": (le.NearestClassMean(classes=["a", "b", "alone"], **BOUNDED), CLASS),
    "RandomForestClassifier": (
        le.RandomForestClassifier(4, max_depth=2, classes=["a", "b", "alone"], **BOUNDED),
        CLASS,
    ),
    "Tables": (Tables(**CELLS, cap=lc.pool_membership(0.55)), None),
}


def seen(name: str, point: float, first: int) -> dict[str, bytes]:
    estimator, target = clone(CASES[name][0]), CASES[name][1]
    rows = TABLE[first:] if name == "Tables" else ROWS[first:]
    plan, computation = planned(estimator, rows, None if target is None else target[first:], cap=estimator.cap)
    plan._token = new_token()
    rank = plan.noise.space.rank
    plan.randomness = Rigged(plan, np.arange(rank) * 3.0 + point, JITTERS[first])
    release = plan.release()
    estimator.certificate_ = release.certificate
    publish(estimator, computation.build(release.value))
    return public_artefacts(release) | {"estimator": pickle.dumps(estimator), "shown": repr(estimator).encode()}


@pytest.mark.parametrize(
    ("name", "point"), [*((name, 40_000.0) for name in CASES), ("Ridge", 0.0), ("GaussianNB", 0.0)]
)
def test_a_fitted_estimator_is_the_same_without_the_person(name: str, point: float) -> None:
    with_person, without = seen(name, point, 0), seen(name, point, 1)
    assert with_person == without
    assert {"estimator", "intervals"} <= set(with_person)


def test_what_fit_leaves_is_what_was_published_here() -> None:
    """`fit` sets nothing else that could tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessReleaseWarning)
        whole, rest = (
            clone(CASES["GaussianNB"][0]).set_params(random_state=0).fit(ROWS[k:], CLASS[k:]) for k in (0, 1)
        )
    assert vars(whole).keys() == vars(rest).keys()
    assert whole.certificate_ == rest.certificate_
    assert whole.classes_.tolist() == ["a", "alone", "b"]


@pytest.mark.parametrize("leak", ["the number of rows", "the classes that occur"])
def test_planted_leaks_are_caught(leak: str, monkeypatch: Any) -> None:
    if leak == "the number of rows":
        module = importlib.import_module("leakcap.estimators.pca")
        plain = module.fitted
        people = [0]

        def telling(*given: Any, rows: int, whiten: bool) -> Any:
            return plain(*given, rows=rows + people[0], whiten=whiten)

        monkeypatch.setattr(module, "fitted", telling)
        first = seen("PCA", 0.0, 0)
        people[0] = 1
        assert first != seen("PCA", 0.0, 1)
        return
    plain_rows = le.GaussianNB._rows
    monkeypatch.setattr(le.GaussianNB, "_declared", lambda self: None)
    monkeypatch.setattr(le.GaussianNB, "_rows_of_all", plain_rows)
    assert seen("GaussianNB", 0.0, 0) != seen("GaussianNB", 0.0, 1)
