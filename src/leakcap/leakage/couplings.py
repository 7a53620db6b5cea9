"""One person, any subset, any function: how well answers can be told apart that differ by one swap, by random swaps.

Worlds are drawn by the law of the secret, and everybody in them is swapped with somebody on the other side. The mean
of what such a swap tells bounds the success against that unit (docs/proofs/sampled-swaps.md). Few worlds for
everybody, many for those who decide; each stage on worlds of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.swapping import Swapper
from leakcap.leakage.confidence import MeanEstimate, Wagers, log_term, upper
from leakcap.leakage.swaps import Swaps, possible_swaps
from leakcap.worlds import Worlds, independent_worlds

__all__ = ["MOST", "Certified", "RandomSwaps", "certify_swaps", "swap_means"]

MOST = 0.5  # what a swap tells, at most: success less that of a coin
BLOCK = 64  # worlds drawn at a time
LOGGED = 64  # draws after which capitals are put into logarithms
SLIP = 1e-12  # what rounding may take from the logarithm of a wager in one draw


@dataclass(frozen=True, eq=False)
class RandomSwaps:
    """Worlds by the law of the secret, and swaps in them; custodian side."""

    swapper: Swapper
    coordinates: Callable[[Floats], Floats]  # of answers, `(p, d)` to `(p, r)`; zeros where there is no answer
    worlds: Worlds  # any of the law
    strata: Ints | None
    swaps: Swaps

    @classmethod
    def of(
        cls, swapper: Swapper, coordinates: Callable[[Floats], Floats], worlds: Worlds, strata: Ints | None
    ) -> RandomSwaps:
        swaps = possible_swaps(worlds.n, worlds.share, strata)
        if worlds.rate != 0.5 and swaps.unmatched.any():
            raise InputError(
                f"at rate {worlds.share} this needs a pool whose size is a multiple of {worlds.share.denominator}: use "
                "rate=1/2, or leave units out"
            )
        return cls(swapper, coordinates, worlds, strata, swaps)

    @proves("sampled-swaps")
    def steps(self, draws: int, rng: np.random.Generator, units: Ints | None = None) -> Iterator[tuple[Floats, Ints]]:
        """For each of `draws` independent worlds: how far some swaps move the answer, and which of them is whose.

        A unit's own, of all units or of `units`, is uniform among those that the law of its world allows.
        """
        places = None if units is None else self._places(units)
        for done in range(0, draws, BLOCK):
            some = independent_worlds(
                self.worlds.n, min(BLOCK, draws - done), rng, rate=self.worlds.rate, strata=self.strata
            )
            for number in range(some.m):
                mask = some.mask(number)
                if units is None or places is None:
                    out, into, whose = self._everybody(mask, rng)
                else:
                    out, into, whose = _some(mask, units, places, rng)
                found = self.coordinates(self.swapper.answers(mask, out, into))
                yield found[1:] - found[0], whose

    def _everybody(self, mask: Bools, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """Pairs of an insider and an outsider, so that everybody is in one: two lists, each turned by a random step.

        Everybody's partner is uniform on the other side, which is all that is asked of it.
        """
        from leakcap.leakage._swap_loops import pair_up

        whose, pairs = np.empty(self.worlds.n, dtype=np.intp), np.empty((2, self.worlds.n), dtype=np.intp)
        end = 0
        for members in self.swaps.members:
            inside = int(np.count_nonzero(mask[members] if len(self.swaps.members) > 1 else mask))
            outside = len(members) - inside
            turns = rng.integers(max(inside, outside)), rng.integers(min(inside, outside))
            end = pair_up(mask, members, turns, end, pairs, whose)
        return pairs[0, :end], pairs[1, :end], whose

    def _places(self, units: Ints) -> tuple[Ints, Ints, Ints]:
        """Where the strata of units begin in a list of all units, how large they are, and that list."""
        order = np.concatenate(self.swaps.members)
        sizes = np.array([len(members) for members in self.swaps.members])
        stratum = np.empty(len(order), dtype=np.intp)
        stratum[order] = np.repeat(np.arange(len(sizes)), sizes)
        own = stratum[units]
        return (np.cumsum(sizes) - sizes)[own], sizes[own], order


def _some(
    mask: Bools, units: Ints, places: tuple[Ints, Ints, Ints], rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """A pair for each of some units: partners are tried until one of the unit's stratum is on the other side."""
    inside, partner, left = mask[units], units.copy(), np.arange(len(units))
    start, size, order = places
    while len(left):
        tried = order[start[left] + rng.integers(size[left])]
        partner[left] = tried
        left = left[mask[tried] == inside[left]]
    return np.where(inside, units, partner), np.where(inside, partner, units), np.arange(len(units))


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
    """Means of `Phi(D / 2) - 1/2` for every unit (or for `units`), `D` the length of a step in noise deviations."""
    from leakcap.leakage._swap_loops import add_told

    count = source.worlds.n if units is None else len(units)
    asked, picked = units, None
    if units is not None and 2 * len(units) > source.worlds.n:  # pairs of everybody are fewer
        asked, picked = None, units
    total, squares = np.zeros(count), np.zeros(count)
    capital, product = np.zeros(count), np.ones(count)
    nothing = np.empty(0)
    base = nothing if wagers is None else wagers.base.astype(np.float64)
    stake = nothing if wagers is None else wagers.stake.astype(np.float64)
    for number, (steps, whose) in enumerate(source.steps(draws, rng, asked), 1):
        lengths = np.sqrt(np.einsum("pr,pr->p", moved := steps / deviations, moved))
        add_told(lengths, whose if picked is None else whose[picked], rounding, base, stake, total, squares, product)
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
    """What a pass has certified: success for every unit, all together with probability `1 - gamma`."""

    exposure: Floats
    bounds: int  # statements
    again: int  # units that were looked at again
    before: MeanEstimate  # of everybody, for what is aimed next


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
) -> Certified:
    """Bounds on the balanced membership success against every unit, on fresh worlds.

    Args:
        source: worlds and swaps.
        deviations: of the noise, `(r,)`.
        enough: units whose bound is above this after few draws get many.
        gamma: probability that any bound fails.
        draws: worlds for everybody, and for those units.
        guess: what is known of everybody from other worlds; it places the wagers.
        seeds: of the worlds; none of them may have been used before.
        rounding: how far `Phi(D / 2)` may be off.

    Guarantee: with probability `1 - gamma` over the worlds drawn here, no attacker who knows the pool has a larger
    balanced success against any unit than its bound, for noise drawn by the ideal law.
    """
    first, second = (np.random.default_rng(seed) for seed in seeds.spawn(2))
    n = source.worlds.n
    term = log_term(gamma / 2, n)
    wagers = Wagers.placed(guess.estimate, guess.variance, MOST, draws=draws[0], log_term=term)
    seen = swap_means(source, deviations, draws[0], first, wagers=wagers, rounding=rounding)
    told = np.minimum(upper(seen, term), MOST)
    again = np.flatnonzero(_success(told, source.swaps.unmatched) > enough).astype(np.intp)
    if len(again):
        term = log_term(gamma / 2, len(again))
        wagers = Wagers.placed(seen.estimate[again], seen.variance[again], MOST, draws=draws[1], log_term=term)
        closer = swap_means(source, deviations, draws[1], second, units=again, wagers=wagers, rounding=rounding)
        told[again] = np.minimum(told[again], upper(closer, term))
    exposure = _success(told, source.swaps.unmatched)
    return Certified(exposure, n + len(again), len(again), seen)


def _success(told: Floats, unmatched: Floats) -> Floats:
    """Where no swap is possible, because sizes differ, everything may be told."""
    return np.asarray(np.minimum(1.0, (0.5 + (1 - unmatched) * told + unmatched * MOST) * (1 + 1e-12)))
