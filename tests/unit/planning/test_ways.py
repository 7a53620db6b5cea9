"""`design="auto"`: bits for what adds up, worlds for everything else and for whoever asks for them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.estimators import Mean

X = np.random.default_rng(0).normal(size=(60, 2))
QUICK = {"worlds": 16, "draws": 512}


def design_of(fn: Any, **options: Any) -> str:
    return lc.plan(fn, X, **{"cap": 0.7, "seed": 1} | options).run.design


SUMS: dict[str, Any] = {
    "mean": lc.stats.mean,
    "sum": lc.stats.sum,
    "count": lc.stats.count,
    "covariance": lc.stats.covariance,
    "histogram": partial(lc.stats.histogram, edges=[-3, 0, 3]),
    "additive": lc.additive(lambda rows: rows[0]),
    "blocks": lc.blocks(lambda rows: np.median(rows[:, 0]), blocks=4, bounds=(-1, 1)),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_adds_up_gets_bits(name: str) -> None:
    assert design_of(SUMS[name]) == "bits"
    assert design_of(SUMS[name], cap=[lc.mip(0.1), lc.true_positive_rate(0.01, 0.1)]) == "bits"


@pytest.mark.parametrize(
    "options",
    [
        QUICK,
        {"design": "worlds"} | QUICK,
        {"rate": 1 / 3, "worlds": 18},
        {"strata": np.arange(60) % 2},
        {"clip": (-9, 9)},
        {"draws": 512},
        {"mode": "confidence"},
        {"mode": "individual"},
        {"cap": lc.mutual_information(0.3)},
        {"cap": [0.7, lc.name_a_member(0.9)]},
    ],
    ids=str,
)
def test_whoever_asks_for_worlds_gets_worlds(options: dict[str, Any]) -> None:
    small = {"worlds": 16} if "mode" not in options else {}
    assert design_of(lc.stats.mean, **small | options) == "worlds"
    if "worlds" not in options and "mode" not in options:  # also where their number is left open
        assert design_of(lc.stats.mean, **{"draws": 512} | options) == "worlds"


def test_any_other_function_and_estimators_keep_worlds() -> None:
    assert design_of(lambda rows: rows.mean(axis=0), **QUICK) == "worlds"
    fitted = Mean(cap=0.7, worlds=16, options={"draws": 512}, random_state=1).fit(X)
    assert fitted.plan_.run.design == "worlds"
    asked = Mean(cap=0.7, options={"design": "bits"}, random_state=1).fit(X)
    assert asked.plan_.run.design == "bits"


def test_weights_go_with_bits() -> None:
    assert design_of(lc.stats.mean, weights=[1.0, 2.0]) == "bits"
