"""The settings of PATE-FM: figures that hold come out, and small ensembles run through the same rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reproductions.label_dp.table3 import SETTINGS, accounts, ensembles, table


def test_half_of_the_printed_figures_hold_whatever_the_votes_are() -> None:
    newer = [accounts(one)["newer"] for one in SETTINGS]
    assert [newer[place] for place in (1, 2, 5)] == pytest.approx([0.29, 0.18, 7.9], rel=0.02)
    assert all(newer[place] > 1.1 * SETTINGS[place].epsilon for place in (0, 3, 4))  # these look at the votes


def test_agreement_makes_the_epsilon_of_the_votes_small_and_the_table_shows_it() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=4000)
    X = np.eye(10)[y] + 0.05 * rng.standard_normal((4000, 10))
    small = replace(SETTINGS[0], teachers=200, answers=60)
    found = ensembles(small, (X[:3000], y[:3000], X[3000:], y[3000:]))
    assert found["answers_right"] > 95 and found["student"] > 90
    assert found["data_dependent"] < accounts(small)["newer"] / 1.5
    lines = [{**vars(small), "accounts": accounts(small), "ensembles": found}]
    assert table(lines).count("\n") == 2
