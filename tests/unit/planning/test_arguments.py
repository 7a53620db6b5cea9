"""Arguments that there are not: what is meant by them, and what to write."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import UnknownArgument
from leakcap.estimators import LogisticRegression, Mean, Private

X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 2}, r"cap=0\.88 in its place"),
        ({"eps": "secret"}, r"^plan has no argument 'eps': leakcap caps that success itself\. Give cap=0\.55"),
        ({"sensitivity": 1}, "follows from the cap"),
        ({"n_worlds": 64}, "worlds=1024"),
        ({"strat": None}, "did you mean strata"),
        ({"zzz": 1}, "it takes .*cap.*worlds"),
    ],
)
def test_what_is_meant_is_said(given, words):
    with pytest.raises(UnknownArgument, match=words) as caught:
        lc.plan(lc.stats.mean, X, cap=0.55, **given)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, lc.InputError)
    assert "secret" not in str(caught.value)


def test_a_cap_in_place_of_an_epsilon_allows_no_more():
    with pytest.raises(UnknownArgument) as caught:
        lc.plan(lc.stats.mean, X, epsilon=1)
    cap = float(str(caught.value).partition("cap=")[2].partition(" ")[0])
    assert cap <= lc.convert.from_dp(1) < cap + 0.001


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"design": "bits"}, r"options=\{'design': \.\.\.\}"),
        ({"unit": "id"}, r"fit\(X, y, unit="),
        ({"seed": 1}, "random_state"),
        ({"solver": "saga"}, r"Private\(sklearn\.linear_model\.LogisticRegression\(solver=\.\.\.\), cap=\.\.\.\)"),
    ],
)
def test_settings_that_go_elsewhere_are_sent_there(given, words):
    with pytest.raises(UnknownArgument, match=words):
        LogisticRegression(cap=0.55, **given)


def test_nothing_is_said_of_estimators_that_scikit_learn_does_not_have():
    with pytest.raises(UnknownArgument, match="did you mean options"):
        Mean(option={})


def test_signatures_stay_as_they_were():
    assert "cap" in inspect.signature(lc.plan).parameters and "data" in inspect.signature(lc.Session).parameters
    assert next(iter(inspect.signature(Private).parameters)) == "estimator"
    assert lc.plan.__name__ == "plan" and lc.plan.__doc__


def test_release_knows_what_plan_knows():
    assert lc.release(lc.stats.mean, X, cap=0.6, design="bits").value.shape == (2,)
    with pytest.raises(UnknownArgument, match="release has no argument"):
        lc.release(lc.stats.mean, X, cap=0.6, epsilon=1)
