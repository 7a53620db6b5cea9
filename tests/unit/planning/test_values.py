"""Released values and their error bars."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import leakcap as lc
from leakcap.noise import Seeded
from leakcap.planning.plans import LEVELS
from tests.unit.planning.means import SMALL, X, mean, seeded, vectors


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
