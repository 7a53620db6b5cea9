"""What users of scikit-learn may expect of the private estimators."""

from __future__ import annotations

import functools
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn import linear_model, model_selection, preprocessing, svm
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import SimulationWarning, UselessReleaseWarning
from leakcap.kernels import kernel_of
from leakcap.worlds import Units, draw_worlds
from tests.unit.estimators.making import IRIS, KINDS, SMALL, every
from tests.unit.estimators.twins import NAMES, SORTS, WEIGHT, WINE, assert_alike, without_noise

TABLE = pd.DataFrame(IRIS, columns=["sepal length", "sepal width", "petal length", "petal width"])

# Around scikit-learn


@pytest.mark.parametrize(
    "search",
    [
        lambda model: model_selection.GridSearchCV(model, {"C": [0.1, 1.0]}).fit(IRIS, KINDS),
        lambda model: model_selection.GridSearchCV(
            make_pipeline(preprocessing.StandardScaler(), model), {"linearsvc__C": [0.1]}
        ).fit(IRIS, KINDS),
        lambda model: model_selection.cross_val_score(model, IRIS, KINDS),
        lambda model: model_selection.RandomizedSearchCV(model, {"C": [0.1, 1.0]}, n_iter=1, n_jobs=2).fit(IRIS, KINDS),
    ],
    ids=["search", "search around a pipeline", "cross-validation", "random search in processes"],
)
@pytest.mark.parametrize("seed", [None, 0])
def test_searches_around_a_private_estimator_are_refused_with_the_way_out(search: Any, seed: int | None) -> None:
    with pytest.raises(lc.InputError, match=r"Private\(GridSearchCV"):
        search(le.LinearSVC(**SMALL | {"random_state": seed}))


def test_a_search_inside_releases_the_winners_numbers_and_not_which_it_was() -> None:
    search = model_selection.GridSearchCV(PlainRidge(alpha=7.0), {"alpha": [0.001, 1000.0]}, cv=3)
    model = le.Private(search, **SMALL).fit(IRIS[:, :3], IRIS[:, 3])
    assert isinstance(model.estimator_, PlainRidge)
    assert model.estimator_.alpha == 7.0, "the winner's parameter would tell about the world"
    assert model.score(IRIS[:, :3], IRIS[:, 3]) > 0.5


def test_a_search_inside_a_pipeline_inside() -> None:
    inner = model_selection.GridSearchCV(linear_model.LogisticRegression(), {"C": [0.01, 0.1]}, cv=2)
    model = le.Private(make_pipeline(preprocessing.StandardScaler(), inner), strata="y", **SMALL).fit(IRIS, KINDS)
    assert isinstance(model.estimator_[-1], linear_model.LogisticRegression)
    assert list(model.classes_) == [0, 1, 2] and is_classifier(model)
    assert model.score(IRIS, KINDS) > 0.5


@pytest.mark.parametrize("inner", [KNeighborsClassifier(), svm.SVC()])
def test_estimators_that_keep_rows_or_compiled_objects_are_refused(inner: BaseEstimator) -> None:
    with pytest.raises(lc.OutputError, match="cannot be released"):
        le.Private(inner, **SMALL).fit(IRIS, KINDS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # how well it fits is not the point
def test_dropping_what_an_estimator_needs_is_noticed_before_the_release() -> None:
    model = le.Private(linear_model.LogisticRegression(), drop=("coef_",), **SMALL | {"random_state": None})
    with pytest.raises(lc.OutputError, match="does not suffice"):
        model.fit(IRIS, KINDS)
    assert not hasattr(model, "estimator_")


def test_private_estimators_work_in_pipelines() -> None:
    chain = make_pipeline(preprocessing.StandardScaler(), le.LogisticRegression(0.1, **SMALL)).fit(IRIS, KINDS)
    assert chain.score(IRIS, KINDS) > 0.6
    again = pickle.loads(pickle.dumps(chain))
    assert np.array_equal(again.predict(IRIS), chain.predict(IRIS))
    assert not hasattr(again[-1], "plan_")


def test_kinds_of_estimators_are_known_to_scikit_learn() -> None:
    assert is_classifier(le.LinearSVC()) and is_classifier(le.Private(linear_model.LogisticRegression()))
    assert is_regressor(le.Ridge()) and is_regressor(le.Private(PlainRidge()))


# Tables


@pytest.mark.parametrize("make", [lambda: TABLE, lambda: polars.from_pandas(TABLE)], ids=["pandas", "polars"])
def test_tables_keep_the_names_of_their_columns(make: Any) -> None:
    table = make()
    model = le.PCA(2, **SMALL).fit(table)
    assert list(model.feature_names_in_) == list(TABLE.columns) == list(model.estimator_.feature_names_in_)
    assert np.array_equal(model.transform(table), le.PCA(2, **SMALL).fit(IRIS).transform(IRIS))
    assert list(model.set_output(transform="pandas").transform(table).columns) == ["pca0", "pca1"]
    scaled = le.StandardScaler(**SMALL).set_output(transform="polars").fit_transform(table)
    assert isinstance(scaled, polars.DataFrame) and scaled.columns == list(TABLE.columns)
    with pytest.raises(ValueError, match="feature names"):
        le.Ridge(**SMALL).fit(table, IRIS[:, 3]).predict(TABLE[TABLE.columns[::-1]])


def test_the_plain_estimator_can_be_deployed_alone() -> None:
    model = le.LogisticRegression(0.1, **SMALL).fit(TABLE, KINDS)
    alone = pickle.loads(pickle.dumps(model.estimator_))
    assert type(alone).__module__.startswith("sklearn")
    assert np.array_equal(alone.predict(TABLE), model.predict(TABLE))


@pytest.mark.parametrize("make", [pd.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def test_rows_of_one_person_move_together(make: Any) -> None:
    people = np.arange(150) // 3
    table = make({"who": people, **{name: TABLE[name].to_numpy() for name in TABLE}})
    model = le.Ridge(**SMALL).fit(table, IRIS[:, 3], unit="who")
    assert model.certificate_.units == 50 and model.n_features_in_ == 4
    by_array = le.Ridge(**SMALL).fit(TABLE, IRIS[:, 3], unit=people)
    assert np.array_equal(model.coef_, by_array.coef_)


def test_strata_hold_every_class_in_proportion() -> None:
    model = le.LinearSVC(0.05, strata="y", **SMALL).fit(IRIS, KINDS)
    masks = model.plan_.worlds.masks()
    assert all((masks[:, kind == KINDS].sum(axis=1) == 25).all() for kind in range(3))
    assert "strat" in model.certificate_.design
    with pytest.raises(lc.InputError, match="requires y"):
        le.Mean(strata="y", **SMALL).fit(IRIS)
    with pytest.raises(lc.InputError, match="no column"):
        le.Mean(strata="sex", **SMALL).fit(TABLE)


# Trouble


@pytest.mark.filterwarnings("ignore::leakcap.errors.SmallGroupWarning")  # a class of a few is what is tried
@pytest.mark.parametrize("make", [le.LinearSVC, le.LogisticRegression, le.GaussianNB])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_class_that_worlds_lack_is_defined(make: Any, weighted: bool) -> None:
    rare = np.where(np.arange(150) < 2, 3, KINDS)  # two of a kind: half of the worlds that hold both lack none
    options = {"sample_weight": WEIGHT[:150]} if weighted else {}
    settings = SMALL | {"cap": lc.membership(0.99)}
    model = make(**settings).fit(IRIS, rare, **options)
    assert list(model.classes_) == [0, 1, 2, 3]
    assert np.isfinite(model.plan_.outputs).all()
    lacking = model.plan_.worlds.masks()[:, :2].sum(axis=1) == 0
    assert lacking.any(), "some worlds were meant to lack the class"


def test_constant_columns_are_harmless() -> None:
    table = np.column_stack([IRIS, np.full(150, 7.0)])
    for name, (estimator, data) in every().items():
        if data[0].shape == (150, 4) and "Private" not in name:
            estimator.fit(table, *data[1:])
    assert le.StandardScaler(**SMALL).fit(table).transform(table).shape == (150, 5)


def test_a_cap_that_leaves_nothing_is_told_with_the_expected_utility() -> None:
    with pytest.warns(UselessReleaseWarning, match=r"expected accuracy 0\.\d+, without noise 0\.9"):
        le.LinearSVC(1.0, **SMALL | {"cap": lc.any_inference(0.5, 0.51)}).fit(IRIS, KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_an_unfitted_estimator_says_so(name: str) -> None:
    estimator, data = every()[name]
    for method in ("predict", "transform"):
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError):
                getattr(estimator, method)(data[0])
    assert not hasattr(estimator, "plan_")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: le.KMeans(100, **SMALL).fit(IRIS), "n_clusters"),
        (lambda: le.KMeans(3, class_weight="balanced", **SMALL).fit(IRIS), "needs a class"),
        (lambda: le.PCA(5, **SMALL).fit(IRIS), "n_components"),
        (lambda: le.LinearSVC(**SMALL).fit(IRIS, np.zeros(150)), "class"),
        (lambda: le.LinearSVC(-1.0, **SMALL).fit(IRIS, KINDS), "C must be"),
        (lambda: le.Ridge(-1.0, **SMALL).fit(IRIS, KINDS), "alpha must be"),
        (lambda: le.Mean(**SMALL).fit(IRIS, sample_weight=-np.ones(150)), "sample_weight"),
        (lambda: le.Mean(**SMALL).fit(IRIS[:1]), "1 sample"),
        (lambda: le.Mean(**SMALL).fit([["a"], ["b"]]), "X holds text"),
        (lambda: le.Private("text", **SMALL).fit(IRIS), "needs an estimator"),
        (lambda: le.Private(KNeighborsClassifier(), **SMALL).fit(IRIS, KINDS, sample_weight=WEIGHT[:150]), "no sample"),
    ],
)
def test_what_cannot_be_used_is_refused_as_scikit_learn_does(make: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()


def test_clusters_leave_in_the_order_of_the_reference() -> None:
    from leakcap.estimators.kmeans import in_order

    rng = np.random.default_rng(2)
    reference = rng.normal(size=(5, 3))
    turned = np.stack([(reference + 0.01 * rng.normal(size=(5, 3)))[rng.permutation(5)] for _ in range(20)])
    assert np.abs(in_order(turned, reference) - reference).max() < 0.1
    far = rng.normal(size=(50, 5, 3))  # no order is obvious: the best one of all 120
    from itertools import permutations

    best = [min(((one[list(order)] - reference) ** 2).sum() for order in permutations(range(5))) for one in far]
    assert np.allclose(((in_order(far, reference) - reference) ** 2).sum(axis=(1, 2)), best)


def test_balancing_lets_every_class_count_alike_in_each_world() -> None:
    from leakcap.estimators.kmeans import balanced

    groups = np.array([0, 0, 0, 1, 2, 2])
    weight = balanced(groups)
    assert np.allclose(np.bincount(groups, weights=weight), 2.0)
    assert np.isclose(weight.sum(), 6)


def test_what_is_restored_by_components_needs_no_agreement_on_their_turn() -> None:
    """A frame tells the space that components span: turning them among themselves changes no number that leaves."""
    from leakcap.estimators.pca import Frame
    from leakcap.kernels.moments import aligned

    frame = Frame.of(WINE, 3)
    rng = np.random.default_rng(3)
    directions = np.linalg.qr(rng.normal(size=(13, 3)))[0].T[None]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    spread = np.ones((1, 3)), np.ones(1)
    one, other = (
        frame.encode(WINE[:5].mean(axis=0)[None], aligned(some, frame.inside), *spread)
        for some in (directions, turn @ directions)
    )
    assert all(np.allclose(a, b) for a, b in zip(one, other, strict=True))
    names = ("leans", "beyond", "within", "variance", "total")
    found = frame.decode({name: part[0] for name, part in zip(names, one, strict=True)})
    projection = directions[0].T @ directions[0]
    assert np.allclose(found[1].T @ found[1], projection)
    assert np.allclose(found[0], WINE[:5].mean(axis=0))


@pytest.mark.parametrize(("target", "weight"), [(KINDS, None), (KINDS, 1.0 + np.arange(150) % 4), (None, WEIGHT[:150])])
def test_weighted_centres_of_all_worlds_are_those_of_single_fits(target: Any, weight: Any) -> None:
    private = le.KMeans(3, class_weight=None if target is None else "balanced")
    mechanism = private._computation(private._rows(IRIS, target, weight))
    units, worlds = Units.of(150, np.arange(150) // 3), draw_worlds(50, 16, np.random.default_rng(0))
    served = kernel_of(mechanism.answer)(mechanism.data, units, worlds)
    rows = worlds.over_rows(units)
    for world in range(16):
        here = rows.mask(world)
        alone = mechanism.answer(*(part[here] for part in mechanism.data))["centres"]
        assert np.allclose(served[world], alone.ravel(), rtol=0, atol=1e-9)


def test_weights_given_for_classes_are_those_of_scikit_learn() -> None:
    given = {0: 1.0, 1: 3.0, 2: 0.5}
    plain = linear_model.LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000, class_weight=given).fit(WINE, SORTS)
    ours = without_noise(le.LogisticRegression(0.1, class_weight=given, tol=1e-10), (WINE, SORTS))
    assert_alike(ours, plain, ("coef_", "intercept_"))
    balanced = functools.partial(linear_model.LogisticRegression, C=0.1, tol=1e-10, max_iter=10_000)
    assert_alike(
        without_noise(le.LogisticRegression(0.1, class_weight="balanced", tol=1e-10), (WINE, SORTS)),
        balanced(class_weight="balanced").fit(WINE, SORTS),
        ("coef_", "intercept_"),
    )


def test_a_mean_can_be_certified_in_closed_form() -> None:
    model = le.Mean(cap=lc.membership(0.6), worlds=64, options={"mode": "individual"}).fit(WINE)
    assert model.certificate_.kind == "closed_form" and model.certificate_.membership_success <= 0.6
    assert np.abs(model.mean_).max() < 1


def test_a_fit_with_a_seed_says_that_it_is_no_release(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = le.Mean(cap=lc.membership(0.9), worlds=16, random_state=42, options={"draws": 256})
    with pytest.warns(SimulationWarning, match="simulation, not a release"):
        model.fit(X)
    assert repr(model).endswith("# simulation, not a release")
    with pytest.warns(SimulationWarning):
        again = pickle.loads(pickle.dumps(model))
    assert "simulation, not a release" in repr(again)
    for leave in (model.certificate_.to_html, lambda: model.certificate_.save(tmp_path / "it.html")):
        with pytest.raises(lc.InputError, match="allow_simulation"):
            leave()
    assert "simulation" in model.certificate_.to_html(allow_simulation=True).lower()
    model.certificate_.save(tmp_path / "it.json", allow_simulation=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        released = le.Mean(cap=lc.membership(0.9), worlds=16, options={"draws": 256}).fit(X)
        assert "simulation" not in repr(pickle.loads(pickle.dumps(released)))
    released.certificate_.save(tmp_path / "it.html")
