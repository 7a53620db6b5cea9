"""One person, any subset, any function: how well answers can be told apart that differ by one swap, by random swaps.

Worlds are drawn by the law of the secret, and everybody in them is swapped with somebody on the other side. The mean
of what such a swap tells bounds the success against that unit (docs/proofs/sampled-swaps.md). Few worlds for
everybody, many for those who decide; each stage on worlds of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.swapping import Swapper
from leakcap.leakage.confidence import MeanEstimate, Wagers, log_term, upper
from leakcap.leakage.swaps import Swaps, possible_swaps
from leakcap.worlds import Worlds, independent_worlds

__all__ = ["MOST", "Certified", "RandomSwaps", "SwapSteps", "certify_swaps", "lengths_of", "swap_means"]

MOST = 0.5  # what a swap tells, at most: success less that of a coin
Places = npt.NDArray[np.signedinteger]  # of units or pairs; narrow ones where there are many

BLOCK = 64  # worlds drawn at a time
SEVERAL = 2  # swaps of a unit in one world: their mean differs less between worlds
LOGGED = 64  # draws after which capitals are put into logarithms
SLIP = 1e-12  # what rounding may take from the logarithm of a wager in one draw


@dataclass(frozen=True, eq=False)
class SwapSteps:
    """What swaps do in one world."""

    answers: Floats  # (1 + p, r): coordinates without a swap, and after each
    whose: Places  # (turns, units): which swap is a unit's own
    inside: Bools  # (units,): who of them is in this world, and leaves it

    @property
    def steps(self) -> Floats:
        """`(p, r)`: how far each swap moves the answer."""
        return self.answers[1:] - self.answers[0]


@dataclass(frozen=True, eq=False)
class RandomSwaps:
    """Worlds by the law of the secret, and swaps in them; custodian side."""

    swapper: Swapper
    coordinates: Callable[[Floats], Floats]  # of answers, `(p, d)` to `(p, r)`; zeros where there is no answer
    worlds: Worlds  # any of the law
    strata: Ints | None
    swaps: Swaps
    several: bool  # swaps of a unit in a world: where they cost less than another world

    @classmethod
    def of(
        cls,
        swapper: Swapper,
        coordinates: Callable[[Floats], Floats],
        worlds: Worlds,
        strata: Ints | None,
        *,
        several: bool = False,
    ) -> RandomSwaps:
        swaps = possible_swaps(worlds.n, worlds.share, strata)
        if worlds.rate != 0.5 and swaps.unmatched.any():
            raise InputError(
                f"at rate {worlds.share} this needs a pool whose size is a multiple of {worlds.share.denominator}: use "
                "rate=1/2, or leave units out"
            )
        return cls(swapper, coordinates, worlds, strata, swaps, several)

    @proves("sampled-swaps")
    def steps(self, draws: int, rng: np.random.Generator, units: Ints | None = None) -> Iterator[SwapSteps]:
        """What swaps do in each of `draws` independent worlds.

        Every swap of a unit, of all units or of `units`, is uniform among those that the law of its world allows.
        """
        for done in range(0, draws, BLOCK):
            count = min(BLOCK, draws - done)
            some = independent_worlds(self.worlds.n, count, rng, rate=self.worlds.rate, strata=self.strata)
            yield from (self._moved(some.mask(number), units, rng) for number in range(count))

    def _moved(self, mask: Bools, units: Ints | None, rng: np.random.Generator) -> SwapSteps:
        turns = SEVERAL if self.several else 1
        out, into, whose = self._everybody(mask, turns, rng) if units is None else self._some(mask, turns, units, rng)
        inside = mask if units is None else mask[units]
        return SwapSteps(self.coordinates(self.swapper.answers(mask, out, into)), whose, inside)

    def ordered(self, influence: Floats) -> RandomSwaps:
        """The same with units in the order of a number: the partners of a unit in one world then lie far apart in it.

        It must be fixed before the worlds are drawn. Swaps of a unit differ less between worlds then, and each is
        drawn as before.
        """
        members = tuple(units[np.argsort(influence[units], kind="stable")] for units in self.swaps.members)
        return replace(self, swaps=replace(self.swaps, members=members))

    def _everybody(self, mask: Bools, turns: int, rng: np.random.Generator) -> tuple[Places, Places, Places]:
        """Pairs of an insider and an outsider, so that everybody is in one: two lists, each turned by a random step.

        Everybody's partner is uniform on the other side, which is all that is asked of it.
        """
        from leakcap.leakage._swap_loops import pair_up

        n, end = self.worlds.n, 0
        whose, pairs = np.empty((turns, n), dtype=np.int32), np.empty((2, turns * n), dtype=np.int32)
        for members in self.swaps.members:
            inside = int(np.count_nonzero(mask[members] if len(self.swaps.members) > 1 else mask))
            long, short = max(inside, len(members) - inside), min(inside, len(members) - inside)
            steps = spread_out(rng.integers(short, size=1), short, turns)[:, 0]
            end = pair_up(mask, members, int(rng.integers(long)), steps, end, pairs, whose)
        return pairs[0, :end], pairs[1, :end], whose

    def _some(self, mask: Bools, turns: int, units: Ints, rng: np.random.Generator) -> tuple[Places, Places, Places]:
        """A pair for each of some units and each turn, with anybody of the unit's stratum on the other side."""
        from leakcap.leakage._swap_loops import two_lists

        partner, inside = np.empty((turns, len(units)), dtype=np.intp), mask[units]
        for number, members in enumerate(self.swaps.members):
            asked = np.ones(len(units), dtype=bool) if self.strata is None else self.strata[units] == number
            lists, ends = two_lists(mask, members)  # outsiders, insiders
            other = 1 - inside[asked].astype(np.intp)
            partner[:, asked] = lists[other, spread_out(rng.integers(ends[other]), ends[other], turns)]
        out, into = np.where(inside, units, partner), np.where(inside, partner, units)
        return out.ravel(), into.ravel(), np.arange(partner.size, dtype=np.intp).reshape(partner.shape)


def spread_out(first: Ints, sizes: int | Ints, turns: int) -> Ints:
    """`(turns, k)`: places in circles of some `sizes`, evenly apart; each is uniform if the `first` ones are."""
    return np.asarray((first + np.arange(turns)[:, None] * sizes // turns) % sizes)


def lengths_of(moved: SwapSteps, deviations: Floats) -> Floats:
    """`(p,)`: of steps, in noise deviations."""
    return np.asarray(np.linalg.norm(moved.steps / deviations, axis=1))


@proves("sampled-swaps")
def swap_means(
    source: RandomSwaps,
    deviations: Floats,
    draws: int,
    rng: np.random.Generator,
    *,
    units: Ints | None = None,
    wagers: Wagers | None = None,
    rounding: float = 0.0,
) -> MeanEstimate:
    """Means of `Phi(D / 2) - 1/2` for every unit (or for `units`), `D` the length of a step in noise deviations.

    Several swaps of a unit in one world count once, by their mean.
    """
    from leakcap.leakage._swap_loops import add_told

    count = source.worlds.n if units is None else len(units)
    asked, picked = units, None
    if units is not None and 2 * count > source.worlds.n:  # pairs of everybody are fewer
        asked, picked = None, units
    total, squares = np.zeros(count), np.zeros(count)
    capital, product = np.zeros(count), np.ones(count)
    nothing = np.empty(0)
    base = nothing if wagers is None else wagers.base.astype(np.float64)
    stake = nothing if wagers is None else wagers.stake.astype(np.float64)
    for number, moved in enumerate(source.steps(draws, rng, asked), 1):
        own = moved.whose if picked is None else moved.whose[:, picked]
        add_told(moved.answers, 1 / deviations, own, rounding, base, stake, total, squares, product)
        if number % LOGGED == 0:  # one draw leaves a fifth of the capital at least: far from underflow
            capital += np.log(product)
            product[:] = 1.0
    if wagers is None:
        return MeanEstimate.from_sums(total, squares, draws=draws, span=MOST, rounding=rounding)
    variance = np.maximum(squares - total**2 / draws, 0.0) / max(draws - 1, 1)
    return MeanEstimate.from_wagers(
        capital + np.log(product), wagers, variance=variance, draws=draws, rounding=0.0, slip=SLIP
    )


@dataclass(frozen=True, eq=False)
class Certified:
    """What passes have certified: success for every unit, all together with probability `1 - gamma`."""

    exposure: Floats
    told: Floats  # bounds on the mean of what a swap tells, for this noise and any larger multiple
    bounds: int  # statements
    again: int  # units that were looked at again
    before: MeanEstimate  # of everybody, for wagers to come


@proves("sampled-swaps")
def certify_swaps(
    source: RandomSwaps,
    deviations: Floats,
    *,
    enough: float,
    gamma: float,
    draws: tuple[int, int],
    guess: MeanEstimate,
    seeds: np.random.SeedSequence,
    rounding: float = 0.0,
    held: Certified | None = None,
) -> Certified:
    """Bounds on the balanced membership success against every unit, on fresh worlds.

    Args:
        source: worlds and swaps.
        deviations: of the noise, `(r,)`.
        enough: units whose bound is above this after few draws get many.
        gamma: probability that any bound fails that is made here.
        draws: worlds for everybody, and for those units.
        guess: what is known of everybody from other worlds; it places the wagers.
        seeds: of the worlds; none of them may have been used before.
        rounding: how far `Phi(D / 2)` may be off.
        held: what was certified before, on other worlds, for less noise of the same shape: it holds for this noise too,
            and only units above `enough` are looked at.

    Guarantee: with probability `1 - gamma` over the worlds drawn here, if what is held is true, no attacker who knows
    the pool has a larger balanced success against any unit than its bound, for noise drawn by the ideal law.
    """
    first, second = (np.random.default_rng(seed) for seed in seeds.spawn(2))
    if held is None:
        term = log_term(gamma / 2, source.worlds.n)
        wagers = Wagers.placed(guess.estimate, guess.variance, MOST, draws=draws[0], log_term=term)
        seen = swap_means(source, deviations, draws[0], first, wagers=wagers, rounding=rounding)
        told, bounds, left = np.minimum(upper(seen, term), MOST), source.worlds.n, gamma / 2
    else:
        seen, told, bounds, left = held.before, held.told.copy(), held.bounds, gamma
    again = np.flatnonzero(_success(told, source.swaps.unmatched) > enough).astype(np.intp)
    if len(again):
        term = log_term(left, len(again))
        wagers = Wagers.placed(seen.estimate[again], seen.variance[again], MOST, draws=draws[1], log_term=term)
        closer = swap_means(source, deviations, draws[1], second, units=again, wagers=wagers, rounding=rounding)
        told[again] = np.minimum(told[again], upper(closer, term))
    exposure = _success(told, source.swaps.unmatched)
    return Certified(exposure, told, bounds=bounds + len(again), again=len(again), before=seen)


def _success(told: Floats, unmatched: Floats) -> Floats:
    """Where no swap is possible, because sizes differ, everything may be told."""
    return np.asarray(np.minimum(1.0, (0.5 + (1 - unmatched) * told + unmatched * MOST) * (1 + 1e-12)))
