"""Mistakes that are warned about before anything leaves, and what is none."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import FewWorldsWarning, OwnNoiseWarning, RepeatedIdsWarning

X = np.random.default_rng(0).normal(size=(40, 2))
QUICK = {"cap": 0.6, "draws": 256}


def mean(rows):
    return rows.mean(axis=0)


def heard(call):
    with warnings.catch_warnings(record=True) as all_of_them:
        warnings.simplefilter("always")
        call()
    return {one.category for one in all_of_them}


@pytest.mark.parametrize(("worlds", "known"), [(2, "about 1 participant "), (10, "about 3 "), (30, "about 5 ")])
def test_few_worlds_are_told_with_how_many_known_people_end_them(worlds, known):
    with pytest.warns(FewWorldsWarning, match=known):
        lc.plan(mean, X, worlds=worlds, **QUICK)


def test_enough_worlds_and_simulations_are_not():
    assert FewWorldsWarning not in heard(lambda: lc.plan(mean, X, worlds=32, **QUICK))
    assert FewWorldsWarning not in heard(lambda: lc.plan(mean, X, worlds=10, seed=0, **QUICK))


@pytest.mark.parametrize("name", ["patient_nbr", "id", "customer", "user_id", "Person ID"])
def test_ids_that_repeat_are_told(name):
    table = pd.DataFrame({name: np.arange(40) // 2, "x": X[:, 0]})
    with pytest.warns(RepeatedIdsWarning, match=f"unit='{name}'"):
        lc.plan(lambda rows: rows["x"].mean(), table, worlds=32, **QUICK)
    with pytest.warns(RepeatedIdsWarning):
        lc.Session(table, cap=0.6)
    assert RepeatedIdsWarning not in heard(
        lambda: lc.plan(lambda rows: rows["x"].mean(), table, unit=name, worlds=32, **QUICK)
    )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", np.arange(40)),  # everybody once
        ("admission_type_id", np.arange(40) % 4),  # codes of few kinds
        ("width", np.arange(40) // 2),
        ("avoid", np.arange(40) // 2),
        ("user_id", np.arange(40) / 2 // 1),  # numbers with a fractional part are measured
    ],
)
def test_other_columns_are_not(name, values):
    table = pd.DataFrame({name: values, "x": X[:, 0]})
    assert RepeatedIdsWarning not in heard(lambda: lc.plan(lambda rows: rows["x"].mean(), table, worlds=32, **QUICK))


def test_under_a_pool_cap_nothing_is_said_of_the_data():
    table = pd.DataFrame({"id": np.arange(40) // 2})
    pool = lc.pool_membership(0.6)
    assert RepeatedIdsWarning not in heard(lambda: lc.plan(lc.stats.mean, table, cap=pool, bounds=(0, 100)))
    assert RepeatedIdsWarning not in heard(lambda: lc.Session(table, cap=pool))


def test_a_function_that_draws_from_a_fixed_seed_is_none():
    def fixed(rows):
        return rows.mean() + np.random.default_rng(0).normal()

    def own(rows):
        return rows.mean() + np.random.default_rng().normal()

    assert OwnNoiseWarning not in heard(lambda: lc.plan(fixed, X, worlds=32, **QUICK))
    assert OwnNoiseWarning in heard(lambda: lc.plan(own, X, worlds=32, **QUICK))
