"""One table for all currencies: what follows holds for real mechanisms, and no text is rounded the unsafe way."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.convert.table import CURRENCIES, table_of
from tests.claims.certificates.brute_force import information


def figures(**given: Any) -> dict[str, Any]:
    return {line.currency: line for line in table_of({name: Fraction(value) for name, value in given.items()})}


GIVEN: list[dict[str, Any]] = [
    {"mi": "0.1"},
    {"mi": "2"},
    {"mi": "0"},
    {"eps": "1"},
    {"eps": "1/3", "n": 7},
    {"eps": "0.5", "delta": "1e-6"},
    {"eps": "900", "n": 3},
    {"rho": "0.1"},
    {"rho": "0.02", "n": 100},
    {"success": "0.6"},
    {"success": "0.999999"},
    {"eta": "0.05"},
]


@pytest.mark.parametrize("given", GIVEN)
def test_every_currency_has_a_line_and_no_text_is_on_the_unsafe_side(given: dict[str, Any]) -> None:
    lines = table_of({name: Fraction(value) for name, value in given.items()})
    assert tuple(line.currency for line in lines) == CURRENCIES
    assert sum(line.relation == "given" for line in lines) == 1
    for line in lines:
        assert line.assumes
        assert (line.value is None) == (line.relation == "none") == (line.shown == "none")
        if line.relation in ("follows", "enough"):
            number = float(re.sub(r"[^0-9.e-]", "", line.shown.replace("nats", "")))
            shown = number / 100 if "%" in line.shown else number
            assert line.value is not None
            if line.relation == "follows":
                assert shown >= line.value * (1 - 1e-8)
            else:
                assert shown <= line.value


# What follows, against mechanisms that are computed outright


def randomised_response(eps: float) -> np.ndarray:
    """The laws of an answer about a bit: rows are the bit."""
    right = math.exp(eps) / (1 + math.exp(eps))
    return np.array([[right, 1 - right], [1 - right, right]])


def renyi(laws: np.ndarray, order: float) -> float:
    return float(np.log((laws[0] ** order * laws[1] ** (1 - order)).sum()) / (order - 1))


@pytest.mark.parametrize("eps", ["0.1", "1", "4"])
def test_what_follows_from_eps_holds_for_randomised_response(eps: str) -> None:
    laws, lines = randomised_response(float(eps)), figures(eps=eps, n=1)
    assert laws.max(axis=0).sum() / 2 <= lines["guess about one person"].value
    for order in (1.01, 2, 8, 50):
        assert renyi(laws, order) <= order * lines["rho of zCDP"].value
    assert renyi(laws, 8) <= lines["RDP of order 8"].value
    told = float((laws * np.log(2 * laws)).sum() / 2)
    assert told <= lines["information"].value
    assert math.exp(float(eps)) * 0.01 <= lines["found at 1 % alarms"].value


def test_a_planted_half_of_the_concentrated_budget_is_caught() -> None:
    """The twin: eps^2/4 instead of eps^2/2 is too little for small eps and large orders."""
    assert renyi(randomised_response(0.1), 1.01) > 1.01 * 0.1**2 / 4


@pytest.mark.parametrize("rho", ["0.02", "0.5"])
def test_what_follows_from_rho_holds_for_normal_noise(rho: str) -> None:
    """Two normal laws at distance mu are mu^2/2-zCDP, and attain every order."""
    mu, lines = math.sqrt(2 * float(rho)), figures(rho=rho, n=1)
    assert norm.cdf(mu / 2) <= lines["guess about one person"].value
    eps = lines["eps of DP"].value
    delta = norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)
    assert delta <= 1e-5
    assert norm.cdf(norm.ppf(0.01) + mu) <= lines["found at 1 % alarms"].value
    assert information(np.array([[0.0], [mu]]), np.array([1.0])) <= lines["information"].value


def test_what_is_enough_keeps_the_success() -> None:
    lines = figures(success="0.6")
    assert lc.convert.from_dp(lines["eps of DP"].value) <= 0.6
    assert lc.convert.from_zcdp(lines["rho of zCDP"].value) <= 0.6
    assert lc.convert.posterior(lines["information"].value, 0.5) <= 0.6
    assert lines["rho of zCDP"].value == pytest.approx(0.2 * math.log(1.5), rel=1e-5)


def test_the_gap_of_a_memorising_model_is_within_what_follows_from_its_information() -> None:
    """A bit is drawn and published with randomised response; the loss says whether it is the one that was used."""
    for eps in (0.2, 1.0, 5.0):
        laws = randomised_response(eps)
        told = float((laws * np.log(2 * laws)).sum() / 2)
        gap = laws[0, 0] - 0.5  # loss 0 on the data used with this chance, 1/2 on fresh data
        bound = figures(mi=repr(told))["generalisation gap"].value
        assert gap <= bound
        assert gap > bound / 4, "the bound is of the right size"


# The worst case


@pytest.mark.parametrize("nats", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_less_noise_than_the_worst_case_tells_too_much(nats: float, dimensions: int) -> None:
    """Two opposite answers on an axis; noise of the least mean length has this deviation on every axis."""
    length = lc.convert.worst_case_noise(nats, radius=2.0, dimensions=dimensions)
    mean_length = {1: math.sqrt(2 / math.pi), 3: 2 * math.sqrt(2 / math.pi)}[dimensions]
    deviation = length / mean_length
    opposite = np.array([[-2.0], [2.0]])
    assert information(opposite, np.array([0.99 * deviation])) > nats
    enough = math.sqrt(1 / math.expm1(2 * nats / dimensions) / dimensions) * 2.0
    assert deviation <= enough * 1.2533, "the noise that suffices for all is above it up to the factor of Fano's bound"


def test_a_planted_worst_case_of_twice_the_noise_is_caught() -> None:
    deviation = 2 * lc.convert.worst_case_noise(0.05, radius=2.0, dimensions=1) / math.sqrt(2 / math.pi)
    assert information(np.array([[-2.0], [2.0]]), np.array([0.99 * deviation])) < 0.05


def test_bad_numbers_are_refused() -> None:
    for nats, radius, dimensions in ((0, 1, 1), (-1, 1, 1), (0.1, 0, 1), (0.1, 1, 0), (0.1, math.nan, 1)):
        with pytest.raises(lc.InputError):
            lc.convert.worst_case_noise(nats, radius, dimensions)
    assert lc.convert.worst_case_noise(1.0, 1.0, 5) == 0
    with pytest.raises(lc.InputError):
        table_of({"success": Fraction(6, 10), "prior": Fraction(1, 10)})


# Bounds that add up


def test_bounds_by_average_distances_add_up() -> None:
    """Theorem 7: two noisy answers about one of three secrets, by a fine sum; seeds are the noise of their own."""
    answers = np.array([[0.0, 1.0], [1.0, -1.0], [0.5, 2.0]])
    noise = np.array([1.5, 4.0])
    each = [(2 * answers[:, i].var()) / (2 * noise[i] ** 2) for i in range(2)]
    total, risk = lc.convert.add_up(each, gamma=[1e-6, 2e-6])
    assert information(answers, noise) <= total
    assert risk >= 3e-6
    assert total >= sum(each)
    with pytest.raises(lc.InputError):
        lc.convert.add_up([])


def test_information_as_such_does_not_add_up() -> None:
    """Why `add_up` is not for certified information: a locked message and its key tell nothing alone, all together."""
    secret, key = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    for seen in (secret ^ key, key):
        assert all((secret[seen == value]).mean() == 0.5 for value in (0, 1))
    assert ((secret ^ key) ^ key == secret).all()
