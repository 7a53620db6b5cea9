"""What halves of the people cost, without any noise: Diabetes-130 by age, by arithmetic and by coins of our own.

Nothing of what makes releases is used here: the table, sums of squares, and coins.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from leakcap import datasets

TRIALS = 400
pytestmark = pytest.mark.skipif("LEAKCAP_DATA" not in os.environ, reason="needs the data folder")


class Counted:
    """Stays and early readmissions by age: what each person brings, and the counts of the whole table."""

    def __init__(self, rows: int | None) -> None:
        table = datasets.diabetes130()[["patient_nbr", "age", "readmitted"]]
        table = table.assign(early=table["readmitted"] == "<30")
        by_age = table.groupby("age", observed=True)["early"]
        self.truth = np.stack([by_age.size(), by_age.sum()]).astype(float)
        kept = table if rows is None else table[table.groupby("patient_nbr").cumcount() < rows]
        brought = kept.groupby(["patient_nbr", "age"], observed=True)["early"].agg(["size", "sum"]).reset_index()
        self.people, self.person = table["patient_nbr"].nunique(), pd.factorize(brought["patient_nbr"])[0]
        self.age = brought["age"].cat.codes.to_numpy()
        self.values = brought[["size", "sum"]].to_numpy(float).T
        self.squares = np.stack([np.bincount(self.age, one**2) for one in self.values])
        self.totals = np.stack([np.bincount(self.age, one) for one in self.values])

    def median(self, deviations: np.ndarray, middles: np.ndarray | float = 0.0) -> float:
        """Of the relative errors of all counts together, which are normal with these deviations."""
        far, middle = deviations / self.truth, middles / self.truth

        def within(limit: float) -> float:
            return float(np.mean(norm.cdf((limit - middle) / far) - norm.cdf((-limit - middle) / far)))

        return float(brentq(lambda limit: within(limit) - 0.5, 0, 1))

    @property
    def by_coins(self) -> np.ndarray:
        """Each takes part by a coin of their own, and counts twice."""
        return np.sqrt(self.squares)

    @property
    def by_fixed_halves(self) -> np.ndarray:
        """Exactly half of all take part, and count twice."""
        return np.sqrt((self.squares - self.totals**2 / self.people) * self.people / (self.people - 1))

    def seen(self, fixed: bool, rng: np.random.Generator) -> float:
        """The median of relative errors of halves that are drawn."""
        off = []
        for _ in range(TRIALS):
            taking_part = rng.random(self.people) < 0.5
            if fixed:
                taking_part = rng.permutation(self.people) < self.people // 2
            twice = 2.0 * taking_part[self.person]
            counts = np.stack([np.bincount(self.age, one * twice) for one in self.values])
            off.append(np.abs(counts - self.truth) / self.truth)
        return float(np.median(off))


@pytest.fixture(scope="module")
def every_row() -> Counted:
    return Counted(None)


def test_halves_alone_cost_more_than_two_percent_whatever_the_noise(every_row: Counted) -> None:
    """Of all rows, and of at most ten of one person; with coins, and where exactly half of all take part."""
    ten = Counted(10)
    less = ten.totals - ten.truth  # what the bound takes off
    found = [
        every_row.median(every_row.by_coins),
        every_row.median(every_row.by_fixed_halves),
        ten.median(ten.by_coins, less),
        ten.median(ten.by_fixed_halves, less),
    ]
    assert [f"{100 * one:.2f}" for one in found] == ["2.13", "2.10", "2.34", "2.31"]
    said = Path(__file__).parents[2].joinpath("docs/guides/ask-in-sql.md").read_text()
    assert all(f"{100 * one:.2f} %" in said for one in found)


@pytest.mark.parametrize("fixed", [False, True])
def test_halves_that_are_drawn_are_as_far_off_as_the_arithmetic_says(every_row: Counted, fixed: bool) -> None:
    """5 % is about 4 deviations of the median of so many trials."""
    deviations = every_row.by_fixed_halves if fixed else every_row.by_coins
    seen = every_row.seen(fixed, np.random.default_rng(fixed))
    assert seen == pytest.approx(every_row.median(deviations), rel=0.05)
    assert seen != pytest.approx(every_row.median(deviations / np.sqrt(2)), rel=0.05)  # coins that count once
