"""A plan with a device of torch as its backend: the same worlds, the same draws, the same figures."""

from __future__ import annotations

import numpy as np
import pytest

import leakcap as lc
from leakcap import stats
from leakcap.ground.cores import Machine
from leakcap.kernels import gpu
from leakcap.leakage import Sampled, observe_units
from leakcap.leakage.confidence import upper
from leakcap.leakage.membership import UnitWagers
from leakcap.worlds import draw_worlds

rng = np.random.default_rng(3)
X = rng.normal(size=(400, 3)) * [1.0, 20.0, 0.1]
SETTINGS = {"worlds": 64, "draws": 4096, "seed": 5}
CAPS = [lc.membership(0.6), lc.true_positive_rate(0.01, 0.05), lc.name_a_member(0.8)]


def middle(x: np.ndarray) -> np.ndarray:
    """A function of no kernel."""
    return (x.min(axis=0) + x.max(axis=0)) / 2


@pytest.mark.parametrize("function", [stats.mean, stats.covariance, stats.median, middle])
@pytest.mark.parametrize("options", [{}, {"rate": 0.25}, {"unit": np.arange(400) // 3}], ids=["halves", "rate", "unit"])
def test_figures_are_those_of_the_cpu(function: object, options: dict[str, object], device: str) -> None:
    caps = CAPS if "rate" not in options else CAPS[:1]
    there = lc.plan(function, X, cap=caps, backend=f"torch:{device}", **SETTINGS, **options)
    here = lc.plan(function, X, cap=caps, **SETTINGS, **options)
    assert np.allclose(there.outputs, here.outputs, rtol=1e-11, atol=1e-12 * np.abs(here.outputs).max())
    # Rounding sends the search for the noise other ways; what it finds is certified, and about as good.
    assert there.noise.std == pytest.approx(here.noise.std, rel=0.3)
    assert there.certificate.membership_success == pytest.approx(here.certificate.membership_success, abs=0.01)
    for cap in there.certificate.capped:
        assert cap.certified <= cap.limit


@pytest.mark.parametrize("chosen", [None, np.arange(7, 300, 11)])
def test_means_for_all_units_are_those_of_the_cpu_to_within_their_rounding(
    chosen: np.ndarray | None, device: str
) -> None:
    worlds = draw_worlds(300, 48, rng)
    source = Sampled(rng.normal(size=(48, 4)), 5000, np.random.SeedSequence(1))
    cuts = np.array([0.3, 0.6, 0.9])
    here = observe_units(source, worlds, cuts, chosen)
    there = observe_units(source, worlds, cuts, chosen, Machine(device=device))
    for mean, other in ((here.balanced, there.balanced), (here.sticks, there.sticks), (here.naming, there.naming)):
        assert np.abs(mean.estimate - other.estimate).max() <= mean.rounding + other.rounding < 1e-4
        assert np.allclose(mean.variance, other.variance, atol=1e-4)


@pytest.mark.parametrize("chosen", [None, np.arange(7, 300, 11)])
@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_wagers_end_as_on_the_cpu_to_within_their_rounding(chosen: np.ndarray | None, rate: float, device: str) -> None:
    worlds = draw_worlds(300, 48, rng, rate)
    points = rng.normal(size=(48, 4))
    cuts = np.array([0.4, 0.6, 0.9])
    before = observe_units(Sampled(points, 256, np.random.SeedSequence(2)), worlds, cuts, chosen)
    wagers = UnitWagers.placed(before, rate, 3000, 20.0)
    source = Sampled(points, 3000, np.random.SeedSequence(1))
    here = observe_units(source, worlds, cuts, chosen, wagers=wagers)
    there = observe_units(source, worlds, cuts, chosen, Machine(device=device), wagers=wagers)
    for mean, other in ((here.balanced, there.balanced), (here.sticks, there.sticks), (here.naming, there.naming)):
        assert np.abs(upper(mean, 20.0) - upper(other, 20.0)).max() < 1e-4
        assert np.abs(mean.estimate - other.estimate).max() < 1e-4
    other_stakes = UnitWagers.placed(before, rate, 300, 20.0)  # the twin: other wagers end elsewhere
    twin = observe_units(source, worlds, cuts, chosen, Machine(device=device), wagers=other_stakes)
    assert np.abs(upper(here.balanced, 20.0) - upper(twin.balanced, 20.0)).max() > 1e-3


def test_the_product_for_all_units_is_made_on_the_device(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    calls = []
    original = gpu.unit_sums

    def counted(*given: object, **options: object) -> object:
        calls.append(options["device"])
        return original(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(gpu, "unit_sums", counted)
    lc.plan(stats.mean, X, cap=lc.membership(0.6), backend=f"torch:{device}", **SETTINGS)
    assert calls and set(calls) == {device}


@pytest.mark.parametrize("backend", ["torch:abacus", "torch:cuda:99", "torch:", "torch"])
def test_devices_that_are_not_there_are_refused_before_anything_is_run(backend: str) -> None:
    def never(x: np.ndarray) -> np.ndarray:
        pytest.fail("ran")

    with pytest.raises(lc.InputError, match=r"torch|device"):
        lc.plan(never, X, cap=lc.membership(0.6), backend=backend, **SETTINGS)
