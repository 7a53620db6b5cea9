"""Sampled swaps: the law of the pairs, and how often bounds fail, by code that shares nothing with them.

Statistical comparisons state their false-alarm rate, 1e-6 unless said otherwise; generators are fixed.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chisquare, norm

from leakcap.leakage import couplings
from leakcap.leakage.confidence import MeanEstimate
from leakcap.leakage.couplings import RandomSwaps, certify_swaps, swap_means
from leakcap.worlds import Worlds, independent_worlds
from tests.claims.worlds import laws

LAWS: dict[str, tuple[int, float, Any, dict[Any, float]]] = {
    "even": (6, 0.5, None, laws.halves(6)),
    "odd": (5, 0.5, None, laws.halves(5)),
    "thirds": (6, 1 / 3, None, laws.thirds(6)),
    "strata": (6, 0.5, np.array([0, 1, 0, 1, 1, 0]), laws.stratified_halves([0, 1, 0, 1, 1, 0])),
    "odd strata": (7, 0.5, np.array([0, 0, 0, 1, 1, 1, 1]), laws.stratified_halves([0, 0, 0, 1, 1, 1, 1])),
}


class Remembering:
    """A swapper whose answers are nothing, and which remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def answers(self, mask: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
        assert mask[out].all() and not mask[into].any()
        self.asked.append((mask, out, into))
        return np.zeros((1 + len(out), 1))


def source_of(name: str, swapper: Any, *, several: bool = False) -> RandomSwaps:
    n, rate, strata, _ = LAWS[name]
    worlds = independent_worlds(n, 1, np.random.default_rng(0), rate, strata=strata)
    return RandomSwaps.of(swapper, lambda answers: answers, worlds, strata, several=several)


def pairs_of(unit: int, swapper: Remembering, whose: list[np.ndarray], place: int) -> Counter[Any]:
    """How often each pair of a world with the unit, and the same with the unit replaced, came up."""
    found: Counter[Any] = Counter()
    for (mask, out, into), own in zip(swapper.asked, whose, strict=True):
        gone, come = int(out[own[place]]), int(into[own[place]])
        assert unit in (gone, come)
        other = come if unit == gone else gone
        with_unit = frozenset(np.flatnonzero(mask).tolist()) - {other} | {unit}
        found[with_unit, other] += 1
    return found


def expected_pairs(name: str, unit: int) -> dict[Any, float]:
    """By counting: worlds with the unit, any outsider of its stratum, given the sizes that both sides share."""
    n, _, strata, law = LAWS[name]
    group = np.zeros(n, dtype=int) if strata is None else strata
    found = {}
    for mask, chance in zip(*laws.table(law, n), strict=True):
        world = frozenset(np.flatnonzero(mask).tolist())
        if unit not in world:
            continue
        others = [v for v in range(n) if v not in world and group[v] == group[unit]]
        share = len(others) / sum(group == group[unit])  # of such worlds' sizes, in the law without the unit
        for other in others:
            found[world, other] = chance * share / len(others)
    total = sum(found.values())
    return {pair: chance / total for pair, chance in found.items()}


def uneven(name: str, unit: int, some: Any, *, turn: int = 0, draws: int = 2000) -> float:
    """`turn` 1 is the second of several swaps in a world, of units in some order."""
    swapper = Remembering()
    source, rng = source_of(name, swapper, several=turn > 0), np.random.default_rng(7)
    if turn:
        source = source.ordered(np.random.default_rng(2).random(source.worlds.n))
    whose = [moved.whose[turn] for moved in source.steps(draws, rng, some)]
    place = unit if some is None else int(np.flatnonzero(some == unit)[0])
    counts, expected = pairs_of(unit, swapper, whose, place), expected_pairs(name, unit)
    assert set(counts) <= set(expected)
    return float(chisquare([counts[pair] for pair in expected], [draws * e for e in expected.values()]).pvalue)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("some", [None, np.array([0, 3, 4])])
@pytest.mark.parametrize("turn", [0, 1])
def test_every_swap_of_a_unit_comes_up_as_often_as_the_law_says(name: str, some: Any, turn: int) -> None:
    assert uneven(name, 3, some, turn=turn) > 1e-6


def test_a_planted_choice_of_neighbours_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists laid side by side without being turned: everybody meets those of a like place."""
    loops = __import__("leakcap.leakage._swap_loops", fromlist=["pair_up"])
    turned = loops.pair_up
    monkeypatch.setattr(
        loops, "pair_up", lambda mask, members, begin, turns, *rest: turned(mask, members, 0, 0 * turns, *rest)
    )
    assert uneven("even", 3, None) < 1e-6


def test_planted_partners_of_one_end_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of several partners counted on from the first without going round."""
    monkeypatch.setattr(
        couplings,
        "spread_out",
        lambda first, sizes, turns: np.minimum(first + np.arange(turns)[:, None] * sizes // turns, sizes - 1),
    )
    assert uneven("even", 3, np.array([0, 3, 4]), turn=1) < 1e-6


def test_several_partners_differ_less_between_worlds() -> None:
    """The mean of two partners far apart in the order varies less than half as much as one partner's."""

    class Signs:
        def answers(self, mask: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
            moves = (out >= 20) != (into >= 20)  # only swaps between two kinds of people move it
            return np.concatenate([np.zeros((1, 1)), moves[:, None].astype(float)])

    worlds = independent_worlds(40, 1, np.random.default_rng(0))
    one, two = (
        swap_means(
            RandomSwaps.of(Signs(), lambda answers: answers, worlds, None, several=several).ordered(np.arange(40.0)),
            np.ones(1),
            2000,
            np.random.default_rng(1),
        )
        for several in (False, True)
    )
    assert two.estimate == pytest.approx(one.estimate, abs=0.02)
    assert two.variance.mean() < 0.2 * one.variance.mean()


def test_planted_swaps_in_one_direction_alone_are_caught() -> None:
    """In pools of odd size, worlds that hold the unit are larger: looking at these alone is another law."""
    swapper = Remembering()
    source, rng = source_of("odd", swapper), np.random.default_rng(7)
    whose = [moved.whose[0] for moved in source.steps(6000, rng)]
    inside = [bool(mask[3]) for mask, _, _ in swapper.asked]
    swapper.asked = [one for one, kept in zip(swapper.asked, inside, strict=True) if kept]
    counts = pairs_of(3, swapper, [own for own, kept in zip(whose, inside, strict=True) if kept], 3)
    expected = expected_pairs("odd", 3)
    total = sum(counts.values())
    assert chisquare([counts[pair] for pair in expected], [total * e for e in expected.values()]).pvalue < 1e-6


# ---- how often bounds fail ----------------------------------------------------------------------------------------

N, RARE = 12, 0.02


class RarelyDecided:
    """Swaps that move the answer far in one of fifty worlds, each unit's on its own: the hardest to bound."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def answers(self, mask: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((1, 1)), 100.0 * (self.rng.random((len(out), 1)) < RARE)])


def guessed(n: int) -> MeanEstimate:
    return MeanEstimate.from_sums(np.full(n, 0.01), np.full(n, 0.005), 1, 0.5, 0.0)


def failures(gamma: float, claimed: float, runs: int, draws: tuple[int, int], enough: float) -> int:
    """In how many runs the bound of some unit lies below its true value, 1/2 and half the chance of a far move."""
    worlds = independent_worlds(N, 1, np.random.default_rng(0))
    failed = 0
    for run in range(runs):
        source = RandomSwaps.of(RarelyDecided(run), lambda answers: answers, worlds, None)
        found = certify_swaps(
            source,
            np.ones(1),
            enough=enough,
            gamma=claimed,
            draws=draws,
            guess=guessed(N),
            seeds=np.random.SeedSequence([run, 1]),
        )
        failed += bool((found.exposure < 0.5 + RARE / 2).any())
    return failed


def test_bounds_fail_no_more_often_than_gamma_allows() -> None:
    gamma, runs = 0.3, 80
    for draws, enough in (((128, 256), 1.0), ((32, 160), 0.5)):  # one stage decides, or both
        assert failures(gamma, gamma, runs, draws, enough) <= binom.isf(1e-4, runs, gamma)


def test_a_planted_union_over_nobody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = couplings.log_term
    monkeypatch.setattr(couplings, "log_term", lambda gamma, bounds: counted(gamma, 1))
    gamma, runs = 0.3, 80
    assert failures(gamma, gamma, runs, (128, 256), 1.0) > binom.isf(1e-4, runs, gamma)


@pytest.mark.parametrize("length", [0.0, 1e-9, 0.3, 1.0, 1.9, 1.999, 2.001, 5.0, 60.0])
def test_the_mean_is_that_of_the_normal_integral_and_never_less(length: float) -> None:
    """One fixed step for everybody: nothing is left to chance. Short ones go by a series that ends above it."""

    class Fixed:
        def answers(self, mask: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
            return np.concatenate([np.zeros((1, 2)), np.tile([1.2 * length, -2.4 * length / 0.75], (len(out), 1))])

    worlds = independent_worlds(N, 1, np.random.default_rng(0))
    source = RandomSwaps.of(Fixed(), lambda answers: answers, worlds, None)
    found = swap_means(source, np.array([2.0, 4.0]), 70, np.random.default_rng(1))
    true = norm.cdf(length / 2) - 0.5
    assert found.estimate == pytest.approx(np.full(N, true), rel=3e-5, abs=1e-15)
    assert (found.estimate >= true * (1 - 1e-14)).all()
    assert found.variance == pytest.approx(np.zeros(N), abs=1e-5)


def test_gamma_is_spent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the two stages of a pass may fail with adds up to gamma; a pass that builds on another has it all."""
    spent: list[float] = []
    counted = couplings.log_term

    def watched(gamma: float, bounds: int) -> float:
        spent.append(gamma)
        return counted(gamma, bounds)

    monkeypatch.setattr(couplings, "log_term", watched)
    worlds = independent_worlds(N, 1, np.random.default_rng(0))
    source = RandomSwaps.of(RarelyDecided(0), lambda answers: answers, worlds, None)
    options: Any = {"enough": 0.5, "gamma": 0.1, "draws": (64, 64), "guess": guessed(N)}
    held = certify_swaps(source, np.ones(1), seeds=np.random.SeedSequence(1), **options)
    assert sum(spent) == pytest.approx(0.1)
    spent.clear()
    certify_swaps(source, np.ones(1), seeds=np.random.SeedSequence(2), held=held, **options)
    assert sum(spent) == pytest.approx(0.1)


class Steps:
    """Everybody's swaps move the answer by a length of the unit's own: by 1, or by 3 for the last one."""

    def answers(self, mask: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
        far = np.maximum(out, into) == N - 1
        return np.concatenate([np.zeros((1, 1)), np.where(far, 3.0, 1.0)[:, None]])


def carried_over(first: float, then: float) -> np.ndarray:
    """Bounds for noise `then` where only who was above .7 for noise `first` is looked at again."""
    worlds = independent_worlds(N, 1, np.random.default_rng(0))
    source = RandomSwaps.of(Steps(), lambda answers: answers, worlds, None)
    held = None
    for number, noise in enumerate((first, then)):
        held = certify_swaps(
            source,
            np.array([noise]),
            enough=0.7,
            gamma=0.01,
            draws=(600, 600),
            guess=guessed(N),
            seeds=np.random.SeedSequence(number),
            held=held,
        )
    assert held is not None
    return held.exposure


def true_success(noise: float) -> np.ndarray:
    """For everybody but the last: the last is the partner in one of N - 1 swaps."""
    near, far = norm.cdf(1 / (2 * noise)), norm.cdf(3 / (2 * noise))
    return np.append(np.full(N - 1, near + (far - near) / (N - 1)), far)


def test_what_was_certified_for_less_noise_holds_for_more() -> None:
    assert (carried_over(1.5, 3.0) >= true_success(3.0)).all()


def test_planted_bounds_of_more_noise_are_caught() -> None:
    """The other way round they do not hold: whoever was within the cap is believed to be so still."""
    assert (carried_over(3.0, 1.5) < true_success(1.5)).any()


def test_every_stage_has_worlds_of_its_own() -> None:
    """Forty people have too many halves for one to come up twice."""
    swapper = Remembering()
    worlds = independent_worlds(40, 1, np.random.default_rng(0))
    source = RandomSwaps.of(swapper, lambda answers: answers, worlds, None)
    found = certify_swaps(
        source,
        np.ones(1),
        enough=0.5,
        gamma=0.1,
        draws=(100, 150),
        guess=guessed(40),
        seeds=np.random.SeedSequence(1),
    )
    assert found.again == 40
    seen = [mask.tobytes() for mask, _, _ in swapper.asked]
    assert len(set(seen)) == len(seen) == 250


def test_what_the_size_tells_is_added() -> None:
    """A function of the size alone, which no swap changes: in a pool of five, larger halves hold a unit more often."""
    source = source_of("odd", Remembering())
    found = certify_swaps(
        source,
        np.ones(1),
        enough=1.0,
        gamma=0.1,
        draws=(4096, 1),
        guess=guessed(5),
        seeds=np.random.SeedSequence(1),
    )
    masks, chances = laws.table(laws.halves(5), 5)
    larger = masks.sum(axis=1) == 3
    rates = [
        chances[larger & (masks[:, 0] == side)].sum() / chances[masks[:, 0] == side].sum() for side in (True, False)
    ]
    seen = 0.5 + abs(rates[0] - rates[1]) / 2  # balanced success of whoever sees the size
    assert (found.exposure >= seen - 1e-9).all()
    assert seen > 0.55


def test_rates_that_do_not_divide_the_pool_are_refused() -> None:
    worlds = Worlds(np.zeros((1, 1), dtype=np.uint8), 7, Fraction(1, 3), paired=False, design="independent")
    with pytest.raises(couplings.InputError, match="multiple of 3"):
        RandomSwaps.of(Remembering(), lambda answers: answers, worlds, None)
