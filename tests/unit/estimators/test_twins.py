"""Without noise, a private estimator is its plain twin."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import cluster, covariance, decomposition, linear_model, naive_bayes, neighbors, preprocessing, svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import RepeatedReleaseWarning
from leakcap.kernels import kernel_of
from leakcap.worlds import Units, draw_worlds
from tests.unit.estimators.making import IRIS, KINDS, SMALL, every
from tests.unit.estimators.twins import NAMES, SORTS, WEIGHT, WINE, assert_alike, without_noise

DIABETES, PROGRESS = load_diabetes(return_X_y=True)
TWINS: dict[str, tuple[Any, Any, tuple[Any, ...], tuple[str, ...]]] = {
    "scaler": (le.StandardScaler(), preprocessing.StandardScaler(), (WINE,), ("mean_", "var_", "scale_")),
    "k-means": (
        le.KMeans(3, init=WINE[[0, 70, 150]]),
        cluster.KMeans(3, init=WINE[[0, 70, 150]], n_init=1, tol=0, max_iter=1000),
        (WINE,),
        ("cluster_centers_",),
    ),
    "support vectors": (
        le.LinearSVC(0.05),
        svm.LinearSVC(C=0.05, tol=1e-10, max_iter=100_000),
        (WINE, SORTS),
        ("coef_", "intercept_", "classes_"),
    ),
    "two classes": (
        le.LinearSVC(0.05),
        svm.LinearSVC(C=0.05, tol=1e-10, max_iter=100_000),
        (WINE, SORTS > 0),
        ("coef_", "intercept_", "classes_"),
    ),
    "logistic": (
        le.LogisticRegression(0.1, tol=1e-10),
        linear_model.LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000),
        (WINE, SORTS),
        ("coef_", "intercept_", "classes_"),
    ),
    "two classes, logistic": (
        le.LogisticRegression(0.1, tol=1e-10),
        linear_model.LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000),
        (WINE, SORTS > 0),
        ("coef_", "intercept_", "classes_"),
    ),
    "naive Bayes": (
        le.GaussianNB(),
        naive_bayes.GaussianNB(),
        (WINE, SORTS),
        ("theta_", "var_", "class_prior_", "classes_"),
    ),
    "nearest mean": (
        le.NearestClassMean(),
        neighbors.NearestCentroid(),
        (WINE, SORTS),
        ("centroids_", "classes_"),
    ),
    "ridge": (le.Ridge(3.0), linear_model.Ridge(3.0), (DIABETES, PROGRESS), ("coef_", "intercept_")),
    "two targets": (
        le.Ridge(3.0),
        linear_model.Ridge(3.0),
        (DIABETES[:, 2:], DIABETES[:, :2]),
        ("coef_", "intercept_"),
    ),
    "least squares": (
        le.LinearRegression(),
        linear_model.LinearRegression(),
        (DIABETES, PROGRESS),
        ("coef_", "intercept_"),
    ),
    "without intercept": (
        le.LinearRegression(fit_intercept=False),
        linear_model.LinearRegression(fit_intercept=False),
        (DIABETES, PROGRESS),
        ("coef_", "intercept_"),
    ),
    "components": (
        le.PCA(3),
        decomposition.PCA(3),
        (WINE,),
        ("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "noise_variance_"),
    ),
    "covariance": (
        le.Covariance(),
        covariance.EmpiricalCovariance(),
        (WINE,),
        ("location_", "covariance_", "precision_"),
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_without_halving_and_noise_it_is_scikit_learns_own_fit(name: str) -> None:
    private, plain, data, names = TWINS[name]
    assert_alike(without_noise(private, data), plain.fit(*data), names)


@pytest.mark.parametrize("name", [name for name in TWINS if name not in ("components", "covariance", "nearest mean")])
def test_weights_of_rows_count_as_in_scikit_learn(name: str) -> None:
    private, plain, data, names = TWINS[name]
    weight = WEIGHT[: len(data[0])]
    if name == "k-means":
        private, plain = clone(private).set_params(tol=0.0, max_iter=1000), clone(plain)
    assert_alike(without_noise(private, data, weight), clone(plain).fit(*data, sample_weight=weight), names, 5e-3)


@pytest.mark.parametrize("name", TWINS)
def test_all_worlds_at_once_give_what_a_loop_gives(name: str) -> None:
    private, _, data, _ = TWINS[name]
    mechanism = private._computation(private._rows(data[0], data[1] if len(data) > 1 else None, None))
    kernel = kernel_of(mechanism.answer)
    if name == "without intercept":
        assert kernel is None, "least squares without an intercept go through the loop"
        return
    worlds, units = draw_worlds(len(data[0]), 6, np.random.default_rng(1)), Units.of(len(data[0]), None)
    assert kernel is not None
    served = kernel(mechanism.data, units, worlds)
    for world in range(worlds.m):
        mask = worlds.mask(world)
        answer = mechanism.answer(*(one[mask] for one in mechanism.data))
        flat = np.concatenate([np.ravel(part) for part in answer.values()])
        assert np.abs(served[world] - flat).max() <= 1e-5 * np.abs(served).max()


@pytest.mark.parametrize("name", NAMES)
def test_a_seeded_fit_is_called_a_simulation_and_repeats(name: str) -> None:
    estimator, data = every()[name]
    first = pickle.dumps(estimator.fit(*data).estimator_)
    assert estimator.certificate_.kind == "simulation"
    assert estimator.certificate_.mutual_information <= 2
    assert pickle.dumps(estimator.fit(*data).estimator_) == first


def test_a_fit_without_a_seed_is_a_release_and_spends_its_plan() -> None:
    model = le.LinearSVC(0.05, **SMALL | {"random_state": None}).fit(IRIS, KINDS)
    assert model.certificate_.kind == "exact"
    with pytest.raises(lc.AlreadyReleased):
        model.plan_.release()


def test_a_second_release_of_the_same_data_warns() -> None:
    table = IRIS + 1.0
    settings = SMALL | {"random_state": None}
    le.Mean(**settings).fit(table)
    with pytest.warns(RepeatedReleaseWarning):
        le.Mean(**settings).fit(table)


def test_the_certificate_lists_what_is_known_of_the_pool() -> None:
    model = le.KMeans(3, pool_public=("Columns were divided by ten.",), **SMALL).fit(IRIS / 10)
    told = " ".join(model.certificate_.pool_public)
    assert "Columns were divided by ten." in told and "Start and reference of the centres" in told
