"""Sums that are made while rows are swept, beside sums of what everybody brings in plain NumPy."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sessions import row_sums
from leakcap.sessions.linear import FINE, GRAINS
from leakcap.sessions.swept import SweptSums

ROWS, PEOPLE = 20_000, 300  # of one person more than a block, so that blocks end within them
NAMES = ["a", "b", "c"]
LOW, HIGH = np.array([-2.0, 0.0, 5.0]), np.array([2.0, 3.0, 9.0])


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    cells = rng.normal([0, 1, 7], 2, size=(ROWS, 3))
    cells[rng.random((ROWS, 3)) < 0.01] = np.nan
    cells[5, 0], cells[6, 1] = np.inf, -np.inf
    owner = np.where(rng.random(ROWS) < 0.3, 7, rng.integers(0, PEOPLE, ROWS))
    return pd.DataFrame(cells, columns=NAMES).assign(who=owner, flag=rng.integers(0, 2, ROWS))


def swept(frame: pd.DataFrame, kind: str, *asked: Any, **how: Any) -> SweptSums:
    session = lc.Session(frame, cap=0.6, unit="who", seed=0)
    sums = getattr(session._questions, kind)(*asked, **how).sums(False)
    assert isinstance(sums, SweptSums)
    return sums


def brought(frame: pd.DataFrame, make: Any) -> Any:
    """What everybody brings, from the numbers of rows that count."""
    kept = frame[np.isfinite(frame[NAMES]).all(axis=1) & (frame["flag"] == 1)]
    of_row = np.unique(frame["who"], return_inverse=True)[1][kept.index]
    rows = make(kept[NAMES].to_numpy())
    found = np.zeros((frame["who"].nunique(), rows.shape[1]))
    np.add.at(found, of_row, rows)
    return found


def in_half_widths(cells: Any) -> Any:
    return (np.clip(cells, LOW, HIGH) - (LOW + HIGH) / 2) / ((HIGH - LOW) / 2)


def products(cells: Any) -> Any:
    z = in_half_widths(cells)
    i, j = np.triu_indices(3)
    return np.hstack([z[:, i] * z[:, j], z, np.ones((len(z), 1))])


def in_bins(cells: Any) -> Any:
    place = np.clip(np.searchsorted(EDGES, cells, side="right") - 1, 0, len(EDGES) - 2)
    return np.hstack([np.eye(len(EDGES) - 1)[column] for column in place.T])


EDGES = np.array([-3.0, 0.0, 0.5, 6.0, 7.0, 30.0])
BOUNDS = {"bounds": (LOW.tolist(), HIGH.tolist()), "where": "flag = 1"}
ASKED = {
    "mean": (("mean", NAMES), BOUNDS, lambda cells: np.hstack([in_half_widths(cells), np.ones((len(cells), 1))])),
    "sum": (("sum", NAMES), BOUNDS, lambda cells: np.clip(cells, LOW, HIGH)),
    "covariance": (("covariance", NAMES), BOUNDS, products),
    "histogram": (("histogram", NAMES), {"edges": EDGES, "where": "flag = 1"}, in_bins),
}


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("exact", [row_sums.EXACT, 2.0**41])
def test_charges_and_totals_are_those_of_what_everybody_brings(
    kind: str, exact: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where sums of floats are put away every few rows."""
    monkeypatch.setattr(row_sums, "EXACT", exact)
    frame, (asked, how, make) = table(), ASKED[kind]
    sums, each = swept(frame, *asked, **how), brought(frame, make)
    rng = np.random.default_rng(1)
    pays, coins = (rng.random(len(each)) < part for part in (0.8, 0.5))
    deviations = 1000 * (1 + np.arange(each.shape[1]))  # of their own
    squares, total = sums.swept(deviations / 1.0, pays, coins)
    close = {"rtol": 1e-4, "atol": 1e-9} if kind == "covariance" else {"rtol": 1e-6, "atol": 1e-12}
    assert np.allclose(squares, ((each / deviations) ** 2).sum(axis=1), **close)
    expected = each[pays & coins].sum(axis=0) / deviations
    assert np.allclose(total * FINE, expected, rtol=1e-5, atol=1e-6)
    alone = [sums.swept(deviations / 1.0, None, one)[1] for one in (coins, ~coins)]
    assert (sum(alone) == sums.swept(deviations / 1.0, None, None)[1]).all()  # exact, whoever is in them


@pytest.mark.parametrize("kind", ASKED)
def test_order_changes_nothing_and_one_sweep_says_what_two_say(kind: str) -> None:
    frame, (asked, how, _) = table(), ASKED[kind]
    sums = swept(frame, *asked, **how)
    deviations = np.full(sums.numbers, 1e3)
    squares, total = sums.swept(deviations, None, None)
    other = swept(frame.iloc[np.random.default_rng(2).permutation(ROWS)], *asked, **how)
    again = other.swept(deviations, None, None)
    assert (squares == again[0]).all() and (total == again[1]).all()
    everybody, coins = np.ones(len(squares), dtype=bool), np.arange(len(squares)) % 2 == 0
    once = sums.expecting(coins)
    once.squares(deviations / 2)
    first, grains, beside = once.totals(deviations, everybody, coins, False)
    assert (first == sums.totals(deviations, everybody, coins, False)[0]).all() and (grains, beside) == (GRAINS, 0)
    some = coins | (np.arange(len(squares)) % 3 == 0)
    assert (once.totals(deviations, some, coins, False)[0] == first).all()
    some[0] = False
    assert (once.totals(deviations, some, coins, False)[0] != first).any()


def test_whoever_brings_more_than_was_declared_stops_it() -> None:
    sums = swept(table(), "mean", NAMES, **BOUNDS)
    assert isinstance(sums, row_sums.RowSums)
    wrong = replace(sums, grid=replace(sums.grid, worth=30 * sums.grid.worth))
    with pytest.raises(AssertionError, match="more than its limits"):
        wrong.swept(np.full(4, 1.0), None, None)


def test_tiny_parts_are_charged_and_none_is_free() -> None:
    frame = pd.DataFrame({"a": [1.0, 0.0], "who": [0, 1]})
    sums = swept(frame, "sum", ["a"], bounds=(-2, 2))
    squares, _ = sums.swept(np.array([1e200]), None, None)
    assert squares[0] > 0 == squares[1]


def test_more_rows_of_one_person_than_add_up_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sums, "MAX_ROWS", 100)
    with pytest.raises(InputError, match=re.escape("give rows_per_unit=")):
        swept(table(), "mean", NAMES, **BOUNDS)
