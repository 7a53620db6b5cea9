"""What one person moves in the sums of estimators: computed here from the rows, by code of this file's own."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn import linear_model
from sklearn.base import clone

import leakcap as lc
from leakcap import estimators as le
from leakcap.estimators.base import planned
from leakcap.estimators.public_trees import PublicTrees
from leakcap.synthetic import Tables

SUMS = import_module("leakcap.estimators.sums")
CAP = 0.6
RNG = np.random.default_rng(3)
ROWS = np.vstack([RNG.normal(20, 40, size=(8, 2)), [[0, 100], [100, 0], [1e9, -1e9], [100, 100]]])
TARGET = np.append(RNG.normal(0, 1, size=10), [5.0, -1e9])
CLASS = np.array(["a", "b"] * 4 + ["a", "b", "a", "none of these"])
TABLE = pd.DataFrame({"cost": ROWS[:, 0], "stay": ROWS[:, 1], "kind": CLASS})
EDGES, KINDS = [0, 30, 60, 100], ["a", "b"]


def half_widths(rows: Any) -> Any:
    return (np.clip(rows, 0, 100) - 50) / 50


def products(rows: Any, target: Any) -> Any:
    """The product of every pair of columns, in the order of rows of the upper triangle; then sums and the number."""
    z, v = half_widths(rows), np.clip(target, -2, 2)[:, None] / 2
    pairs = [z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2]
    crossed = [z[:, 0] * v[:, 0], z[:, 1] * v[:, 0]]
    return np.array([one.sum() for one in (*pairs, *crossed, *z.T, *v.T, np.ones(len(z)))])


def without_target(rows: Any, _: Any) -> Any:
    return products(rows, np.zeros(len(rows)))[[0, 1, 2, 5, 6, 8]]


def by_class(rows: Any, classes: Any, squares: bool = True) -> Any:
    found = []
    for kind in KINDS:
        z = half_widths(rows[classes == kind])
        found += [*z.sum(axis=0), *((z**2 - 0.5).sum(axis=0) if squares else ()), len(z)]
    return np.array(found)


def of_all(rows: Any, _: Any) -> Any:
    z = half_widths(rows)
    return np.array([*z.sum(axis=0), *(z**2 - 0.5).sum(axis=0), len(z)])


def counts(rows: Any, classes: Any) -> Any:
    def binned(column: Any) -> Any:
        return np.histogram(np.clip(column, 0, 99.9), EDGES)[0]

    inside = [classes == kind for kind in KINDS]
    cell = np.searchsorted(EDGES, np.clip(rows, 0, 99.9), side="right") - 1
    one = [*binned(rows[:, 0]), *binned(rows[:, 1]), *(sum(kind) for kind in inside)]
    pairs = [((cell[:, 0] == i) & (cell[:, 1] == j)).sum() for i in range(3) for j in range(3)]
    crossed = [((cell[:, c] == i) & kind).sum() for c in (0, 1) for i in range(3) for kind in inside]
    return np.array([*one, *pairs, *crossed], dtype=float)


def leaves(rows: Any, classes: Any) -> Any:
    """How many rows of each class come to each leaf, by walking down one by one."""
    ladder = np.tile([20.0, 40.0, 60.0, 80.0], (2, 1))
    trees = PublicTrees.drawn(ladder, 3, 2, np.random.default_rng(1))
    found = np.zeros((3, 4, len(KINDS)))
    for row, kind in zip(np.clip(rows, 0, 100), classes, strict=True):
        for tree in range(3):
            node = 0
            while node < 3:
                node = 2 * node + (2 if row[trees.nodes[tree, node]] >= trees.thresholds[tree, node] else 1)
            if kind in KINDS:
                found[tree, node - 3, KINDS.index(kind)] += 1
    return found.ravel()


SETTINGS: dict[str, Any] = {"cap": lc.pool_membership(CAP), "random_state": 1}
BOUNDED = SETTINGS | {"options": {"bounds": (0, 100)}}
CASES: dict[str, tuple[Any, Any, Any]] = {
    "Mean": (le.Mean(**BOUNDED), None, lambda rows, _: np.array([*half_widths(rows).sum(axis=0), len(rows)])),
    "Covariance": (le.Covariance(**BOUNDED), None, without_target),
    "PCA": (le.PCA(1, **BOUNDED), None, without_target),
    "StandardScaler": (le.StandardScaler(**BOUNDED), None, of_all),
    "Ridge": (le.Ridge(target_bounds=(-2, 2), **BOUNDED), TARGET, products),
    "GaussianNB": (le.GaussianNB(classes=KINDS, **BOUNDED), CLASS, by_class),
    "NearestClassMean": (
        le.NearestClassMean(classes=KINDS, **BOUNDED),
        CLASS,
        lambda rows, classes: by_class(rows, classes, squares=False),
    ),
    "RandomForestClassifier": (
        le.RandomForestClassifier(3, max_depth=2, n_thresholds=4, classes=KINDS, **BOUNDED),
        CLASS,
        leaves,
    ),
    "Tables": (Tables(bins={"cost": EDGES, "stay": EDGES}, levels={"kind": KINDS}, **SETTINGS), CLASS, counts),
}


def plan_of(name: str, kept: Any = slice(None)) -> lc.Plan:
    estimator, target, _ = CASES[name]
    rows = TABLE[kept] if name == "Tables" else ROWS[kept]
    plan, _ = planned(estimator, rows, None if target is None else target[kept], cap=estimator.cap)
    return plan


def best_success(plan: lc.Plan, name: str, person: int) -> float:
    """Of whoever knows everybody else: two normal laws, with and without the person."""
    _, target, sums = CASES[name]
    aside = TARGET if target is None else target
    rest = np.delete(np.arange(len(ROWS)), person)
    moved = sums(ROWS, aside) - sums(ROWS[rest], aside[rest])
    return float(norm.cdf(np.sqrt(moved @ np.linalg.solve(plan.noise.covariance(), moved)) / 2))


@pytest.mark.parametrize("name", CASES)
def test_nobody_shows_by_more_than_the_cap_and_somebody_at_the_bounds_by_all_of_it(name: str) -> None:
    plan = plan_of(name)
    found = [best_success(plan, name, person) for person in range(len(ROWS))]
    certified = plan.certificate.membership_success
    assert max(found) <= certified <= CAP
    assert certified > CAP - 1e-6
    assert max(found) > CAP - 1e-6, "rows at the bounds, of a declared class, are as exposed as certified"


@pytest.mark.parametrize("name", CASES)
def test_nobody_with_three_rows_shows_by_more_than_the_cap(name: str) -> None:
    """Three times the same row at the bounds is the worst, and attains it; other people bring three different ones."""
    estimator, target, sums = CASES[name]
    estimator = clone(estimator).set_params(options={**(estimator.options or {}), "rows_per_unit": 3})
    picked = np.ravel([[8] * 3, [9] * 3, [10] * 3, [11] * 3, [0, 8, 10], [9, 1, 2], [3, 4, 5]])
    who = np.repeat(np.arange(7), 3)
    aside = (TARGET if target is None else target)[picked]
    rows = TABLE.iloc[picked] if name == "Tables" else ROWS[picked]
    plan, _ = planned(estimator, rows, None if target is None else aside, unit=who, cap=estimator.cap)
    found = []
    for person in range(7):
        rest = who != person
        moved = sums(ROWS[picked], aside) - sums(ROWS[picked][rest], aside[rest])
        found.append(norm.cdf(np.sqrt(moved @ np.linalg.solve(plan.noise.covariance(), moved)) / 2))
    assert max(found) <= plan.certificate.membership_success <= CAP
    assert max(found) > CAP - 1e-6


@pytest.mark.parametrize("name", CASES)
def test_the_sums_are_those_of_everybody(name: str) -> None:
    """What is released, without noise: the sums of this file."""
    plan, (_, target, sums) = plan_of(name), CASES[name]
    found = plan.releaser.total * import_module("leakcap.modes.pool").FINE * plan.noise.deviations
    assert found == pytest.approx(sums(ROWS, TARGET if target is None else target), abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_noise_and_certificate_are_the_same_without_the_person(name: str) -> None:
    whole, rest = plan_of(name), plan_of(name, slice(0, len(ROWS) - 1))
    assert np.array_equal(whole.noise.covariance(), rest.noise.covariance())
    assert whole.certificate == rest.certificate


@pytest.mark.parametrize("name", ["GaussianNB", "Ridge"])
def test_planted_half_of_the_limits_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = SUMS.Bounded

    def planted(values: Any, extent: Any, *rest: Any) -> Any:
        made = bounded(values, extent, *rest)
        object.__setattr__(made, "extent", dataclasses.replace(extent, limits=extent.limits / 2))
        return made

    monkeypatch.setattr(SUMS, "Bounded", planted)
    with pytest.raises(AssertionError, match="more than its limits"):
        plan_of(name)
    pool = import_module("leakcap.modes.pool")
    added = pool.exact_total
    monkeypatch.setattr(pool, "exact_total", lambda values, deviations, _: added(values, deviations))
    plan = plan_of(name)
    assert max(best_success(plan, name, person) for person in range(len(ROWS))) > CAP + 0.05


def test_with_a_coin_for_everybody_nobody_shows_by_more_than_the_cap() -> None:
    """Ridge: how far a person moves the fit is taken from scikit-learn's own fits with other weights."""
    X = RNG.normal(size=(60, 2))
    y = X @ [1.0, -1.0] + RNG.normal(size=60)
    X[7], y[7] = (4.0, 3.0), 20.0  # pulls at the fit
    estimator = le.Ridge(1e-9, cap=lc.membership(CAP), options={"design": "bits"}, random_state=1)
    plan, computation = planned(estimator, X, y, cap=estimator.cap)

    def fit(weight: Any) -> Any:
        made = linear_model.LinearRegression().fit(X, y, sample_weight=weight)
        return np.append(made.coef_, made.intercept_)

    def parameters(total: Any) -> Any:
        made = computation.build(plan.run.brings.finish(total))
        return np.append(made.coef_, made.intercept_)

    origin, width = parameters(np.zeros(3)), 3
    back = np.stack([parameters(one) - origin for one in np.eye(width)], axis=1)  # from sums to parameters: linear
    covariance = back @ plan.noise.covariance() @ back.T
    success = []
    for person in range(len(X)):
        step = 1e-5 * (np.arange(len(X)) == person)
        moved = 2 * (fit(1 + step) - fit(1 - step)) / 2e-5  # a person who takes part counts twice
        success.append(norm.cdf(np.sqrt(moved @ np.linalg.solve(covariance, moved)) / 2))
    assert max(success) == pytest.approx(plan.certificate.membership_success, abs=1e-5)
    assert np.max(success) <= CAP + 1e-5
    assert plan.exposure == pytest.approx(success, abs=1e-5)
