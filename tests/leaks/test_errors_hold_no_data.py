"""Errors, warnings, logs and printed lines never quote the data, but for the function's own errors on the whole pool.

Every number in the pool has the same distinctive digits. Whatever goes wrong, they must not appear in the message,
in the arguments of the exception, nor anywhere in the traceback as it is displayed (causes and contexts included).
The twin at the end shows that the check sees a careless error. A function that fails on all rows together is a mistake
of whoever wrote it: it is shown to them as it is, in the process that holds the data; the command shows its kind alone.
"""

from __future__ import annotations

import logging
import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import leakcap as lc
from tests.later import others_later
from tests.refusals import refusal, texts_of

MARK = "777123"
rng = np.random.default_rng(777)
X = 777123.25 + np.round(rng.random((24, 2)), 2) / 10  # every value starts with the mark
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(name=[f"p{MARK}x{i}" for i in range(24)])
SMALL: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256}


def refused(call: Callable[[], Any], caplog: Any, capfd: Any) -> str:
    """The error's message, after making sure that it is ours and that nothing anywhere quotes the data."""
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        error = refusal(call)
    shown = capfd.readouterr()
    said = [texts_of(error), caplog.text, shown.out, shown.err, *(str(one.message) for one in heard)]
    assert not any(MARK in text for text in said)
    return str(error)


def raises_value_error(x: np.ndarray) -> Any:
    raise ValueError(f"cannot handle {x[0, 0]}")


def raises_from(x: np.ndarray) -> Any:
    try:
        raise KeyError(x[0, 0])
    except KeyError as error:
        raise RuntimeError(f"while reading {x}") from error


def raises_during(x: np.ndarray) -> Any:
    try:
        raise KeyError(x[0, 0])
    except KeyError:
        return [][int(x[0, 0])]


def raises_with_note(x: np.ndarray) -> Any:
    error = ValueError("see note")
    error.add_note(f"row {x[0]}")
    raise error


def raises_our_own(x: np.ndarray) -> Any:
    raise lc.InputError(f"custodian's own check: {x[0, 0]}")


def misuses_leakcap(x: np.ndarray) -> Any:
    return lc.membership(float(x[0, 0]))  # our validators quote the number they are given


def fails_in_some_worlds(x: np.ndarray) -> Any:
    if int(x.sum() * 100) % 3 == 0:
        raise ValueError(f"bad luck: {x}")
    return x.mean()


def fails_where_the_first_is_missing(x: np.ndarray) -> Any:
    if x[0, 0] != X[0, 0]:
        raise ValueError(f"where is {X[0, 0]}?")
    return x.mean()


def exits(x: np.ndarray) -> Any:
    raise SystemExit(f"cannot go on with {x[0, 0]}")


class CustomError(Exception):
    def __init__(self, x: np.ndarray) -> None:
        super().__init__("custom")
        self.rows = x

    def __str__(self) -> str:
        return str(self.rows)


def raises_custom(x: np.ndarray) -> Any:
    raise CustomError(x)


EVERYWHERE: dict[Any, type[Exception]] = {
    raises_value_error: ValueError,
    raises_from: RuntimeError,
    raises_during: IndexError,
    raises_with_note: ValueError,
    raises_our_own: lc.InputError,
    misuses_leakcap: lc.InputError,
    raises_custom: CustomError,
}
IN_WORLDS = [fails_in_some_worlds, fails_where_the_first_is_missing, exits]


BACKENDS = [(fn, backend) for fn in EVERYWHERE for backend in (None, "threads", "processes")]
AT_ONCE = [one for one in BACKENDS if one[1] != "processes"]  # a process for each worker takes a second


@pytest.mark.parametrize(
    "case",
    others_later(BACKENDS, *AT_ONCE, (raises_custom, "processes"), (raises_our_own, "processes")),
    ids=lambda case: f"{case[0].__name__}-{case[1]}",
)
def test_a_mistake_of_ones_own_is_shown_as_it_is(case: tuple[Any, str | None]) -> None:
    fn, backend = case
    carried = types.FunctionType(fn.__code__, globals(), fn.__name__)  # by value: workers do not import tests
    carried.__module__ = "__main__"
    with pytest.raises(EVERYWHERE[fn]) as caught:
        lc.plan(carried, X, backend=backend, workers=None if backend is None else 2, **SMALL)
    assert type(caught.value) is EVERYWHERE[fn]
    own = [frame for frame in caught.traceback if frame.name == fn.__name__]
    assert own or issubclass(EVERYWHERE[fn], lc.LeakcapError), "the traceback ends in the function"


@pytest.mark.parametrize("fn", IN_WORLDS)
def test_a_function_that_raises_in_worlds_is_reported_by_kind_line_and_number(fn: Any, caplog: Any, capfd: Any) -> None:
    message = refused(lambda: lc.plan(fn, X, **SMALL), caplog, capfd)
    assert (
        "function raised" in message
        and f"in line {fn.__code__.co_firstlineno + (2 if 'fails' in fn.__name__ else 1)}" in message
    )
    assert ("of 16 worlds, and not on all rows together" in message) == (fn is not exits)  # which does so everywhere


@pytest.mark.parametrize("fn", IN_WORLDS)
def test_the_functions_own_exception_is_not_even_kept_out_of_sight(fn: Any) -> None:
    """A suppressed context is still there for whoever looks."""
    with pytest.raises(lc.LeakcapError) as caught:
        lc.plan(fn, X, **SMALL)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert MARK not in str(caught.value)


@pytest.mark.parametrize("backend", ["threads", "processes"])
@pytest.mark.parametrize("fn", [fails_in_some_worlds, exits], ids=lambda fn: fn.__name__)
def test_workers_keep_the_text_to_themselves(backend: str, fn: Any, caplog: Any, capfd: Any) -> None:
    carried = types.FunctionType(fn.__code__, globals(), fn.__name__)  # by value: workers do not import tests
    carried.__module__ = "__main__"
    refused(lambda: lc.plan(carried, X, backend=backend, workers=2, **SMALL), caplog, capfd)


# Answers that cannot be released


@dataclass
class Answer:
    text: Any


class Model(BaseEstimator):
    """An estimator with whatever attributes the test wants."""

    def fit(self, **attributes: Any) -> Model:
        for name, value in attributes.items():
            setattr(self, name, value)
        return self


class Unprintable:
    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __repr__(self) -> str:
        return f"Unprintable({self.x})"

    __str__ = __repr__


class NoArray(Unprintable):
    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise ValueError(f"no array of {self.x}")


ANSWERS: dict[str, Callable[[np.ndarray], Any]] = {
    "text": lambda x: f"{x[0, 0]}",
    "numpy text": lambda x: np.array([f"{x[0, 0]}!"]),
    "text in a dict": lambda x: {"mean": x.mean(), "who": f"{x[0, 0]}"},
    "text in a dataclass": lambda x: Answer(f"{x[0, 0]}"),
    "keys that differ": lambda x: {float(x[0, 0]): 1.0},
    "keys that differ, nested": lambda x: {"a": [{f"{x[0, 0]}": 1.0}]},
    "labels that differ": lambda x: pd.Series([1.0], index=[x[0, 0]]),
    "columns that differ": lambda x: pd.DataFrame([[1.0]], columns=[f"{x[0, 0]}"]),
    "a table with text": lambda x: pd.DataFrame({"a": [f"{x[0, 0]}!"]}),
    "an unknown object": Unprintable,
    "an object that is no array": NoArray,
    "objects in an array": lambda x: np.array([Unprintable(x)], dtype=object),
    "a complex number": lambda x: complex(x[0, 0], 1),
    "nothing": lambda x: None,
    "not a number": lambda x: np.array([x[0, 0], np.nan]),
    "infinite": lambda x: [x[0, 0], np.inf],
    "a number beyond floats": lambda x: int(x[0, 0]) ** 100,
    "an array of numbers beyond floats": lambda x: np.array([int(x[0, 0]) ** 100], dtype=object),
    "shapes that differ": lambda x: x[x[:, 0] > 777123.3, 0],
    "lengths that differ": lambda x: list(x[x[:, 0] > 777123.3, 0]),
    "a date": lambda x: np.datetime64(int(x[0, 0]), "s"),
    "a set": lambda x: {float(x[0, 0])},
    "a generator": lambda x: (one for one in x),
    "an estimator with text": lambda x: Model().fit(mean_=x.mean(), name_=f"{x[0, 0]}"),
    "an estimator with rows": lambda x: Model().fit(mean_=x.mean(), rows_=x),
    "an estimator with counts": lambda x: Model().fit(mean_=x.mean(), total_=int(x.sum())),
    "an estimator with private parts": lambda x: Model().fit(mean_=x.mean(), _first=x[0, 0]),
    "an estimator with an object": lambda x: Model().fit(mean_=x.mean(), thing_=Unprintable(x)),
    "an estimator with a table": lambda x: Model().fit(mean_=x.mean(), lookup_={x[0, 0]: 1}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_cannot_be_released_is_not_quoted(name: str, caplog: Any, capfd: Any) -> None:
    with np.errstate(all="ignore"):
        refused(lambda: lc.plan(ANSWERS[name], X, **SMALL), caplog, capfd)


# Input that cannot be used


class Sealed:
    """A record that refuses to travel to another process, and says too much about why."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Sealed({self.value})"

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle {self!r}")


def mean(x: Any) -> Any:
    return np.asarray(x)[:, 0].mean()


INPUTS: dict[str, Callable[[], Any]] = {
    "lengths that differ": lambda: lc.plan(lambda x, y: 1.0, X, X[:-1, 0], **SMALL),
    "an unknown unit column": lambda: lc.plan(mean, TABLE, unit="who", **SMALL),
    "an unknown strata column": lambda: lc.plan(mean, TABLE, strata="who", **SMALL),
    "a missing unit": lambda: lc.plan(mean, X, unit=np.r_[np.nan, X[1:, 0]], **SMALL),
    "a missing unit among texts": lambda: lc.plan(mean, X, unit=[None, *TABLE["name"][1:]], **SMALL),
    "a missing unit of pandas": lambda: lc.plan(mean, X, unit=[pd.NA, *TABLE["name"][1:]], **SMALL),
    "units of another length": lambda: lc.plan(mean, X, unit=X[:-1, 0], **SMALL),
    "ragged units": lambda: lc.plan(mean, X, unit=[[X[0, 0]]] + [[X[1, 0], 2]] * 23, **SMALL),
    "tiny strata": lambda: lc.plan(mean, X, strata=TABLE["name"], **SMALL),
    "strata that split a unit": lambda: lc.plan(mean, X, unit=[0, 0, *range(22)], strata=TABLE["name"], **SMALL),
    "too few units": lambda: lc.plan(mean, X[:3], **SMALL),
    "one value for data": lambda: lc.plan(mean, float(X[0, 0]), **SMALL),
    "text for data": lambda: lc.plan(mean, f"{X[0, 0]}", **SMALL),
    "a dict for data": lambda: lc.plan(mean, {"a": X}, **SMALL),
    "worlds of wrong size": lambda: lc.plan(mean, X, cap=SMALL["cap"], worlds=np.ones((4, 3), dtype=bool)),
    "a clip of wrong size": lambda: lc.plan(lambda x: x.mean(axis=0), X, clip=(X[0], X[:3, 0]), **SMALL),
    "clip ends exchanged": lambda: lc.plan(lambda x: x.mean(axis=0), X, clip=(X[0] + 1, X[0]), **SMALL),
    "weights of wrong size": lambda: lc.plan(lambda x: x.mean(axis=0), X, weights=X[:, 0], **SMALL),
    "weights that are text": lambda: lc.plan(lambda x: x.mean(axis=0), X, weights=list(TABLE["name"][:2]), **SMALL),
    "records that do not travel": lambda: lc.plan(
        lambda x: float(len(x)), [Sealed(one) for one in X[:, 0]], backend="processes", workers=2, **SMALL
    ),
}


class Fragile:
    """A record that travels, and breaks on arrival, saying too much."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return float, (f"no number: {self.value}",)


def test_records_that_break_on_their_way_to_a_worker_are_not_quoted(caplog: Any, capfd: Any) -> None:
    """The error is raised while a worker unpacks its task, outside of the function."""
    records = [Fragile(one) for one in X[:, 0]]
    call = lambda: lc.plan(len, records, backend="processes", workers=2, **SMALL)  # noqa: E731
    assert "workers stopped" in refused(call, caplog, capfd)


@pytest.mark.parametrize("name", INPUTS)
def test_input_that_cannot_be_used_is_not_quoted(name: str, caplog: Any, capfd: Any) -> None:
    refused(INPUTS[name], caplog, capfd)


def test_records_without_a_fingerprint_are_not_quoted_when_released(capfd: Any) -> None:
    """The check for repeated releases reads the data; where it cannot, it must stay silent about them."""
    records = [Sealed(one) for one in X[:, 0]]
    plan = lc.plan(lambda some: np.mean([one.value for one in some]), records, **SMALL)
    said = ""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            plan.release()
        except Exception as error:
            said = texts_of(error)
    assert MARK not in said
    assert not any(MARK in str(one.message) for one in heard)
    assert MARK not in capfd.readouterr().err


def test_a_repeated_release_is_not_described_by_its_data() -> None:
    lc.plan(mean, X, **SMALL).release()
    with pytest.warns(lc.RepeatedReleaseWarning) as heard:
        lc.plan(mean, X, **SMALL).release()
    assert not any(MARK in str(one.message) for one in heard)


def test_custodian_views_without_numbers_do_not_quote_the_data() -> None:
    """Short forms end up in logs by accident; only the summary and the arrays show numbers."""
    plan = lc.plan(mean, X, **SMALL)
    for view in (plan, plan.worlds, plan.noise, plan.certificate):
        assert MARK not in repr(view)
    assert MARK not in str(plan.certificate)
    assert MARK not in plan.certificate.to_json()


def test_the_check_sees_a_careless_error(caplog: Any, capfd: Any, monkeypatch: Any) -> None:
    """The planted twin: one that lets the foreign exception through as the cause."""
    from leakcap.simulate import worker as task

    def careless(fn: Any, pool: Any, rows: Any, drop: Any) -> Any:
        try:
            return fn(*pool.take(rows))
        except ValueError as error:
            raise lc.OutputError("the function raised ValueError") from error

    monkeypatch.setattr(task, "one_answer", careless)
    with pytest.raises(AssertionError):
        refused(lambda: lc.plan(raises_value_error, X, **SMALL), caplog, capfd)
