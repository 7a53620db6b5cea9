"""`mode="individual"`: what a plan, a release and a certificate say and refuse.

The bound itself is tested in tests/claims/leakage/test_swaps.py.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import leakcap as lc
from leakcap.caps import Membership
from leakcap.kernels.contributions import adds_up, averages
from leakcap.noise import Seeded
from leakcap.report.release.page import public_page

X = np.random.default_rng(0).standard_normal((60, 3)) * [1, 3, 0.5] + [0, 50, 2]
CAP = lc.membership(0.6)


def planned(fn=lc.stats.mean, rows=X, cap=CAP, **options):
    return lc.plan(fn, rows, cap=cap, **{"worlds": 64, "mode": "individual", "seed": 1} | options)


def test_the_certificate_states_this_game_and_nothing_else():
    certificate = planned(seed=None).certificate
    assert (certificate.kind, certificate.mode, certificate.confidence) == ("closed_form", "individual", 1.0)
    assert 0.6 - 1e-6 < certificate.membership_success <= 0.6
    assert certificate.posterior(0.5) == certificate.posterior(0.01) == certificate.given(1) == 1
    assert certificate.name_a_member_success == 1
    assert certificate.true_positive_rate(0.01) == pytest.approx(0.01 + 2 * 0.6 - 1, abs=1e-5)
    page = " ".join(str(certificate).split())
    assert "every part of that size may be it" in page
    assert "not bounded" in page
    assert "Nothing was sampled" in page
    assert "nats" not in page and "any question" not in page
    assert "not bounded" in public_page(certificate)
    assert lc.Certificate.from_json(certificate.to_json()) == certificate


def test_a_seed_makes_a_simulation():
    assert planned().certificate.kind == "simulation"
    assert planned(seed=None).release().certificate.kind == "closed_form"


@pytest.mark.parametrize(
    "cap",
    [
        lc.any_inference(0.5, 0.6),
        lc.mutual_information(0.1),
        lc.name_a_member(0.6),
        lc.identification(0.5),
        lc.precision(0.1, 0.6),
        lc.true_positive_rate(0.01, 0.1),
        lc.task(np.eye(64), 0.5),
    ],
    ids=lambda cap: type(cap).__name__,
)
def test_other_caps_are_refused(cap):
    with pytest.raises(lc.CapError, match="one person named in advance"):
        planned(cap=[CAP, cap])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip": (0, 1)}, "neither clip nor draws"),
        ({"draws": 1000}, "neither clip nor draws"),
        ({"worlds": "doubling"}, "worlds='doubling' needs mode='exact'"),
        ({"rows": np.where(X > 55, np.nan, X)}, "missing or infinite"),
        ({"rate": 1 / 4, "strata": np.arange(60) % 11}, "multiples of 4"),
    ],
    ids=lambda given: None if isinstance(given, str) else next(iter(given)),
)
def test_what_the_closed_form_does_not_cover_is_refused(options, message):
    with pytest.raises(lc.InputError, match=message):
        planned(**options)


def test_means_of_people_with_different_numbers_of_rows_are_sampled():
    """They are no sum: the divisor depends on who takes part."""
    certificate = planned(rows=X[:, :1], unit=np.arange(60) // 7, worlds=1024, cap=0.8).certificate
    assert certificate.theorems[0] == "drawn-alike"
    assert certificate.membership_success <= 0.8


@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.sum])
@pytest.mark.parametrize("n", [59, 60])
@pytest.mark.parametrize("strata", [False, True])
def test_the_release_path_gives_the_functions_own_answer_and_noise_as_stated(fn, n, strata):
    plan = planned(fn, X[:n], strata=np.arange(n) % 3 if strata else None)
    mechanism = plan.releaser
    space = plan.noise.space
    for seed in range(3):
        mask = mechanism.draw(Seeded(seed))
        assert space.centre + space.lift(mechanism.coordinates(mask)) == pytest.approx(fn(X[:n][mask]), rel=1e-9)
    drawn = np.array([mechanism.vector(Seeded(seed)) for seed in range(400)])
    halving = plan.outputs.var(axis=0)
    expected = halving + plan.noise.output_deviations**2
    assert drawn.var(axis=0) == pytest.approx(expected, rel=0.6)  # of two variances: eight standard errors
    assert np.abs(drawn.mean(axis=0) - plan.outputs.mean(axis=0)).max() < 6 * np.sqrt(expected.max() / 64)


def test_rows_of_one_person_move_together():
    """Two rows each: as releasing everybody's own mean, or own sum, with one row each."""
    who = np.repeat(np.arange(30), 2)
    own = X.reshape(30, 2, 3)
    for fn, rows in ((lc.stats.mean, own.mean(axis=1)), (lc.stats.sum, own.sum(axis=1))):
        together, single = planned(fn, unit=who), planned(fn, rows)
        assert together.exposure == pytest.approx(single.exposure, abs=1e-9)
        assert together.noise.covariance() == pytest.approx(single.noise.covariance(), rel=1e-6)
    uneven = np.repeat(np.arange(20), [1, 5] * 10)
    assert planned(lc.stats.sum, unit=uneven).certificate.membership_success <= 0.6


def test_a_function_of_ones_own_may_say_that_it_adds_up():
    """With settings bound by name, and an answer of any form; as an estimator's mean has."""

    def brings(data, units, scale):
        return averages(np.asarray(data[0]) / scale, units)

    @adds_up(brings)
    def scaled(rows, *, scale):
        return {"mean": rows.mean(axis=0) / scale}

    plan = planned(functools.partial(scaled, scale=np.array([1.0, 3.0, 0.5])))
    assert set(plan.release().value) == {"mean"}
    assert plan.certificate.membership_success <= 0.6


def test_noise_follows_the_cap_the_units_of_measurement_and_the_rate():
    assert planned(cap=lc.membership(0.55)).noise.std > planned().noise.std > planned(cap=lc.membership(0.9)).noise.std
    assert planned(rows=1000 * X).noise.std == pytest.approx(1000 * planned().noise.std, rel=1e-6)
    assert planned(rows=X + 1e6).noise.std == pytest.approx(planned().noise.std, rel=1e-4)
    # A mean over a quarter moves twice as far in a swap as one over a half.
    assert planned(rate=1 / 4).noise.std == pytest.approx(2 * planned().noise.std, rel=1e-6)


def test_other_shapes_and_a_floor_keep_the_cap_at_more_noise():
    best = planned(weights="equal").noise.std
    for shape in ("logdet", "linear", "isotropic"):
        plan = planned(weights="equal", shape=shape)
        assert plan.certificate.membership_success <= 0.6
        assert plan.noise.std > best * 0.999
    floored = planned(weights="equal", floor=1.0)
    assert floored.noise.output_deviations.min() >= 1 - 1e-9
    assert floored.certificate.membership_success < 0.6


def test_people_who_are_all_alike_need_no_noise():
    plan = planned(rows=np.full((20, 2), 3.25))
    assert plan.certificate.membership_success == 0.5
    assert plan.release().value == pytest.approx([3.25, 3.25])
    total = planned(lc.stats.sum, np.full((21, 2), 3.25))  # the size of a half of 21 would tell: it does not leave
    assert total.release().value == pytest.approx([3.25 * 10.5] * 2)


def test_recaps_share_the_simulation_and_the_right_to_release():
    plan = planned()
    looser = plan.recap(lc.membership(0.8))
    assert looser.certificate.membership_success <= 0.8
    assert looser.noise.std < plan.noise.std
    looser.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()
    with pytest.raises(lc.CapError, match="one person"):
        plan.recap(lc.mutual_information(0.1))


def test_a_checkpoint_resumes_with_the_data_and_not_without(tmp_path):
    from leakcap.planning.entry import stored_plan

    plan = planned(checkpoint=tmp_path / "run")
    again = planned(checkpoint=tmp_path / "run")
    assert again.certificate == plan.certificate
    with pytest.raises(lc.InputError, match="needs the data again"):
        stored_plan(tmp_path / "run")


def test_tables_with_names_come_back_as_the_function_gives_them():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(who=np.repeat(np.arange(30), 2))
    plan = planned(rows=table, unit="who")
    assert plan.release().value.shape == (3,)


# ---- kinds of caps of somebody's own ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Odds(Membership):
    """Membership with its limit in another unit: a success of 0.6 is odds of 1.5 to 1."""

    @property
    def limit(self):
        return self.success / (1 - self.success)


@pytest.mark.parametrize("success", [0.55, 0.6, 0.9])
def test_a_kind_derived_from_membership_is_refused(success):
    """Its limit would be taken for a success: at odds of 1.5 there would be no noise at all."""
    with pytest.raises(lc.CapError, match="one person named in advance"):
        lc.plan(lc.stats.mean, np.arange(20.0), cap=Odds(success), worlds=64, mode="individual")


def test_membership_itself_is_taken():
    plan = lc.plan(lc.stats.mean, np.arange(20.0), cap=lc.membership(0.6), worlds=64, mode="individual")
    assert plan.certificate.membership_success <= 0.6
