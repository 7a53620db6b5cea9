"""Plans, releases and what they promise: one release per simulation, honest error bars, noise as stated.

Statistical tests fix their generators, state their false-alarm rate and reject a planted fault.
"""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

import leakcap as lc
from leakcap.noise import OperatingSystem, Seeded
from leakcap.releases import LEVELS

rng = np.random.default_rng(31)
X = rng.normal(size=(30, 3)) * np.array([1.0, 10.0, 0.1]) + np.array([0.0, 100.0, -3.0])
SMALL: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 32, "draws": 512}


def mean(x: np.ndarray) -> np.ndarray:
    return x.mean(axis=0)


def fresh(shift: float = 0.0) -> np.ndarray:
    """Data that no other test has released."""
    fresh.count += 1  # type: ignore[attr-defined]
    return X + 1e-3 * fresh.count + shift  # type: ignore[attr-defined]


fresh.count = 0  # type: ignore[attr-defined]


@functools.cache
def seeded(**options: Any) -> lc.Plan:
    return lc.plan(mean, X, seed=7, **(SMALL | options))


def vectors(plan: lc.Plan, count: int, randomness: Any) -> np.ndarray:
    return np.array([plan._mechanism.vector(randomness) for _ in range(count)])


class OneWorld(Seeded):
    """Release randomness for one chosen secret, optionally with the planted fault of too little noise."""

    def __init__(self, world: int, seed: int, scale: float = 1.0) -> None:
        super().__init__(seed)
        self.world, self.scale = world, scale

    def below(self, n: int) -> int:
        return self.world

    def normals(self, size: int) -> np.ndarray:
        return self.scale * super().normals(size)


# The right to release once


def test_a_plan_releases_once() -> None:
    plan = lc.plan(mean, fresh(), **SMALL)
    plan.release()
    for _ in range(2):
        with pytest.raises(lc.AlreadyReleased, match="one secret"):
            plan.release()


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_plan_and_all_its_recaps_share_one_release(first: int) -> None:
    plan = lc.plan(mean, fresh(), **SMALL)
    recap = plan.recap(lc.mutual_information(0.5))
    family = [plan, recap, recap.recap(lc.mutual_information(0.1))]
    family[first].release()
    for one in family:
        with pytest.raises(lc.AlreadyReleased):
            one.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.recap(lc.mutual_information(0.2)).release()


def test_a_seeded_plan_releases_once_too() -> None:
    plan = lc.plan(mean, X, seed=1, **SMALL)
    plan.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_threads_that_race_for_a_release_get_one() -> None:
    plan = lc.plan(mean, fresh(), **SMALL)
    barrier, won, lost = threading.Barrier(8), [], []

    def race() -> None:
        barrier.wait()
        try:
            won.append(plan.release())
        except lc.AlreadyReleased:
            lost.append(1)

    runners = [threading.Thread(target=race) for _ in range(8)]
    for one in runners:
        one.start()
    for one in runners:
        one.join()
    assert (len(won), len(lost)) == (1, 7)


def test_the_right_is_spent_before_anything_is_drawn() -> None:
    """A crash may waste a release, never make two."""
    plan = lc.plan(mean, fresh(), **SMALL)

    class Broken(OperatingSystem):
        def below(self, n: int) -> int:
            raise KeyboardInterrupt

    plan._randomness = Broken()
    with pytest.raises(KeyboardInterrupt):
        plan.release()
    plan._randomness = OperatingSystem()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_a_second_plan_on_the_same_data_warns_when_released() -> None:
    data = fresh()
    lc.plan(mean, data, **SMALL).release()
    plan = lc.plan(lambda x: x.std(axis=0), data.copy(), **SMALL)
    with pytest.warns(lc.RepeatedReleaseWarning, match="released before"):
        release = plan.release()
    assert release.value.shape == (3,)


def test_the_warning_points_at_the_line_that_releases() -> None:
    data = fresh()
    lc.plan(mean, data, **SMALL).release()
    for again in (lambda: lc.plan(mean, data, **SMALL).release(), lambda: lc.release(mean, data, **SMALL)):
        with pytest.warns(lc.RepeatedReleaseWarning) as heard:
            again()
        assert [Path(one.filename).name for one in heard] == ["test_release.py"]


def test_a_warning_turned_into_an_error_prevents_the_release() -> None:
    """This suite turns leakcap's warnings into errors, as a careful custodian may: then nothing comes out."""
    data = fresh()
    lc.plan(mean, data, **SMALL).release()
    with pytest.raises(lc.RepeatedReleaseWarning):
        lc.plan(mean, data, **SMALL).release()


def test_planning_twice_seeding_or_other_data_do_not_warn() -> None:
    data = fresh()
    lc.plan(mean, data, **SMALL)
    lc.plan(mean, data, **SMALL).release()
    lc.plan(mean, data, seed=3, **SMALL).release()
    lc.plan(mean, fresh(), **SMALL).release()


def test_release_is_plan_and_release_in_one_step() -> None:
    release = lc.release(mean, X, seed=7, **SMALL)
    assert np.array_equal(release.value, lc.plan(mean, X, seed=7, **SMALL).release().value)


# Seeds


def test_a_seeded_plan_is_a_simulation_and_says_so() -> None:
    certificate = seeded().certificate
    assert certificate.kind == "simulation"
    assert not certificate.is_guarantee
    assert str(certificate).startswith("SIMULATION, NOT A RELEASE")
    assert lc.plan(mean, X, **SMALL).certificate.kind == "exact"


def test_a_seeded_plan_can_be_repeated_to_the_last_bit() -> None:
    one, two = (lc.plan(mean, X, seed=5, **SMALL) for _ in range(2))
    assert np.array_equal(one.worlds.packed, two.worlds.packed)
    assert one.certificate == two.certificate
    assert np.array_equal(one.exposure, two.exposure)
    recaps = [plan.recap(lc.mutual_information(0.6)) for plan in (one, two)]
    assert recaps[0].certificate == recaps[1].certificate
    assert np.array_equal(one.release().value, two.release().value)
    other = lc.plan(mean, X, seed=6, **SMALL)
    assert not np.array_equal(other.worlds.packed, one.worlds.packed)


def test_unseeded_plans_differ_and_draw_from_the_operating_system() -> None:
    one, two = (lc.plan(mean, X, **SMALL) for _ in range(2))
    assert not np.array_equal(one.worlds.packed, two.worlds.packed)
    assert isinstance(one._randomness, OperatingSystem)
    values = {one._mechanism.vector(one._randomness).tobytes() for _ in range(20)}
    assert len(values) == 20


def test_there_is_no_way_to_seed_a_release() -> None:
    assert not inspect.signature(lc.Plan.release).parameters.keys() - {"self"}
    assert not inspect.signature(OperatingSystem).parameters


# Recaps


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


# Values and error bars


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_cover_the_whole_pools_answer_as_often_as_they_say(level: float, floor: float) -> None:
    """4,000 releases with their own secrets. False alarms: three outputs, 1e-6 each."""
    plan = seeded(floor=floor)
    found = vectors(plan, 4000, Seeded(3))
    pool = X.mean(axis=0)
    for released, expected in ((1.0, True), (0.5, False)):  # the planted fault: intervals half as wide
        widths = next(width for known, width in plan._widths() if known >= level) * released
        covered = (np.abs(found - pool) <= widths).sum(axis=0)
        enough = covered >= binom.ppf(1e-6, 4000, level)
        assert enough.all() if expected else not enough.any()


def test_intervals_are_no_wider_than_rounding_makes_them() -> None:
    """Widths are rounded up to two digits, by a tenth at most. False alarms: 1e-6 for each output and level."""
    plan = seeded()
    found = vectors(plan, 4000, Seeded(4))
    for level, width in plan._widths():
        covered = (np.abs(found - X.mean(axis=0)) <= width / 1.1).sum(axis=0)
        assert (covered <= binom.isf(1e-6, 4000, level)).all()


def test_an_interval_surrounds_the_released_value_and_grows_with_its_level() -> None:
    release = lc.plan(mean, X, seed=8, **SMALL).release()
    before = 0.0
    for level in LEVELS:
        low, high = release.interval(level)
        assert np.allclose((low + high) / 2, release.value)
        assert ((high - low) > before).all()
        before = high - low
    assert np.array_equal(release.interval()[0], release.interval(0.95)[0])
    assert np.array_equal(release.interval(0.93)[0], release.interval(0.95)[0]), "the next level that is kept"


def test_intervals_of_constants_are_points() -> None:
    release = lc.plan(lambda x: np.array([1.0, x[:, 0].mean()]), X, seed=8, **SMALL).release()
    low, high = release.interval(0.9)
    assert low[0] == high[0] == 1.0
    assert low[1] < high[1]


def test_without_an_answer_on_the_whole_pool_there_is_no_interval() -> None:
    release = lc.plan(lambda x: x.mean() if len(x) < 30 else np.nan, X, seed=8, **SMALL).release()
    with pytest.raises(lc.InputError, match="whole pool"):
        release.interval()


def test_the_summary_splits_the_error_into_halving_and_noise() -> None:
    plan = seeded()
    summary = plan.summary()
    pool = X.mean(axis=0)
    assert np.array_equal(summary.answer, pool)
    assert np.allclose(summary.halving**2, ((plan.outputs - pool) ** 2).mean(axis=0))
    assert np.allclose(summary.noise**2, np.diag(plan.noise.covariance()))
    assert np.allclose(summary.error**2, summary.halving**2 + summary.noise**2)
    assert np.allclose(summary.noise_share, summary.noise**2 / summary.error**2)
    assert ((summary.noise_share > 0) & (summary.noise_share < 1)).all()
    text = str(summary)
    assert all(name in text for name in ("[0]", "[1]", "[2]", "32 worlds", "MiB"))


def test_the_summarys_error_is_the_error_of_releases() -> None:
    """Mean squared error of 6,000 releases, each output within 6 standard errors (false alarms below 1e-8)."""
    plan = seeded()
    square = (vectors(plan, 6000, Seeded(6)) - X.mean(axis=0)) ** 2
    error = square.std(axis=0) / np.sqrt(6000)
    assert (np.abs(square.mean(axis=0) - plan.summary().error ** 2) < 6 * error).all()
    halved = plan.summary().halving ** 2 + plan.summary().noise ** 2 / 4  # planted fault: noise of half the deviation
    assert (np.abs(square.mean(axis=0) - halved) > 6 * error).any()


def test_shares_of_a_constant_output_are_zero_not_undefined() -> None:
    summary = lc.plan(lambda x: np.array([2.0, x[:, 0].mean()]), X, seed=8, **SMALL).summary()
    assert summary.error[0] == 0
    assert summary.noise_share[0] == 0
    assert "nan" not in str(summary)


def test_clipped_outputs_are_bounded_before_noise() -> None:
    plan = seeded(clip=(-3.0, 100.0))
    free = seeded()
    assert np.array_equal(plan.outputs, np.clip(free.outputs, -3.0, 100.0))
    assert np.array_equal(plan.summary().answer, np.clip(X.mean(axis=0), -3.0, 100.0))
    each = lc.plan(mean, X, seed=7, clip=([-1, 99, -3.01], [1, 101, -2.99]), **SMALL)
    assert np.array_equal(each.outputs, np.clip(free.outputs, [-1, 99, -3.01], [1, 101, -2.99]))


def test_values_keep_the_form_of_the_functions_answer() -> None:
    release = lc.plan(lambda x: {"mean": x.mean(axis=0), "n": len(x)}, X, seed=1, **SMALL).release()
    assert list(release.value) == ["mean", "n"]
    assert release.value["mean"].shape == (3,)
    assert release.value["n"] == 15, "equal in all worlds: no noise"
    assert isinstance(release.value["n"], float)
    assert repr(release).startswith("Release(kind='simulation', value={'mean': array(")


# Noise as stated


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "membership": {"cap": lc.membership(0.75)},
    "isotropic": {"shape": "isotropic", "weights": "equal"},
    "linear": {"shape": "linear"},
    "weights": {"weights": (1.0, 4.0, 100.0)},
    "floor": {"floor": 0.2},
    "a floor above the noise": {"floor": 5.0},
    "thirds": {"rate": 1 / 3, "worlds": 33},
}


def with_a_constant(x: np.ndarray) -> np.ndarray:
    """Three outputs that vary, one that follows from them, and a constant."""
    return np.r_[x.mean(axis=0), x.mean(axis=0)[[0, 2]].sum(), 7.0]


@functools.cache
def five_outputs(name: str) -> lc.Plan:
    options = dict(OPTIONS[name])
    if name == "weights":
        options["weights"] = (1.0, 4.0, 100.0, 2.0, 3.0)
    return lc.plan(with_a_constant, X, seed=12, **(SMALL | options))


@pytest.mark.parametrize("name", OPTIONS)
def test_factor_covariance_and_deviations_agree(name: str) -> None:
    plan = five_outputs(name)
    factor, covariance = plan.noise.factor, plan.noise.covariance()
    assert factor.shape == (5, 5 if plan.noise.floor else 3)
    assert np.allclose(factor @ factor.T, covariance, atol=1e-15)
    assert np.allclose(plan.noise.output_deviations**2, np.diag(covariance))
    assert plan.noise.std == pytest.approx(np.sqrt(np.trace(covariance)))
    rank = np.linalg.matrix_rank(covariance / covariance.max(), tol=1e-13)
    assert rank == plan.certificate.noised_directions == (5 if plan.noise.floor else 3)
    assert plan.certificate.unnoised_directions == 5 - rank


@pytest.mark.parametrize("name", OPTIONS)
def test_released_vectors_have_the_stated_covariance(name: str) -> None:
    """5,000 releases of one world. The whitened noise has a chi-square length, and every entry of its covariance
    lies within 6 standard errors. False alarms: 1e-6 for the length, below 1e-7 for the entries."""
    plan = five_outputs(name)
    factor = plan.noise.factor
    whiten = np.linalg.pinv(factor)
    count, r = 5000, factor.shape[1]

    def as_stated(scale: float) -> tuple[bool, bool]:
        shift = vectors(plan, count, OneWorld(3, 44, scale)) - plan.outputs[3]
        noise = shift @ whiten.T
        length = float((noise**2).sum())
        inside = chi2.ppf(5e-7, count * r) <= length <= chi2.isf(5e-7, count * r)
        found = noise.T @ noise / count
        error = np.sqrt((1 + np.eye(r)) / count)
        return inside, bool((np.abs(found - np.eye(r)) < 6 * error).all())

    assert as_stated(1.0) == (True, True)
    assert as_stated(0.5) == (False, False), "the planted fault: half the noise"
    outside = vectors(plan, 50, OneWorld(3, 45)) - plan.outputs[3]
    if not plan.noise.floor:
        assert np.allclose(outside, outside @ whiten.T @ factor.T, atol=1e-9), "no noise outside the outputs' subspace"


def test_a_noise_that_ignores_correlations_would_be_rejected() -> None:
    """A second planted fault: the right deviations in every output, independent of each other."""
    plan = five_outputs("plain")
    whiten = np.linalg.pinv(plan.noise.factor)
    wrong = np.random.default_rng(1).normal(size=(5000, 5)) * plan.noise.output_deviations
    noise = wrong @ whiten.T
    error = np.sqrt((1 + np.eye(3)) / 5000)
    assert not (np.abs(noise.T @ noise / 5000 - np.eye(3)) < 6 * error).all()


def test_each_release_starts_from_a_uniformly_drawn_world() -> None:
    """Without noise the world can be read off: 32 worlds, 3,200 releases, chi-square, false alarms 1e-6."""
    plan = seeded()

    class Noiseless(Seeded):
        def normals(self, size: int) -> np.ndarray:
            return np.zeros(size)

    class NeverTheLast(Noiseless):
        """The planted fault: one world in 32 is never drawn."""

        def below(self, n: int) -> int:
            return super().below(n - 1)

    def uniform(randomness: Seeded) -> bool:
        found = vectors(plan, 3200, randomness)
        gaps = ((found[:, None] - plan.outputs) / plan.outputs.std(axis=0)) ** 2
        counts = np.bincount(gaps.sum(axis=2).argmin(axis=1), minlength=32)
        return bool(((counts - 100) ** 2).sum() / 100 < chi2.isf(1e-6, 31))

    assert uniform(Noiseless(10))
    assert not uniform(NeverTheLast(10))


def test_the_mean_release_is_the_mean_world() -> None:
    """5,000 releases; each output within 6 standard errors of the mean over worlds (false alarms below 1e-8)."""
    plan = seeded()
    found = vectors(plan, 5000, Seeded(13))
    error = found.std(axis=0) / np.sqrt(5000)
    assert (np.abs(found.mean(axis=0) - plan.outputs.mean(axis=0)) < 6 * error).all()


def test_a_floor_is_the_least_deviation_in_every_direction() -> None:
    plan = five_outputs("a floor above the noise")
    scale = plan.noise.space.scale
    scaled = plan.noise.covariance() * np.outer(scale, scale)
    assert np.linalg.eigvalsh(scaled).min() == pytest.approx(25.0)
    assert plan.noise.output_deviations.min() > 0


def test_heavier_weights_buy_less_noise() -> None:
    """The noise of an output falls as its weight grows; only ratios of weights matter."""
    light, heavy = (
        lc.plan(mean, X, seed=3, **(SMALL | {"weights": weights})).noise.output_deviations
        for weights in ((1.0, 1e-2, 1e2), (1e4, 1e-2, 1e2))
    )
    assert heavy[0] < light[0]
    assert heavy[1:].sum() > light[1:].sum()
    scaled = lc.plan(mean, X, seed=3, **(SMALL | {"weights": (3.0, 3e-2, 3e2)})).noise.output_deviations
    assert np.allclose(scaled, light, rtol=1e-6)


def test_noise_does_not_depend_on_units_of_measurement() -> None:
    metres = lc.plan(mean, X, seed=3, **SMALL).noise.output_deviations
    millimetres = lc.plan(lambda x: x.mean(axis=0) * [1e3, 1.0, 1e-3], X, seed=3, **SMALL).noise.output_deviations
    assert np.allclose(millimetres, metres * [1e3, 1.0, 1e-3], rtol=1e-6)


def test_large_noise_matrices_are_refused_not_made() -> None:
    plan = lc.plan(lambda x: np.outer(x.mean(axis=0), np.arange(1, 2001)).ravel(), X, seed=3, **SMALL)
    assert plan.noise.factor.shape == (6000, 3)
    with pytest.raises(lc.InputError, match="4,096"):
        plan.noise.covariance()
    assert plan.noise.std == pytest.approx(np.linalg.norm(plan.noise.factor))


# Other modes


def test_confidence_mode_draws_a_fresh_world_and_bounds_every_cap_by_information() -> None:
    plan = lc.plan(mean, X, seed=1, worlds=128, mode="confidence", confidence=0.95, cap=lc.membership(0.8))
    certificate = plan.certificate
    assert certificate.kind == "simulation"
    assert certificate.membership_success <= 0.8 + 1e-12
    assert certificate.confidence == pytest.approx(0.95)
    assert lc.convert.posterior(certificate.mutual_information, 0.5) <= 0.8 + 1e-12
    assert np.isfinite(plan.release().value).all()
    kind = lc.plan(mean, X, worlds=128, mode="confidence", confidence=0.95, cap=lc.membership(0.8)).certificate.kind
    assert kind == "confidence"


def test_empirical_mode_refuses_to_be_called_a_guarantee() -> None:
    certificate = lc.plan(mean, X, seed=1, worlds=64, mode="empirical", cap=lc.membership(0.8)).certificate
    assert certificate.kind == "empirical"
    assert not certificate.is_guarantee
    assert "NOT A GUARANTEE" in str(certificate)


# Certificates as data


def test_a_certificate_survives_json() -> None:
    for options in ({}, {"cap": lc.membership(0.75)}, {"floor": 0.2}):
        certificate = seeded(**options).certificate
        again = lc.Certificate.from_json(certificate.to_json())
        assert again == certificate
        assert again.to_json() == certificate.to_json()
        assert str(again) == str(certificate)
        assert again.posterior(0.3) == certificate.posterior(0.3)
        assert again.given(2) == certificate.given(2)
        assert again.true_positive_rate(0.01) == certificate.true_positive_rate(0.01)


def test_json_is_plain_and_in_a_stable_order() -> None:
    text = seeded().certificate.to_json()
    names = list(json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")))
    assert names == sorted(names)


NO_CERTIFICATE = ["", "no JSON", "null", "[]", "3", '"text"', "{}", '{"kind": "exact"}']


@pytest.mark.parametrize("text", NO_CERTIFICATE)
def test_json_that_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(text)


TAMPERED: dict[str, Any] = {
    "kind": "certified",
    "membership_success": "0.5",
    "mutual_information": -1.0,
    "leakage_curve": [1, 2],
    "hockey_sticks": "none",
    "known_memberships": [[1]],
    "name_a_member_success": 1.5,
    "capped": [{"cap": "Membership"}],
    "worlds": "many",
    "units": -3,
    "rate": "half",
    "confidence": 7,
    "gamma": None,
    "attempt": 1.5,
    "bounds": [],
    "draws": [1, 2],
    "integrated": "yes",
    "theorems": "exact-membership",
    "assumptions": [1, 2],
    "leakcap_version": 3,
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_json_is_refused(name: str) -> None:
    record = json.loads(seeded().certificate.to_json())
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(record | {name: TAMPERED[name]}))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_with_numbers_that_are_none_is_refused(value: float) -> None:
    record = json.loads(seeded().certificate.to_json())
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(record | {"membership_success": value}))


def test_missing_and_unknown_entries_are_refused() -> None:
    record = json.loads(seeded().certificate.to_json())
    for name in record:
        with pytest.raises(lc.InputError):
            lc.Certificate.from_json(json.dumps({key: value for key, value in record.items() if key != name}))
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(record | {"bonus": 1}))


def test_a_certificate_cannot_be_edited() -> None:
    certificate = seeded().certificate
    with pytest.raises(AttributeError):
        certificate.membership_success = 0.5  # type: ignore[misc]
    with pytest.raises(AttributeError):
        certificate.capped[0].certified = 0.5  # type: ignore[misc]
    with pytest.raises((TypeError, AttributeError)):
        certificate.draws["units"] = 10**9  # type: ignore[index]


def test_a_release_cannot_be_edited() -> None:
    release = lc.plan(mean, X, seed=1, **SMALL).release()
    with pytest.raises(AttributeError):
        release.certificate = None  # type: ignore[misc, assignment]


def test_the_certificate_names_its_setting() -> None:
    certificate = lc.plan(mean, X, seed=1, public=["column names"], **SMALL).certificate
    assert (certificate.worlds, certificate.units, certificate.outputs) == (32, 30, 3)
    assert certificate.rate == "1/2"
    assert certificate.colluders == 5
    assert certificate.declared_public == ("column names",)
    text = " ".join(str(certificate).split())
    assert "column names" in text
    assert "log2 of 32 worlds" in text
    assert "It is not hidden that a person's data are in the pool" in text
    assert norm.cdf(0) == certificate.sampling_rate


# The package


def test_public_names_are_sorted_and_complete() -> None:
    assert lc.__all__ == sorted(lc.__all__)
    assert len(set(lc.__all__)) == len(lc.__all__)
    assert all(hasattr(lc, name) for name in lc.__all__)
    shown = {name for name, value in vars(lc).items() if not name.startswith("_") and is_ours(value)}
    assert shown <= set(lc.__all__)


def is_ours(value: Any) -> bool:
    return not isinstance(value, types.ModuleType) and getattr(value, "__module__", "").startswith("leakcap")


PROMISED = """plan release Plan Release Certificate membership mip name_a_member precision identification
any_inference mutual_information true_positive_rate task convert"""
OPTION_NAMES = """cap worlds rate unit strata seed clip weights mode confidence draws public drop backend workers
progress checkpoint"""


def test_the_names_of_the_public_contract_are_there() -> None:
    assert set(PROMISED.split()) <= set(lc.__all__)
    options = inspect.signature(lc.plan).parameters
    assert [name for name in options if name in OPTION_NAMES.split()] == OPTION_NAMES.split()
    assert all(options[name].kind is inspect.Parameter.KEYWORD_ONLY for name in OPTION_NAMES.split())


def test_every_public_name_is_documented() -> None:
    for name in lc.__all__:
        if name != "__version__":
            assert (getattr(lc, name).__doc__ or "").strip(), name


HEAVY = ["numba", "sklearn", "matplotlib", "rich", "typer", "pandas", "torch", "joblib", "duckdb", "dask", "fastapi"]


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path("/"))
    return set(ran.stdout.split())


def test_import_leakcap_pulls_in_nothing_heavy() -> None:
    assert not loaded_after("import leakcap") & {"numpy", "scipy", *HEAVY}
    loaded = loaded_after("import leakcap; leakcap.plan, leakcap.release, leakcap.convert, leakcap.stats")
    assert {"leakcap", "numpy", "scipy"} <= loaded
    assert not loaded & set(HEAVY)
    assert loaded_after("import leakcap, joblib") & set(HEAVY), "the check sees what is loaded"


def test_import_leakcap_writes_nothing_and_seeds_nothing() -> None:
    script = "import random; random.seed(1); a = random.getstate(); import leakcap; assert a == random.getstate()"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == ran.stderr == ""
