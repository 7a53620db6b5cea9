"""Quantiles in all worlds at once are numpy's, to the last bit."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leakcap as lc
from leakcap.datasets import dry_bean
from leakcap.kernels import reference
from leakcap.kernels.moments import quantiles
from leakcap.worlds import Units, draw_worlds, given_worlds, independent_worlds

LEVELS = np.array([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.73, 0.9, 1.0])
rng = np.random.default_rng(21)
X = rng.normal(size=(1003, 4)) * [1, 1e-9, 1e12, 1] + [0, 5, 0, 1e6]


@given(
    st.integers(4, 300),
    st.integers(1, 5),
    st.integers(1, 10),
    st.integers(0, 12),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.integers(0, 2**31),
)
@settings(max_examples=80)
def test_quantiles_equal_numpys_in_every_world_to_the_last_bit(
    n: int, d: int, pairs: int, values: int, levels: list[float], seed: int
) -> None:
    """From few different values, with many equal rows, to none that are equal."""
    draw = np.random.default_rng(seed)
    table = np.round(draw.normal(size=(n, d)) * 2.0**values, 1)
    worlds = draw_worlds(n, 2 * pairs, draw)
    assert np.array_equal(quantiles(table, worlds, levels), reference.quantiles(table, worlds, levels))


@pytest.mark.parametrize("rate", [1 / 3, 0.75, 1 / 50])
def test_worlds_of_other_rates(rate: float) -> None:
    worlds = draw_worlds(len(X), 100 if rate < 0.1 else 12, np.random.default_rng(1), rate)
    assert np.array_equal(quantiles(X, worlds, LEVELS), reference.quantiles(X, worlds, LEVELS))


def test_unpaired_worlds_of_a_number_that_is_no_multiple_of_eight() -> None:
    worlds = independent_worlds(len(X), 13, np.random.default_rng(3))
    assert np.array_equal(quantiles(X, worlds, LEVELS), reference.quantiles(X, worlds, LEVELS))


def test_worlds_of_people_with_many_rows_each() -> None:
    """Their quantiles spread much further than those of random rows: windows grow."""
    person = np.sort(rng.integers(0, 12, len(X)))
    units = Units.of(len(X), person)
    worlds = draw_worlds(units.count, 24, np.random.default_rng(5)).over_rows(units)
    table = X + person[:, None]
    assert np.array_equal(quantiles(table, worlds, LEVELS), reference.quantiles(table, worlds, LEVELS))


def test_windows_that_are_too_narrow_are_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = draw_worlds(len(X), 64, np.random.default_rng(2))
    wanted = quantiles(X, worlds, LEVELS)
    monkeypatch.setattr("leakcap.kernels.moments.order.DEVIATIONS", 0.1)
    monkeypatch.setattr("leakcap.kernels.moments.order.MARGIN", 0.5)
    assert np.array_equal(quantiles(X, worlds, LEVELS), wanted)


def test_worlds_of_very_different_sizes_and_one_without_rows() -> None:
    masks = np.zeros((4, len(X)), dtype=bool)
    masks[1, 17] = masks[2, 5:7] = True
    masks[3] = ~masks[:3].any(axis=0)
    worlds = given_worlds(masks, len(X))
    found = quantiles(X, worlds, LEVELS)
    assert np.array_equal(found, reference.quantiles(X, worlds, LEVELS))
    assert np.array_equal(found[0], np.zeros((len(LEVELS), 4)))
    assert np.array_equal(found[1], np.tile(X[17], (len(LEVELS), 1)))


def test_constant_columns_and_a_single_number_of_rows() -> None:
    table = np.column_stack([np.full(5, 3.0), [1.0, 2, 3, 4, 5]])
    worlds = draw_worlds(5, 6, np.random.default_rng(4))
    assert np.array_equal(quantiles(table, worlds, LEVELS), reference.quantiles(table, worlds, LEVELS))
    one = given_worlds(np.array([[True], [False]]), 1)
    assert np.array_equal(quantiles(np.array([[7.0]]), one, 0.5), [[[7.0]], [[0.0]]])


def test_no_columns_or_no_levels() -> None:
    worlds = draw_worlds(30, 4, np.random.default_rng(4))
    assert quantiles(np.empty((30, 0)), worlds, 0.5).shape == (4, 1, 0)
    assert quantiles(np.ones((30, 2)), worlds, []).shape == (4, 0, 2)


def test_the_answer_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = draw_worlds(len(X), 50, np.random.default_rng(4))
    once = quantiles(X, worlds, LEVELS)
    assert np.array_equal(once, quantiles(X, worlds, LEVELS))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(5)))
    assert np.array_equal(once, quantiles(X, worlds, LEVELS))


@pytest.mark.skipif("LEAKCAP_DATA" not in os.environ, reason="needs the data folder")
def test_quantiles_of_beans() -> None:
    beans = dry_bean().drop(columns="Class").to_numpy(dtype=float)
    worlds = draw_worlds(len(beans), 128, np.random.default_rng(1))
    assert np.array_equal(
        quantiles(beans, worlds, [0.1, 0.5, 0.9]), reference.quantiles(beans, worlds, [0.1, 0.5, 0.9])
    )


@pytest.mark.parametrize("q", [1.5, [-0.1], [[0.5]], np.nan])
def test_levels_must_be_shares(q: object) -> None:
    with pytest.raises(lc.InputError, match="from 0 to 1"):
        quantiles(X, draw_worlds(len(X), 4, np.random.default_rng(1)), q)  # type: ignore[arg-type]


def test_missing_values_and_wrong_numbers_of_rows_are_refused() -> None:
    worlds = draw_worlds(len(X), 4, np.random.default_rng(1))
    for wrong in (np.where(X > 0, np.nan, X), X[1:], X[:, 0]):
        with pytest.raises(lc.InputError, match=r"finite|a row for each"):
            quantiles(wrong, worlds, 0.5)
