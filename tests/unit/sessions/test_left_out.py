"""Answers from which people are missing: the custodian is warned, with a share that everybody can pay."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import LeftOutWarning

PEOPLE = 400


def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"age": rng.integers(18, 90, PEOPLE), "cost": rng.gamma(2, 100, PEOPLE)})


def opened(**more: Any) -> lc.Session:
    return lc.Session(people(), cap=0.6, seed=1, **more)


QUESTIONS = {
    "count": lambda one, share: one.count(share=share),
    "sum": lambda one, share: one.sum("age", bounds=(0, 120), share=share),
    "mean": lambda one, share: one.mean("age", bounds=(0, 120), share=share),
    "histogram": lambda one, share: one.histogram("age", edges=[0, 30, 60, 120], share=share),
    "covariance": lambda one, share: one.covariance("age", bounds=(0, 120), share=share),
    "quantile": lambda one, share: one.quantile("age", bounds=(0, 120), share=share),
    "linear": lambda one, share: one.linear(lambda rows: float(rows["age"].iloc[0]), bounds=(0, 120), share=share),
    "blocks": lambda one, share: one.blocks(lambda rows: rows["age"].mean(), blocks=4, bounds=(0, 120), share=share),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_who_is_left_out_is_warned_about_and_the_proposed_share_is_for_everybody(ask: Any) -> None:
    one = opened()
    one.count(share=0.9)
    with pytest.warns(LeftOutWarning, match="left out of this answer") as heard:
        ask(one, 0.99)
    assert heard[0].filename == __file__
    proposed = re.search(r"everybody can pay for share=(\S+) or less", str(heard[0].message))
    if proposed is None:  # others have paid nearly all
        assert one.remaining.share < 0.001 and "session.raise_cap(...)" in str(heard[0].message)
        one.raise_cap(0.65, who="the board", why="a second study")
    share = 0.1 if proposed is None else float(proposed[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutWarning)
        ask(one, share)


def test_the_number_is_that_of_the_preview() -> None:
    one = opened()
    one.count(where="age > 40", share=0.5)
    retired = one.preview("count", share=0.6).retired
    assert retired == int((people()["age"] > 40).sum())
    with pytest.warns(LeftOutWarning, match=f"{retired} of {PEOPLE} people were left out"):
        one.count(share=0.6)


def test_where_everybody_is_left_out_the_answer_is_noise_alone() -> None:
    one = opened()
    one.count(share=0.5)
    with pytest.warns(LeftOutWarning, match=r"everybody was .* noise alone, .* share=0.5 or less"):
        answer = one.count(share=0.99)
    assert abs(answer.value) < 8 * answer.noise[0]


def test_a_warning_that_is_made_an_error_loses_no_answer() -> None:
    one = opened()
    one.count(share=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutWarning)
        with pytest.raises(LeftOutWarning):
            one.count(share=0.99)
        again = one.count(share=0.99)  # it was kept, and is the same for nothing
    assert again.again


def test_a_fit_warns_once_whatever_its_steps() -> None:
    one = opened()
    one.count(share=0.5)
    fit = lc.estimators.LogisticRegression(classes=[False, True])
    one._table.columns["old"] = np.asarray(people()["age"] > 50)
    with pytest.warns(LeftOutWarning, match=r"session\.remaining\.share says how much is left") as heard:
        one.fit(fit, ["cost"], "old", bounds=(0, 1000), share=0.9)
    assert len([one for one in heard if one.category is LeftOutWarning]) == 1


def test_nothing_is_said_where_nobody_is_missing() -> None:
    one = opened()
    for step in range(100):
        one.count(where=f"age > {step - 200}", share=0.01)  # a hundred such answers about everybody
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.mean("age", share=0.5)  # about the pool's own mean, in which everybody stays
        one.count(where="age > 200", share=0.5)  # nobody brings anything
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lc.estimators.Mean(cap=0.6, options={"design": "bits"}).fit(people())


def test_under_a_pool_cap_it_follows_from_declarations_alone() -> None:
    one = lc.Session(people(), cap=lc.pool_membership(0.6), seed=1)
    one.count(share=0.5)
    with pytest.warns(LeftOutWarning, match=r"may be missing .*preview\(\.\.\.\)\.fits") as heard:
        one.count(where="age > 200", share=0.6)  # nobody is there at all
    assert not re.search(r"\d", str(heard[0].message))
