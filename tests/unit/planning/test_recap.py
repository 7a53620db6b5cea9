"""Other caps for the worlds that were run."""

from __future__ import annotations

import pytest

import leakcap as lc
from tests.unit.planning.means import SMALL, X, mean, seeded


def test_looser_caps_need_less_noise() -> None:
    plan = seeded()
    stds = [plan.recap(lc.mutual_information(nats)).noise.std for nats in (0.05, 0.3, 1.0)]
    assert stds == sorted(stds, reverse=True)
    assert stds[0] > 2 * stds[1] > 2 * stds[2]


def test_a_recap_keeps_simulation_and_worlds() -> None:
    plan = seeded()
    recap = plan.recap(lc.mutual_information(1.0))
    assert recap.outputs is plan.outputs
    assert recap.worlds is plan.worlds


def test_every_recap_spends_a_further_share_of_gamma() -> None:
    """Attempt j may fail with gamma / (j (j+1)): all attempts together with less than gamma."""
    plan = lc.plan(mean, X, seed=2, **SMALL)
    family = [plan, plan.recap(lc.mutual_information(0.5)), plan.recap(lc.mutual_information(0.5))]
    family.append(family[-1].recap(lc.mutual_information(0.2)))
    attempts = [one.certificate.attempt for one in family]
    assert attempts == sorted(set(attempts))
    assert attempts[0] >= 1
    for one in family:
        certificate = one.certificate
        j = certificate.attempt
        assert certificate.gamma == pytest.approx(1e-6)
        assert certificate.gamma_used == pytest.approx(certificate.gamma / (j * (j + 1)))
        assert certificate.confidence == pytest.approx(1 - 1e-6)


def test_all_caps_of_a_list_hold() -> None:
    plan = lc.plan(mean, X, seed=2, worlds=32, draws=1024, cap=[lc.membership(0.75), lc.mutual_information(0.2)])
    by_name = {one.cap: one for one in plan.certificate.capped}
    assert set(by_name) == {"Membership", "MutualInformation"}
    assert all(one.before < one.certified <= one.limit for one in by_name.values())
    assert plan.certificate.membership_success <= 0.75
    assert plan.certificate.mutual_information <= 0.2


def test_exposure_is_per_unit_and_its_worst_is_certified() -> None:
    plan = lc.plan(mean, X, seed=2, worlds=32, draws=1024, cap=lc.membership(0.75))
    assert plan.exposure.shape == (30,)
    assert plan.exposure.min() >= 0.5
    assert plan.exposure.max() == plan.certificate.membership_success <= 0.75
