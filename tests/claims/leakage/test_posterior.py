"""Posteriors and cell masses against arithmetic with many digits, and cells against releases as they are made."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2

from leakcap.leakage._loops import exponentials
from leakcap.leakage.posterior import Cells, Sampled, softmax
from leakcap.noise import Noise, released_vector, subspace

MP = mpmath.mp.clone()
MP.dps = 50


def exact_posterior(seen, points):
    """Bayes' rule for standard normal noise, to fifty digits, for the doubles as they are."""
    table = []
    worlds = points.tolist()
    for y in seen.tolist():
        squares = [MP.fsum((MP.mpf(a) - MP.mpf(b)) ** 2 for a, b in zip(y, z, strict=True)) for z in worlds]
        likelihood = [MP.exp(-one / 2) for one in squares]
        total = MP.fsum(likelihood)
        table.append([one / total for one in likelihood])
    return table


def l1(found, exact):
    """The largest L1 distance of a row."""
    return max(
        float(MP.fsum(abs(MP.mpf(float(a)) - b) for a, b in zip(row, true, strict=True)))
        for row, true in zip(found, exact, strict=True)
    )


# worlds, directions, spread of the outputs, distance of all of them from the centre; both in noise deviations
CASES = [
    (2, 1, 1.0, 0.0),
    (64, 3, 0.01, 0.0),
    (64, 3, 1.0, 0.0),
    (300, 2, 5.0, 0.0),
    (64, 3, 1000.0, 0.0),
    (64, 8, 1.0, 1e3),
    (64, 2, 1.0, 1e5),
    (64, 2, 1.0, 4e5),
    (130, 30, 0.5, 3.0),
]


def releases(case, rows=6):
    m, r, spread, away = case
    rng = np.random.default_rng(m + r)
    points = away * rng.standard_normal(r) + spread * rng.standard_normal((m, r))
    return points[rng.integers(m, size=rows)] + rng.standard_normal((rows, r)), points


@pytest.mark.parametrize("case", CASES)
def test_posterior_stays_within_its_stated_rounding(case):
    seen, points = releases(case)
    found, rounding = softmax(seen, points)
    error = l1(found, exact_posterior(seen, points))
    assert error <= rounding
    assert rounding <= 1e-4 or case[3] > 1e5, "an error that large would cost noise"


def test_far_from_the_centre_likelihoods_lose_digits_and_the_rounding_says_so():
    """Planted: the share of single precision alone, which is enough near the centre, is not enough there."""
    seen, points = releases((64, 2, 1.0, 4e5), rows=20)
    _, near = softmax(*releases((64, 2, 1.0, 0.0)))
    found, rounding = softmax(seen, points)
    error = l1(found, exact_posterior(seen, points))
    assert near < error <= rounding


def test_exponentials_are_as_accurate_as_stated():
    """A relative (|x| + 8) 2^-24, from the largest posterior down to where one counts as 0."""
    rng = np.random.default_rng(2)
    x = -np.concatenate(
        [rng.uniform(0, 87, 40_000), rng.uniform(0, 2, 20_000), np.log(2) * np.arange(125.5), [0.0, 1e-9]]
    )
    found = np.empty((1, len(x)), dtype=np.float32)
    exponentials(x[None], np.zeros(1), found)
    error = np.abs(found[0] / np.exp(x) - 1)
    assert (error <= (np.abs(x) + 8) * 2.0**-24).all()
    assert (error > 1e-8).any()  # single precision, after all


def test_ties_and_near_ties_stay_within_the_rounding_too():
    """Equal outputs in many worlds, and outputs that differ in the last bits: nothing may favour one of them."""
    rng = np.random.default_rng(1)
    points = np.repeat(rng.standard_normal((4, 2)) * 3, 40, axis=0)
    points[::2] *= 1 + 2.0**-50
    seen = points[:6] + rng.standard_normal((6, 2))
    found, rounding = softmax(seen, points)
    assert l1(found, exact_posterior(seen, points)) <= rounding


@pytest.mark.parametrize("case", [case for case in CASES if case[3] >= 1e3])
def test_a_planted_single_precision_likelihood_is_caught(case):
    seen, points = releases(case)
    _, rounding = softmax(seen, points)
    logits = seen.astype(np.float32) @ points.astype(np.float32).T
    logits -= 0.5 * (points.astype(np.float32) ** 2).sum(axis=1)
    rough = np.exp(logits - logits.max(axis=1, keepdims=True))
    rough /= rough.sum(axis=1, keepdims=True)
    assert l1(rough, exact_posterior(seen, points)) > rounding


@pytest.mark.parametrize("k", [1, 3, 6])
def test_a_posterior_restricted_to_some_worlds_stays_right_as_collusion_claims(k):
    """Normalised over the worlds that agree with known memberships, however little mass these have (down to 1e-20)."""
    rng = np.random.default_rng(k)
    points = 2.5 * rng.standard_normal((64, 2))
    masks = rng.random((64, 8)) < 0.5
    seen = points[:24] + 4 * rng.standard_normal((24, 2))
    found, rounding = softmax(seen, points)
    exact = exact_posterior(seen, points)
    smallest = 1.0
    for row, true, world in zip(found.astype(np.float64), exact, range(24), strict=True):
        alike = np.flatnonzero((masks[:, :k] == masks[world, :k]).all(axis=1))
        mass = MP.fsum(true[w] for w in alike)
        if mass < 1e-20:
            continue
        smallest = min(smallest, float(mass))
        kept = row[alike] / row[alike].sum()
        error = float(MP.fsum(abs(MP.mpf(a) - true[w] / mass) for a, w in zip(kept, alike, strict=True)))
        assert error <= rounding + 200 * 2.0**-24
    assert smallest < 1e-3, "the case should be a hard one"


def test_sampled_releases_are_fresh_noise_around_every_world_in_turn():
    """The source of all sampled figures: whole rounds deal each world once, and rereading a block repeats it."""
    points = np.random.default_rng(0).standard_normal((6, 2))
    source = Sampled(points, 45, np.random.SeedSequence(3))
    views = [source.view(block) for block in range(source.blocks)]
    world = np.concatenate([view.world for view in views])
    assert len(world) == 45
    assert (world[:42] == np.arange(42) % 6).all()
    assert np.array_equal(source.view(0).posterior, views[0].posterior)


def test_draws_beyond_the_last_whole_round_favour_no_world():
    """Eight worlds, four draws after the last round, 400 sources: chi-square, false alarms 1e-6."""
    points = np.zeros((8, 1))
    last = np.array([Sampled(points, 20, np.random.SeedSequence(seed)).seen(0)[1][16:] for seed in range(400)])

    def even(worlds):
        counts = np.bincount(worlds.ravel(), minlength=8)
        return ((counts - 200) ** 2).sum() / 200 < chi2.isf(1e-6, 7)

    assert even(last)
    assert not even(np.tile(np.arange(4), (400, 1))), "planted: the round is begun in order and not finished"


# ---- rank one -----------------------------------------------------------------------------------------------------


class Quantiles:
    """Instead of noise, the midpoints of 2^12 equally likely parts of a normal, one after the other."""

    values = ndtri((np.arange(4096) + 0.5) / 4096)

    def __init__(self):
        self.turn = -1

    def normals(self, size):
        assert size == 1
        self.turn += 1
        return self.values[self.turn : self.turn + 1]


def released_cells(step, deviation, outputs):
    """Grid points of releases made by the library, per world, as whole numbers of steps from the centre."""
    space = subspace(outputs[:, None])
    noise = Noise(space, np.array([deviation]))
    table = np.empty((len(outputs), 4096))
    for row, own in zip(table, space.coordinates, strict=True):
        quantiles = Quantiles()
        vectors = [released_vector(noise, own, step, quantiles) for _ in range(4096)]
        row[:] = (np.array(vectors)[:, 0] - space.centre[0]) / (step * deviation)
    assert np.abs(table - np.rint(table)).max() < 1e-6
    # The sign of a direction is free; cells are compared in the direction that was used.
    turn = np.sign(space.coordinates[0, 0]) * np.sign(outputs[0] - space.centre[0])
    return turn * np.rint(table), space.coordinates[:, 0] / deviation


def far_apart(step, shift=0.0):
    """Largest difference of distribution functions, cells against releases, in any world."""
    found, points = released_cells(step, 0.7, np.array([0.0, 0.3, 1.9, -1.2]))
    cells = Cells(points + shift * step, step)
    views = [cells.view(block) for block in range(cells.blocks)]
    mass = np.concatenate([view.posterior * view.weight[:, None] for view in views]) * cells.m
    assert abs(mass.sum(axis=0) - 1).max() < 1e-12
    worst = 0.0
    for world, numbers in enumerate(found):
        counts = np.bincount((numbers - cells.first).astype(int), minlength=cells.cells) / 4096
        worst = max(worst, np.abs(np.cumsum(counts) - np.cumsum(mass[:, world])).max())
    return worst


@pytest.mark.parametrize("step", [2.0**-3, 2.0**-6])
def test_cells_are_the_probabilities_of_the_released_grid_points(step):
    assert far_apart(step) <= 1 / 4096


def test_planted_cells_that_start_at_the_grid_points_are_caught():
    assert far_apart(2.0**-3, shift=0.5) > 4 / 4096


def exact_masses(points, first, cells, step):
    """Cell masses to thirty digits; the outermost cells hold the tails."""
    context = mpmath.mp.clone()
    context.dps = 30
    edges = ((first + np.arange(cells + 1) - 0.5) * step).tolist()  # exact: the step is a power of two
    root = context.sqrt(2)
    table = []
    for z in points.tolist():
        # Upper tails on the right of the world's output, lower ones on the left: no digits are lost in differences.
        tails = [context.erfc(abs(context.mpf(e) - z) / root) / 2 for e in edges]
        row = []
        for k in range(cells):
            left, right = edges[k] - z, edges[k + 1] - z  # only their signs are used, which floats have right
            if k == 0:
                mass = tails[1] if right < 0 else 1 - tails[1]
            elif k == cells - 1:
                mass = tails[k] if left > 0 else 1 - tails[k]
            elif right <= 0:
                mass = tails[k + 1] - tails[k]
            elif left >= 0:
                mass = tails[k] - tails[k + 1]
            else:
                mass = 1 - tails[k] - tails[k + 1]
            row.append(mass)
        table.append(row)
    return table


def mass_error(points, step, spoil=lambda mass: mass):
    cells = Cells(points, step)
    views = [cells.view(block) for block in range(cells.blocks)]
    mass = np.concatenate([view.posterior * view.weight[:, None] for view in views])
    mass = spoil(mass)
    exact = exact_masses(points, cells.first, cells.cells, step)
    true = np.array([[float(one) for one in row] for row in exact]).T / cells.m  # adds an error of 1e-16 at most
    total = float(np.abs(mass.astype(np.float64) - true).sum())
    return total, max(view.rounding for view in views)


@pytest.mark.parametrize(("points", "step"), [([0.3], 2.0**-10), ([-4.1, 0.0, 0.37], 2.0**-7)])
def test_cell_masses_agree_with_high_precision(points, step):
    error, rounding = mass_error(np.array(points), step)
    assert error <= 2e-12
    assert error < rounding <= 1e-10


def test_a_planted_single_precision_mass_is_caught():
    error, rounding = mass_error(np.array([0.3]), 2.0**-7, lambda mass: mass.astype(np.float32))
    assert error > rounding


def test_the_tails_beyond_the_cells_are_as_small_as_stated():
    outermost = 2 * MP.erfc(MP.mpf(8.5) / MP.sqrt(2)) / 2
    assert outermost < 2e-17
    points = np.array([-1.0, 2.0])
    cells = Cells(points, 2.0**-6)
    assert (cells.first - 0.5) * cells.step <= points.min() - 8.5
    assert (cells.first + cells.cells - 0.5) * cells.step >= points.max() + 8.5
