"""One person, all subsets: the closed form against every part of small pools.

The oracle lists all worlds with their probabilities (`tests/claims/worlds/laws.py`) and integrates the best
attacker's success numerically; it shares no code with the library. Values are exact to 1e-6,
so comparisons need no false-alarm rate; the one test that draws releases states its own.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

import leakcap as lc
from leakcap.kernels.contributions import Contributions
from leakcap.leakage import swaps as adjacent
from leakcap.leakage.swaps import possible_swaps, quick_success, swap_success, worst_success
from leakcap.noise import Seeded
from leakcap.noise.swaps import least_noise, swap_shape
from tests.claims.leakage.oracle import density
from tests.claims.worlds import laws

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
POOLS = {
    "even": (8, HALF, None),
    "odd": (9, HALF, None),
    "ten": (10, HALF, None),
    "thirds": (9, THIRD, None),
    "thirds with one left over": (10, THIRD, None),
    "two thirds with two left over": (8, Fraction(2, 3), None),
    "even strata": (8, HALF, (0, 1, 0, 1, 0, 1, 0, 1)),
    "odd strata": (8, HALF, (0, 0, 0, 1, 1, 1, 1, 1)),
    "one odd stratum": (9, HALF, (0, 0, 0, 0, 1, 1, 1, 1, 1)),
    "three odd strata": (9, HALF, (0, 0, 0, 1, 1, 1, 2, 2, 2)),
}
TIGHT = ("even", "ten", "thirds", "even strata")  # every swap is possible
KINDS = ("mean", "sum")


def worlds_of(name):
    """Every world of a pool and its probability."""
    n, share, strata = POOLS[name]
    if strata is not None:
        return laws.table(laws.stratified_halves(strata), n)
    if share == HALF:
        return laws.table(laws.halves(n), n)
    masks, chances = laws.table(laws.thirds(n), n)
    return (~masks if share == Fraction(2, 3) else masks), chances


def best_balanced(masks, chances, answers):
    """Half, and a quarter of the integral of |p_in - p_out|, for every unit; the noise has deviation 1."""
    d = answers.shape[1]
    points = 6001 if d == 1 else 161
    axes = [np.linspace(a.min() - 7, a.max() + 7, points) for a in answers.T]
    steps = [axis[1] - axis[0] for axis in axes]
    densities = [density(axis[:, None] - a) for axis, a in zip(axes, answers.T, strict=True)]
    found = []
    for inside in masks.T:
        signed = np.where(inside, chances / chances[inside].sum(), -chances / chances[~inside].sum())
        difference = densities[0] @ signed if d == 1 else (densities[0] * signed) @ densities[1].T
        found.append(0.5 + 0.25 * np.abs(difference).sum() * np.prod(steps))
    return np.array(found)


def bound(name, rows, kind, shrink=1.0):
    """What the library says; `shrink` is for planted faults."""
    n, share, strata = POOLS[name]
    swaps = possible_swaps(n, share, None if strata is None else np.array(strata))
    centred = rows - rows.mean(axis=0)
    steps = (centred / swaps.smallest if kind == "mean" else centred) * shrink
    length = np.linalg.norm(steps, axis=1)
    alone = steps if kind == "mean" else rows * shrink
    beside = np.maximum(length + length.max(), np.linalg.norm(alone, axis=1))
    return swap_success(steps, swaps, beside)


def answers_of(masks, rows, kind):
    return masks @ rows / (masks.sum(axis=1, keepdims=True) if kind == "mean" else 1)


def pool(name, d, noise, seed=0):
    """A pool with an outlier, in units of the noise of a typical swap."""
    n, *_ = POOLS[name]
    rows = np.random.default_rng([seed, n, d]).standard_normal((n, d)) + 0.5
    rows[0] += 3
    return rows / noise


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("d", [1, 2])
def test_no_attacker_beats_the_bound_over_all_parts_of_a_small_pool(name, kind, d):
    masks, chances = worlds_of(name)
    for noise in (0.3, 1.5) if d == 1 else (0.7,):
        rows = pool(name, d, noise * (1 if kind == "sum" else 0.25))
        true = best_balanced(masks, chances, answers_of(masks, rows, kind))
        assert (true <= bound(name, rows, kind) + 1e-6).all()
        assert true.max() > 0.52  # there is something to bound


def excess(name, kind, shrink=1.0):
    """How far the true success of the most exposed unit is beyond the bound, relative to what it has above a coin.

    One output and large noise: what the bound gives away is that others' places are unknown, which then hardly matters.
    """
    masks, chances = worlds_of(name)
    rows = pool(name, 1, 40.0 if kind == "sum" else 10.0)
    true = best_balanced(masks, chances, answers_of(masks, rows, kind))
    said = bound(name, rows, kind, shrink)
    worst = int(true.argmax())
    assert worst == 0
    return (true[worst] - said[worst]) / (true[worst] - 0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TIGHT)
def test_the_bound_is_tight_for_an_outlier_in_large_noise(name, kind):
    assert -0.02 < excess(name, kind) <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POOLS)
def test_planted_faults_are_caught(name, kind):
    """Half the distance (D/4 for D/2, or a world counted twice as large), and a tenth less of it."""
    assert excess(name, kind, shrink=0.5) > 1e-2
    if name in TIGHT:
        assert excess(name, kind, shrink=0.9) > 1e-2


def test_the_share_without_a_swap_is_the_distance_of_the_sizes():
    """Total variation between the sizes of a stratum with and without a unit, from all worlds."""
    for name, (n, share, strata) in POOLS.items():
        masks, chances = worlds_of(name)
        groups = np.zeros(n, dtype=int) if strata is None else np.array(strata)
        said = possible_swaps(n, share, None if strata is None else groups)
        for u in range(n):
            sizes = masks[:, groups == groups[u]].sum(axis=1)
            inside = masks[:, u]
            laws_of_size = [
                np.bincount(sizes[part], chances[part] / chances[part].sum(), n + 1) for part in (inside, ~inside)
            ]
            assert 0.5 * np.abs(laws_of_size[0] - laws_of_size[1]).sum() == pytest.approx(said.unmatched[u], abs=1e-12)
        assert said.smallest == masks.sum(axis=1).min()


def test_plain_success_at_other_rates_has_its_own_bound():
    """A remark of the proof page, by its own formula: thirds of nine, everybody, one output."""
    masks, chances = worlds_of("thirds")
    for noise in (0.1, 0.5, 2.0):
        rows = pool("thirds", 1, noise)
        answers = answers_of(masks, rows, "mean")[:, 0]
        y, step = np.linspace(answers.min() - 8, answers.max() + 8, 6001, retstep=True)
        joint = density(y[:, None] - answers) * chances
        for u, inside in enumerate(masks.T):
            true = np.maximum(joint[:, inside].sum(axis=1), joint[:, ~inside].sum(axis=1)).sum() * step
            apart = np.abs(np.delete(rows[:, 0], u) - rows[u, 0]) / 3
            shift = np.log(2) / apart
            said = (norm.cdf(apart / 2 - shift) / 3 + norm.cdf(apart / 2 + shift) * 2 / 3).mean()
            assert 2 / 3 - 1e-6 <= true <= said + 1e-6


def test_forgetting_the_odd_size_is_caught():
    """Sums over an odd pool far from zero: the size alone gives members away, and swaps do not see it."""
    masks, chances = worlds_of("odd")
    rows = pool("odd", 1, 10.0) + 50
    true = best_balanced(masks, chances, answers_of(masks, rows, "sum"))
    assert (true <= bound("odd", rows, "sum") + 1e-6).all()
    n, share, _ = POOLS["odd"]
    swaps = possible_swaps(n, share)
    without = adjacent.Swaps(swaps.members, np.zeros(n), swaps.smallest)
    assert (true > swap_success(rows, without, np.zeros(n)) + 1e-6).any()


def test_it_does_not_hold_for_finite_worlds():
    """Why `exact` mode may not use it: a few known halves have no swaps, and an attacker who knows them does better."""
    rng = np.random.default_rng(5)
    n, d, m = 40, 20, 16
    rows = rng.standard_normal((n, d)) * 10
    first = np.array([rng.permutation(n) < n // 2 for _ in range(m // 2)])
    masks = np.concatenate([first, ~first])
    answers = masks @ rows / (n // 2)
    secret = rng.integers(m, size=4000)
    seen = answers[secret] + rng.standard_normal((4000, d))
    score = seen @ answers.T - 0.5 * (answers**2).sum(axis=1)
    posterior = np.exp(score - score.max(axis=1, keepdims=True))
    share = posterior @ masks / posterior.sum(axis=1, keepdims=True)
    right = (share > 0.5) == masks[secret]
    swaps = possible_swaps(n, HALF)
    said = swap_success(rows / (n // 2), swaps, np.zeros(n))
    assert (right.mean(axis=0) > said + 0.05).any()


# ---- how it is computed -------------------------------------------------------------------------------------------


def plain(steps, members, unmatched, beside):
    """The same mean over pairs, one pair at a time."""
    found = np.empty(len(steps))
    for units in members:
        for u in units:
            others = [norm.cdf(np.linalg.norm(steps[u] - steps[v]) / 2) for v in units if v != u]
            found[u] = (1 - unmatched[u]) * np.mean(others) + unmatched[u] * norm.cdf(beside[u] / 2)
    return found


@pytest.mark.parametrize("strata", [None, np.arange(61) % 3])
def test_blocks_agree_with_a_loop_and_never_fall_below_it(monkeypatch, strata):
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((61, 4)) + 30
    steps[7] = steps[8]  # two people alike: a distance of zero
    beside = rng.uniform(0, 3, 61)
    swaps = possible_swaps(61, HALF, strata)
    expected = plain(steps, swaps.members, swaps.unmatched, beside)
    found = swap_success(steps, swaps, beside)
    assert (found >= expected).all()  # by a million units in the last place: distances are rounded up
    assert np.abs(found - expected).max() < 1e-6
    monkeypatch.setattr(adjacent, "PANEL", 7)
    some = np.array([40, 3, 7])
    # A unit's distance to itself is the root of a rounding error, and that depends on the size of the panel.
    assert np.allclose(swap_success(steps, swaps, beside, some), found[some], rtol=0, atol=2e-10)


@pytest.mark.parametrize("strata", [None, np.arange(400) % 2])
def test_the_quick_bound_is_larger_and_the_worst_unit_is_found_by_it(strata):
    rng = np.random.default_rng(1)
    for tail in (2.0, 10.0):
        steps = rng.standard_t(tail, (400, 3)) / 3
        swaps, beside = possible_swaps(400, HALF, strata), np.zeros(400)
        every = swap_success(steps, swaps, beside)
        assert (quick_success(steps, swaps, beside) >= every).all()
        assert worst_success(steps, swaps, beside) == every.max()
        assert worst_success(steps, swaps, beside, 0.5) > 0.5


def test_large_pools_get_a_bound_for_everybody_without_all_pairs(monkeypatch):
    rng = np.random.default_rng(2)
    steps = rng.standard_normal((600, 3))
    swaps = possible_swaps(600, HALF)
    arguments = steps - steps.mean(axis=0), np.zeros(3), swaps, np.full(3, 4.0), 0.6, np.ones(3)
    every = least_noise(*arguments)
    monkeypatch.setattr("leakcap.noise.swaps.EVERY_PAIR", 100)
    some = least_noise(*arguments)
    assert some.deviations == pytest.approx(every.deviations)
    assert some.exposure.max() == pytest.approx(every.exposure.max(), abs=1e-12)
    assert (some.exposure >= every.exposure - 1e-12).all()
    assert some.exposure.mean() < every.exposure.mean() + 0.02


@pytest.mark.parametrize("cap", [0.51, 0.6, 0.9, 0.999])
def test_the_least_noise_keeps_the_cap_and_hardly_less_would(cap):
    rng = np.random.default_rng(3)
    steps = rng.standard_normal((101, 3)) * [1, 5, 0.1]
    steps -= steps.mean(axis=0)
    swaps = possible_swaps(101, HALF)
    found = least_noise(steps, np.zeros(3), swaps, 100 * np.abs(steps).max(axis=0), cap, np.array([1.0, 2.0, 0.3]))
    assert cap - 1e-6 < found.exposure.max() <= cap
    again = swap_success(steps / found.deviations * 1.001, swaps, np.full(101, 100.0))
    assert again.max() > cap - 1e-2 * (cap - 0.5)


def test_the_shape_spends_noise_where_people_stick_out():
    """Against equal noise, and noise by the spread of the answers: less in total, at the same bound."""
    rng = np.random.default_rng(4)
    steps = rng.standard_t(4, (500, 6)) * [8, 4, 2, 1, 0.5, 0.25]
    steps -= steps.mean(axis=0)
    swaps = possible_swaps(500, HALF)
    total = {}
    spread = np.cov(steps.T)
    for name, shape in {
        "ours": swap_shape(steps, swaps),
        "equal": np.eye(6),
        "by spread": np.diag(np.sqrt(np.diag(spread))),
    }.items():
        size, turn = np.linalg.eigh(shape)
        found = least_noise(steps @ turn, np.zeros(6), swaps, np.full(6, 1e3), 0.6, np.sqrt(size))
        total[name] = (found.deviations**2).sum()
    assert total["ours"] < 0.9 * total["by spread"] < 0.9 * total["equal"]


def test_strata_that_do_not_divide_are_refused_at_other_rates():
    with pytest.raises(lc.InputError, match="multiples of 3"):
        possible_swaps(10, THIRD, np.arange(10) % 2)
    assert not possible_swaps(12, THIRD, np.arange(12) % 2).unmatched.any()


# ---- what really leaves -------------------------------------------------------------------------------------------


def attacked(plan, masks, chances, rows, kind, games, scale=1.0):
    """How often the best attacker is right about the most exposed unit, from vectors that the release path makes."""
    mechanism = plan.releaser
    noise = plan.noise
    if scale != 1:  # planted: less noise than was certified
        object.__setattr__(mechanism, "noise", type(noise)(noise.space, noise.deviations * scale, noise.floor))
    unit = int(plan.exposure.argmax())
    deviation = float(plan.noise.output_deviations[0])
    answers = answers_of(masks, rows, kind)[:, 0]
    inside = masks[:, unit]
    secrets, source, right = [], Seeded(11), 0.0
    draw = mechanism.draw
    object.__setattr__(mechanism, "draw", lambda randomness: secrets.append(draw(randomness)) or secrets[-1])
    prior = chances[inside].sum()
    for _ in range(games):
        seen = mechanism.vector(source)[0]
        likelihood = chances * np.exp(-0.5 * ((seen - answers) / deviation) ** 2)
        guess = likelihood[inside].sum() / prior > likelihood[~inside].sum() / (1 - prior)
        right += guess == secrets[-1][unit]
    return right


@pytest.mark.parametrize(("name", "kind"), [("even", "mean"), ("odd", "mean"), ("odd", "sum"), ("odd strata", "sum")])
def test_attacks_on_released_values_stay_below_the_certificate(name, kind):
    """False alarms below 1e-4; with a fifth of the noise the same attack must break the cap."""
    _, _, strata = POOLS[name]
    masks, chances = worlds_of(name)
    rows = pool(name, 1, 1.0)

    def planned():
        options = {"mode": "individual", "worlds": 64, "seed": 3, "strata": strata}
        return lc.plan(getattr(lc.stats, kind), rows, cap=lc.membership(0.65), **options)

    games = 1200
    assert attacked(planned(), masks, chances, rows, kind, games) <= binom.isf(1e-4, games, 0.65)
    assert attacked(planned(), masks, chances, rows, kind, games, scale=0.2) > binom.isf(1e-4, games, 0.65)


def test_a_function_that_does_not_add_up_as_it_says_is_refused():
    def liar(rows):
        return np.asarray(rows).mean(axis=0) ** 2

    def brings(data, units):
        return Contributions(np.asarray(data[0], dtype=float), True)

    liar.adjacent = brings
    rows = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(lc.OutputError, match="not the mean or the sum"):
        lc.plan(liar, rows, cap=lc.membership(0.6), worlds=64, mode="individual", seed=1)


@pytest.mark.slow
def test_all_pairs_of_a_large_pool_take_seconds_and_little_memory():
    """13,611 people and 16 outputs, as Dry Bean has: 185 million pairs."""
    import time
    import tracemalloc

    steps = np.random.default_rng(6).standard_normal((13_611, 16)) / 4
    swaps, beside = possible_swaps(13_611, HALF), np.ones(13_611)
    began = time.process_time()
    tracemalloc.start()
    every = swap_success(steps, swaps, beside)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20
    assert time.process_time() - began < 60  # four seconds on a quiet core
    some = np.array([5, 9_000])
    assert every[some] == pytest.approx(plain_of(steps, some, swaps, beside), abs=1e-9)


def plain_of(steps, some, swaps, beside):
    found = []
    for u in some:
        others = np.delete(np.linalg.norm(steps - steps[u], axis=1), u)
        share = swaps.unmatched[u]
        found.append((1 - share) * norm.cdf(others / 2).mean() + share * norm.cdf(beside[u] / 2))
    return np.array(found)
