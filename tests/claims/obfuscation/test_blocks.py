"""Several blocks: their evidence adds up, rounded outwards; the truth lies below, and a forgotten block shows."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.obfuscation import several_blocks
from leakcap.obfuscation.chi_squares import told_apart
from leakcap.obfuscation.information import log_det_nats, trace_nats
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import Statements, UnitEffort, certify_units, look_at_units
from leakcap.obfuscation.pairs import SwapFactors
from leakcap.obfuscation.several_blocks import blocks_told_apart, blocks_told_apart_quickly, sticks_of_blocks
from leakcap.obfuscation.whole import certify_whole
from tests.claims.obfuscation.brute_force import every_swap, kl, mixings, samples
from tests.claims.obfuscation.cases import law, rows


@pytest.mark.parametrize("columns", [1, 20, 500])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_one_block_is_the_integral_and_never_below_it(columns, weight):
    rng = np.random.default_rng(1)
    wider, narrower = rng.uniform(0.1, 1, (2, 20)) / np.sqrt(columns)
    exact = told_apart(wider, narrower, columns, weight=weight, cells=2048)
    blocks = blocks_told_apart(wider[:, None], narrower[:, None], columns, weight=weight)
    assert (blocks >= exact - 1e-6).all()
    assert (blocks <= 1.03 * exact + 2e-3).all()


def test_equal_blocks_are_one_block_of_more_columns():
    """Two blocks with the same factors: sums of squares add up to chi-squares of twice as many degrees."""
    both = np.array([[0.05, 0.05]])
    exact = told_apart(both[:, 0], both[:, 0], 200, cells=2048)
    assert exact - 1e-6 <= blocks_told_apart(both, both, 100) <= 1.01 * exact


@pytest.mark.parametrize("columns", [1, 20, 500])
@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
def test_a_convolution_is_within_a_percent_of_the_truth(columns, weight):
    """Equal blocks are one of more columns, for which there is an integral; laws that are far apart among them."""
    logs = np.array([0.05, 0.5, 2.0, 5.0])[:, None] / np.sqrt(columns) * np.ones((4, 3))
    exact = told_apart(logs[:, 0], logs[:, 0] / 2, 3 * columns, weight=weight, cells=4096)
    found, other = sticks_of_blocks(logs, logs / 2, columns, weights=(weight, 2.0))
    assert (found >= exact - 2e-6).all() and (found <= 1.01 * exact + 1e-3).all()
    assert other == pytest.approx(blocks_told_apart(logs, logs / 2, columns, weight=2.0))
    beyond = np.full((1, 3), 50.0)  # and where nothing is hidden, and where all is
    assert blocks_told_apart(beyond, beyond, columns, weight=weight) == 1
    same = blocks_told_apart(0 * beyond, 0 * beyond, columns, weight=weight)
    assert max(0, 1 - weight) <= same <= max(0, 1 - weight) + 1e-9


def test_a_planted_grid_that_rounds_down_is_caught(monkeypatch):
    """The twin: cells are put to the end at which evidence is smaller."""

    def down(logs, evidence, columns):
        mass, found = several_blocks._cells(columns)[1], np.zeros(evidence.shape)
        rising = (np.diff(evidence, axis=2) > 0).astype(float)
        found[..., :-1] += mass * rising
        found[..., 1:] += mass * (1 - rising)
        return found

    logs = np.full((1, 3), 0.1)
    exact = told_apart(logs[:, 0], logs[:, 0], 60, cells=2048)
    assert blocks_told_apart(logs, logs, 20) >= exact
    monkeypatch.setattr(several_blocks, "_at_ends", down)
    assert blocks_told_apart(logs, logs, 20) < exact - 0.01


def several(columns: int):
    rng = np.random.default_rng(4)
    return rng.uniform(0.01, 1, (2, 12, 3)) / np.sqrt(columns)


@pytest.mark.parametrize("columns", [1, 20, 400])
@pytest.mark.parametrize("weight", [1.0, 4.0, 0.5])
def test_quick_bounds_of_blocks_are_never_below_and_near(columns, weight):
    """Beside ratios of densities drawn at random: no formula in common. A mean of 200,000 is off by 1e-3."""
    wider, narrower = several(columns)
    quick = blocks_told_apart_quickly(wider, narrower, columns, weight=weight)
    slow = blocks_told_apart(wider, narrower, columns, weight=weight)
    for place in range(3):
        drawn = told_by_draws(wider[place], narrower[place], columns, weight)
        assert quick[place] >= drawn - 4e-3 and slow[place] >= drawn - 4e-3
    assert (quick <= (1.4 if weight == 1 else 4) * slow + 0.02).all() and (slow <= quick * 1.01 + 1e-3).all()
    nothing = blocks_told_apart_quickly(np.zeros((1, 3)), np.zeros((1, 3)), columns, weight=weight)
    assert max(0, 1 - weight) <= nothing <= max(0, 1 - weight) + 1e-3


def told_by_draws(wider, narrower, columns, weight):
    rng, logs = np.random.default_rng(5), np.concatenate([wider, -narrower])
    squares = rng.chisquare(columns, size=(200_000, len(logs)))
    evidence = (columns / 2 * logs - (1 - np.exp(-logs)) / 2 * squares).sum(axis=1)
    return float(np.maximum(1 - weight * np.exp(-evidence), 0).mean())


def test_a_planted_affinity_of_one_column_is_caught(monkeypatch):
    """The twin: columns are forgotten, and the bound falls below what draws tell apart."""
    wider, narrower = several(20)
    monkeypatch.setattr("leakcap.obfuscation.several_blocks.pair_table", lambda *_: lambda *_: np.ones(12))
    below = blocks_told_apart_quickly(wider, narrower, 1)[0]
    assert below < told_by_draws(wider[0], narrower[0], 20, 1.0) - 0.05


def truth_of_blocks(pool, rules, noise, unit):
    """One row, two blocks of one column each: densities of two independent numbers, given sample and mixing."""
    axis = np.linspace(-8 * np.hypot(1, noise), 8 * np.hypot(1, noise), 1201)
    cell, inside, density = (axis[1] - axis[0]) ** 2, [], []
    for sample in samples(rules):
        inside.append(unit in sample)
        mixed = [table @ pool[sample] for table in mixings(rules)]
        stds = [np.sqrt(m[0] ** 2 + noise**2) for m in mixed]
        density.append(np.mean([np.outer(*(normal(axis, std) for std in both)) for both in stds], axis=0))
    inside, density = np.array(inside), np.array(density)
    p, q, mean = density[inside].mean(axis=0), density[~inside].mean(axis=0), density.mean(axis=0)
    rate = inside.mean()
    return np.abs(p - q).sum() * cell / 2, (rate * kl(p, mean) + (1 - rate) * kl(q, mean)) * cell


def normal(axis, std):
    return np.exp(-((axis / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi))


def block_swaps(pool, rules, noise, unit):
    """Both blocks of every swap, in the same order."""
    found = [every_swap(pool[:, [column]], rules, noise, unit) for column in (0, 1)]
    return SwapFactors(*(np.stack(logs, axis=1) for logs in zip(*((f.wider, f.narrower) for f in found), strict=True)))


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize("sizes", [[2], [5], [3, 3]])
def test_no_bound_of_two_blocks_lies_below_the_truth(sizes, noise):
    pool, rules = rows(sum(sizes), 2, 9), law(sizes, 1, 1, [[0, len(sizes) - 1]])
    tv, nats = truth_of_blocks(pool, rules, noise, 0)
    swaps = block_swaps(pool, rules, noise, 0)
    rates = np.full(len(swaps.wider), rules.rates[0])
    for bound in (blocks_told_apart, blocks_told_apart_quickly):
        assert bound(swaps.wider, swaps.narrower, 1).mean() >= tv - 1e-5
    assert trace_nats(swaps, rates, 1).mean() >= log_det_nats(swaps, rates, 1).mean() >= nats - 1e-6


def test_a_planted_forgotten_block_is_caught():
    pool, rules = rows(2, 2, 9), law([2], 1, 1, [[0, 0]])
    tv, _ = truth_of_blocks(pool, rules, 0.1, 0)
    swaps = block_swaps(pool, rules, 0.1, 0)
    for block in (0, 1):
        assert told_apart(swaps.wider[:, block], swaps.narrower[:, block], 1).mean() < tv - 0.005


def test_those_who_tell_most_are_looked_at_closely(monkeypatch):
    """Convolved or not, no value is below what its swap tells; with all of them it is the convolution."""
    pool, rules = rows(12, 4, 10), law([6, 6], 3, 2, [[0, 1], [1, 0]], columns=3)
    statements = Statements(Obfuscated(pool, rules, 0.3, blocks=2), (1.0, 3.0))
    found = statements.obfuscated.draw_factors(np.random.default_rng(4), swaps=2)
    exact = sticks_of_blocks(found.wider, found.narrower, 3, weights=(1.0, 3.0))
    assert statements._told(found) == pytest.approx(exact, abs=1e-7)
    monkeypatch.setattr("leakcap.obfuscation.one_unit.CONVOLVED", 5)
    few = statements._told(found)
    assert (few >= exact - 1e-7).all()
    assert ((few[0] - exact[0]) < 1e-7).sum() < few[0].size / 2  # the others are bounded quickly, and higher
    assert few[0].max() == pytest.approx(exact[0].max(), abs=1e-7)


def test_blocks_are_certified_like_one():
    pool, rules = rows(12, 4, 10), law([6, 6], 3, 2, [[0, 1], [1, 0]], columns=3)
    obfuscated, rng = Obfuscated(pool, rules, 0.3, blocks=2), np.random.default_rng(3)
    seen = look_at_units(Statements(obfuscated, (1.0,), True), 200, rng).mean
    bounds = certify_units(obfuscated, effort=UnitEffort(draws=100), gamma=1e-3, rng=rng, nats=True)
    assert (2 * bounds.success - 1 >= seen[0]).all() and (bounds.nats >= seen[1:]).all()
    one = look_at_units(Statements(Obfuscated(pool, rules, 0.3)), 200, rng).mean
    assert seen[0].mean() > one[0].mean()  # a second mask with columns of its own tells more
    whole = certify_whole(obfuscated, draws=60, gamma=1e-3, rng=rng)
    assert min(whole.estimates) > 0 and whole.trace_nats > whole.estimates[0] and whole.nats > whole.estimates[1]
