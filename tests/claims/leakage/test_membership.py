"""Sums over units: right to the stated rounding for posteriors of any kind, and naming a member."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from leakcap.leakage.confidence import log_term, upper
from leakcap.leakage.measures import thresholds
from leakcap.leakage.membership import evidence, observe_units
from leakcap.leakage.posterior import Cells, Sampled, View
from leakcap.leakage.tasks import observe_worlds
from leakcap.worlds import draw_worlds, given_worlds
from tests.claims.leakage.oracle import Line


class Given:
    """A source of posteriors made by hand. Rows add up to 1 only to single precision, which counts as rounding."""

    prior = None

    def __init__(self, posterior, rows=700):
        self.posterior = np.ascontiguousarray(posterior, dtype=np.float32)
        self.draws, self.m = self.posterior.shape
        self.rows = rows
        self.blocks = -(-self.draws // rows)
        self.slip = float(np.abs(self.posterior.astype(np.float64).sum(axis=1) - 1).max())

    def view(self, block):
        part = self.posterior[block * self.rows : (block + 1) * self.rows]
        return View(np.ones(len(part)), part, None, self.slip)


def posteriors(kind, m, rng, draws=2000):
    if kind == "flat":
        table = np.ones((draws, m))
    elif kind == "one world":
        table = np.eye(m)[rng.integers(m, size=draws)] + 1e-12
    elif kind == "few worlds":
        table = rng.random((draws, m)) ** 40
    elif kind == "heavy tails":
        table = np.exp(4 * rng.standard_normal((draws, m)))
    elif kind == "always the same":  # sums of equal numbers round the same way each time
        table = np.tile(np.exp(2 * rng.standard_normal(m)), (draws, 1))
    elif kind == "off the grid":  # every entry half a step away from the grid of the product
        table = np.rint(rng.random((draws, m)) * 2.0**20 / m) + 0.5
    return table / table.sum(axis=1, keepdims=True)


KINDS = ["flat", "one world", "few worlds", "heavy tails", "always the same", "off the grid"]


def check_sums(source, worlds, rounding=None):
    """Each mean against double precision; returns the largest share of the stated rounding that was used."""
    cuts = thresholds(worlds.rate)
    found = observe_units(source, worlds, cuts)
    exact = source.posterior.astype(np.float64)
    share = exact @ worlds.masks().astype(np.float64)
    q = worlds.rate
    values = {
        "balanced": 0.5 + np.abs(share - q) / (4 * q * (1 - q)),
        "sticks": np.maximum(share[:, None, :] - cuts[:, None], 0.0),
        "naming": share.max(axis=1, keepdims=True),
    }
    used = 0.0
    for name, value in values.items():
        mean = getattr(found, name)
        used = max(used, float((np.abs(mean.estimate - value.mean(axis=0)) / (rounding or mean.rounding)).max()))
        # The variance may be raised, never lowered; it is compared where rounding of single values cannot matter.
        true = value.var(axis=0, ddof=1)
        assert (mean.variance >= true * (1 - 2.0**-16) - 4 * mean.rounding * np.sqrt(true)).all()
        assert (mean.variance <= true + 2.0**-14 + 4 * mean.rounding).all()
        assert (mean.draws == source.draws).all()
    return used


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rate", "m", "n"), [(1 / 2, 64, 40), (1 / 2, 1024, 9), (1 / 3, 66, 30), (3 / 4, 64, 25)])
def test_unit_sums_stay_within_their_stated_rounding(kind, rate, m, n):
    rng = np.random.default_rng(m + n)
    worlds = draw_worlds(n, m, rng, rate)
    assert check_sums(Given(posteriors(kind, m, rng)), worlds) <= 1


def against_one_unit(worlds, draws):
    """Posteriors whose distances from the grid all point one way for the first unit: rounding adds up, not out."""
    half = worlds.m // 2
    signs = 2.0 * worlds.masks()[:half, 0] - 1
    lean = (2 * np.arange(half) % 64 + 0.49 * signs) * 2.0**-25
    return np.tile(np.concatenate([1 / worlds.m + lean, 1 / worlds.m - lean]), (draws, 1))


def test_rounding_to_the_grid_is_counted_where_it_adds_up():
    worlds = draw_worlds(6, 4096, np.random.default_rng(0))
    source = Given(against_one_unit(worlds, 640))
    assert check_sums(source, worlds) <= 1
    # The planted fault: a rounding that leaves out what the grid changes.
    fixed = source.slip + 2.0**-18 + 2.0**-24
    assert check_sums(source, worlds, rounding=fixed) > 1


def test_variances_are_raised_above_their_rounding():
    """Values that hardly differ: what single precision loses in sums of squares could swallow their variance."""
    lowered = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        worlds = draw_worlds(12, 64, rng)
        table = np.exp(2 * rng.standard_normal(64)) * np.exp(1e-4 * rng.standard_normal((640, 64)))
        source = Given(table / table.sum(axis=1, keepdims=True))
        found = observe_units(source, worlds, thresholds(0.5)).balanced
        on_grid = evidence(source.view(0), True, exact=False).table.astype(np.float64)
        values = np.abs(on_grid @ (2.0 * worlds.masks()[:32] - 1))
        true = values.var(axis=0, ddof=1)
        assert (found.variance >= true).all()
        lowered += (found.variance - 2.0**-16 * (values**2).sum(axis=0) / 639 < true).any()
    assert lowered > 0  # without the raise, planted, some would lie below


def test_more_units_than_a_tile_and_some_chosen_ones():
    rng = np.random.default_rng(0)
    worlds = draw_worlds(1500, 32, rng)
    source = Given(posteriors("heavy tails", 32, rng, draws=600), rows=100)
    assert check_sums(source, worlds) <= 1
    chosen = np.array([3, 1030, 77, 1499])
    some = observe_units(source, worlds, thresholds(0.5), chosen)
    everybody = observe_units(source, worlds, thresholds(0.5))
    assert np.allclose(some.balanced.estimate, everybody.balanced.estimate[chosen], atol=1e-12)
    assert np.allclose(some.sticks.estimate, everybody.sticks.estimate[:, chosen], atol=1e-12)


def test_a_planted_rounding_that_forgets_single_precision_sums_is_caught():
    """Without the 2^-18 for sums of 64 values the stated error would be too small."""
    used = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        worlds = draw_worlds(40, 64, rng)
        source = Given(posteriors("always the same", 64, rng, draws=640))
        stated = evidence(source.view(0), worlds.paired, exact=False).rounding
        used.append(check_sums(source, worlds, rounding=stated - 2.0**-18))
    assert max(used) > 1


def test_single_products_are_exact_on_the_grid():
    """One release at a time: the product of evidence and masks has no error beyond the rounding to the grid."""
    rng = np.random.default_rng(5)
    worlds = draw_worlds(30, 256, rng)
    source = Given(posteriors("heavy tails", 256, rng, draws=300))
    found = evidence(source.view(0), True, exact=False)
    signs = 2.0 * worlds.masks()[:128] - 1
    single = found.table @ signs.astype(np.float32)
    assert np.array_equal(single.astype(np.float64), found.table.astype(np.float64) @ signs)


# ---- naming -------------------------------------------------------------------------------------------------------


def sizes_that_differ():
    """A balanced set of worlds of five units with two or four members: every unit is in six of ten."""
    rows = [set(c) for c in itertools.combinations(range(5), 4)] + [{i, (i + 1) % 5} for i in range(5)]
    return np.array([[u in row for u in range(5)] for row in rows])


@pytest.mark.parametrize("kind", ["halves", "thirds", "sizes that differ"])
def test_naming_equals_the_task_whose_guesses_are_the_units(kind):
    rng = np.random.default_rng(8)
    worlds = {
        "halves": lambda: draw_worlds(9, 32, rng),
        "thirds": lambda: draw_worlds(8, 33, rng, 1 / 3),
        "sizes that differ": lambda: given_worlds(sizes_that_differ(), 5),
    }[kind]()
    wins = worlds.masks().astype(float)
    outputs = rng.standard_normal(worlds.m)
    whole = Line(outputs, 0.5)
    summed = Cells(outputs / 0.5, 2.0**-9)
    naming = observe_units(summed, worlds, thresholds(worlds.rate)).naming
    (task,) = observe_worlds(summed, (), (wins,)).tasks
    # A grid of 2^-9 deviations tells a little less than the continuous release: below 1e-5.
    assert naming.estimate[0] == pytest.approx(whole.task(wins), abs=1e-5)
    assert naming.estimate[0] == pytest.approx(task.estimate[0], abs=1e-9)
    # Sampled on the same draws, both routes agree to their rounding, one release at a time.
    sampled = Sampled(rng.standard_normal((worlds.m, 2)), 3000, np.random.SeedSequence(4))
    by_units = observe_units(sampled, worlds, thresholds(worlds.rate)).naming
    (by_task,) = observe_worlds(sampled, (), (wins,)).tasks
    assert abs(by_units.estimate[0] - by_task.estimate[0]) <= by_units.rounding + by_task.rounding
    assert by_units.variance[0] == pytest.approx(by_task.variance[0], rel=1e-3)


def naming_failures(gamma, runs, draws, bound):
    """How often a certified naming success lies below the true one, worlds of different sizes, one output."""
    worlds = given_worlds(sizes_that_differ(), 5)
    points = np.linspace(-2, 2, 10)[np.random.default_rng(1).permutation(10)][:, None]
    truth = Line(points[:, 0], 1.0).task(worlds.masks().astype(float))
    failed = 0
    for seed in range(runs):
        source = Sampled(points, draws, np.random.SeedSequence(seed))
        naming = observe_units(source, worlds, thresholds(worlds.rate)).naming
        failed += bool(bound(naming)[0] < truth)
    return failed


def test_naming_is_covered_for_worlds_of_different_sizes():
    """300 runs at gamma 0.1: more failures than the 1 - 1e-4 quantile would be a false alarm in 1e-4 of cases."""
    worlds = given_worlds(sizes_that_differ(), 5)
    assert sorted(set(worlds.masks().sum(axis=1))) == [2, 4]
    # A single release may leave every unit below the rate 3/5: the range of values starts at min |w| / N.
    naming = observe_units(Given(np.eye(10)[5:]), worlds, thresholds(worlds.rate)).naming
    pairs = Given(np.tile(np.repeat([0.0, 0.2], 5), (20, 1)))
    assert observe_units(pairs, worlds, thresholds(worlds.rate)).naming.estimate[0] == pytest.approx(2 / 5)
    assert naming.estimate[0] == pytest.approx(1)
    assert naming.span >= 1 - 2 / 5
    term = log_term(0.1, 1)
    assert naming_failures(0.1, 300, 400, lambda mean: upper(mean, term)) <= binom.isf(1e-4, 300, 0.1)


def test_a_planted_naming_bound_with_no_margin_is_caught():
    failed = naming_failures(0.1, 300, 400, lambda mean: mean.estimate)
    assert failed > binom.isf(1e-4, 300, 0.1)
