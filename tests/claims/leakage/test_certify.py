"""One certifying pass: every statement is counted, and the sampler's distance reaches every figure."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.leakage.certify import Effort, certify, count_bounds, entropy_slack
from leakcap.leakage.collusion import known_sizes
from leakcap.leakage.confidence import MeanEstimate
from leakcap.leakage.measures import needs, thresholds
from leakcap.worlds import draw_worlds

module = import_module("leakcap.leakage.certify")  # the package has a function of that name
STAGES = import_module("leakcap.leakage.stages")
GAMMA = 0.05
ONE_STAGE, TWO_STAGES, THREE_STAGES = (Effort(stages, 1024, 512) for stages in ((1024,), (256, 4096), (256, 512, 1024)))


def game(rate=1 / 2, m=24, n=9, r=2, seed=0):
    rng = np.random.default_rng(seed)
    worlds = draw_worlds(n, m, rng, rate)
    points = worlds.masks() @ rng.standard_normal((n, r))
    return worlds, 1.5 * (points - points.mean(axis=0)) / points.std()


def every_cap(worlds):
    wins = worlds.masks()[:, :3].astype(float)
    return [
        lc.membership(0.9),
        lc.name_a_member(0.99),
        lc.precision(0.05, 0.99),
        lc.true_positive_rate(0.02, 0.98),
        lc.identification(0.9),
        lc.any_inference(0.123, 0.99),
        lc.mutual_information(2.0),
        lc.task(wins, 0.999),
    ]


def run(worlds, points, caps, distance=0.0, step=None, effort=ONE_STAGE, seed=1, ceiling=None):
    wanted, concrete = needs(caps, worlds)
    child = np.random.SeedSequence(seed)
    ceiling = math.log(worlds.m) if ceiling is None else ceiling
    return certify(points, worlds, concrete, wanted, GAMMA, effort, child, ceiling, distance, step, Machine(2**28))


# ---- the count ----------------------------------------------------------------------------------------------------


def statements(monkeypatch, effort, cap=None):
    """How many sampled means were turned into bounds, how many were counted, and what they may fail with together.

    A mean that only chooses among entries of means before it makes no new statement.
    """
    worlds, points = game()
    made, spent, seen, arrays = 0, 0.0, set(), []
    original = module.upper

    def spy(mean, log_term):
        nonlocal made, spent
        if mean.sampled and not any(mean.estimate is one for one in arrays):
            arrays.append(mean.estimate)
            values = set(np.unique(mean.estimate).tolist())
            if values - seen:
                made += mean.estimate.size
                spent += mean.estimate.size * 2 * math.exp(-log_term)
            seen.update(values)
        return original(mean, log_term)

    for where in (module, STAGES):
        monkeypatch.setattr(where, "upper", spy)
    monkeypatch.setattr(STAGES, "FEW_UNITS", 512)
    found = run(worlds, points, every_cap(worlds) if cap is None else [cap], effort=effort)
    return made, found.bounds, spent


@pytest.mark.parametrize("effort", [ONE_STAGE, TWO_STAGES, THREE_STAGES])
def test_every_statement_is_counted(monkeypatch, effort):
    made, counted, spent = statements(monkeypatch, effort)
    worlds, _ = game()
    wanted, _ = needs(every_cap(worlds), worlds)
    # So few units are all looked at again, in every stage.
    per_unit = len(effort.stages) * (1 + len(thresholds(0.5))) + len(known_sizes(24, 9))
    priors = {*module.default_priors(24), *wanted.priors}
    assert len(wanted.priors) == 2  # 1/24 is on the grid, 0.123 is not
    assert made == counted == 9 * per_unit + 1 + len(priors) + 1 + 1
    assert spent == pytest.approx(GAMMA), "each statement gets its share of gamma and no more"


@pytest.mark.parametrize(
    "forgotten",
    [
        lambda m, n, sticks, wanted, stages: count_bounds(m, n, sticks, wanted, stages) - len(known_sizes(m, n)) * n,
        lambda m, n, sticks, wanted, stages: count_bounds(m, n, 0, wanted, stages),
        lambda m, n, sticks, wanted, stages: count_bounds(m, n, sticks, wanted, stages) - len(wanted.tasks),
        lambda m, n, sticks, wanted, stages: len(wanted.priors) + 8,
    ],
)
def test_a_planted_count_that_forgets_statements_is_caught(monkeypatch, forgotten):
    monkeypatch.setattr(module, "count_bounds", forgotten)
    made, counted, spent = statements(monkeypatch, ONE_STAGE)
    assert made > counted
    assert spent > GAMMA * 1.001


def test_a_planted_second_stage_that_spends_gamma_again_is_caught(monkeypatch):
    original = module.log_term
    for where in (module, STAGES):
        monkeypatch.setattr(where, "log_term", lambda gamma, bounds: original(GAMMA, bounds))
    *_, spent = statements(monkeypatch, TWO_STAGES)
    assert spent == pytest.approx(2 * GAMMA)


@pytest.mark.parametrize("effort", [TWO_STAGES, THREE_STAGES])
def test_every_stage_has_draws_of_its_own(monkeypatch, effort):
    """Stakes are placed by the first stage: its draws may not be counted again."""
    draws = {}
    original = module.Sampled.seen

    def noted(self, block):
        draws.setdefault((self.seed.entropy, self.seed.spawn_key), set()).add(self.draws)
        return original(self, block)

    monkeypatch.setattr(module.Sampled, "seen", noted)
    worlds, points = game()
    run(worlds, points, [lc.membership(0.51)], effort=effort)
    assert all(len(used) == 1 for used in draws.values())
    assert len(draws) == len(effort.stages) + 1 + 2 + len(known_sizes(24, 9)), (
        "pilots, stages, worlds and known: a seed for each"
    )


def test_the_second_stage_keeps_whichever_bound_is_lower():
    worlds, points = game(m=64, n=12)
    rough = run(worlds, points, [lc.membership(0.55)], effort=Effort((512,), 512, 256))
    both = run(worlds, points, [lc.membership(0.55)], effort=Effort((512, 2**15), 512, 256))
    assert (both.exposure <= rough.exposure + 0.02).all()  # a second stage costs a slightly larger union
    assert both.exposure.max() < rough.exposure.max()


# ---- the sampler's distance ---------------------------------------------------------------------------------------

STEP = 2.0**-6


class Revealed:
    """One output on a grid, exactly. With probability `d` the release names the world instead: total variation `d`."""

    def __init__(self, worlds, points, d):
        z = points[:, 0]
        grid = np.arange(np.floor((z.min() - 9) / STEP), np.ceil((z.max() + 9) / STEP) + 1) * STEP
        mass = (norm.cdf(grid[:, None] + STEP / 2 - z) - norm.cdf(grid[:, None] - STEP / 2 - z)) / len(z)
        self.joint = np.concatenate([(1 - d) * mass, d * np.eye(len(z)) / len(z)])
        self.masks, self.q = worlds.masks(), worlds.rate

    def figures(self, priors, cuts):
        inside = self.joint @ self.masks
        total = self.joint.sum(axis=1)
        ordered = np.sort(self.joint, axis=1)[:, ::-1].sum(axis=0)
        reached = np.concatenate([[0], np.cumsum(ordered)])
        m = self.joint.shape[1]
        used = self.joint > 0
        ratio = m * self.joint / np.maximum(total[:, None], 1e-300)
        return {
            "exposure": 0.5 + np.abs(inside - self.q * total[:, None]).sum(axis=0) / (4 * self.q * (1 - self.q)),
            "naming": inside.max(axis=1).sum(),
            "sticks": np.array([np.maximum(inside - t * total[:, None], 0).sum(axis=0).max() for t in cuts]),
            "curve": np.interp(np.array(priors) * m, np.arange(m + 1), reached),
            "information": float((self.joint[used] * np.log(ratio[used])).sum()),
            "task": (self.joint @ self.masks[:, :3].astype(float)).max(axis=1).sum(),
            "precision": max(best(total, a, 0.05) for a in inside.T) / 0.05,
            "rate": max(best(total - a, a, 0.02 * (1 - self.q)) for a in inside.T) / self.q,
        }


def best(cost, gain, budget):
    """The most gain for a budget, cheapest first: the best claims, or the best accusations."""
    order = np.argsort(-gain / np.maximum(cost, 1e-300))
    return np.interp(budget, np.concatenate([[0], cost[order].cumsum()]), np.concatenate([[0], gain[order].cumsum()]))


def shortfalls(distance, rate, d=1e-3):
    """Figures of the shifted law minus what is certified for it; all at most 0 if the distance is accounted for."""
    worlds, points = game(rate, r=1)
    found = run(worlds, points, every_cap(worlds), distance=distance, step=STEP)
    assert found.integrated
    true = Revealed(worlds, points, d).figures([p for p, _ in found.curve], thresholds(rate))
    return {
        "exposure": (true["exposure"] - found.exposure).max(),
        "membership": true["exposure"].max() - found.membership,
        "naming": true["naming"] - found.naming,
        "sticks": (true["sticks"] - [s for _, s in found.sticks]).max(),
        "curve": (true["curve"] - [s for _, s in found.curve]).max(),
        "information": true["information"] - found.mutual_information,
        "capped membership": true["exposure"].max() - found.values[0],
        "capped naming": true["naming"] - found.values[1],
        "capped precision": true["precision"] - found.values[2],
        "capped rate": true["rate"] - found.values[3],
        "capped world": true["curve"][0] - found.values[4],
        "capped information": true["information"] - found.values[6],
        "capped task": true["task"] - found.values[7],
    }


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_the_samplers_distance_is_added_to_every_figure(rate):
    d = 1e-3
    assert max(shortfalls(d, rate, d).values()) <= 1e-9
    # Known memberships are sampled: the same draws, with and without the distance.
    worlds, points = game(rate)
    plain = run(worlds, points, every_cap(worlds))
    moved = run(worlds, points, every_cap(worlds), distance=d)
    for (_, before), (_, after) in zip(plain.known, moved.known, strict=True):
        assert after >= min(1.0, before + d - 1e-12)
    assert moved.mutual_information >= min(math.log(worlds.m), plain.mutual_information) + entropy_slack(d, 24) - 1e-9


def test_the_samplers_distance_is_added_to_the_bound_without_sampling():
    """Where the log-det bound decides, it must carry the slack into everything that is computed from it."""
    worlds, points = game()
    d, ceiling = 1e-3, 0.01
    found = run(worlds, points, every_cap(worlds), distance=d, ceiling=ceiling)
    moved = ceiling + entropy_slack(d, worlds.m)
    assert moved > 1.5 * ceiling
    assert found.mutual_information == pytest.approx(moved, rel=1e-9)
    assert found.values[6] == pytest.approx(moved, rel=1e-9)
    assert found.membership == found.values[0] == pytest.approx(lc.convert.posterior(moved, 0.5), rel=1e-9)
    assert found.naming == pytest.approx(lc.convert.posterior(moved, 0.5), rel=1e-9)
    for prior, success in found.curve:
        assert success == pytest.approx(lc.convert.posterior(moved, prior), rel=1e-9)


def test_a_planted_pass_that_ignores_the_distance_is_caught(monkeypatch):
    """Every single figure of the shifted law lies above what is certified without the distance."""
    loose = {"capped precision", "capped rate"}  # bounded at a few ratios, with room to spare
    assert min(short for name, short in shortfalls(0.0, 1 / 2).items() if name not in loose) > 1e-6
    monkeypatch.setattr(MeanEstimate, "blurred", lambda self, error: self)
    assert max(shortfalls(1e-3, 1 / 2).values()) > 1e-6


def test_a_planted_distance_that_is_too_small_is_caught():
    """The shifted law gives every unit (1 - B) d more; 0.4 of the distance does not cover the least exposed one."""
    assert shortfalls(0.4e-3, 1 / 2)["exposure"] > 1e-6
