"""What a private fit costs: all worlds of an estimator, in plain scikit-learn fits of the whole pool."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn import cluster, covariance, decomposition, ensemble, linear_model, naive_bayes, preprocessing, svm

from benchmarks.records import record, slug
from benchmarks.utility import standardised
from leakcap import estimators
from leakcap.estimators.kmeans import balanced
from leakcap.simulate import Pool, run_worlds
from leakcap.worlds import Units, draw_worlds

WORLDS, TIMES = 1024, 5


def cases(train: np.ndarray, kinds: np.ndarray) -> list[tuple[Any, Any, tuple[Any, ...], str]]:
    start = train[np.random.default_rng(0).choice(len(train), 7, replace=False)]
    both, rest = (train, kinds), (train[:, :-1], train[:, -1])
    return [
        (estimators.Mean(), Middle(), (train,), "100"),
        (estimators.StandardScaler(), preprocessing.StandardScaler(), (train,), "100"),
        (estimators.Covariance(), covariance.EmpiricalCovariance(), (train,), ""),
        (estimators.Ridge(), linear_model.Ridge(), rest, "30"),
        (estimators.LinearRegression(), linear_model.LinearRegression(), rest, "30"),
        (estimators.PCA(8), decomposition.PCA(8), (train,), "40"),
        (estimators.KMeans(7, init=start, n_init=1), cluster.KMeans(7, init=start, n_init=1), (train,), "50"),
        (
            estimators.KMeans(7, init=start, n_init=1, class_weight="balanced"),
            Balanced(7, init=start, n_init=1),
            both,
            "50",
        ),
        (estimators.LinearSVC(1.0), svm.LinearSVC(C=1.0), both, "12"),
        (estimators.LinearSVC(0.005), svm.LinearSVC(C=0.005), both, "12"),
        (estimators.LogisticRegression(1.0), linear_model.LogisticRegression(C=1.0, max_iter=1000), both, "20"),
        (estimators.GaussianNB(), naive_bayes.GaussianNB(), both, ""),
        (_private_forest(), _forest(), both, ""),
    ]


class Middle:
    """The plain mean."""

    def fit(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X.mean(axis=0))


class Balanced(cluster.KMeans):
    """K-Means with classes that count alike."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        return super().fit(X, sample_weight=balanced(y))


def _private_forest() -> estimators.RandomForestClassifier:
    return estimators.RandomForestClassifier(10, max_depth=5, n_thresholds=40, splits="entropy", ranges=(-4, 4))


def _forest() -> ensemble.RandomForestClassifier:
    """scikit-learn's own with as many and as deep trees."""
    ours = _private_forest()
    return ensemble.RandomForestClassifier(ours.n_estimators, max_depth=ours.max_depth)


def main() -> None:
    train, kinds, _, _ = standardised()
    units, worlds = Units.of(len(train), None), draw_worlds(len(train), WORLDS, np.random.default_rng(0))
    print(f"{len(train):,} x {train.shape[1]}, {WORLDS:,} worlds, the fit to the pool included")
    print(f"{'estimator':24}{'plain fit, ms':>15}{'all worlds, ms':>16}{'in plain fits':>15}{'at most':>9}")
    for private, plain, data, most in cases(train, kinds):

        def all_worlds(private: Any = private, data: tuple[Any, ...] = data) -> None:
            mechanism = private._computation(private._rows(data[0], data[1] if len(data) > 1 else None, None))
            run_worlds(mechanism.answer, Pool(mechanism.data), units, worlds)

        all_worlds()  # compiled once
        one, every = [], []
        for _ in range(TIMES):  # side by side
            one.append(_seconds(lambda plain=plain, data=data: plain.fit(*data)))
            every.append(_seconds(all_worlds))
        ratio = np.median(np.array(every) / np.array(one))
        name = f"{type(private).__name__}{f', C = {private.C}' if hasattr(private, 'C') else ''}"
        record("fits-" + slug(f"{name} {getattr(private, 'class_weight', None) or ''}"), f"{ratio:.1f}")
        print(f"{name:24}{1e3 * min(one):>15.1f}{1e3 * min(every):>16.1f}{ratio:>15.1f}{most:>9}", flush=True)


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
