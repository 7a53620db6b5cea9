"""Inputs under a prior: every figure against code that shares nothing with the package.

One output: the trapezoidal rule over released values, with the prior in the joint density. The curve: every way of
filling a knapsack, by direct enumeration of which inputs are taken whole and which one in part. Faults that are planted
(the prior ignored, ratios mistaken for posteriors, the entropy of another prior) must miss these values by far.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.leakage.certify import certify
from leakcap.leakage.confidence import log_term, upper
from leakcap.leakage.measures import needs
from leakcap.leakage.posterior import Cells, Sampled
from leakcap.leakage.stages import Effort
from leakcap.leakage.tasks import NAMING, knapsack, observe_worlds
from leakcap.noise import subspace
from leakcap.noise.search import Goal, rough_scales
from leakcap.worlds import GivenInputs

POINTS = np.array([0.0, 0.4, 1.1, 1.5, 3.0])
PRIOR = np.array([0.4, 0.1, 0.25, 0.05, 0.2])
CHANCES = (Fraction(1, 100), Fraction(1, 10), Fraction(37, 100), Fraction(1, 2), Fraction(9, 10))
TASK = np.array([[1.0, 0.0, 0.3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.2, 0.0], [0.0, 1.0, 1.0]])
STEP = 2.0**-10


def joint(prior):
    """Densities at the points of a grid, `(grid, inputs)`, and its step."""
    y, step = np.linspace(POINTS.min() - 9, POINTS.max() + 9, 2**14, retstep=True)
    return prior * np.exp(-0.5 * (y[:, None] - POINTS) ** 2) / np.sqrt(2 * np.pi), step


def fillings(prior, chance):
    """All corners of "take each input from 0 to 1, for this much prior": some whole, one in part."""
    found = []
    for part in range(len(prior)):
        others = [i for i in range(len(prior)) if i != part]
        for size in range(len(others) + 1):
            for whole in itertools.combinations(others, size):
                left = chance - prior[list(whole)].sum()
                if 0 <= left <= prior[part] + 1e-15:
                    taken = np.zeros(len(prior))
                    taken[list(whole)], taken[part] = 1.0, left / prior[part]
                    found.append(taken)
    return np.array(found)


def oracle(prior=PRIOR):
    table, step = joint(prior)
    curve = [step * (table @ fillings(prior, float(chance)).T).max(axis=1).sum() for chance in CHANCES]
    total = table.sum(axis=1, keepdims=True)
    safe = np.maximum(table, 1e-300)
    information = step * (safe * np.log(safe / np.maximum(total, 1e-300) / prior)).sum()
    return np.array([*curve, information, step * (table @ TASK).max(axis=1).sum(), step * table.max(axis=1).sum()])


def ours(source):
    seen = observe_worlds(source, CHANCES, (TASK, NAMING))
    return np.concatenate([seen.curve.estimate, seen.information.estimate, *(task.estimate for task in seen.tasks)])


def test_every_figure_under_a_prior_equals_an_independent_integration():
    assert ours(Cells(POINTS, STEP, PRIOR)) == pytest.approx(oracle(), abs=3e-6)


def test_a_uniform_prior_gives_what_no_prior_gives():
    alike = np.full(5, 0.2)
    assert ours(Cells(POINTS, STEP, alike)) == pytest.approx(ours(Cells(POINTS, STEP)), abs=1e-9)


def by_posterior(posterior, prior, chances):
    """The planted fault: the likeliest inputs first, whatever they cost."""
    order = np.argsort(-posterior, axis=1)
    found = np.empty((len(posterior), len(chances)))
    for row, places in enumerate(order):
        paid, had = np.cumsum(prior[places]), np.cumsum(posterior[row, places])
        found[row] = np.interp(chances, np.r_[0, paid], np.r_[0, had])
    return found


def test_planted_faults_miss_the_integration():
    true = oracle()
    ignored = ours(Cells(POINTS, STEP))  # the prior is ignored in the posterior
    # Where the chance is so small that the best ratio is all it buys, the prior does not matter; elsewhere it does.
    assert (np.abs(ignored - true) > 1e-3).sum() >= 6
    entropy = ours(Cells(POINTS, STEP, PRIOR))[5] + np.log(5) + (PRIOR * np.log(PRIOR)).sum()  # of the uniform prior
    assert entropy > true[5] + 0.1
    table, step = joint(PRIOR)
    total = table.sum(axis=1, keepdims=True)
    wrong = step * (by_posterior(table / total, PRIOR, np.array([float(c) for c in CHANCES])) * total).sum(axis=0)
    assert (wrong < true[:5] - 1e-3).sum() >= 3


@pytest.mark.parametrize("seed", range(3))
def test_the_knapsack_is_the_best_of_all_fillings(seed):
    rng = np.random.default_rng(seed)
    prior, posterior = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5), size=20)
    chances = np.array([0.9, 0.03, 0.5])  # in any order
    best = [(posterior @ fillings(prior, chance).T).max(axis=1) for chance in chances]
    found = knapsack(posterior, prior, chances)
    assert found == pytest.approx(np.transpose(best), abs=1e-9)
    assert (found >= np.transpose(best) - 1e-15).all()
    assert (by_posterior(posterior, prior, chances) < found - 1e-3).any()


def test_sampled_figures_cover_the_integral_and_a_uniform_draw_does_not():
    """False alarms: below 1e-6 for all figures together."""
    term = log_term(1e-6, 8)

    def bounds(source):
        seen = observe_worlds(source, CHANCES, (TASK, NAMING))
        means = (seen.curve, seen.information, *seen.tasks)
        return np.concatenate([upper(mean, term) for mean in means]), np.concatenate([mean.estimate for mean in means])

    most, estimate = bounds(Sampled(POINTS[:, None], 2**15, np.random.SeedSequence(3), prior=PRIOR))
    assert (most >= oracle()).all() and np.abs(estimate - oracle()).max() < 0.015  # five standard errors or more

    class Dealt(Sampled):
        """The planted fault: worlds are dealt in turn, as if all were alike; posteriors know the prior."""

        def seen(self, block):
            return Sampled(self.points, self.draws, self.seed).seen(block)

    _, estimate = bounds(Dealt(POINTS[:, None], 2**15, np.random.SeedSequence(3), prior=PRIOR))
    assert np.abs(estimate - oracle()).max() > 0.03


def certified(points, cap, prior, gamma=1e-6, draws=2**14):
    inputs = GivenInputs.of(range(len(points)), prior)
    wanted, concrete = needs((cap,), inputs)
    return certify(
        points,
        inputs,
        concrete,
        wanted,
        gamma=gamma,
        effort=Effort((draws,), draws, 0),
        seed=np.random.SeedSequence(5),
        mi_ceiling=10.0,
        distance=0.0,
        step=None,
        machine=Machine(),
    )


def test_a_certified_pass_bounds_every_figure_and_counts_its_statements():
    found = certified(POINTS[:, None], lc.any_inference(0.37, 0.99), PRIOR.tolist())
    true = oracle()
    curve = dict(found.curve)
    assert found.naming >= true[7] and found.mutual_information >= true[5] and curve[0.37] >= true[2]
    assert found.naming < true[7] + 0.03 and found.mutual_information < true[5] + 0.05
    assert found.bounds == len(found.curve) + 1 + 1  # the curve, the information, and naming the input
    assert found.exposure.size == 0 and found.known == () and found.sticks == ()


def test_the_centre_and_the_variances_are_those_of_the_prior():
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(5, 3)) * [1.0, 3.0, 0.2]
    mean = PRIOR @ outputs
    cov = (outputs - mean).T @ np.diag(PRIOR) @ (outputs - mean)
    for memory in (2**30, 1):  # directions written out, and as combinations of outputs
        wide = outputs if memory > 1 else np.repeat(outputs, 9, axis=1)
        space = subspace(wide, "equal", memory, PRIOR)
        assert (space.directions is None) == (memory == 1)
        assert space.centre == pytest.approx(PRIOR @ wide)
        scale = 1 if memory > 1 else 9
        assert np.sort(space.variances) == pytest.approx(scale * np.linalg.eigvalsh(cov), rel=1e-6)
        assert space.centre + space.lift(space.coordinates) == pytest.approx(wide, abs=1e-6)
        assert (PRIOR @ space.coordinates) == pytest.approx(0, abs=1e-9)
    plain = subspace(outputs, "equal")
    assert np.abs(plain.centre - mean).max() > 0.05  # the planted fault: the mean of a uniform prior


def test_the_ceiling_of_the_information_holds_under_the_prior():
    inputs = GivenInputs.of(range(5), PRIOR.tolist())
    space = subspace(POINTS[:, None], "equal", prior=inputs.shares)
    goal = Goal.of((lc.mutual_information(0.2),), inputs)
    (scaled,) = rough_scales(goal, space.coordinates, space.variances, np.random.SeedSequence(0))
    log_t = -2 * np.log(scaled.search.shape[0]) / 2  # noise of deviation one
    assert scaled.search.deviations(log_t) == pytest.approx(1.0)
    ceiling = scaled.search.ceiling(log_t)
    assert oracle()[5] < ceiling == pytest.approx(0.5 * np.log1p(PRIOR @ (POINTS - PRIOR @ POINTS) ** 2))
