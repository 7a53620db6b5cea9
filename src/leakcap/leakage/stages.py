"""Stages of a pass: bounds for every unit from few draws or from second moments, then closer looks at some.

Which units a later stage looks at, and with how many draws, depends on the stages before it only; its draws are its
own (docs/proofs/wagers.md, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.caps import Cap, Membership, Precision, TruePositiveRate
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.cores import Machine
from leakcap.leakage.confidence import MeanEstimate, Wagers, log_term, upper
from leakcap.leakage.membership import Tick, UnitMeans, UnitWagers, observe_naming, observe_units
from leakcap.leakage.moments import screened_bounds
from leakcap.leakage.posterior import Cells, Sampled, Source
from leakcap.worlds import Worlds

__all__ = [
    "KNOWN",
    "PILOT",
    "PLENTY",
    "SOME_UNITS",
    "Effort",
    "UnitGame",
    "UnitStart",
    "draws_for_recognition",
    "look_again",
    "look_at_all",
    "looked_at_again",
    "screen_all",
]

FLOPS = 2e10  # what a pass over all units may cost in any case, if a later one costs four times as much
FEW_UNITS, SOME_UNITS = 64, 512  # that a further stage may look at: at least, and where there are many
FEWEST, PLENTY = 2048, 8192  # draws for every unit: at least, and where they cost no more than the next
PLENTY_FLOPS = 1e12
SHOWN_ALARMS = (0.01, 0.001)  # false positive rates at which every certificate says who is recognised
SCREENING, SCREENED_KNOWN = 2**16, 2**14  # draws for second moments: of everybody, and of known memberships
SURELY_LESS = 1.5  # times a bound by second moments is above what draws will show, about
KNOWN = 512  # draws for attackers who know memberships
NAMING = 1024  # draws for naming a member, where units are screened
PILOT = 256  # draws that only place wagers


@dataclass(frozen=True)
class Effort:
    """How many independent releases are drawn for what; fixed before the first one is."""

    stages: tuple[int, ...]  # for all units (screened: for those that may matter), then for those that decide
    worlds: int
    known: int
    screening: int = 0  # for second moments, which bound everybody; 0: all units get draws of their own
    naming: int = 0  # for naming a member, where units are screened

    @classmethod
    def of(
        cls,
        draws: int,
        m: int,
        n: int,
        worlds_capped: bool,
        *,
        everybody: bool = False,
        screen: bool = False,
        enough: int = PLENTY,
    ) -> Effort:
        """Few draws for everybody, all draws for the few who are near a cap; `everybody`: all draws for all.

        `screen` allows second moments to bound those who are far from it, where there are so many units that this pays.
        More than `enough` draws for everybody are not worth their time.
        """
        products = 2 * m * max(n, 1)  # given inputs have nobody in them
        plenty = int(min(PLENTY, PLENTY_FLOPS / products))
        affordable = int(min(draws // 4, FLOPS / products))
        everybody = everybody or n <= 2 * FEW_UNITS  # a second stage would look at most of them again
        stages = [draws if everybody else min(draws, max(FEWEST, affordable, min(plenty, enough)))]
        while stages[-1] < draws:
            stages.append(16 * stages[-1] if draws > 64 * stages[-1] else draws)
        for_worlds = int(min(draws, 2**14 if worlds_capped else 4096))
        # Matrices of second moments cost about as many products, whatever the number of units.
        if screen and not everybody and plenty < PLENTY and m * (5e5 + 48 * m) < n * stages[0]:
            return cls(tuple(stages), for_worlds, SCREENED_KNOWN, screening=SCREENING, naming=NAMING)
        return cls(tuple(stages), for_worlds, min(draws, KNOWN))

    def given_to(self, units: int, n: int) -> Effort:
        """The same first stage for some of `n` units: more draws, which cost no more than those for everybody would."""
        more = min(PLENTY, self.stages[-1], self.stages[0] * n // units)
        return replace(self, stages=(max(self.stages[0], more), *self.stages[1:]))


@dataclass(frozen=True, eq=False)
class UnitGame:
    """What is looked at, whoever is looked at."""

    points: Floats
    worlds: Worlds
    cuts: Floats
    caps: tuple[Cap, ...]
    distance: float
    step: float | None  # of a grid over which all releases are summed: that needs no bound
    machine: Machine

    def source(self, draws: int, seed: np.random.SeedSequence) -> Source:
        return Cells(self.points[:, 0], self.step) if self.step else Sampled(self.points, draws, seed)

    def look(self, source: Source, **how: Any) -> UnitMeans:
        return observe_units(source, self.worlds, self.cuts, machine=self.machine, **how)

    def wagers(self, seen: UnitMeans | None, draws: int, term: float) -> UnitWagers | None:
        return UnitWagers.placed(seen, self.worlds.rate, draws, term) if seen is not None else None


@dataclass(frozen=True, eq=False)
class UnitStart:
    """Bounds for everybody, before some units are looked at again."""

    top: list[Floats]  # the balanced success, then every stick
    naming: MeanEstimate
    among: Ints  # the units that may be looked at again, and what was seen of them
    seen: UnitMeans
    effort: Effort
    later: tuple[int, ...]  # draws of the stages to come; `all_first`: the first of them looks at all of `among`
    all_first: bool


def draws_for_recognition(recognised: float, term: float) -> int:
    """Draws for everybody after which the share of participants recognised at few false alarms, about `recognised` for
    the most exposed, is bounded within a third above it.

    The bound of a unit that no draw has shown above a cut is `1.25 term/K` of its room, for a stake of four fifths: a
    share of `2.5 term/K` at rate 1/2.
    """
    return int(min(PLENTY, 1024 * np.ceil(2.5 * term / max(recognised / 3, 1e-9) / 1024)))


def look_at_all(game: UnitGame, effort: Effort, seed: np.random.SeedSequence, *, term: float, tick: Tick) -> UnitStart:
    """Draws for every unit."""
    first = effort.stages[0]
    pilot = None if game.step else game.look(game.source(PILOT, seed.spawn(1)[0]))
    units = game.look(game.source(first, seed), tick=tick, wagers=game.wagers(pilot, first, term))
    return UnitStart(
        top=[upper(units.balanced, term), *upper(units.sticks, term)],
        naming=units.naming,
        among=np.arange(game.worlds.n),
        seen=units,
        effort=effort,
        later=effort.stages[1:],
        all_first=False,
    )


def screen_all(game: UnitGame, effort: Effort, seed: np.random.SeedSequence, *, term: float, tick: Tick) -> UnitStart:
    """Second moments for every unit; draws, and then more of them, only for those that they leave open."""
    n, stages = game.worlds.n, effort.stages
    aside, moments = seed.spawn(2)
    top = screened_bounds(Sampled(game.points, effort.screening, moments), game.worlds, game.cuts, term)
    among = _unsettled(top, game.caps, game.distance, least=looked_at_again(stages[0], n, stages[-1]))
    effort = effort.given_to(len(among), n)
    seen = game.look(game.source(PILOT, aside), chosen=among)
    wager = Wagers.placed(seen.naming.estimate, seen.naming.variance, 1.0, draws=effort.naming, log_term=term)
    return UnitStart(
        top=top,
        naming=observe_naming(Sampled(game.points, effort.naming, seed), game.worlds, wager, tick),
        among=among,
        seen=seen,
        effort=effort,
        later=effort.stages,
        all_first=True,
    )


def look_again(game: UnitGame, start: UnitStart, seed: np.random.SeedSequence, *, gamma_again: float) -> int:
    """Further stages: bounds in `start.top` become lower where more draws allow it. How many statements that takes."""
    made, seen, top = 0, start.seen, start.top
    for number, (draws, child) in enumerate(zip(start.later, seed.spawn(len(start.later)), strict=True)):
        near, everybody = start.among, start.all_first and not number
        if not everybody:
            near = np.intersect1d(
                near, _deciding(game, top, most=looked_at_again(start.effort.stages[0], game.worlds.n, draws))
            )
        term = log_term(gamma_again / len(start.later), len(near) * len(top))
        made += len(near) * len(top)
        wagers = game.wagers(seen.at(np.searchsorted(start.among, near)), draws, term)
        closer = game.look(game.source(draws, child), chosen=near, wagers=wagers)
        sticks = (closer.sticks.at(k) for k in range(len(game.cuts)))
        for figures, finer in zip(top, (closer.balanced, *sticks), strict=True):
            figures[near] = np.minimum(figures[near], upper(finer, term))
        seen = closer if everybody else seen  # better than a pilot's, for the wagers of the next
    return made


def looked_at_again(first: int, n: int, draws: int) -> int:
    """How many units a further stage of `draws` may look at: it costs about a sixth of what the first one did."""
    return max(min(SOME_UNITS, max(FEW_UNITS, n // 8)), first * n // (6 * draws))


def _unsettled(top: Sequence[Floats], caps: Sequence[Cap], distance: float, least: int) -> Ints:
    """Units that second moments leave open: not below a cap on their membership (without one: not far below the
    largest), and the `least` with the largest bounds."""
    far_below = 0.5 + (float(top[0].max()) - 0.5) / SURELY_LESS
    chosen = top[0] + distance > min([cap.success for cap in caps if isinstance(cap, Membership)] or [far_below])
    least = min(least, len(chosen))
    chosen[np.argpartition(-top[0], least - 1)[:least]] = True
    return np.flatnonzero(chosen)


def _deciding(game: UnitGame, top: Sequence[Floats], most: int) -> Ints:
    """The units worth more draws: all that are not yet below a cap on their membership, and those with the largest
    bounds of each figure that decides something, `most` in all."""
    caps, cuts, rate = game.caps, game.cuts, game.worlds.rate
    limit = min([cap.success for cap in caps if isinstance(cap, Membership)] or [1.0])
    chosen = top[0] + game.distance > limit
    deciding = [top[0], *(top[1 + k] for k in _cuts_that_decide(top[1:], cuts, rate, caps))]
    each = min(max(1, most // len(deciding)), len(chosen))
    for figures in deciding:
        chosen[np.argpartition(-figures, each - 1)[:each]] = True
    return np.flatnonzero(chosen)


def _cuts_that_decide(sticks: Sequence[Floats], cuts: Floats, rate: float, caps: Sequence[Cap]) -> list[int]:
    """The cuts from which shares of participants recognised at few false alarms follow, and those of capped figures."""
    if any(isinstance(cap, Precision) for cap in caps):
        return list(range(len(cuts)))
    alarms = {*SHOWN_ALARMS, *(cap.fpr for cap in caps if isinstance(cap, TruePositiveRate))}
    worst = np.array([figures.max() for figures in sticks])
    return sorted({int(np.argmin((cuts * (1 - rate) * fpr + worst) / (1 - cuts))) for fpr in alarms})
