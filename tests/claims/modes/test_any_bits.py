"""Any function with a coin for everybody: brute force over all coins of small pools, whoever else is known.

Answers, clipping and success are computed here from the data, by code that the bound does not share. Success is a sum
over a fine grid of released values, exact to 1e-6.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import leakcap as lc
from leakcap.modes import any_bits
from leakcap.noise import Seeded
from leakcap.worlds import crowded_bits, unseen_share
from leakcap.worlds.coins import smallest_simulated
from tests.claims.leakage.oracle import density

N = 8
COINS = np.array(list(product([False, True], repeat=N)))
ROWS = np.random.default_rng(4).standard_normal(N)
ROWS[3] = 9.0
INTEGRATED = 1e-6


def parity(rows: np.ndarray) -> float:
    """Whoever knows about everybody else sees the last coin in it; whoever knows nobody else sees nothing."""
    if not len(rows):
        raise ZeroDivisionError
    return float(len(rows) % 2)


def largest(rows: np.ndarray) -> float:
    return float(rows.max())  # fails without rows


def decided_by_one(rows: np.ndarray) -> float:
    return float((rows == 9.0).any())


FUNCTIONS = (parity, largest, decided_by_one)


def planned(fn: Callable[[np.ndarray], float], **options: Any) -> lc.Plan:
    given = {"cap": lc.membership(0.6), "worlds": 1024, "seed": 1, "mode": "confidence", "design": "bits"}
    return lc.plan(fn, ROWS, **given | options)


class Game:
    """All coins of the pool, and the chance of every released number for each."""

    def __init__(self, plan: lc.Plan, fn: Callable[[np.ndarray], float]) -> None:
        made: Any = plan.releaser
        space, deviation = made.noise.space, float(made.noise.deviations[0])
        found = np.zeros(len(COINS))
        for place, coins in enumerate(COINS):
            try:
                answer = fn(ROWS[coins])
            except (ValueError, ZeroDivisionError):
                continue  # the centre
            found[place] = (answer - space.centre[0]) * space.scale[0] * space.directions[0, 0]
        found = np.clip(found, made.low[0], made.high[0]) / deviation
        y, step = np.linspace(found.min() - 8, found.max() + 8, 2001, retstep=True)
        self.chance = density(y[:, None] - found) * step / len(COINS)

    def success(self, unit: int, known: tuple[int, ...]) -> float:
        view = COINS[:, list(known)] @ 2 ** np.arange(len(known)) if known else np.zeros(len(COINS), dtype=int)
        both = [
            np.stack(
                [self.chance[:, (view == z) & (COINS[:, unit] == side)].sum(axis=1) for z in range(view.max() + 1)]
            )
            for side in (False, True)
        ]
        return float(np.maximum(*both).sum())

    def worst(self, known: int) -> float:
        """Over all people, and all sets of so many others, up to 20 of them."""
        found = []
        for unit in range(N):
            others = [u for u in range(N) if u != unit]
            found += [self.success(unit, some) for some in list(combinations(others, known))[:20]]
        return max(found)


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_no_attacker_beats_the_certificate_whoever_is_known(fn: Callable[[np.ndarray], float]) -> None:
    plan = planned(fn)
    game = Game(plan, fn)
    assert plan.certificate.membership_success == pytest.approx(0.6, abs=1e-6)
    for known in (0, 2, N - 1):
        assert game.worst(known) <= plan.certificate.given(known) + INTEGRATED
    assert {plan.certificate.given(k) for k in range(N)} == {plan.certificate.membership_success}


def test_knowing_everybody_else_helps_and_is_allowed_for() -> None:
    """The parity of all coins tells nothing to whoever knows nobody, and as much as can be to whoever knows all."""
    plan = planned(parity, worlds=16_384, confidence=0.9)
    game = Game(plan, parity)
    assert game.worst(0) < 0.505
    assert 0.59 < game.worst(N - 1) <= plan.certificate.membership_success


def test_a_planted_half_deviation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    std = np.ndarray.std
    plan = planned(parity, worlds=16_384, confidence=0.9)
    table, worlds = plan.run.simulation.table, plan.run.worlds

    class Halved(np.ndarray):
        def std(self, **options: Any) -> Any:  # type: ignore[override]
            return std(np.asarray(self), **options) / 2

    stack = np.stack
    monkeypatch.setattr("leakcap.modes.confidence.np.stack", lambda rows: stack(rows).view(Halved))
    made, certificate = any_bits.certified(
        table,
        worlds,
        (lc.membership(0.6),),
        lc.modes.NoiseSettings("best", 0.0, None, None, lc.ground.cores.Machine(), True, (), ()),
        gamma=0.1,
        rerun=plan.run.rerun,
        draw=plan.run.draw,
    )
    plan.releaser = made
    assert Game(plan, parity).worst(N - 1) > certificate.membership_success + 0.02


def test_halves_cannot_promise_it() -> None:
    """Fixed sizes tie people together: the certificate of halves says nothing for N - 1 known, bits say .60."""
    halves = planned(decided_by_one, design="worlds").certificate
    assert halves.given(N - 1) == 1
    assert not halves.whoever_is_known


# ---- worlds of hardly anybody -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 7, 8, 11, 12, 16, 20])
def test_the_share_that_is_never_simulated_is_counted(n: int) -> None:
    sizes = np.bitwise_count(np.arange(2**n))
    assert unseen_share(n) == pytest.approx(float((sizes < smallest_simulated(n)).mean()), rel=1e-9)
    assert unseen_share(n) <= 0.0101


def test_simulated_coins_are_fair_but_for_the_worlds_left_out() -> None:
    found = crowded_bits(8, 40_000, np.random.default_rng(3)).packed[:, 0]
    counts = np.bincount(found, minlength=256)
    assert counts[0] == 0
    assert chisquare(counts[1:]).pvalue > 1e-6
    assert chisquare(counts).pvalue < 1e-6, "the test sees that nobody's world is left out"


def test_worlds_left_out_are_allowed_for() -> None:
    """The certified deviation, added up anew: what was seen, its margin, and the range for what is never simulated."""
    plan = planned(largest)
    made: Any = plan.releaser
    space = made.noise.space
    table = plan.run.simulation.table[256:]
    rest = np.clip((table - space.centre) * space.scale @ space.directions.T, made.low, made.high)
    length = float(made.high[0] - made.low[0])
    sure = statistics.stdev(rest[:, 0].tolist()) + length * math.sqrt(2 * math.log(1e6) / (len(rest) - 1))
    needed = math.sqrt(sure**2 + length**2 / 256)  # nobody at all: one way of 256 in which coins fall
    signal = (needed / made.noise.deviations[0]) ** 2
    assert plan.certificate.membership_success == pytest.approx(
        0.5 * (1 + math.erf(math.sqrt(signal / 2))) + plan.certificate.sampler_distance, abs=1e-12
    )
    assert needed > sure * (1 + 1e-4), "forgetting them would show"


class NobodyAtAll(Seeded):
    """Every coin shows tails."""

    def bits(self) -> Any:
        return self

    def integers(self, low: int, high: int, /, size: Any = 1, dtype: Any = np.int64) -> Any:
        return np.zeros(size, dtype=dtype)


def test_a_world_of_nobody_gives_a_release_like_any_other() -> None:
    plan = planned(largest)
    mask = plan.run.draw(NobodyAtAll(1))
    assert not mask.any()
    released = plan.releaser.vector(NobodyAtAll(1))
    assert np.isfinite(released).all()
    assert plan.run.rerun(mask) is None, "the function failed, and nobody heard of it"
