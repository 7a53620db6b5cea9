"""The audit of a release under a pool cap: whoever brings most is found as often as certified, and faults are seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.audit.attacks.in_the_data import ATTACK, NOISE
from leakcap.errors import InputError
from leakcap.modes import pool as of_pool

CAP = 0.65
ROWS = np.random.default_rng(0).normal(size=(50, 3))
STATISTICS = {
    "averages": (lc.stats.mean, {"bounds": (-4, 4)}),
    "covariances": (lc.stats.covariance, {"bounds": (-4, 4)}),
    "bins": (partial(lc.stats.histogram, edges=[-4, -1, 1, 4]), {}),
}


def planned(name: str = "averages") -> Any:
    fn, given = STATISTICS[name]
    rows = ROWS[:, 0] if name == "bins" else ROWS
    return lc.plan(fn, rows, cap=lc.pool_membership(CAP), seed=1, **given)


def looked_for(report: Any) -> list[Any]:
    return [one for one in report.findings if one.attack == ATTACK]


def less_noise(monkeypatch: pytest.MonkeyPatch, kept: float) -> None:
    """The planted fault: a part of the noise is taken away again."""
    honest = of_pool.released_vector

    def noised(noise: Any, rest: Any, grid: float, randomness: Any, **more: Any) -> Any:
        class Less:
            def normals(self, size: int) -> Any:
                return kept * randomness.normals(size)

        return honest(noise, rest, grid, Less(), **more)  # type: ignore[arg-type]

    monkeypatch.setattr(of_pool, "released_vector", noised)


@pytest.mark.parametrize("name", STATISTICS)
def test_whoever_brings_the_most_is_found_as_often_as_certified(name: str) -> None:
    trials = 4000
    report = lc.audit.run(planned(name), trials=trials)
    assert report.verdict != "refuted", report
    own, most = looked_for(report)
    assert most.certified == pytest.approx(CAP, abs=1e-6)
    error = 4.5 * 0.5 / np.sqrt(trials)  # one audit in 150,000 is further off
    assert abs(most.measured - CAP) < error
    assert 0.5 - error < own.measured < CAP + error


def test_sums_with_too_little_noise_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    less_noise(monkeypatch, 0.5)
    refuted = {one.attack for one in lc.audit.run(plan, trials=1000).findings if one.verdict == "refuted"}
    assert refuted == {ATTACK, NOISE}


def test_somebody_whose_rows_are_not_taken_for_a_persons_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: noise is made for a third of what one person may bring. The noise itself is as claimed."""
    least, charge = of_pool.least_deviations, of_pool.charge
    monkeypatch.setattr(of_pool, "least_deviations", lambda extent, allowed: least(extent, allowed) / 3)
    monkeypatch.setattr(of_pool, "charge", lambda extent, deviations: charge(extent, deviations) / 9)
    plan = lc.plan(lc.stats.sum, ROWS / 10, cap=lc.pool_membership(CAP), seed=1, bounds=(-4, 4))
    assert plan.certificate.membership_success == pytest.approx(CAP, abs=1e-6)
    report = lc.audit.run(plan, trials=1000)
    assert [one.verdict for one in looked_for(report)][1] == "refuted"
    assert "refuted" not in {one.verdict for one in report.findings if one.attack == NOISE}


def test_a_model_under_a_pool_cap_is_attacked_by_its_sums() -> None:
    rows = np.random.default_rng(0).normal(size=(4000, 2))
    settings = {"target_bounds": (-9, 9), "options": {"bounds": (-4, 4)}, "random_state": 0}
    with pytest.warns(lc.errors.SimulationWarning):
        model = lc.estimators.Ridge(cap=lc.pool_membership(CAP), **settings).fit(rows, rows.sum(axis=1))
    own, most = looked_for(lc.audit.run(model, trials=400))
    assert own.verdict != "refuted" and most.measured > 0.55  # by chance once in 10,000


def test_what_is_not_kept_or_not_taken_is_said() -> None:
    with pytest.raises(InputError, match="leave attacks="):
        lc.audit.run(planned(), attacks=["bayes"], trials=400)
    with pytest.raises(InputError, match="at least 200"):
        lc.audit.run(planned(), trials=3)
    median = lc.blocks(lambda rows: float(np.median(rows)), blocks=10, bounds=(-4, 4))
    with pytest.raises(InputError, match=r"audit\.universe"):
        lc.audit.run(lc.plan(median, ROWS[:, 0], cap=lc.pool_membership(0.9), seed=1), trials=400)
