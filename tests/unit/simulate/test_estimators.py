"""Fitted estimators as answers: which numbers are noised, and which attributes are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import leakcap as lc
from leakcap.simulate import describe, rebuild
from leakcap.simulate.plain import same
from leakcap.simulate.worker import refuse
from tests.unit.simulate.answers import C, X, Y

HALVES = [np.arange(60) % 2 == 0, np.arange(60) % 2 == 1, np.arange(60) % 4 < 2]


def halves(fit: Any, *data: np.ndarray, drop: Any = ()) -> tuple[list[Any], list[np.ndarray]]:
    found = [describe(fit(*(one[half] for one in data)), int(half.sum()), frozenset(drop)) for half in HALVES]
    return [node for node, _ in found], [vector for _, vector in found]


def all_refusals(nodes: list[Any]) -> dict[str, str]:
    return {path: reason for node in nodes for path, reason in [*node.refusals(), *nodes[0].differences(node)]}


MODELS: dict[str, tuple[Any, tuple[np.ndarray, ...], tuple[str, ...], set[str]]] = {
    "ridge": (lambda x, y: Ridge().fit(x, y), (X, Y), ("n_iter_",), {"coef_", "intercept_"}),
    "logistic": (lambda x, c: LogisticRegression().fit(x, c), (X, C), ("n_iter_",), {"coef_", "intercept_"}),
    "scaler": (lambda x: StandardScaler().fit(x), (X,), (), {"mean_", "scale_", "var_"}),
    "bayes": (lambda x, c: GaussianNB(priors=[0.5, 0.5]).fit(x, c), (X, C), ("class_count_",), {"theta_", "var_"}),
    "kmeans": (
        lambda x: KMeans(2, n_init=1, random_state=0).fit(x),
        (X,),
        ("labels_", "n_iter_", "_tol"),
        {"cluster_centers_", "inertia_"},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_floats_of_an_estimator_are_noised_and_equal_attributes_pass(name: str) -> None:
    fit, data, drop, noised = MODELS[name]
    nodes, vectors = halves(fit, *data, drop=drop)
    assert not all_refusals(nodes)
    label = {one.split("[")[0].lstrip(".") for one in nodes[0].labels()}
    assert noised <= label
    shift = np.arange(len(vectors[0])) + 1.0
    rebuilt = rebuild(nodes[0], vectors[0] + shift)
    own = fit(*(one[HALVES[0]] for one in data))
    assert type(rebuilt) is type(own)
    assert rebuilt.get_params() == own.get_params()
    for attribute, value in vars(own).items():
        if attribute in drop:
            assert not hasattr(rebuilt, attribute)
        elif attribute in label:
            assert np.shape(getattr(rebuilt, attribute)) == np.shape(value)
            assert not np.any(np.asarray(getattr(rebuilt, attribute)) == value), f"{attribute} was not replaced"
        elif attribute not in own.get_params():
            assert same(getattr(rebuilt, attribute), value)


def test_a_rebuilt_estimator_predicts_with_its_released_numbers() -> None:
    nodes, vectors = halves(lambda x, y: Ridge().fit(x, y), X, Y, drop=("n_iter_",))
    rebuilt = rebuild(nodes[0], vectors[0])
    own = Ridge().fit(X[HALVES[0]], Y[HALVES[0]])
    assert np.allclose(rebuilt.predict(X), own.predict(X), atol=1e-12)
    shifted = rebuild(nodes[0], vectors[0] + 1.0)
    assert np.allclose(shifted.predict(X), own.predict(X) + X.sum(axis=1) + 1, atol=1e-9)


def test_fitted_steps_inside_other_estimators_are_covered() -> None:
    def pipeline(x: np.ndarray, y: np.ndarray) -> Any:
        return make_pipeline(FunctionTransformer(np.arctan), StandardScaler(), Ridge()).fit(x, y)

    nodes, vectors = halves(pipeline, X, Y, drop=("n_iter_",))
    assert not all_refusals(nodes)
    rebuilt = rebuild(nodes[0], vectors[0])
    own = pipeline(X[HALVES[0]], Y[HALVES[0]])
    assert np.allclose(rebuilt.predict(X), own.predict(X), atol=1e-12)
    assert not np.allclose(rebuild(nodes[0], vectors[0] + 0.5).predict(X), own.predict(X))
    assert all(step is not theirs for (_, step), (_, theirs) in zip(rebuilt.steps, own.steps, strict=True))


@pytest.mark.parametrize(
    "fit",
    [
        lambda x, c: OneVsRestClassifier(LogisticRegression()).fit(x, (c + (x[:, 1] > 0)).astype(int)),
        lambda x, c: FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]).fit(x),
    ],
    ids=["one versus rest", "union"],
)
def test_lists_of_fitted_estimators_are_covered_too(fit: Any) -> None:
    nodes, vectors = halves(fit, X, C, drop=("n_iter_", "noise_variance_"))
    assert not all_refusals(nodes)
    own = fit(X[HALVES[0]], C[HALVES[0]])
    rebuilt = rebuild(nodes[0], vectors[0])
    method = "predict" if hasattr(own, "predict") else "transform"
    assert np.allclose(getattr(rebuilt, method)(X), getattr(own, method)(X), atol=1e-10)


REFUSED: dict[str, tuple[Any, tuple[np.ndarray, ...], dict[str, str]]] = {
    "tree": (lambda x, c: DecisionTreeClassifier(random_state=0).fit(x, c), (X, C), {"tree_": "compiled"}),
    "neighbours": (
        lambda x, c: KNeighborsClassifier().fit(x, c),
        (X, C),
        {"_fit_X": "entry for every row", "_y": "entry for every row", "_tree": "compiled"},
    ),
    "kmeans": (
        lambda x: KMeans(2, n_init=1, random_state=0).fit(x),
        (X,),
        {"labels_": "entry for every row", "_tol": "varies between worlds"},
    ),
    "forest": (
        lambda x, c: RandomForestClassifier(3, random_state=0, oob_score=True).fit(x, c),
        (X, C),
        {"tree_": "compiled", "oob_decision_function_": "entry for every row"},
    ),
}


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("name", REFUSED)
def test_what_an_estimator_must_not_release_is_named_with_a_way_out(name: str) -> None:
    fit, data, expected = REFUSED[name]
    nodes, _ = halves(fit, *data)
    found = all_refusals(nodes)
    for attribute, reason in expected.items():
        reasons = [why for path, why in found.items() if path.rsplit(".", 1)[-1] == attribute]
        assert reasons, f"{attribute} must be refused"
        assert all(reason in why for why in reasons)
    with pytest.raises(lc.OutputError) as refusal:
        refuse(list(found.items()), lambda without: True)
    message = str(refusal.value)
    offered = eval(message.split("drop=")[1].rstrip("."))  # the message offers Python that can be pasted
    assert set(expected) <= set(offered)
    rest, _ = halves(fit, *data, drop=offered)
    assert not all_refusals(rest), "following the advice must lead somewhere"


class Holder(BaseEstimator):
    """Whatever attributes the test wants."""

    def hold(self, **attributes: Any) -> Holder:
        for name, value in attributes.items():
            setattr(self, name, value)
        return self


NOISED_OR_EQUAL: dict[str, Any] = {
    "a float": lambda x: float(x[0, 0]),
    "floats": lambda x: x[:2].copy(),
    "a list of float arrays": lambda x: [x[:2].copy(), x[:1].copy()],
    "fitted estimators": lambda x: (Ridge().fit(x, x[:, 0]),),
    "an equal number": lambda x: 3,
    "equal text": lambda x: "euclidean",
    "nothing": lambda x: None,
    "equal names": lambda x: np.array(["a", "b"], dtype=object),
    "a known function": lambda x: np.mean,
}
VARYING_OR_UNKNOWN: dict[str, Any] = {
    "a varying integer": lambda x: int(x[0, 0] * 1e6),
    "varying integers": lambda x: np.array([int(x[0, 0] * 1e6)]),
    "varying text": lambda x: str(x[0, 0]),
    "a dict of floats": lambda x: {"a": x[0, 0]},
    "a list of floats": lambda x: [float(x[0, 0])],
    "an entry for every row": lambda x: x[:, 0],
    "rows in a list": lambda x: [x],
    "rows as columns": lambda x: x.T,
    "a generator": lambda x: np.random.RandomState(0),
    "a closure": lambda x: lambda: x,
    "a series": lambda x: pd.Series(x[0]),
    "a method of the rows": lambda x: x.sum,
    "a class that holds the rows": lambda x: type("Rows", (), {"rows": x}),
}


@pytest.mark.parametrize("name", [*NOISED_OR_EQUAL, *VARYING_OR_UNKNOWN])
def test_attributes_are_noised_equal_or_refused(name: str) -> None:
    attribute = (NOISED_OR_EQUAL | VARYING_OR_UNKNOWN)[name]
    nodes, _ = halves(lambda x: Holder().hold(mean_=x.mean(), thing_=attribute(x)), X, drop=("n_iter_",))
    found = all_refusals(nodes)
    assert bool(found) is (name in VARYING_OR_UNKNOWN)
    assert all(path.split("[")[0].startswith(".thing_") for path in found)


def test_underscored_floats_are_not_noised_but_must_be_equal() -> None:
    same_everywhere, _ = halves(lambda x: Holder().hold(mean_=x.mean(), _tol=0.5, _table=np.eye(2)), X)
    assert not all_refusals(same_everywhere)
    assert [*same_everywhere[0].labels()] == ["mean_"]
    varying, _ = halves(lambda x: Holder().hold(mean_=x.mean(), _tol=x.var()), X)
    assert set(all_refusals(varying)) == {"._tol"}


def test_parameters_that_cannot_be_compared_are_not_offered_for_dropping() -> None:
    """drop= leaves out attributes; a parameter cannot be left out, so the message must not send people there."""

    def fit(x: np.ndarray) -> Any:
        return KMeans(2, n_init=1, random_state=np.random.RandomState(0)).fit(x)

    nodes, _ = halves(fit, X, drop=("labels_", "_tol", "n_iter_"))
    found = all_refusals(nodes)
    assert ".random_state" in found
    with pytest.raises(lc.OutputError) as refusal:
        refuse(list(found.items()), lambda without: True)
    message = str(refusal.value)
    assert "drop=['random_state']" not in message or not all_refusals(
        halves(fit, X, drop=("labels_", "_tol", "n_iter_", "random_state"))[0]
    )


ADVICE: dict[str, tuple[Any, str]] = {
    "what is needed": (lambda x, c: DecisionTreeClassifier(max_depth=2).fit(x, c), "It does not work without them"),
    "what is not": (lambda x, c: LogisticRegression(tol=1e-8).fit(x, c), "It works without them: leave them out of"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice_is_tried_before_it_is_given(name: str) -> None:
    fit, words = ADVICE[name]
    with pytest.raises(lc.OutputError) as refusal:
        lc.plan(fit, X, C, cap=lc.membership(0.9), worlds=16, seed=0)
    message = str(refusal.value)
    assert words in message and ("drop=" in message) == ("leave them out" in words)
