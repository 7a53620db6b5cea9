"""`mechanism=`: what a plan says, gives and refuses; the bound itself is tested in tests/claims/modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import Exponential, Seeded
from leakcap.report.release.page import public_page

X = np.random.default_rng(0).standard_normal((60, 3)) * [1, 3, 0.5] + [0, 50, 2]
WAYS: dict[str, dict[str, Any]] = {"individual": {"mode": "individual", "worlds": 64}, "bits": {"design": "bits"}}


def planned(way: str = "bits", rows: Any = X, **options: Any) -> lc.Plan:
    return lc.plan(lc.stats.mean, rows, **{"cap": 0.6, "mechanism": "exponential", "seed": 1} | WAYS[way] | options)


@pytest.mark.parametrize("way", WAYS)
def test_the_certificate_the_summary_and_the_pages_name_the_noise(way: str) -> None:
    plan = planned(way)
    certificate = plan.certificate
    assert certificate.noise is not None and certificate.noise.startswith("Exponential noise")
    assert certificate.theorems[-1] == "exponential"
    assert lc.Certificate.from_json(certificate.to_json()) == certificate
    assert "Exponential noise" in str(plan.summary())
    assert "Exponential noise" in public_page(certificate)
    assert plan.noise.law == Exponential(3)


def test_a_release_has_the_form_of_the_answer_and_an_interval() -> None:
    release = planned(seed=None).release()
    low, high = release.interval(0.9)
    assert release.value.shape == (3,) and (low < high).all()


@pytest.mark.parametrize("way", WAYS)
def test_intervals_cover_the_whole_pools_answer(way: str) -> None:
    """One plan's widths and 1,500 releases; planted: noise of twice the size is covered less often."""
    plan = planned(way, X[:, :2])
    source = Seeded(3)
    drawn = np.array([plan.releaser.vector(source) for _ in range(1500)])
    off, pool = np.abs(drawn - X[:, :2].mean(axis=0)), X[:, :2].mean(axis=0)
    release = plan.release()
    for level in (0.5, 0.9, 0.99):
        width = np.subtract(*release.interval(level)[::-1]) / 2
        assert (off <= width).mean() > level - 4 * (level * (1 - level) / 1500) ** 0.5
        assert (off <= width).mean() < level + 0.05
    noisier = drawn + (drawn - pool)
    assert (np.abs(noisier - pool) <= np.subtract(*release.interval(0.9)[::-1]) / 2).mean() < 0.8


@pytest.mark.parametrize("way", WAYS)
def test_more_cap_is_less_noise_and_recaps_keep_the_law(way: str) -> None:
    plan = planned(way)
    other = plan.recap(0.8)
    assert other.noise.std < plan.noise.std
    assert other.noise.law == plan.noise.law and other.certificate.noise == plan.certificate.noise


def test_an_answer_that_nobody_moves_needs_no_noise() -> None:
    for mechanism in ("exponential", "auto"):
        for way in WAYS:
            certificate = planned(way, np.ones((20, 2)), mechanism=mechanism).certificate
            assert certificate.noise == "None is needed: the answer does not depend on who takes part."
            assert certificate.membership_success == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "laplace"}, "mechanism must be one of"),
        ({"mechanism": None}, "mechanism must be one of"),
        ({"mode": "exact", "worlds": 64, "design": "auto"}, "for sums over people"),
        ({"mode": "confidence", "worlds": 64, "design": "auto"}, "for sums over people"),
        ({"mode": "empirical", "worlds": 64, "design": "auto", "mechanism": "auto"}, "for sums over people"),
        ({"floor": 0.1}, "leave floor out"),
        ({"floor": 0.1, "mechanism": "auto"}, "leave floor out"),
        ({"cap": lc.membership(0.5 + 1e-9)}, "coin flip"),
    ],
)
def test_what_exponential_noise_does_not_cover_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.LeakcapError, match=message):
        planned(**options)


def test_a_checkpoint_of_another_noise_is_another_run(tmp_path: Any) -> None:
    first = planned("individual", checkpoint=tmp_path / "run")
    again = planned("individual", checkpoint=tmp_path / "run")
    assert again.certificate == first.certificate
    with pytest.raises(lc.LeakcapError):
        planned("individual", checkpoint=tmp_path / "run", mechanism="gaussian")
