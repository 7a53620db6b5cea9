"""What an attacker learns who knows others' coins: by enumeration of all coins and integration over the answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.ground.arrays import Floats
from leakcap.sessions.listed_worlds.cells import REACH
from tests.claims.sessions.play import engine_of, pool

PEOPLE, TARGET, NOISE = 5, 0, 1.3
GRID = np.linspace(-14, 14, 1401)
STEP = GRID[1] - GRID[0]


def coins() -> Floats:
    return np.array(list(product((0, 1), repeat=PEOPLE)), dtype=float)


def functions() -> Iterator[Floats]:
    """What a mechanism answers for every setting of the coins: sums, products, maxima, and anything at all."""
    rng, every = np.random.default_rng(0), coins()
    yield every @ rng.normal(size=PEOPLE)
    yield every.prod(axis=1) * 4
    yield (every * rng.normal(size=PEOPLE) * 3).max(axis=1)
    for _ in range(4):
        yield rng.normal(size=len(every)) * 2


def known_sets() -> Iterator[tuple[int, ...]]:
    others = [one for one in range(PEOPLE) if one != TARGET]
    for size in range(PEOPLE):
        yield from combinations(others, size)


def learnt(answers: Floats, worlds: Floats, known: tuple[int, ...], noise: float) -> tuple[float, float]:
    """Success at the target's coin and information about it, on average over what is known."""
    success = information = 0.0
    for told in product((0, 1), repeat=len(known)):
        here = (worlds[:, list(known)] == told).all(axis=1)
        if not here.any():
            continue
        laws = norm.pdf(GRID, answers[here][:, None], noise) * STEP / len(worlds)
        sides = [laws[worlds[here, TARGET] == coin].sum(axis=0) for coin in (0, 1)]
        success += np.maximum(*sides).sum()
        total, chance = sides[0] + sides[1], [side.sum() for side in sides]
        for side, own in zip(sides, chance, strict=True):
            if own > 0:
                with np.errstate(divide="ignore", invalid="ignore"):
                    terms = side * np.log(side * sum(chance) / (total * own))
                information += float(np.nansum(terms))
    return float(success), information


def apart(answers: Floats) -> Floats:
    every = coins()
    inside, outside = every[:, TARGET] == 1, every[:, TARGET] == 0
    return np.abs(answers[inside] - answers[outside]) / NOISE  # in the same order: the target is the first coin


def test_no_known_coins_help_beyond_the_coupling() -> None:
    for answers in functions():
        bound = norm.cdf(apart(answers) / 2).mean()
        for known in known_sets():
            assert learnt(answers, coins(), known, NOISE)[0] <= bound + 1e-6
        everybody = tuple(one for one in range(PEOPLE) if one != TARGET)
        assert learnt(answers, coins(), everybody, NOISE)[0] == pytest.approx(bound, abs=1e-5)  # attained


def test_information_given_known_coins_is_within_the_log_determinant() -> None:
    for answers in functions():
        bound = 0.5 * np.log1p(answers.var() / NOISE**2)
        for known in known_sets():
            assert learnt(answers, coins(), known, NOISE)[1] <= bound + 1e-6


def test_halves_of_fixed_size_break_it() -> None:
    """The planted twin: with fixed sizes the others tell of the target although the answer says nothing."""
    every = coins()
    halves = every[every.sum(axis=1) == 2]
    everybody = tuple(one for one in range(PEOPLE) if one != TARGET)
    assert learnt(np.zeros(len(halves)), halves, everybody, NOISE)[0] == pytest.approx(1.0, abs=1e-6)


def test_certificates_say_for_whom_it_holds() -> None:
    rows = np.ones((40, 1))
    assert lc.Session(rows, cap=0.6, seed=1).certificate.whoever_is_known
    assert not lc.Session(rows, cap=0.6, design="worlds", worlds=16, seed=1).certificate.whoever_is_known


def test_in_a_list_of_worlds_one_known_person_may_be_enough() -> None:
    """Whether two people are both in or both out: it tells nothing about either, and everything about both."""
    engine = engine_of(pool(1024, 12), reach=REACH)
    masks = engine.worlds.masks()
    same = (masks[:, 0] == masks[:, 1]).astype(float)
    priced = engine.price(engine.begin(), same, 0.02)
    assert priced is not None
    joint = priced.cells.masses() / engine.worlds.m

    def success(given: np.ndarray) -> float:
        inside, outside = joint[given & masks[:, 0]].sum(axis=0), joint[given & ~masks[:, 0]].sum(axis=0)
        return float(np.maximum(inside, outside).sum())

    everything = np.ones(len(masks), dtype=bool)
    assert success(everything) < 0.55
    assert success(masks[:, 1]) + success(~masks[:, 1]) > 0.999
