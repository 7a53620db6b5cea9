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
from sklearn.linear_model import LinearRegression, Ridge

import leakcap as lc
from leakcap.simulate import describe, rebuild
from leakcap.simulate.plain import same
from leakcap.simulate.worker import refuse
from tests.unit.simulate.answers import X, Y

patient = settings(max_examples=80)
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
