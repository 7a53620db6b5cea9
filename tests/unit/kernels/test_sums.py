"""All worlds at once give what a loop over worlds gives."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leakcap as lc
from leakcap import stats
from leakcap.kernels import kernel_of, masked_sums
from leakcap.testing import check_kernel
from leakcap.worlds import draw_worlds, given_worlds

rng = np.random.default_rng(12)
X = rng.normal(size=(203, 3)) * [1.0, 50.0, 1e-3] + [0.0, 1e4, 5.0]
CAP = {"cap": lc.mutual_information(0.3), "worlds": 32, "draws": 256, "seed": 3}


@given(st.integers(4, 150), st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**31))
@settings(max_examples=60)
def test_sums_of_whole_numbers_are_exact_for_every_size(n: int, d: int, pairs: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    features = draw.integers(-1000, 1000, size=(n, d)).astype(float)
    worlds = draw_worlds(n, 2 * pairs, draw)
    assert np.array_equal(masked_sums(features, worlds), worlds.masks() @ features)


@pytest.mark.parametrize("rate", [1 / 3, 0.75])
def test_sums_of_unpaired_worlds(rate: float) -> None:
    worlds = draw_worlds(101, 12, np.random.default_rng(1), rate)
    assert np.array_equal(
        masked_sums(np.arange(202.0).reshape(101, 2), worlds), worlds.masks() @ np.arange(202.0).reshape(101, 2)
    )


def test_sums_of_given_worlds() -> None:
    masks = np.vstack([np.eye(4, dtype=bool), ~np.eye(4, dtype=bool)]).repeat(9, axis=1)
    worlds = given_worlds(masks, 36)
    assert np.array_equal(masked_sums(np.arange(36.0)[:, None], worlds), masks @ np.arange(36.0)[:, None])


QUARTERS = functools.partial(stats.quantile, q=[0.25, 0.5, 0.75])


@pytest.mark.parametrize(
    "function", [stats.mean, stats.sum, stats.variance, stats.covariance, stats.median, stats.quantile, QUARTERS]
)
@pytest.mark.parametrize("data", [X, X[:, 0], pd.DataFrame(X, columns=list("abc")), X.astype(np.float32)], ids=type)
def test_statistics_agree_with_the_loop(function: Any, data: Any) -> None:
    assert check_kernel(function, None, data) < 1e-9


@pytest.mark.parametrize("bins", [1, 3, 70])
def test_shares_agree_with_the_loop(bins: int) -> None:
    edges = np.linspace(-2, 2, bins + 1)
    assert check_kernel(functools.partial(stats.histogram, edges=edges), None, X) < 1e-12
    assert check_kernel(functools.partial(stats.histogram, edges=edges), None, X[:, 0]) < 1e-12
    codes = rng.integers(0, 5, size=(203, 2))
    assert check_kernel(functools.partial(stats.categories, levels=[3, 0, 9]), None, codes) < 1e-12


def test_text_is_left_to_the_loop() -> None:
    towns = np.array(["a", "b"] * 40)
    shares = functools.partial(stats.categories, levels=["a", "b"])
    assert lc.plan(shares, towns, **CAP).outputs.sum(axis=1) == pytest.approx(1)


def plain_covariance(x: np.ndarray) -> np.ndarray:
    return stats.covariance(x)


def test_a_plan_is_the_same_with_and_without_a_kernel() -> None:
    person = rng.integers(0, 60, len(X))
    for options in ({}, {"unit": person}, {"rate": 0.25}, {"strata": np.arange(len(X)) % 2}):
        fast = lc.plan(stats.covariance, X, **CAP, **options)
        slow = lc.plan(plain_covariance, X, **CAP, **options)
        assert np.allclose(fast.outputs, slow.outputs, rtol=1e-10, atol=1e-12)
        # The search for the noise ends within a tolerance, from answers that differ in their last digits.
        assert fast.certificate.mutual_information == pytest.approx(slow.certificate.mutual_information, rel=1e-4)


def test_a_kernel_runs_the_function_for_one_pair_and_the_whole_pool_only() -> None:
    calls = 0

    def counted(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return stats.mean(x)

    counted.kernel = stats.mean.kernel  # type: ignore[attr-defined]
    lc.plan(counted, X, **CAP)
    assert calls == 3


def test_missing_values_leave_the_kernel_out_and_are_refused_as_before() -> None:
    holes = X.copy()
    holes[0, 0] = np.nan
    with pytest.raises(lc.OutputError, match="NaN"):
        lc.plan(stats.mean, holes, **CAP)


def test_a_kernel_that_is_wrong_is_refused() -> None:
    """The planted twin: off by one part in a million, in the first world."""

    def off(x: np.ndarray) -> np.ndarray:
        return stats.mean(x) * (1 + 1e-6)

    off.kernel = stats.mean.kernel  # type: ignore[attr-defined]
    with pytest.raises(lc.OutputError, match="different answers"):
        lc.plan(off, X, **CAP)
    with pytest.raises(lc.OutputError, match="differ by"):
        check_kernel(off, None, X)


@lc.kernel
def weighted_mean(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A user's own."""
    return weights @ rows / weights.sum(axis=1, keepdims=True)


def test_a_users_kernel_is_a_function_too_and_agrees_with_the_loop() -> None:
    assert weighted_mean(X) == pytest.approx(X.mean(axis=0))
    assert weighted_mean.__name__ == "weighted_mean"
    assert check_kernel(weighted_mean, lambda x: x.mean(axis=0), X) < 1e-9
    person = rng.integers(0, 60, len(X))
    assert np.allclose(
        lc.plan(weighted_mean, X, unit=person, **CAP).outputs, lc.plan(stats.mean, X, unit=person, **CAP).outputs
    )


def test_a_users_kernel_of_a_wrong_form_or_answer_is_told() -> None:
    flat = lc.kernel(lambda rows, weights: np.ones(3))
    with pytest.raises(lc.OutputError, match="a row for each"):
        check_kernel(flat, None, X)
    with pytest.raises(lc.OutputError):
        lc.plan(flat, X, **CAP)
    wrong = lc.kernel(lambda rows, weights: weights @ rows / len(rows))
    with pytest.raises(lc.OutputError, match="differ"):
        check_kernel(wrong, lambda x: x.mean(axis=0), X)
    with pytest.raises(lc.InputError, match="offers no kernel"):
        check_kernel(np.mean, None, X)


def test_partials_pass_their_keywords_on() -> None:
    def powers(x: np.ndarray, k: int = 1) -> np.ndarray:
        return (x**k).mean(axis=0)

    def in_all_worlds(data: Any, units: Any, worlds: Any, k: int = 1) -> np.ndarray:
        return stats.mean.kernel((data[0] ** k,), units, worlds)  # type: ignore[attr-defined]

    powers.kernel = in_all_worlds  # type: ignore[attr-defined]
    assert check_kernel(functools.partial(powers, k=2), None, X) < 1e-9
    assert kernel_of(functools.partial(powers, X)) is None, "what is bound by place would be taken for data"
    assert kernel_of(lambda x: x) is None
    assert kernel_of(stats.mean) is stats.mean.kernel  # type: ignore[attr-defined]


def test_a_resumed_plan_takes_the_kernels_answers_from_its_checkpoint(tmp_path: Any, monkeypatch: Any) -> None:
    one = lc.plan(stats.mean, X, checkpoint=tmp_path / "plan", **CAP)
    monkeypatch.setattr(stats.mean, "kernel", lambda *_: pytest.fail("ran again"))
    two = lc.plan(stats.mean, X, checkpoint=tmp_path / "plan", **CAP)
    assert np.array_equal(one.outputs, two.outputs)
