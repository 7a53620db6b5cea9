"""Estimators made of sums over people, with a coin for everybody and under pool caps, as users meet them."""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn import covariance, decomposition, linear_model, naive_bayes, neighbors, preprocessing
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import UselessReleaseWarning
from leakcap.kernels.bounded import Declared
from leakcap.synthetic import Gaussian, Tables
from leakcap.worlds import Units

IRIS, KINDS = load_iris(return_X_y=True)
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
POOL, BITS = lc.pool_membership(0.9), lc.membership(0.9)
WEIGHT = np.random.default_rng(5).uniform(0.5, 2, size=500)
# Estimator, what a pool cap needs, its plain twin, data, bounds, attributes.
CASES: dict[str, tuple[Any, dict[str, Any], Any, tuple[Any, ...], Any, tuple[str, ...]]] = {
    "Mean": (le.Mean(), {}, None, (IRIS,), (0, 10), ("mean_",)),
    "Covariance": (
        le.Covariance(),
        {},
        covariance.EmpiricalCovariance(),
        (IRIS,),
        (0, 10),
        ("location_", "covariance_", "precision_"),
    ),
    "Gaussian": (Gaussian(), {}, covariance.EmpiricalCovariance(), (IRIS,), (0, 10), ("location_", "covariance_")),
    "StandardScaler": (
        le.StandardScaler(),
        {},
        preprocessing.StandardScaler(),
        (IRIS,),
        (0, 10),
        ("mean_", "var_", "scale_"),
    ),
    "PCA": (
        le.PCA(2),
        {},
        decomposition.PCA(2),
        (IRIS,),
        (0, 10),
        ("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "noise_variance_", "n_samples_"),
    ),
    "Ridge": (
        le.Ridge(0.5),
        {"target_bounds": (0, 400)},
        linear_model.Ridge(0.5),
        (DIABETES, PROGRESS),
        (-0.25, 0.25),
        ("coef_", "intercept_"),
    ),
    "two targets": (
        le.LinearRegression(),
        {"target_bounds": ([0, 0], [10, 5])},
        linear_model.LinearRegression(),
        (IRIS[:, :2], IRIS[:, 2:]),
        (0, 10),
        ("coef_", "intercept_"),
    ),
    "no intercept": (
        le.Ridge(0.5, fit_intercept=False),
        {"target_bounds": (0, 10)},
        linear_model.Ridge(0.5, fit_intercept=False),
        (IRIS[:, :3], IRIS[:, 3]),
        (0, 10),
        ("coef_", "intercept_"),
    ),
    "GaussianNB": (
        le.GaussianNB(),
        {"classes": [2, 0, 1]},
        naive_bayes.GaussianNB(),
        (IRIS, KINDS),
        (0, 10),
        ("theta_", "var_", "class_prior_", "classes_", "epsilon_"),
    ),
    "NearestClassMean": (
        le.NearestClassMean(),
        {"classes": ["setosa", "versicolor", "virginica"]},
        neighbors.NearestCentroid(),
        (IRIS, load_iris().target_names[KINDS]),
        (0, 10),
        ("centroids_", "classes_", "class_prior_"),
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


def asked(name: str, design: str, **settings: Any) -> Any:
    """The estimator of a case, set to a design."""
    private, needed, _, _, bounds, _ = CASES[name]
    if design == "bits":
        return clone(private).set_params(cap=BITS, options={"design": "bits"}, **settings)
    return clone(private).set_params(cap=POOL, options={"bounds": bounds}, **needed, **settings)


def without_noise(name: str, design: str, weight: Any = None) -> Any:
    """What is made of the sums over the whole pool."""
    private, data = asked(name, design), CASES[name][3]
    X, y = data[0], data[1] if len(data) > 1 else None
    rows = (private._rows if design == "bits" else private._rows_of_all)(X, y, weight)
    made = private._computed(rows, design)
    units = Units.of(len(X), None)
    if design == "bits":
        brings = made.answer.adjacent(made.data, units)
    else:
        brings = made.answer.bounded(made.data, units, Declared(CASES[name][4]))
    return made.build(brings.finish(brings.values.sum(axis=0)))


def assert_alike(private: Any, name: str, weight: Any = None) -> None:
    _, _, plain, data, _, names = CASES[name]
    if plain is None:
        assert private.mean_ == pytest.approx(np.average(data[0], axis=0, weights=weight), rel=1e-9)
        return
    wanted = clone(plain).fit(*data, **({} if weight is None else {"sample_weight": weight}))
    for one in names:
        found, expected = np.asarray(getattr(private, one)), np.asarray(getattr(wanted, one))
        if expected.dtype.kind in "OU":
            assert found.tolist() == expected.tolist()
        else:
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(expected).max()), one


@pytest.mark.parametrize("design", ["bits", "pool"])
@every_case
def test_without_noise_it_is_scikit_learns_own_fit(name: str, design: str) -> None:
    if (name, design) == ("Mean", "bits"):
        return  # as it was: an average, not a sum
    assert_alike(without_noise(name, design), name)


@pytest.mark.parametrize("name", ["StandardScaler", "Ridge", "two targets", "no intercept", "GaussianNB", "Mean"])
def test_weights_of_rows_count_as_in_scikit_learn(name: str) -> None:
    weight = WEIGHT[: len(CASES[name][3][0])]
    assert_alike(without_noise(name, "bits", weight), name, weight)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("Mean", "PCA")])
def test_a_row_moves_the_answer_as_its_weight_does(name: str) -> None:
    """To first order: by finite differences of the fit in worlds, whose code the moves do not share."""
    private, data = asked(name, "bits"), CASES[name][3]
    X, y = data[0], data[1] if len(data) > 1 else None
    weight, h = WEIGHT[: len(X)].copy(), 1e-4
    rows = private._rows(X, y, weight)
    moves = private._computed(rows, "bits").answer
    plain = private._computed(rows, "worlds")
    found = moves.moves(*private._computed(rows, "bits").data)
    for person in (0, len(X) // 2, len(X) - 1):

        def answer(by: float, person: int = person) -> Any:
            changed = weight.copy()
            changed[person] += by
            fit = plain.answer
            if hasattr(private, "alpha"):  # half of the rows, each counted twice, have the penalty of all of them
                stronger = 0.5 * changed.sum() / weight.sum()
                fit = functools.partial(
                    fit.func, **fit.keywords | {"plain": clone(CASES[name][2]).set_params(alpha=stronger)}
                )
            return np.concatenate([np.ravel(part) for part in fit(*plain.data[:-1], changed).values()])

        slope = (answer(h) - answer(-h)) / (2 * h)
        assert found[person] / weight[person] == pytest.approx(slope, abs=2e-5 * np.abs(slope).max()), person
    assert found.sum(axis=0) == pytest.approx(0.0, abs=1e-9 * np.abs(found).max() * len(found))


@pytest.mark.parametrize("design", ["bits", "pool"])
@every_case
def test_a_fitted_estimator_is_a_plain_one_with_a_certificate(name: str, design: str) -> None:
    private, _, plain, data, _, _ = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessReleaseWarning)
        made = asked(name, design, random_state=0).fit(*data)
    assert made.certificate_.membership_success <= 0.9
    assert made.certificate_.theorems[0] == design
    assert plain is None or type(made.estimator_) is type(plain)
    if hasattr(made, "predict"):
        assert made.predict(data[0]).shape == np.shape(data[1])
        assert np.array_equal(made.predict(data[0]), made.estimator_.predict(data[0]))
    again = pickle.loads(pickle.dumps(made))
    assert vars(again.estimator_).keys() == vars(made.estimator_).keys()
    assert not hasattr(again, "plan_")
    assert clone(made).get_params().keys() == made.get_params().keys() == private.get_params().keys()
    copy.deepcopy(made)


def test_a_large_pool_gives_nearly_the_plain_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40_000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=len(X))
    settings = {"random_state": 0, "options": {"bounds": (-1, 1)}}
    ridge = le.Ridge(1.0, cap=lc.pool_membership(0.6), target_bounds=(-4, 4), **settings).fit(X, y)
    assert ridge.coef_ == pytest.approx([1.0, -2.0, 0.5], abs=0.03)
    bayes = le.GaussianNB(cap=lc.pool_membership(0.6), classes=[False, True], **settings).fit(X, y > 0)
    plain = naive_bayes.GaussianNB().fit(X, y > 0)
    assert np.mean(bayes.predict(X) == plain.predict(X)) > 0.99


@every_case
def test_much_noise_leaves_a_usable_estimator(name: str) -> None:
    """Counts below 0, negative variances: nothing that noise may do breaks what is made of the sums."""
    private, data = asked(name, "pool", random_state=3), CASES[name][3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessReleaseWarning)
        made = private.set_params(cap=lc.pool_membership(0.501)).fit(data[0][:30], *(part[:30] for part in data[1:]))
    for attribute, value in vars(made.estimator_).items():
        if attribute.endswith("_") and np.asarray(value).dtype.kind == "f":
            assert np.isfinite(value).all(), attribute
    if hasattr(made, "covariance_"):
        assert np.linalg.eigvalsh(made.covariance_).min() > 0
    if hasattr(made, "var_"):
        assert (made.var_ > 0).all()


def test_rows_of_a_person_move_together_and_are_cut_to_the_most_declared() -> None:
    unit = np.arange(len(IRIS)) // 3
    options = {"bounds": (0, 10), "rows_per_unit": 2}
    made = le.StandardScaler(cap=lc.pool_membership(0.99), random_state=0, options=options).fit(IRIS, unit=unit)
    first = IRIS[np.arange(len(IRIS)) % 3 < 2]
    assert made.mean_ == pytest.approx(first.mean(axis=0), abs=1.0)
    assert made.plan_.run.brings.extent.limits.max() == 2.0
    made = le.Ridge(cap=BITS, random_state=0, options={"design": "bits"}).fit(IRIS[:, :3], IRIS[:, 3], unit=unit)
    assert made.certificate_.units == 50


def test_bounds_by_name_are_those_of_the_tables_columns() -> None:
    table = pd.DataFrame(IRIS, columns=list("abcd"))
    bounds = {"d": (0, 3), "a": (0, 9), "b": (0, 5), "c": (0, 8)}
    made = le.Covariance(cap=POOL, random_state=0, options={"bounds": bounds}).fit(table)
    assert made.plan_.run.brings.finish.make.keywords["half"].tolist() == [4.5, 2.5, 4.0, 1.5]


BAD: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (le.Covariance(cap=POOL), (IRIS,), {}, "needs bounds"),
    (le.Ridge(cap=POOL, options={"bounds": (0, 10)}), (IRIS[:, :3], IRIS[:, 3]), {}, "bounds of y"),
    (le.GaussianNB(cap=POOL, options={"bounds": (0, 10)}), (IRIS, KINDS), {}, "classes there may be"),
    (le.GaussianNB(cap=POOL, options={"bounds": (0, 10)}, classes=[0, 0, 1]), (IRIS, KINDS), {}, "different"),
    (le.GaussianNB(cap=POOL, options={"bounds": (0, 10)}, classes="012"), (IRIS, KINDS), {}, "a list of at least two"),
    (le.NearestClassMean(cap=BITS, classes=[0, 1, 2]), (IRIS, KINDS), {}, "classes are for a pool cap"),
    (le.Mean(cap=BITS, options={"bounds": (0, 10)}), (IRIS,), {}, "bounds are for a pool cap"),
    (
        le.Mean(cap=POOL, options={"bounds": (0, 10)}),
        (IRIS,),
        {"sample_weight": WEIGHT[:150]},
        "leave out sample_weight",
    ),
    (le.KMeans(2, cap=POOL, options={"bounds": (0, 10)}), (IRIS,), {}, "estimators made of sums"),
    (le.KMeans(2, cap=BITS, options={"design": "bits"}), (IRIS,), {}, "add up what every unit brings"),
    (le.PCA(9, cap=POOL, options={"bounds": (0, 10)}), (IRIS,), {}, "at most the 4 columns"),
    (le.Mean(cap=POOL, worlds=64, options={"bounds": (0, 10)}), (IRIS,), {}, "leave out worlds"),
    (le.Mean(cap=POOL, options={"bounds": (0, 10)}), (IRIS,), {"unit": np.arange(150) // 2}, "rows_per_unit"),
]


@pytest.mark.parametrize(("private", "data", "given", "words"), BAD)
def test_bad_input_is_refused_in_our_words(private: Any, data: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        clone(private).set_params(random_state=0).fit(*data, **given)


PEOPLE = pd.DataFrame({"age": IRIS[:, 0] * 10, "size": IRIS[:, 1]}).assign(
    kind=load_iris().target_names[KINDS], sick=IRIS[:, 2] > 4
)
CELLS: dict[str, Any] = {
    "bins": {"age": [40, 55, 65, 80]},
    "levels": {"kind": ["setosa", "virginica", "nobody"], "sick": [False, True]},
    "integers": ["age"],
}


@pytest.mark.parametrize("design", ["worlds", "bits", "pool"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_synthetic_tables_look_like_the_data(design: str, library: str) -> None:
    people = pd.concat([PEOPLE] * 20, ignore_index=True)
    cap = lc.pool_membership(0.99) if design == "pool" else lc.membership(0.99)
    options = {"worlds": {"draws": 256}, "bits": {"design": "bits"}}.get(design)
    law = Tables(**CELLS, cap=cap, worlds=32 if design == "worlds" else "auto", random_state=0, options=options)
    law.fit(people if library == "pandas" else polars.from_pandas(people))
    rows = law.sample(4000, random_state=0)
    rows = rows if library == "pandas" else rows.to_pandas()
    assert type(law.sample(2)).__module__.startswith(library)
    assert list(rows.columns) == ["age", "kind", "sick"]
    assert rows.age.between(40, 80).all() and (rows.age % 1 == 0).all()
    declared = people[people.kind != "versicolor"]
    assert (rows.kind == "setosa").mean() == pytest.approx((declared.kind == "setosa").mean(), abs=0.06)
    # A pair of columns keeps what it has in common: no setosa is sick, all virginica are.
    assert rows[rows.kind == "setosa"].sick.mean() < 0.1
    assert rows[rows.kind == "virginica"].sick.mean() > 0.9
    assert np.array_equal(law.sample(5, random_state=1).to_numpy(), law.sample(5, random_state=1).to_numpy())
    assert clone(law).get_params()["levels"] == CELLS["levels"]
    assert pickle.loads(pickle.dumps(law)).sample(3).shape == (3, 3)


def test_one_column_alone_can_be_drawn() -> None:
    law = Tables(levels={"sick": [True, False]}, cap=POOL, random_state=0).fit(PEOPLE)
    assert set(law.sample(50, random_state=0).sick) == {True, False}


def test_the_tree_joins_the_columns_that_tell_most_of_each_other() -> None:
    rng = np.random.default_rng(0)
    a, c = rng.integers(3, size=(2, 5000))
    table = pd.DataFrame({"a": a, "b": c, "c": np.where(rng.random(5000) < 0.9, a, 0), "d": c % 2})
    levels = {"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1, 2], "d": [0, 1]}
    law = Tables(levels=levels, cap=lc.pool_membership(0.999), random_state=0).fit(table)
    joined = {frozenset(pair) for pair in law.order_.tolist()}
    assert {frozenset({0, 2}), frozenset({1, 3})} <= joined


@pytest.mark.parametrize(
    ("given", "rows", "words"),
    [
        ({}, PEOPLE, "declare the cells"),
        ({"bins": {"age": [50, 40]}}, PEOPLE, "edges must be"),
        ({"bins": {"age": [0, 9]}, "levels": {"age": [1]}}, PEOPLE, "bins and levels"),
        ({"bins": {"age": [0, 9]}, "integers": ["kind"]}, PEOPLE, "has no bins"),
        ({"bins": {"weight": [0, 9]}}, PEOPLE, "no column 'weight'"),
        ({"bins": {"kind": [0, 9]}}, PEOPLE, "must be numbers"),
        ({"bins": {"age": [0, 9]}}, PEOPLE.assign(age=np.nan), "missing or infinite"),
        ({"levels": {"kind": ["setosa", "setosa"]}}, PEOPLE, "different values"),
        ({"bins": {"age": [0, 9]}}, IRIS, "columns have names"),
        ({"bins": {"age": [0, 9]}}, PEOPLE[:0], "no rows"),
    ],
)
def test_tables_refuse_bad_input_in_our_words(given: dict[str, Any], rows: Any, words: str) -> None:
    with pytest.raises(lc.InputError, match=words) as raised:
        Tables(**given, cap=POOL, random_state=0).fit(rows)
    assert "versicolor" not in str(raised.value)
