"""An auditor who knows everybody else: honest bits are not refuted and are reached, planted faults are seen."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import leakcap as lc

BITS = import_module("leakcap.modes.bits")
ROWS = np.random.default_rng(5).standard_t(4, size=(60, 3)) * [1, 10, 0.1]
TRIALS = 20_000
FEW = 4_000  # for faults that stand out
CHANCE = np.random.default_rng(8)


def planned(seed: int = 1, cap: float = 0.6) -> lc.Plan:
    return lc.plan(lc.stats.mean, ROWS, cap=cap, design="bits", seed=seed)


def audited(plan: lc.Plan, trials: int = TRIALS) -> lc.audit.AuditReport:
    return lc.audit.run(plan, attacks=["collude"], trials=trials)


def test_an_honest_release_is_not_refuted_and_its_bound_is_reached() -> None:
    report = audited(planned())
    assert report.verdict != "refuted", str(report)
    first = {one.attack: one for one in report.findings if one.named}
    assert set(first) == {"collude, by the pool", "collude, as learnt"}
    assert first["collude, by the pool"].measured == pytest.approx(0.6, abs=0.02)


def weaker(monkeypatch: Any, factor: float) -> None:
    released = BITS.released_vector

    class Weak:
        def __init__(self, randomness: Any) -> None:
            self.randomness = randomness

        def normals(self, size: int) -> Any:
            return factor * self.randomness.normals(size)

    monkeypatch.setattr(
        BITS, "released_vector", lambda noise, at, step, source: released(noise, at, step, Weak(source))
    )


def three_times_for_one(monkeypatch: Any) -> None:
    """One person counts three times in what is released, and once in what is certified."""
    honest = BITS.CoinForEverybody.coordinates

    def coordinates(self: Any, coins: Any) -> Any:
        most = int(np.argmax(self.exposure))
        return honest(self, coins) + 2 * coins[most] * self.noise.space.coordinates[most]

    monkeypatch.setattr(BITS.CoinForEverybody, "coordinates", coordinates)


def test_planted_noise_that_is_a_fifth_too_small_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    weaker(monkeypatch, 0.8)
    assert audited(planned()).verdict == "refuted"


def test_a_person_who_counts_more_than_certified_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    three_times_for_one(monkeypatch)
    report = audited(planned(), FEW)
    assert report.verdict == "refuted"
    assert max(one.measured for one in report.findings if one.named) > 0.7


def fresh(monkeypatch: Any, change: Any) -> None:
    module = import_module("leakcap.planning.entry")
    honest = module.fresh_world
    monkeypatch.setattr(module, "fresh_world", lambda request, source: change(honest(request, source)))


def neighbours_alike(coins: Any) -> Any:
    coins[1::2] = coins[::2]
    return coins


def first_and_last_alike(coins: Any) -> Any:
    coins[-1] = coins[0]
    return coins


def halves_of_one_size(coins: Any) -> Any:
    half = np.arange(len(coins)) < len(coins) // 2
    return CHANCE.permutation(half)


def nobody_where_all_would_be(coins: Any) -> Any:
    coins[7] &= bool(coins[3]) or bool(coins[4])
    return coins


@pytest.mark.parametrize(
    "change", [neighbours_alike, first_and_last_alike, halves_of_one_size, nobody_where_all_would_be]
)
def test_coins_that_are_not_fair_or_not_independent_are_refuted(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, change)
    report = lc.audit.run(planned(), attacks=["secret"], trials=FEW)
    assert report.verdict == "refuted", str(report)


def test_fair_coins_are_not_refuted() -> None:
    for seed in range(2):
        report = lc.audit.run(planned(seed), attacks=["secret"], trials=FEW)
        assert report.verdict == "holds", str(report)
