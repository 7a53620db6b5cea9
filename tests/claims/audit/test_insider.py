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


def planned(seed: int = 1, cap: float = 0.6) -> lc.Plan:
    return lc.plan(lc.stats.mean, ROWS, cap=cap, design="bits", seed=seed)


def audited(plan: lc.Plan) -> lc.audit.AuditReport:
    return lc.audit.run(plan, attacks=["collude"], trials=TRIALS)


def test_an_honest_release_is_not_refuted_and_its_bound_is_reached() -> None:
    for seed in range(3):
        report = audited(planned(seed))
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
    report = audited(planned())
    assert report.verdict == "refuted"
    assert max(one.measured for one in report.findings if one.named) > 0.7
