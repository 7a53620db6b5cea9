"""The right to release once, seeds, and what other modes say of themselves."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import OperatingSystem
from tests.unit.planning.means import CAP, X, mean, seeded

SMALL: dict[str, Any] = {"cap": CAP, "worlds": 16, "draws": 256}


def fresh(shift: float = 0.0) -> np.ndarray:
    """Data that no other test has released."""
    fresh.count += 1  # type: ignore[attr-defined]
    return X + 1e-3 * fresh.count + shift  # type: ignore[attr-defined]


fresh.count = 0  # type: ignore[attr-defined]

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

    plan.randomness = Broken()
    with pytest.raises(KeyboardInterrupt):
        plan.release()
    plan.randomness = OperatingSystem()
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
        places = [Path(one.filename).name for one in heard if one.category is lc.RepeatedReleaseWarning]
        assert places == ["test_release.py"]


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
    assert isinstance(one.randomness, OperatingSystem)
    values = {one.releaser.vector(one.randomness).tobytes() for _ in range(20)}
    assert len(values) == 20


def test_there_is_no_way_to_seed_a_release() -> None:
    assert not inspect.signature(lc.Plan.release).parameters.keys() - {"self"}
    assert not inspect.signature(OperatingSystem).parameters


# Other modes


def test_confidence_mode_draws_a_fresh_world_and_bounds_every_cap_by_variances_or_information() -> None:
    plan = lc.plan(mean, X, seed=1, worlds=128, mode="confidence", confidence=0.95, cap=lc.membership(0.8))
    certificate = plan.certificate
    assert certificate.kind == "simulation"
    assert certificate.membership_success <= 0.8 + 1e-12
    assert certificate.confidence == pytest.approx(0.95)
    assert lc.convert.posterior(certificate.mutual_information, 0.5) > 0.8, "nats alone would have asked for more noise"
    inferred = plan.recap(lc.any_inference(0.5, 0.8)).certificate
    assert lc.convert.posterior(inferred.mutual_information, 0.5) <= 0.8 + 1e-12
    assert np.isfinite(plan.release().value).all()
    kind = lc.plan(mean, X, worlds=128, mode="confidence", confidence=0.95, cap=lc.membership(0.8)).certificate.kind
    assert kind == "confidence"


def test_empirical_mode_refuses_to_be_called_a_guarantee() -> None:
    certificate = lc.plan(mean, X, seed=1, worlds=64, mode="empirical", cap=lc.membership(0.8)).certificate
    assert certificate.kind == "empirical"
    assert not certificate.is_guarantee
    assert "NOT A GUARANTEE" in str(certificate)
