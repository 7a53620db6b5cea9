"""scikit-learn's own checks of estimators."""

from __future__ import annotations

import warnings
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, preprocessing
from sklearn.utils import estimator_checks

import leakcap as lc
from leakcap import estimators as le
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.public_rows import AskedRows
from leakcap.noise.search import Search
from tests.later import others_later

PASS = import_module("leakcap.leakage.certify")  # the package has a function of this name
# Hardly any noise, and the cap whose noise is found fastest: the checks make fifty plans of each estimator.
COMMON: dict[str, Any] = {"cap": lc.mutual_information(2), "worlds": 8, "random_state": 0, "options": {"draws": 256}}
COINS: dict[str, Any] = {"cap": lc.membership(0.999999), "random_state": 0}
LOOPED = COMMON | {"cap": lc.mutual_information(1.38), "worlds": 4}  # whose worlds are fitted one by one
UNITS = "a row of weight 0 is somebody all the same, and takes part in worlds: leaving it out makes another pool"
ROWS = "an array with as many entries as a world has rows is refused: it may hold one for each"
STEPS = "how many steps a fit took tells about who took part, so it does not leave"
EQUAL = "in rounds every row counts alike: what a weight multiplies would be cut to the same length, so none is taken"
LABELS = "labels of the pool's rows are the pool's: they do not leave, predict() gives them"
WEIGHTED = {"check_sample_weight_equivalence_on_dense_data": UNITS}
SPARSE = {"check_sample_weight_equivalence_on_sparse_data": UNITS}
UNWEIGHTED = dict.fromkeys(
    (
        "check_all_zero_sample_weights_error",
        "check_classifiers_one_label_sample_weights",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ),
    EQUAL,
)
ITERATES = {"check_non_transformer_estimators_n_iter": STEPS}
# Estimators, and what of the checks they are excused from.
CASES: dict[str, tuple[Any, dict[str, str]]] = {
    "Mean": (le.Mean(**COMMON), {}),
    "Covariance": (le.Covariance(**COMMON), {}),
    "StandardScaler": (le.StandardScaler(**COMMON), WEIGHTED),
    "Ridge": (le.Ridge(**COMMON), WEIGHTED),
    "LinearRegression": (le.LinearRegression(**COMMON), WEIGHTED),
    "LogisticRegression": (le.LogisticRegression(**COMMON), WEIGHTED | ITERATES),
    "LinearSVC": (le.LinearSVC(**COMMON), WEIGHTED | ITERATES),
    "GaussianNB": (le.GaussianNB(**COMMON), WEIGHTED),
    "NearestClassMean": (le.NearestClassMean(**COMMON), WEIGHTED),
    "KMeans": (le.KMeans(3, **COMMON), WEIGHTED | {"check_transformer_n_iter": STEPS, "check_clustering": LABELS}),
    "DecisionTreeClassifier": (le.DecisionTreeClassifier(**COINS), UNWEIGHTED),
    "HistGradientBoostingClassifier": (le.HistGradientBoostingClassifier(4, n_trees=8, **COINS), UNWEIGHTED),
    "RandomForestClassifier": (le.RandomForestClassifier(8, **COMMON), WEIGHTED),
    "RandomForestClassifier, coins": (le.RandomForestClassifier(8, options={"design": "bits"}, **COINS), WEIGHTED),
    "Distilled": (
        le.Distilled(linear_model.LogisticRegression(), linear_model.LogisticRegression(), **COINS),
        UNWEIGHTED,
    ),
    "PCA": (le.PCA(1, **COMMON), WEIGHTED),
    "Private regressor": (
        le.Private(linear_model.Ridge(), **LOOPED),
        WEIGHTED | SPARSE | {"check_regressor_multioutput": ROWS},
    ),
    "Private classifier": (
        le.Private(linear_model.LogisticRegression(tol=0.01), strata="y", **LOOPED),
        WEIGHTED | SPARSE,
    ),
    "Private transformer": (le.Private(preprocessing.StandardScaler(), **LOOPED), WEIGHTED),
}


def _from_nowhere(given: Any, names: tuple[str, ...], most: int) -> AskedRows:
    """Public rows with as many columns as a check has: no rows that are given fit all of them."""
    return AskedRows(np.random.default_rng(0).normal(scale=3, size=(60, len(names))), np.arange(60))


@pytest.fixture(autouse=True)
def _what_the_checks_do_not_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Usefulness, of which a fit warns; whether less noise would do; figures of the certificate beside the cap's."""
    monkeypatch.setattr(PrivateEstimator, "_warn_where_useless", lambda self, made, computation: None)
    monkeypatch.setattr("leakcap.planning.rebuilding.REHEARSALS", 1)
    monkeypatch.setattr(Search, "root", lambda self, gap, start, tolerance: self.safe_scale)
    monkeypatch.setattr(PASS, "known_sizes", lambda m, n: ())
    monkeypatch.setattr("leakcap.estimators.distilled.public_rows", _from_nowhere)
    monkeypatch.setattr("leakcap.estimators.public_basis.TREES", 4)
    monkeypatch.setattr(PASS, "priors_for", lambda m, wanted: (Fraction(1, 2),))


def outcomes(estimator: Any) -> dict[str, str]:
    """Every check that fails, and how."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one, check in _checks(estimator):
            try:
                check(one)
            except estimator_checks.SkipTest:
                continue
            except Exception as error:
                found[check.func.__name__ if hasattr(check, "func") else check.__name__] = repr(error)[:500]
    return found


def _checks(estimator: Any) -> Any:
    if hasattr(estimator_checks, "estimator_checks_generator"):
        return estimator_checks.estimator_checks_generator(estimator)
    return estimator_checks.check_estimator(estimator, generate_only=True)  # before scikit-learn 1.6


# One of each kind of code; the others have the same, and sums or settings of their own.
ALWAYS = (
    *("Mean", "Ridge", "LogisticRegression", "KMeans", "PCA", "Distilled"),
    *("RandomForestClassifier, coins", "Private classifier"),
)


@pytest.mark.parametrize("name", others_later(CASES, *ALWAYS))
def test_scikit_learns_checks_pass(name: str) -> None:
    estimator, excused = CASES[name]
    failed = outcomes(estimator)
    assert not {check: why for check, why in failed.items() if check not in excused}
    assert set(failed) == set(excused), "an excuse that is not needed any more should go"


def test_the_checks_see_a_fault() -> None:
    """The twin: an estimator that forgets what it was fitted to."""

    class Forgetful(le.Ridge):
        def predict(self, X: Any) -> Any:
            return np.random.default_rng().normal(size=len(X))

    assert "check_fit_idempotent" in outcomes(Forgetful(**COMMON))
