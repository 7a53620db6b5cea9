"""Bad input gets our own clear error, and nothing is released or half-written (issue item 8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import leakcap as lc
from leakcap.releases import Token, _released_before

rng = np.random.default_rng(88)
X = rng.normal(size=(24, 2))
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(person=np.repeat(np.arange(12), 2), kind=["x", "y"] * 12)
CAP = lc.mutual_information(0.3)
SMALL: dict[str, Any] = {"cap": CAP, "worlds": 16, "draws": 256}
MASKS = np.vstack([np.eye(4, dtype=bool), ~np.eye(4, dtype=bool)]).repeat(6, axis=1)  # balanced: 4 of 8 worlds each


def mean(x: Any) -> Any:
    return np.asarray(x).mean(axis=0)


@pytest.fixture(autouse=True)
def _nothing_leaves(tmp_path: Path, monkeypatch: Any) -> Iterator[None]:
    """Around every test: no file appears, no right to release is spent, no data count as released."""
    spent: list[Token] = []
    real = Token.spend

    def watched(token: Token, seeded: bool) -> None:
        spent.append(token)
        real(token, seeded)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Token, "spend", watched)
    before = set(_released_before)
    yield
    assert not list(tmp_path.iterdir())
    assert not spent
    assert _released_before == before


def refused(kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=words or None) as caught:
        call()
    assert isinstance(caught.value, lc.LeakcapError)
    assert len(str(caught.value)) > 15, "a clear error is a sentence"


# Outputs


def sometimes(value: Any) -> Callable[[np.ndarray], Any]:
    """A function that answers `value` where the first unit takes part, and a plain mean elsewhere."""
    return lambda x: value if (x[:, 0] == X[0, 0]).any() else float(x.mean())


OUTPUTS: dict[str, tuple[Callable[..., Any], str]] = {
    "NaN in some worlds": (sometimes(np.nan), "NaN or infinite"),
    "infinite in some worlds": (sometimes(-np.inf), "NaN or infinite"),
    "NaN everywhere": (lambda x: [1.0, np.nan], "NaN or infinite"),
    "shapes that differ": (lambda x: x[x[:, 0] > X[0, 0], 0], "canonical order"),
    "shapes that differ in one world": (sometimes(np.zeros(3)), "different kinds|canonical order"),
    "dimensions that differ": (lambda x: np.zeros((1, 2) if x[0, 0] == X[0, 0] else (2, 1)), "canonical order"),
    "lengths that differ": (lambda x: list(x[x[:, 0] > X[0, 0], 0]), "canonical order"),
    "keys that differ": (lambda x: {"a" if x[0, 0] == X[0, 0] else "b": 1.0}, "canonical order"),
    "keys in another order": (
        lambda x: dict.fromkeys(["a", "b"] if x[0, 0] == X[0, 0] else ["b", "a"], 1.0),
        "canonical order",
    ),
    "labels that differ": (lambda x: pd.Series([1.0], index=[x[0, 0]]), "canonical order"),
    "a table with other rows": (lambda x: pd.DataFrame(x).head(int(x[0, 0] == X[0, 0]) + 1), "canonical order"),
    "raises everywhere": (lambda x: x.nothing, "raised AttributeError"),
    "raises in some worlds": (lambda x: 1 / int(x[0, 0] != X[0, 0]), "raised ZeroDivisionError"),
    "takes other arguments": (lambda x, y: 1.0, "raised TypeError"),
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


@pytest.mark.parametrize("name", ["NaN in some worlds", "shapes that differ", "raises in some worlds", "text"])
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_workers_refuse_the_same(name: str, backend: str) -> None:
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


# Caps


WINS = (MASKS[:, :3]).astype(float)
CAPS: dict[str, Callable[[], Any]] = {
    "membership at the prior": lambda: lc.membership(0.5),
    "membership below the prior": lambda: lc.membership(0.2),
    "membership of one": lambda: lc.membership(1.0),
    "membership beyond one": lambda: lc.membership(1.5),
    "membership not a number": lambda: lc.membership(float("nan")),
    "membership text": lambda: lc.membership("0.6"),  # type: ignore[arg-type]
    "membership bool": lambda: lc.membership(True),
    "mip of zero": lambda: lc.mip(0.0),
    "mip below zero": lambda: lc.mip(-0.1),
    "mip above a half": lambda: lc.mip(0.6),
    "mip of a half": lambda: lc.mip(0.5),
    "naming at the rate": lambda: lc.name_a_member(0.5),
    "naming below the rate": lambda: lc.name_a_member(0.1),
    "precision at the rate": lambda: lc.precision(0.1, 0.5),
    "precision below the rate": lambda: lc.precision(0.1, 0.3),
    "precision of no claims": lambda: lc.precision(0.0, 0.9),
    "identification at 1/m": lambda: lc.identification(1 / 16),
    "identification below 1/m": lambda: lc.identification(0.01),
    "any inference at its prior": lambda: lc.any_inference(0.1, 0.1),
    "any inference below its prior": lambda: lc.any_inference(0.2, 0.1),
    "any inference without a prior": lambda: lc.any_inference(0.0, 0.1),
    "any inference of a certainty": lambda: lc.any_inference(1.0, 1.0),
    "no information": lambda: lc.mutual_information(0.0),
    "less than no information": lambda: lc.mutual_information(-1.0),
    "all information": lambda: lc.mutual_information(np.log(16)),
    "infinite information": lambda: lc.mutual_information(np.inf),
    "true positives at the false ones": lambda: lc.true_positive_rate(0.01, 0.01),
    "true positives below the false ones": lambda: lc.true_positive_rate(0.1, 0.01),
    "true positives at no false ones": lambda: lc.true_positive_rate(0.0, 0.1),
    "task at its prior": lambda: lc.task(np.eye(16), 1 / 16),
    "task below its prior": lambda: lc.task(np.ones((16, 1)), 0.9),
    "task of other worlds": lambda: lc.task(np.eye(8), 0.9),
    "task of a function of other worlds": lambda: lc.task(lambda masks: masks[:-1], 0.99),
    "task that always wins": lambda: lc.task(lambda masks: np.ones((len(masks), 1)), 0.9),
    "task beyond certainty": lambda: lc.task(2 * np.eye(16), 0.9),
    "task with NaN": lambda: lc.task(np.full((16, 2), np.nan), 0.9),
    "task without guesses": lambda: lc.task(np.empty((16, 0)), 0.9),
    "task of one dimension": lambda: lc.task(np.ones(16), 0.9),
    "task of text": lambda: lc.task([["yes"]] * 16, 0.9),
    "ragged task": lambda: lc.task([[1.0], [1.0, 0.0]] * 8, 0.9),
    "no cap": lambda: [],
    "a number": lambda: 0.55,
    "text": lambda: "membership",
    "None": lambda: None,
    "a list with a number": lambda: [lc.membership(0.6), 0.7],
    "one good and one impossible": lambda: [lc.membership(0.6), lc.identification(0.01)],
}


@pytest.mark.parametrize("name", CAPS)
def test_caps_that_cannot_be_kept_or_say_nothing_are_refused(name: str) -> None:
    refused(lc.InputError, "", lambda: lc.plan(mean, X, cap=CAPS[name](), worlds=16, draws=256))


@pytest.mark.parametrize("mode", ["confidence", "empirical"])
@pytest.mark.parametrize(
    "cap", [lc.name_a_member(0.5), lc.precision(0.1, 0.4), lc.task(np.eye(64), 0.5), lc.membership(1.0)], ids=repr
)
def test_impossible_caps_are_refused_in_the_other_modes_too(mode: str, cap: Any) -> None:
    refused(lc.CapError, "", lambda: lc.plan(mean, X, cap=cap, worlds=64, mode=mode))


def test_a_cap_at_the_prior_says_what_the_prior_is() -> None:
    refused(lc.CapError, "without the release", lambda: lc.plan(mean, X, **(SMALL | {"cap": lc.name_a_member(0.5)})))
    refused(lc.CapError, re.escape("0.0625"), lambda: lc.plan(mean, X, **(SMALL | {"cap": lc.identification(0.01)})))


def test_an_impossible_recap_leaves_the_plan_as_it_was() -> None:
    plan = lc.plan(mean, X, **SMALL)
    before = plan.certificate.to_json(), plan.noise.std
    for cap in (lc.identification(0.01), lc.mutual_information(50.0), lc.task(np.eye(3), 0.9)):
        refused(lc.InputError, "", lambda cap=cap: plan.recap(cap))
    assert (plan.certificate.to_json(), plan.noise.std) == before
    assert not plan._token._spent


# Data, units, strata, worlds


DATA: dict[str, tuple[Callable[[], Any], str]] = {
    "no data": (lambda: lc.plan(mean, **SMALL), "no data"),
    "lengths that differ": (lambda: lc.plan(lambda x, y: 1.0, X, X[1:], **SMALL), "differ in length"),
    "a number": (lambda: lc.plan(mean, 3.5, **SMALL), "slice"),
    "an array without rows": (lambda: lc.plan(mean, np.array(3.5), **SMALL), "no rows"),
    "text": (lambda: lc.plan(mean, "abcdef", **SMALL), "slice a str"),
    "a dict": (lambda: lc.plan(mean, {"a": X}, **SMALL), "slice a dict"),
    "an iterator": (lambda: lc.plan(mean, iter(X), **SMALL), "slice"),
    "an empty table": (lambda: lc.plan(mean, X[:0], **SMALL), "too few units"),
    "three units": (lambda: lc.plan(mean, X[:3], **SMALL), "at least 4"),
    "five units at a third": (lambda: lc.plan(mean, X[:5], **(SMALL | {"rate": 1 / 3, "worlds": 15})), "at least 6"),
    "three people": (lambda: lc.plan(mean, X, unit=np.arange(24) % 3, **SMALL), "at least 4"),
    "an unknown unit": (lambda: lc.plan(mean, TABLE, unit="who", **SMALL), "'who'"),
    "an unknown stratum": (lambda: lc.plan(mean, TABLE, strata="who", **SMALL), "'who'"),
    "a unit of an array": (lambda: lc.plan(mean, X, unit="person", **SMALL), "'person'"),
    "too few labels": (lambda: lc.plan(mean, X, unit=np.arange(23), **SMALL), "one label per row"),
    "a table of labels": (lambda: lc.plan(mean, X, unit=X, **SMALL), "one label per row"),
    "ragged labels": (lambda: lc.plan(mean, X, unit=[[1], [1, 2]] * 12, **SMALL), "one label per row"),
    "NaN among labels": (lambda: lc.plan(mean, X, unit=[np.nan, *range(23)], **SMALL), "missing labels"),
    "None among labels": (lambda: lc.plan(mean, X, unit=[None, *"abcdefghijklmnopqrstuvw"], **SMALL), "missing labels"),
    "NA among labels": (lambda: lc.plan(mean, X, unit=[pd.NA, *"abcdefghijklmnopqrstuvw"], **SMALL), "missing labels"),
    "NaT among labels": (
        lambda: lc.plan(mean, X, unit=np.array(["NaT"] + ["2024-01-01"] * 23, dtype="datetime64[D]"), **SMALL),
        "missing labels",
    ),
    "missing strata": (lambda: lc.plan(mean, X, strata=[None, *"abcdefghijklmnopqrstuvw"], **SMALL), "missing labels"),
    "strata of one": (lambda: lc.plan(mean, X, strata=[0] + [1] * 23, **SMALL), "in every stratum"),
    "strata that split a person": (
        lambda: lc.plan(mean, TABLE[["a", "b", "person", "kind"]], unit="person", strata="kind", **SMALL),
        "same for all rows of a unit",
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_data_that_cannot_be_used_are_refused(name: str) -> None:
    call, words = DATA[name]
    refused(lc.InputError, words, call)


WORLDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "one": (1, {}, "at least 2"),
    "none": (0, {}, "at least 2"),
    "odd": (15, {}, "multiple of 2.*16"),
    "not a multiple of three": (16, {"rate": 1 / 3}, "multiple of 3.*18"),
    "a fraction": (16.5, {}, "worlds must be"),
    "text": ("many", {}, "worlds must be"),
    "a bool": (True, {}, "worlds must be"),
    "None": (None, {}, "worlds must be"),
    "numbers for masks": (MASKS.astype(int), {}, "bool array"),
    "masks of other units": (MASKS[:, :-1], {}, "24 columns"),
    "masks of one dimension": (MASKS[0], {}, "bool array"),
    "ragged masks": ([[True], [True, False]], {}, "worlds must be"),
    "unbalanced": (np.vstack([MASKS, MASKS[:1]]), {}, "not balanced"),
    "everybody always": (np.ones((4, 24), dtype=bool), {}, "hide nothing"),
    "nobody ever": (np.zeros((4, 24), dtype=bool), {}, "hide nothing"),
    "given with a rate": (MASKS, {"rate": 0.25}, "neither rate nor strata"),
    "given with strata": (MASKS, {"strata": np.arange(24) % 2}, "neither rate nor strata"),
    "given for another mode": (MASKS, {"mode": "confidence"}, "mode='exact'"),
    "few for confidence": (32, {"mode": "confidence"}, "at least 64"),
    "few for empirical": (32, {"mode": "empirical"}, "at least 64"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_that_cannot_be_used_are_refused(name: str) -> None:
    worlds, options, words = WORLDS[name]
    refused(lc.InputError, words, lambda: lc.plan(mean, X, cap=CAP, worlds=worlds, draws=256, **options))


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "rate of two fifths": ({"rate": 0.4}, "1/k"),
    "rate of zero": ({"rate": 0.0}, "strictly between"),
    "rate of one": ({"rate": 1.0}, "strictly between"),
    "rate of text": ({"rate": "half"}, "rate must be a number"),
    "rate not quite a third": ({"rate": 0.333, "worlds": 999}, "1/k"),
    "confidence of one": ({"confidence": 1.0}, "strictly between"),
    "confidence of zero": ({"confidence": 0.0}, "strictly between"),
    "confidence of 95": ({"confidence": 95}, "strictly between"),
    "few draws": ({"draws": 100}, "at least 256"),
    "a fraction of a draw": ({"draws": 1000.5}, "whole number"),
    "floor below zero": ({"floor": -0.1}, "0 or above"),
    "floor not a number": ({"floor": np.nan}, "finite"),
    "infinite floor": ({"floor": np.inf}, "finite"),
    "weights of zero": ({"weights": [1.0, 0.0]}, "positive"),
    "weights below zero": ({"weights": [1.0, -1.0]}, "positive"),
    "weights not finite": ({"weights": [1.0, np.inf]}, "positive"),
    "too few weights": ({"weights": [1.0]}, "each of the 2 outputs"),
    "weights in words": ({"weights": "important"}, "weights must be"),
    "weights of text": ({"weights": ["a", "b"]}, "weights must"),
    "ragged weights": ({"weights": [[1.0], [1.0, 2.0]]}, "weights must"),
    "seed below zero": ({"seed": -1}, "at least 0"),
    "seed of text": ({"seed": "lucky"}, "whole number"),
    "seed of a fraction": ({"seed": 1.5}, "whole number"),
    "a generator for a seed": ({"seed": np.random.default_rng(1)}, "whole number"),
    "clip of one end": ({"clip": (0.0,)}, "clip must be"),
    "clip of text": ({"clip": ("a", "b")}, "clip must be"),
    "clip of a number": ({"clip": 1.0}, "clip must be"),
    "clip ends exchanged": ({"clip": (1.0, 0.0)}, "low at or below high"),
    "clip not finite": ({"clip": (-np.inf, 0.0)}, "finite"),
    "clip of three outputs": ({"clip": (np.zeros(3), np.ones(3))}, "clip must be"),
    "unknown mode": ({"mode": "fast"}, "'exact'"),
    "unknown shape": ({"shape": "round"}, "'logdet'"),
    "unknown backend": ({"backend": "cloud"}, "backend must be"),
    "a fraction of a worker": ({"workers": 2.5}, "workers must be"),
    "no workers": ({"workers": 0}, "workers must be"),
    "workers of text": ({"workers": "two"}, "workers must be"),
    "little memory": ({"memory": 1000}, "memory must be"),
    "one string for public": ({"public": "columns"}, "public"),
    "one string for drop": ({"drop": "labels_"}, "drop"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_make_no_sense_are_refused(name: str) -> None:
    options, words = OPTIONS[name]
    refused(lc.InputError, words, lambda: lc.plan(mean, X, **(SMALL | options)))


CHEAP = ["few draws", "floor below zero", "little memory", "unknown shape", "confidence of one", "seed below zero"]


@pytest.mark.parametrize("name", CHEAP)
def test_options_are_checked_before_the_function_runs(name: str) -> None:
    """A simulation may take hours: what can be known beforehand is said beforehand."""
    calls: list[int] = []

    def counted(x: np.ndarray) -> Any:
        calls.append(len(x))
        return x.mean(axis=0)

    refused(lc.InputError, "", lambda: lc.plan(counted, X, **(SMALL | OPTIONS[name][0])))
    assert not calls


@pytest.mark.parametrize(
    "name", ["identification below 1/m", "naming at the rate", "all information", "task of other worlds"]
)
def test_caps_are_checked_before_the_function_runs(name: str) -> None:
    calls: list[int] = []

    def counted(x: np.ndarray) -> Any:
        calls.append(len(x))
        return x.mean(axis=0)

    refused(lc.InputError, "", lambda: lc.plan(counted, X, **(SMALL | {"cap": CAPS[name]()})))
    assert not calls


def test_unknown_options_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="world"):
        lc.plan(mean, X, cap=CAP, world=16)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="world"):
        lc.release(mean, X, cap=CAP, world=16)


def test_intervals_of_no_known_level_are_refused() -> None:
    plan = lc.plan(mean, X, seed=1, **SMALL)
    release = lc.Release(np.zeros(2), plan.certificate, (), np.zeros(2), plan._widths())
    for level in (0.0, 1.0, -1.0, 0.999, float("nan"), "0.9"):
        refused(lc.InputError, "", lambda level=level: release.interval(level))
    bare = lc.Release(np.zeros(2), plan.certificate, (), np.zeros(2), ())
    refused(lc.InputError, "whole pool", bare.interval)


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
