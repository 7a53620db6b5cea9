"""Data, units, strata, worlds and options that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from tests.unit.planning.bad_input.asking import CAP, CAPS, SMALL, X, mean, refused

TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(person=np.repeat(np.arange(12), 2), kind=["x", "y"] * 12)
MASKS = np.vstack([np.eye(4, dtype=bool), ~np.eye(4, dtype=bool)]).repeat(6, axis=1)  # balanced: 4 of 8 worlds each
DATA: dict[str, tuple[Callable[[], Any], str]] = {
    "no data": (lambda: lc.plan(mean, **SMALL), "no data"),
    "lengths that differ": (lambda: lc.plan(lambda x, y: 1.0, X, X[1:], **SMALL), "differ in length"),
    "a number": (lambda: lc.plan(mean, 3.5, **SMALL), "slice"),
    "an array without rows": (lambda: lc.plan(mean, np.array(3.5), **SMALL), "no rows"),
    "text": (lambda: lc.plan(mean, "abcdef", **SMALL), "read the file first"),
    "a dict": (lambda: lc.plan(mean, {"a": X}, **SMALL), "slice a dict"),
    "an iterator": (lambda: lc.plan(mean, iter(X), **SMALL), "slice"),
    "an empty table": (lambda: lc.plan(mean, X[:0], **SMALL), "too few units"),
    "three units": (lambda: lc.plan(mean, X[:3], **SMALL), "at least 4"),
    "five units at a third": (lambda: lc.plan(mean, X[:5], **(SMALL | {"rate": 1 / 3, "worlds": 15})), "at least 6"),
    "three people": (lambda: lc.plan(mean, X, unit=np.arange(24) % 3, **SMALL), "at least 4"),
    "an unknown unit": (lambda: lc.plan(mean, TABLE, unit="who", **SMALL), "'who'"),
    "an unknown stratum": (lambda: lc.plan(mean, TABLE[["a", "b"]], strata="who", **SMALL), "'who'"),
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
