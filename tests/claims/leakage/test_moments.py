"""Bounds from second moments: for every unit against quadrature, and as often as gamma allows."""

from __future__ import annotations

import math
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.leakage import moments
from leakcap.leakage.certify import Effort, certify
from leakcap.leakage.collusion import known_sizes, known_upper
from leakcap.leakage.measures import needs, thresholds
from leakcap.leakage.membership import evidence
from leakcap.leakage.moments import SecondMoments, moments_of, root_upper, screened_bounds
from leakcap.leakage.posterior import Sampled
from leakcap.worlds import draw_worlds
from tests.claims.leakage.plane import Plane

RUNS, DRAWS = 20_000, 2**14
SLIP = 3e-5  # what the quadrature may be off by
TERM = math.log(1e6)  # each bound may fail once in a million
SCREENED = Effort((512, 2048), 1024, 2048, screening=4096, naming=512)


def game(rate=1 / 2, seed=0, scale=1.0):
    """Six units and two outputs."""
    rng = np.random.default_rng(seed)
    worlds = draw_worlds(6, 18 if rate < 0.5 else 16, rng, rate)
    points = worlds.masks() @ rng.standard_normal((6, 2)) + rng.standard_normal((worlds.m, 2))
    return worlds, scale * (points - points.mean(axis=0)) / points.std()


def seen(worlds, points, draws=DRAWS):
    source = Sampled(points, draws, np.random.SeedSequence(5))
    return source, moments_of(lambda b: evidence(source.view(b), worlds.paired, False), source.blocks, draws, 0.0)


# ---- every unit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_bounds_hold_for_every_unit(rate):
    worlds, points = game(rate)
    brute = Plane(points, worlds.masks(), step=0.08)
    cuts = thresholds(rate)
    success, *sticks = screened_bounds(Sampled(points, DRAWS, np.random.SeedSequence(1)), worlds, cuts, TERM)
    assert (success >= brute.membership() - SLIP).all()
    assert (np.array(sticks) >= brute.sticks(cuts) - SLIP).all()
    # No more than Cauchy and Schwarz cost, and a little: these units do not hide behind a bound of 1.
    assert (success - 0.5 <= 1.5 * (brute.membership() - 0.5) + 0.02).all()


def test_planted_noise_that_is_twice_as_large_is_caught():
    worlds, points = game()
    success = screened_bounds(Sampled(points / 2, DRAWS, np.random.SeedSequence(1)), worlds, np.empty(0), TERM)[0]
    assert (success < Plane(points, worlds.masks(), step=0.08).membership()).any()


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3])
def test_roots_are_those_of_the_releases_seen(rate):
    """Against plain products in double precision: posteriors of the very same releases, one unit after the other."""
    worlds, points = game(rate)
    source, found = seen(worlds, points, draws=1024)
    shown = np.concatenate([source.seen(block)[0] for block in range(source.blocks)])
    posterior = np.exp(shown @ points.T - (points**2).sum(axis=1) / 2)
    off = posterior @ worlds.masks() / posterior.sum(axis=1, keepdims=True) - worlds.rate
    plain = np.sqrt((off**2).mean(axis=0))
    roots = found.roots(worlds)
    assert (roots + found.rounding >= plain).all()
    assert roots == pytest.approx(plain, rel=moments.LEFT_OUT * 4)


# ---- directions that are left out ---------------------------------------------------------------------------------


def spread(rng, width=64):
    """Few large directions and many small ones, and 4,000 units."""
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0]
    size = np.concatenate([np.full(width - 4, 1e-6), [1e-4, 2e-4, 4e-4, 8e-4]])
    return SecondMoments((turn * size) @ turn.T, 1, 0.0), draw_worlds(4000, 2 * width, rng)


def below(found, worlds):
    """In how many units the root is below that of the quadratic form, computed one by one."""
    signs = 2.0 * worlds.columns(slice(0, worlds.n), rows=worlds.m // 2) - 1
    exact = np.sqrt(np.einsum("wu,wv,vu->u", signs, found.matrix, signs, optimize=True))
    roots = found.roots(worlds)
    assert (roots <= 1.1 * exact + 0.01).all()
    return (roots < exact).sum()


def test_directions_that_are_left_out_are_counted():
    found, worlds = spread(np.random.default_rng(1))
    assert found.directions()[0].shape[1] == 4
    assert below(found, worlds) == 0


def test_planted_directions_that_are_forgotten_are_caught(monkeypatch):
    found, worlds = spread(np.random.default_rng(1))
    factor, rest = found.directions()
    monkeypatch.setattr(SecondMoments, "directions", lambda self: (factor, 0.0))
    assert rest > 0
    assert below(found, worlds) > worlds.n / 2


# ---- chance -------------------------------------------------------------------------------------------------------

LAWS = {
    "half normal": lambda rng, shape: np.minimum(np.abs(0.05 * rng.standard_normal(shape)), 0.5),
    "rare": lambda rng, shape: 0.5 * (rng.random(shape) < 0.02),
    "coin": lambda rng, shape: 0.5 * (rng.random(shape) < 0.5),
    "strata": lambda rng, shape: 0.5 * (rng.random(shape) < np.where(np.arange(shape[0]) % 2, 0.03, 0.001)[:, None]),
}
SQUARES = {"half normal": 0.05**2, "rare": 0.25 * 0.02, "coin": 0.125, "strata": 0.25 * 0.0155}


def failures(name, gamma, spoil=1.0):
    values = LAWS[name](np.random.default_rng(len(name)), (200, RUNS))
    root = np.sqrt((values**2).mean(axis=0))
    bound = root_upper(root, SecondMoments(np.eye(1), 200, 0.0), 0.5, spoil * math.log(1 / gamma))
    return (bound < math.sqrt(SQUARES[name])).sum()


@pytest.mark.parametrize("gamma", [0.05, 0.001])
@pytest.mark.parametrize("name", LAWS)
def test_bounds_from_means_fail_no_more_often_than_gamma_allows(name, gamma):
    """A false alarm once in a million, for each law."""
    assert failures(name, gamma) <= binom.isf(1e-6, RUNS, gamma)


def test_a_planted_tenth_of_the_logarithm_is_caught():
    assert failures("rare", 0.001, spoil=1 / 10) > binom.isf(1e-6, RUNS, 0.001)


# ---- known memberships --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3])
def test_known_memberships_are_bounded(k):
    worlds, points = game()
    bound = known_upper(Sampled(points, DRAWS, np.random.SeedSequence(k)), worlds, k, TERM)
    assert (bound >= Plane(points, worlds.masks(), step=0.08).known(k) - SLIP).all()


def test_a_planted_attacker_who_is_told_nothing_is_caught(monkeypatch):
    worlds, points = game(scale=0.4)
    collusion = import_module("leakcap.leakage.collusion")
    original = collusion._informed
    nobody = lambda source, worlds, k: original(source, worlds, 0)  # noqa: E731
    monkeypatch.setattr(collusion, "_informed", nobody)
    bound = known_upper(Sampled(points, DRAWS, np.random.SeedSequence(3)), worlds, 2, TERM)
    assert (bound < Plane(points, worlds.masks(), step=0.08).known(2)).any()


# ---- a whole pass -------------------------------------------------------------------------------------------------


def screened_pass(worlds, points, gamma, seed=0, success=0.9):
    wanted, caps = needs([lc.membership(success)], worlds)
    child = np.random.SeedSequence([seed, 3])
    return certify(points, worlds, caps, wanted, gamma, SCREENED, child, 99.0, 0.0, None, Machine(2**28))


def test_all_figures_of_a_screened_pass_hold_together():
    worlds, points = game()
    brute, cuts = Plane(points, worlds.masks(), step=0.08), thresholds(0.5)
    truth = [brute.membership(), [brute.naming()], brute.sticks(cuts).max(axis=1)]
    truth = np.concatenate([*truth, [brute.known(k).max() for k in known_sizes(16, 6)]])
    failed = 0
    for seed in range(25):
        found = screened_pass(worlds, points, 0.1, seed)
        held = [found.exposure, [found.naming], [stick for _, stick in found.sticks], [one for _, one in found.known]]
        failed += bool((np.concatenate(held) < truth - SLIP).any())
    assert failed <= binom.isf(1e-4, 25, 0.1)


def test_every_statement_of_a_screened_pass_is_counted(monkeypatch):
    """Those of second moments and of known memberships too; each stage spends its share of gamma and no more."""
    stages, module = (import_module(f"leakcap.leakage.{name}") for name in ("stages", "certify"))
    spent = {"everybody": 0.0, "again": 0.0}

    def noted(original, position, stage):
        def spy(*given):
            spent[stage] += 6 * 2 * math.exp(-given[position])  # six units
            return original(*given)

        return spy

    worlds, points = game()
    monkeypatch.setattr(stages, "screened_bounds", noted(stages.screened_bounds, 3, "everybody"))
    monkeypatch.setattr(module, "known_upper", noted(module.known_upper, 3, "everybody"))
    monkeypatch.setattr(stages, "upper", noted(stages.upper, 1, "again"))
    found = screened_pass(worlds, points, 0.05, success=0.51)
    assert found.gamma_again == 0.025
    assert spent["again"] == pytest.approx(0.025)
    # Besides: naming a member, curve and information, which the certifying pass bounds itself.
    others = 1 + len(found.curve) + 1
    assert spent["everybody"] == pytest.approx(0.025 * (1 - others / (6 * (1 + len(found.known)) + others)))
    assert found.bounds == 6 * (1 + len(found.known)) + others + 2 * 6 * 10


def test_few_units_that_matter_get_the_draws(monkeypatch):
    """Where the moments settle most units, the others get more draws than everybody would have had."""
    stages = import_module("leakcap.leakage.stages")
    looked = []
    original = stages.UnitGame.look
    monkeypatch.setattr(
        stages.UnitGame, "look", lambda self, source, **how: looked.append(how) or original(self, source, **how)
    )
    rng = np.random.default_rng(2)
    worlds = draw_worlds(1200, 32, rng)
    weight = np.where(np.arange(1200) < 6, 8.0, 0.1)[:, None] * rng.standard_normal((1200, 2))
    points = worlds.masks() @ weight
    points = 0.3 * (points - points.mean(axis=0)) / points.std()
    wanted, caps = needs([lc.membership(0.75)], worlds)
    effort = Effort((256, 1024), 512, 512, screening=8192, naming=256)
    given = (effort, np.random.SeedSequence(1), 99.0, 0.0, None, Machine(2**28))
    found = certify(points, worlds, caps, wanted, 1e-3, *given)
    assert all(len(how["chosen"]) <= 600 for how in looked)
    assert found.effort.stages[0] > 256
    assert found.values[0] <= 0.75


@pytest.mark.parametrize(
    ("m", "n", "options", "screened"),
    [
        (1024, 10**6, {"screen": True}, True),
        (1024, 10**6, {}, False),
        (1024, 10**6, {"screen": True, "everybody": True}, False),  # naming a member is capped: everybody counts
        (1024, 50_000, {"screen": True}, False),
        (64, 10_000, {"screen": True}, False),
    ],
)
def test_only_very_many_units_are_screened(m, n, options, screened):
    assert bool(Effort.of(2**16, m, n, False, **options).screening) == screened


@pytest.mark.parametrize("first", [1000, 2048, 3000, 8192])
def test_stages_grow_by_large_steps_up_to_all_draws(first, monkeypatch):
    stages = import_module("leakcap.leakage.stages")
    monkeypatch.setattr(stages, "FEWEST", first)
    found = Effort.of(2**16, 1024, 10**7, False).stages
    assert found[0] == first and found[-1] == 2**16
    assert all(later > 2 * sooner for sooner, later in pairwise(found))
