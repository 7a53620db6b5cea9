"""A private estimator releases once, whoever calls its `fit`: what would call it again is refused, with the way."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn import (
    calibration,
    compose,
    ensemble,
    feature_selection,
    frozen,
    multiclass,
    multioutput,
    pipeline,
    semi_supervised,
)
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.naive_bayes import GaussianNB as PlainBayes
from sklearn.preprocessing import MinMaxScaler
from sklearn.preprocessing import StandardScaler as PlainScaler

import leakcap as lc
from leakcap import estimators as le
from leakcap.estimators import company
from leakcap.planning.plans import Plan
from tests.unit.estimators.making import IRIS, KINDS, SMALL

FEATURES, WIDTH = IRIS[:, :3], IRIS[:, 3]
BOTH = np.c_[KINDS > 0, KINDS > 1]
FAST: dict[str, Any] = SMALL | {"random_state": None}


def logistic(**settings: Any) -> Any:
    return le.LogisticRegression(0.1, **FAST | settings)


def ridge() -> Any:
    return le.Ridge(1.0, **FAST)


def scaler() -> Any:
    return le.StandardScaler(**FAST)


AROUND: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "OneVsRestClassifier": (multiclass.OneVsRestClassifier(logistic()), (IRIS, KINDS)),
    "OneVsOneClassifier": (multiclass.OneVsOneClassifier(logistic()), (IRIS, KINDS)),
    # Seeded: once in 256 draws no column of the code tells classes apart, and nothing is fitted at all.
    "OutputCodeClassifier": (multiclass.OutputCodeClassifier(logistic(), random_state=0), (IRIS, KINDS)),
    "BaggingClassifier": (ensemble.BaggingClassifier(logistic(), 2), (IRIS, KINDS)),
    "BaggingRegressor": (ensemble.BaggingRegressor(ridge(), 2), (FEATURES, WIDTH)),
    "MultiOutputClassifier": (multioutput.MultiOutputClassifier(logistic()), (IRIS, BOTH)),
    "MultiOutputRegressor": (multioutput.MultiOutputRegressor(ridge()), (IRIS[:, :2], IRIS[:, 2:])),
    "ClassifierChain": (multioutput.ClassifierChain(logistic()), (IRIS, BOTH)),
    "RegressorChain": (multioutput.RegressorChain(ridge()), (IRIS[:, :2], IRIS[:, 2:])),
    "CalibratedClassifierCV": (calibration.CalibratedClassifierCV(logistic(), cv=2), (IRIS, KINDS)),
    "VotingClassifier": (ensemble.VotingClassifier([("a", logistic()), ("b", PlainBayes())]), (IRIS, KINDS)),
    "VotingRegressor": (ensemble.VotingRegressor([("a", ridge()), ("b", PlainRidge())]), (FEATURES, WIDTH)),
    "StackingClassifier": (ensemble.StackingClassifier([("a", logistic())], cv=2), (IRIS, KINDS)),
    "StackingRegressor": (ensemble.StackingRegressor([("a", PlainRidge())], ridge(), cv=2), (FEATURES, WIDTH)),
    "AdaBoostClassifier": (ensemble.AdaBoostClassifier(logistic(), n_estimators=2), (IRIS, KINDS)),
    "AdaBoostRegressor": (ensemble.AdaBoostRegressor(ridge(), n_estimators=2), (FEATURES, WIDTH)),
    "RFE": (feature_selection.RFE(ridge()), (FEATURES, WIDTH)),
    "RFECV": (feature_selection.RFECV(ridge()), (FEATURES, WIDTH)),
    "SelectFromModel": (feature_selection.SelectFromModel(ridge()), (FEATURES, WIDTH)),
    "SequentialFeatureSelector": (feature_selection.SequentialFeatureSelector(ridge()), (FEATURES, WIDTH)),
    "TransformedTargetRegressor": (compose.TransformedTargetRegressor(ridge()), (FEATURES, WIDTH)),
    "SelfTrainingClassifier": (semi_supervised.SelfTrainingClassifier(logistic()), (IRIS, KINDS)),
    "Pipeline": (pipeline.make_pipeline(scaler(), logistic()), (IRIS, KINDS)),
    "FeatureUnion": (pipeline.make_union(scaler(), le.PCA(2, **FAST)), (IRIS,)),
    "ColumnTransformer": (compose.make_column_transformer((scaler(), [0]), (scaler(), [1])), (IRIS,)),
    "Pipeline of a union": (
        pipeline.make_pipeline(pipeline.make_union(scaler(), MinMaxScaler()), logistic()),
        (IRIS, KINDS),
    ),
    "Pipeline in VotingClassifier": (
        ensemble.VotingClassifier([("a", pipeline.make_pipeline(PlainScaler(), logistic()))]),
        (IRIS, KINDS),
    ),
}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was planned: refusals come before."""
    seen: list[Any] = []
    plan = le.base.plan
    monkeypatch.setattr(le.base, "plan", lambda *given, **options: seen.append(given) or plan(*given, **options))
    return seen


@pytest.mark.parametrize("name", AROUND)
def test_meta_estimators_around_a_private_one_are_refused_with_the_way(name: str, planned: list[Any]) -> None:
    model, data = AROUND[name]
    with pytest.raises(lc.InputError, match=r"release at every fit.*Private\("):
        model.fit(*data)
    assert not planned


@pytest.mark.parametrize("name", ["OneVsRestClassifier", "Pipeline"])
def test_the_refusal_names_what_is_around(name: str) -> None:
    model, data = AROUND[name]
    with pytest.raises(lc.InputError, match=rf"^{name} around private.*: Private\({name}\(\.\.\.\), cap=\.\.\.\)$"):
        model.fit(*data)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_meta_estimators_that_fit_in_threads_or_processes_are_refused(backend: str, planned: list[Any]) -> None:
    with parallel_config(backend=backend, n_jobs=2):
        for model, data in (AROUND["OneVsRestClassifier"], (Toy(logistic(), parallel=True), (IRIS, KINDS))):
            with pytest.raises(lc.InputError, match=r"release at every fit.*Private\("):
                model.fit(*data)
    assert not planned


def test_an_estimator_that_is_sent_to_a_process_carries_who_is_around_it(planned: list[Any]) -> None:
    """Tasks are pickled in a thread, while the meta-estimator waits; in the other process nobody is seen calling."""

    class Sender(BaseEstimator):
        def __init__(self, model: Any) -> None:
            self.model = model

        def fit(self, X: Any, y: Any) -> Any:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(pickle.dumps, self.model).result()

    there = pickle.loads(Sender(logistic()).fit(IRIS, KINDS))
    for step in (
        lambda: there.fit(IRIS, KINDS),
        lambda: clone(there),
        lambda: pickle.loads(pickle.dumps(there)).fit(IRIS),
    ):
        with pytest.raises(lc.InputError, match=r"Private\(Sender\("):
            step()
    assert not planned


@pytest.mark.filterwarnings("ignore::leakcap.errors.UselessReleaseWarning")  # two of three classes are as one
def test_without_the_refusal_there_would_be_three_releases(
    monkeypatch: pytest.MonkeyPatch, released: list[Any]
) -> None:
    """The twin: what the tests above would not see."""
    monkeypatch.setattr(le.base, "refuse_company", lambda *_: None)
    model, data = AROUND["OneVsRestClassifier"]
    clone(model).set_params(estimator__random_state=0).fit(*data)
    assert len(released) == 3


class Toy(BaseEstimator):
    """A meta-estimator that nobody has heard of."""

    def __init__(self, model: Any, parallel: bool = False) -> None:
        self.model, self.parallel = model, parallel

    def fit(self, X: Any, y: Any) -> Toy:
        parts = [(X[::2], y[::2]), (X[1::2], y[1::2])]
        if self.parallel:
            self.models_ = Parallel()(delayed(fitted)(self.model, *part) for part in parts)
        else:
            self.models_ = [self._fitted(*part) for part in parts]
        return self

    def _fitted(self, X: Any, y: Any) -> Any:
        return self.model.fit(X, y)


def fitted(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y)


def test_a_meta_estimator_that_nobody_has_heard_of_is_refused(planned: list[Any]) -> None:
    for model in (Toy(logistic()), Toy(pipeline.make_pipeline(PlainScaler(), logistic()))):
        with pytest.raises(lc.InputError, match=r"Private\(Toy\("):
            model.fit(IRIS, KINDS)
    assert not planned


class NoEstimator:
    """What fits clones, and is no estimator: nothing tells beforehand."""

    def train(self, model: Any, *parts: Any) -> list[Any]:
        return [clone(model).fit(*part) for part in parts]


@pytest.mark.filterwarnings("ignore::leakcap.errors.RepeatedReleaseWarning")  # it is warned of as well
@pytest.mark.parametrize("rows", [slice(None), slice(0, 100), slice(None, None, 2)], ids=["all", "some", "every other"])
def test_clones_of_one_estimator_do_not_release_the_same_rows(rows: slice, released: list[Any]) -> None:
    with pytest.raises(lc.InputError, match="a clone of this estimator"):
        NoEstimator().train(le.Mean(**FAST), (IRIS,), (IRIS[rows],))
    assert len(released) == 1


def test_clones_may_release_the_rows_of_others(released: list[Any]) -> None:
    NoEstimator().train(le.Mean(**FAST), (IRIS[:50],), (IRIS[50:100],), (IRIS[100:],))
    model = le.Mean(**FAST).fit(IRIS + 1)
    with pytest.warns(lc.RepeatedReleaseWarning):
        model.fit(IRIS + 1)
    assert len(released) == 5


def test_simulations_of_clones_are_no_releases() -> None:
    NoEstimator().train(le.Mean(**SMALL), (IRIS,), (IRIS,))


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    release = Plan.release
    monkeypatch.setattr(Plan, "release", lambda plan: seen.append(plan) or release(plan))
    return seen


def test_another_target_of_the_same_people_is_a_second_release() -> None:
    ridge().fit(FEATURES, WIDTH)
    with pytest.warns(lc.RepeatedReleaseWarning, match="released before"):
        ridge().fit(FEATURES, WIDTH**2)


# What works as before


@pytest.mark.parametrize(
    "make",
    [
        lambda: pipeline.make_pipeline(PlainScaler(), logistic(random_state=0)),
        lambda: pipeline.make_pipeline(pipeline.make_pipeline(PlainScaler()), logistic(random_state=0)),
        lambda: pipeline.make_pipeline(
            compose.make_column_transformer((le.StandardScaler(**SMALL), [0, 1]), (MinMaxScaler(), [2])), PlainBayes()
        ),
        lambda: pipeline.make_pipeline(pipeline.make_union(le.PCA(2, **SMALL), PlainScaler()), PlainBayes()),
    ],
    ids=["pipeline", "pipeline in a pipeline", "columns", "union"],
)
def test_one_private_part_in_a_pipeline_is_one_release(make: Any, released: list[Any]) -> None:
    assert make().fit(IRIS, KINDS).score(IRIS, KINDS) > 0.5
    assert len(released) == 1


def test_a_fitted_private_estimator_may_be_part_of_anything(released: list[Any]) -> None:
    model = logistic(random_state=0).fit(IRIS, KINDS)
    around = calibration.CalibratedClassifierCV(frozen.FrozenEstimator(model)).fit(IRIS, KINDS)
    assert around.predict(IRIS).shape == KINDS.shape
    assert len(released) == 1


def test_functions_methods_and_threads_of_ones_own_may_fit_a_private_estimator() -> None:
    def compare(plain: Any, private: Any) -> Any:
        return plain.fit(FEATURES, WIDTH), private.fit(FEATURES, WIDTH)

    class Study:
        def fit(self) -> Any:
            return le.Ridge(1.0, **SMALL).fit(FEATURES, WIDTH)

    compare(PlainRidge(), le.Ridge(1.0, **SMALL))
    Study().fit()
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(Study().fit()))
    thread.start()
    thread.join()
    assert results


class Spawning(ClassifierMixin, BaseEstimator):
    """Its fit has nothing private among its settings, and a thread of its own."""

    def fit(self, X: Any, y: Any) -> Spawning:
        with ThreadPoolExecutor(1) as pool:
            self.mean_ = pool.submit(le.Mean(**SMALL).fit, X).result()
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def test_estimators_without_anything_private_in_them_are_no_company_in_other_threads() -> None:
    """An ensemble has no length before it is fitted: looking at it must not ask for one."""
    made = ensemble.BaggingClassifier(Spawning(), 1).fit(IRIS, KINDS)
    assert made.estimators_[0].mean_.certificate_.kind == "simulation"


def test_an_estimator_is_pickled_without_a_word_about_who_is_around_it() -> None:
    model = logistic()
    assert company.MARK.encode() not in pickle.dumps(model)
    assert company.MARK.encode() not in pickle.dumps(multiclass.OneVsRestClassifier(model))


def test_a_private_estimator_inside_private_is_refused() -> None:
    for inner in (ridge(), pipeline.make_pipeline(PlainScaler(), ridge())):
        with pytest.raises(lc.InputError, match="plain"):
            le.Private(inner, **FAST).fit(FEATURES, WIDTH)
