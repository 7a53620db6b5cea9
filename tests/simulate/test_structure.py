"""Answers are split into numbers and a form without numbers, and rebuilt from released numbers alone."""

from __future__ import annotations

import pickle
import re
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import leakcap as lc
from leakcap.simulate import describe, rebuild
from leakcap.simulate.structure import same
from leakcap.simulate.task import refuse

patient = settings(deadline=None, max_examples=80)
rng = np.random.default_rng(5)
X = rng.normal(size=(60, 3))
Y = X @ [1.0, 2.0, 3.0] + rng.normal(size=60)
C = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
HALVES = [np.arange(60) % 2 == 0, np.arange(60) % 2 == 1, np.arange(60) % 4 < 2]
Point = namedtuple("Point", "x y")


@dataclass
class Record:
    mean: Any
    counts: Any
    label: float = 0.0
    computed: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.computed = ("computed from", type(self.mean).__name__)


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53),
    st.booleans(),
    st.builds(np.float32, st.floats(-1e3, 1e3, width=32)),
    st.builds(np.int16, st.integers(-9, 9)),
)
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements={"allow_nan": False, "allow_infinity": False},
)
series = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4).map(
    lambda values: pd.Series(values, index=[f"r{i}" for i in range(len(values))], name="s")
)
frames = hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 3)), elements=st.floats(-9, 9)).map(
    lambda table: pd.DataFrame(table, columns=[f"c{i}" for i in range(table.shape[1])])
)
answers = st.recursive(
    st.one_of(numbers, arrays, series, frames),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Point, inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
        st.builds(Record, inner, inner),
    ),
    max_leaves=8,
)


def equal(a: Any, b: Any) -> bool:
    """The oracle: the same containers around the same numbers; kinds of number aside."""
    if isinstance(a, (pd.DataFrame, pd.Series)):
        tester = pd.testing.assert_frame_equal if isinstance(a, pd.DataFrame) else pd.testing.assert_series_equal
        tester(a, b)
        return True
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, Record):
        return type(b) is Record and equal([a.mean, a.counts, a.label], [b.mean, b.counts, b.label])
    return isinstance(b, float) and float(a) == b


# Round trips


@patient
@given(answers)
def test_an_answer_comes_back_from_its_own_numbers(answer: Any) -> None:
    node, vector = describe(answer, rows=7)
    assert vector.dtype == np.float64
    assert len(vector) == node.size() == len(list(node.labels()))
    assert not list(node.refusals())
    assert equal(answer, rebuild(node, vector))


@patient
@given(answers, st.randoms(use_true_random=False))
def test_a_rebuilt_answer_holds_the_released_numbers_and_the_same_form(answer: Any, random: Any) -> None:
    node, vector = describe(answer, rows=7)
    released = np.array([float(np.float32(random.uniform(-9, 9))) for _ in vector])  # exact in float32 too
    again, found = describe(rebuild(node, released), rows=7)
    assert np.array_equal(found, released)
    assert not list(node.differences(again))


@patient
@given(answers)
def test_the_form_holds_no_number_of_the_answer(answer: Any) -> None:
    node, vector = describe(answer, rows=7)
    other, _ = describe(rebuild(node, vector + 1.5), rows=7)
    first = describe(rebuild(node, vector), rows=7)[0]
    assert pickle.dumps(first) == pickle.dumps(other)


@patient
@given(answers)
def test_a_rebuilt_answer_owns_its_memory(answer: Any) -> None:
    node, vector = describe(answer, rows=7)
    before = vector.copy()
    rebuilt = rebuild(node, vector)
    vector += 1.0
    assert np.array_equal(describe(rebuilt, rows=7)[1], before)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (3, float),
        (True, float),
        (np.int8(3), float),
        (np.arange(3), np.dtype("float64")),
        (np.zeros(2, dtype=bool), np.dtype("float64")),
        (np.zeros(2, dtype=np.float32), np.dtype("float32")),
        (np.zeros(2, dtype=np.float16), np.dtype("float64")),
        (np.array([1, 2.5], dtype=object), np.dtype("float64")),
    ],
)
def test_whole_numbers_leave_as_floats_and_floats_keep_their_width(answer: Any, kind: Any) -> None:
    node, vector = describe(answer, rows=7)
    rebuilt = rebuild(node, vector + 0.25)
    assert (rebuilt.dtype if isinstance(rebuilt, np.ndarray) else type(rebuilt)) == kind
    assert np.array_equal(describe(rebuilt, rows=7)[1], vector + 0.25)


def test_numbers_come_in_the_order_of_their_labels() -> None:
    answer = {"a": np.array([[1.0, 2.0]]), "b": (3, Record(4.0, [5.0])), "c": pd.Series([7.0], index=["x"])}
    node, vector = describe(answer, rows=7)
    assert vector.tolist() == [1, 2, 3, 4, 5, 0, 7]
    assert "; ".join(node.labels()) == ("a[0, 0]; a[0, 1]; b[0]; b[1], mean; b[1], counts[0]; b[1], label; c, x")


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_vector_of_another_length_is_refused(size: int) -> None:
    node, _ = describe([1.0, 2.0, 3.0], rows=7)
    with pytest.raises(lc.OutputError):
        rebuild(node, np.zeros(size))


# Forms that differ


DIFFERENT = {
    "number and array": (1.0, np.array([1.0])),
    "shapes": (np.zeros(2), np.zeros(3)),
    "list and tuple": ([1.0], (1.0,)),
    "lengths": ([1.0], [1.0, 2.0]),
    "keys": ({"a": 1.0}, {"b": 1.0}),
    "order of keys": ({"a": 1.0, "b": 2.0}, {"b": 1.0, "a": 2.0}),
    "named and plain tuple": (Point(1.0, 2.0), (1.0, 2.0)),
    "dict and dataclass": ({"mean": 1.0}, Record(1.0, 2.0)),
    "rows of tables": (pd.DataFrame([[1.0]]), pd.DataFrame([[1.0], [2.0]])),
    "index": (pd.Series([1.0], index=["a"]), pd.Series([1.0], index=["b"])),
    "columns": (pd.DataFrame([[1.0]], columns=["a"]), pd.DataFrame([[1.0]], columns=["b"])),
    "names": (pd.Series([1.0], name="a"), pd.Series([1.0], name="b")),
    "series and frame": (pd.Series([1.0]), pd.DataFrame([1.0])),
    "estimators": (Ridge().fit(X, Y), LinearRegression().fit(X, Y)),
    "parameters": (Ridge(alpha=1.0).fit(X, Y), Ridge(alpha=2.0).fit(X, Y)),
    "fitted and not": (Ridge().fit(X, Y), Ridge()),
    "nested": ({"a": [1.0, (2.0, 3.0)]}, {"a": [1.0, (2.0, [3.0])]}),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_answers_of_different_form_are_told_apart_both_ways(name: str) -> None:
    one, two = (describe(answer, rows=7)[0] for answer in DIFFERENT[name])
    for node, other in ((one, two), (two, one)):
        with pytest.raises(lc.OutputError):
            refuse(list(node.differences(other)))
        assert not list(node.differences(node))


def test_a_difference_is_named_by_its_place() -> None:
    one, two = ({"a": [np.zeros(1), np.zeros(n)]} for n in (2, 3))
    with pytest.raises(lc.OutputError, match=r"\[item 0\]\[1\] has shape \(2,\).*\(3,\).*canonical order"):
        refuse(list(describe(one, 7)[0].differences(describe(two, 7)[0])))


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (True, 1, False),
        (np.nan, np.nan, True),
        (np.array([np.nan, 1]), np.array([np.nan, 1]), True),
        (np.array([1]), np.array([1.0]), False),
        (np.array(["a", None], dtype=object), np.array(["a", None], dtype=object), True),
        (np.array(["a", {}], dtype=object), np.array(["a", {1: 2}], dtype=object), False),
        ([1, [2, "x"]], [1, [2, "x"]], True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        (np.mean, np.mean, True),
        (np.mean, np.median, False),
        (Ridge, Ridge, True),
        (object(), object(), False),
        (lambda: 1, lambda: 1, False),
        ({1, 2}, {1, 2}, False),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_only_plain_values_count_as_equal(one: Any, two: Any, alike: bool) -> None:
    assert same(one, two) is alike


def test_bound_methods_are_never_plain_values() -> None:
    """They carry their object along, which may hold rows of the data."""
    values = np.arange(3.0)
    for method in (values.sum, [1, 2].append, Ridge().fit(X, Y).predict):
        assert not same(method, method)


# Estimators


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
        refuse(list(found.items()))
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
        refuse(list(found.items()))
    message = str(refusal.value)
    assert "drop=['random_state']" not in message or not all_refusals(
        halves(fit, X, drop=("labels_", "_tol", "n_iter_", "random_state"))[0]
    )
