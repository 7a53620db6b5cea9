"""Functions whose outputs cannot be covered, and some that look like it and can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import leakcap as lc
from tests.later import others_later
from tests.unit.planning.bad_input.asking import SMALL, X, mean, refused

# Outputs


def first_takes_part(x: np.ndarray) -> bool:
    """In half of the worlds, whichever are drawn: balanced worlds come in pairs of complements."""
    return bool((x[:, 0] == X[0, 0]).any())


def sometimes(value: Any) -> Callable[[np.ndarray], Any]:
    """A function that answers `value` where the first unit takes part, and a plain mean elsewhere."""
    return lambda x: value if first_takes_part(x) else float(x.mean())


OUTPUTS: dict[str, tuple[Callable[..., Any], str]] = {
    "NaN in some worlds": (sometimes(np.nan), "NaN or infinite"),
    "infinite in some worlds": (sometimes(-np.inf), "NaN or infinite"),
    "NaN everywhere": (lambda x: [1.0, np.nan], "NaN or infinite"),
    "shapes that differ": (lambda x: x[: 2 + first_takes_part(x), 0], "canonical order"),
    "shapes that differ in one world": (sometimes(np.zeros(3)), "different kinds|canonical order"),
    "dimensions that differ": (lambda x: np.zeros((1, 2) if first_takes_part(x) else (2, 1)), "canonical order"),
    "lengths that differ": (lambda x: list(x[: 2 + first_takes_part(x), 0]), "canonical order"),
    "keys that differ": (lambda x: {"a" if first_takes_part(x) else "b": 1.0}, "canonical order"),
    "keys in another order": (
        lambda x: dict.fromkeys(["a", "b"] if first_takes_part(x) else ["b", "a"], 1.0),
        "canonical order",
    ),
    "labels that differ": (lambda x: pd.Series([1.0], index=[x[0, 0]]), "canonical order"),
    "a table with other rows": (lambda x: pd.DataFrame(x).head(int(first_takes_part(x)) + 1), "canonical order"),
    "raises in some worlds": (lambda x: 1 / int(first_takes_part(x)), "raised ZeroDivisionError"),
    "text": (lambda x: "high", "is a str"),
    "text in an array": (lambda x: np.array(["high", "low"]), "no array of real numbers"),
    "text in a table": (lambda x: pd.DataFrame({"a": ["high"]}), "text or mixed"),
    "text in some worlds": (sometimes("high"), "different kinds|is a str"),
    "None": (lambda x: None, "NoneType"),
    "None in some worlds": (sometimes(None), "different kinds|NoneType"),
    "None among numbers": (lambda x: [1.0, None], r"\[1\] is a NoneType"),
    "an empty array": (lambda x: np.empty(0), "no number"),
    "an empty dict": (lambda x: {}, "no number"),
    "an empty list": (lambda x: [], "no number"),
    "an empty table": (lambda x: pd.DataFrame(), "no number"),
    "a complex number": (lambda x: 1 + 2j, "complex"),
    "complex numbers": (lambda x: np.array([1 + 2j]), "real numbers"),
    "dates": (lambda x: np.array(["2024-01-01"], dtype="datetime64[D]"), "real numbers"),
    "an object array": (lambda x: np.array([object(), 1.0], dtype=object), "real numbers"),
    "records": (lambda x: np.zeros(2, dtype=[("a", float)]), "real numbers"),
    "a sparse matrix": (lambda x: sp.eye(2).tocsr(), "cannot cover"),
    "a set": (lambda x: {1.0}, "cannot cover"),
    "a function": (lambda x: lambda: 1.0, "cannot cover"),
    "an iterator": (lambda x: iter([1.0]), "cannot cover"),
    "an integer beyond floats": (lambda x: 10**400, ""),
    "a class": (lambda x: pd.DataFrame, "cannot cover"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_cannot_be_covered_are_refused(name: str) -> None:
    fn, words = OUTPUTS[name]
    refused(lc.OutputError, words, lambda: lc.plan(fn, X, **SMALL))


MISTAKES: dict[str, tuple[Any, type[Exception]]] = {
    "raises everywhere": (lambda x: x.nothing, AttributeError),
    "raises on the whole pool, too": (lambda x: 1 / int(not first_takes_part(x)), ZeroDivisionError),
    "takes other arguments": (lambda x, y: 1.0, TypeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_ones_function_is_ones_own_error(name: str) -> None:
    fn, kind = MISTAKES[name]
    with pytest.raises(kind) as caught:
        lc.plan(fn, X, **SMALL)
    assert type(caught.value) is kind


@dataclass
class Scaled:
    """Needs an argument that it does not keep: it cannot be made again from its fields."""

    mean: float
    unit: InitVar[float]

    def __post_init__(self, unit: float) -> None:
        self.mean *= unit


def test_an_answer_that_cannot_be_made_again_is_refused_by_the_plan_not_by_the_release() -> None:
    """After the secret is drawn it is too late: the right to release would be spent on an error."""
    refused(lc.OutputError, "", lambda: lc.plan(lambda x: Scaled(float(x.mean()), 2.0), X, **SMALL))


REFUSED = ("NaN in some worlds", "shapes that differ", "raises in some worlds", "text")
WHERE = [f"{name}: {backend}" for backend in ("threads", "processes") for name in REFUSED]


@pytest.mark.parametrize("where", others_later(WHERE, *WHERE[:4], "raises in some worlds: processes"))
def test_workers_refuse_the_same(where: str) -> None:
    name, _, backend = where.partition(": ")
    fn, words = OUTPUTS[name]
    refused(lc.OutputError, words, lambda: lc.plan(fn, X, backend=backend, workers=2, **SMALL))


@pytest.mark.parametrize("factor", [1e308, 1e200, 1e160], ids=str)
def test_outputs_too_large_to_square_are_refused_not_called_constant(factor: float) -> None:
    """Their variance overflows: noise of zero, NaN or a claim that nothing varies would be friendly and wrong."""
    with np.errstate(all="ignore"):
        for fn in (lambda x: x.mean(axis=0) * factor, lambda x: x.mean(axis=0) * [factor, 1.0]):
            refused(lc.LeakcapError, "large|clip|scale|overflow", lambda fn=fn: lc.plan(fn, X, **SMALL))


@pytest.mark.parametrize("factor", [1e-170, 1e-310], ids=str)
def test_outputs_too_small_to_square_are_refused_or_noised(factor: float) -> None:
    with np.errstate(all="ignore"):
        try:
            plan = lc.plan(lambda x: x.mean(axis=0) * factor, X, **SMALL)
        except lc.LeakcapError:
            return
        assert plan.certificate.noised_directions == 2
        assert plan.noise.std > 0


# What is fine


def test_odd_pools_and_smallest_pools_work() -> None:
    assert lc.plan(mean, X[:4], **SMALL).worlds.n == 4
    assert lc.plan(mean, X[:23], **SMALL).worlds.n == 23
    assert lc.plan(mean, X, **(SMALL | {"worlds": 2})).worlds.m == 2


@pytest.mark.parametrize("value", [1.0, 3, True, np.array([0.1, 0.2]), {"a": 1, "b": [2.0]}], ids=repr)
def test_constant_outputs_need_no_noise_and_the_certificate_says_why(value: Any) -> None:
    plan = lc.plan(lambda x: value, X, **SMALL)
    assert plan.noise.std == 0
    assert plan.noise.covariance().shape == (plan.outputs.shape[1],) * 2
    certificate = plan.certificate
    assert certificate.noised_directions == 0
    assert certificate.membership_success == 0.5
    assert certificate.mutual_information == 0
    assert "the same in every possible world" in " ".join(str(certificate).split())
    assert all(one.certified <= one.limit for one in certificate.capped)
