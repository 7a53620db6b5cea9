"""What a promise would cost: its noise, and the errors of simulated answers, side by side with other promises'."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from leakcap import modes
from leakcap.caps import Cap, Membership, PoolMembership
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground.arrays import Bools, Floats
from leakcap.kernels.blocks import ANY_KEY, COINS_IN_BLOCKS, Blocks
from leakcap.kernels.bounded import Bounded, Declared
from leakcap.kernels.contributions import Contributions, bounded_contributions, contributions
from leakcap.leakage.confidence import Attempts
from leakcap.noise import Noise, Randomness, subspace
from leakcap.noise.plain import PlainNoise, gaussian, laplace, zero_concentrated
from leakcap.planning.answered import MAX_COINS
from leakcap.planning.comparison import Comparison, Promise, in_order, size_of
from leakcap.planning.finishing import finished
from leakcap.planning.job import Job
from leakcap.planning.plans import Plan
from leakcap.planning.request import Request, stream
from leakcap.planning.stacked import scale_of
from leakcap.simulate import Outputs
from leakcap.simulate.pool import first_rows
from leakcap.simulate.worker import one_answer
from leakcap.worlds import Units, Worlds, draw_worlds, fair_bits
from leakcap.worlds.draw import as_share

__all__ = ["MIN_ANSWERS", "PromiseBench", "capped_success"]

OF_THE_POOL = "whether a person of the pool was used"
WORLDS = f"{OF_THE_POOL}, from attackers who know the pool and the list of worlds, but nobody who was used"
BITS = f"{OF_THE_POOL}, whoever else is known"
POOL = "whether a person is in the data at all, whoever else is known (add or remove one person)"
STRENGTH = {"worlds": 1, "bits": 2, "pool": 3, "Laplace": 3, "Gaussian": 3, "zCDP": 3}
PLAIN = {"Laplace": laplace, "Gaussian": gaussian, "zCDP": zero_concentrated}
MIN_ANSWERS = 64
MAX_SIMULATED = 2**24  # numbers in all simulated answers of a promise


def capped_success(caps: tuple[Cap, ...]) -> float:
    """The smallest success that membership or pool caps allow."""
    limits = [cap.limit for cap in caps if isinstance(cap, (Membership, PoolMembership))]
    if not limits:
        raise InputError(
            "compare() needs a cap that all promises know, on the guess about one person: recap with "
            "leakcap.membership(...) or plan with leakcap.pool_membership(...)"
        )
    return min(limits)


Failures = Iterator[tuple[str, str]]  # names of promises, and why they have no figures


class PromiseBench:
    """Promises are tried one by one; those that can be kept are in `made`."""

    def __init__(self, plan: Plan, request: Request, job: Job, *, answers: int, seed: int) -> None:
        self.plan, self.request, self.job = plan, request, job
        self.success, self.seed = capped_success(plan.caps), seed
        self.made: dict[str, Promise] = {}
        self.answers = answers - answers % 2
        self.settings = replace(request.settings, seeded=True)
        self.scale: Floats | None = None

    @cached_property
    def whole(self) -> tuple[tuple[str, ...], Floats]:
        """Names of the outputs, and the function's answer on the whole pool."""
        known = self.plan.run.simulation
        if self.request.mode != "pool" or isinstance(self.job.fn, Blocks):
            pool = known.whole_pool
            return tuple(known.node.labels()), known.table.mean(axis=0) if pool is None else np.asarray(pool)
        node, numbers = one_answer(self.job.fn, self.job.pool, np.arange(self.job.units.rows), self.job.drop)
        return tuple(node.labels()), numbers

    @property
    def own(self) -> str:
        if self.request.design in ("bits", "pool"):
            return self.request.design
        return "worlds" if self.request.mode == "exact" else ""

    def comparison(self, left_out: tuple[tuple[str, str], ...]) -> Comparison:
        names, answer = self.whole
        scale = np.ones(len(answer)) if self.scale is None else self.scale
        promises = [replace(one, total=size_of(one.error, answer, scale)) for one in self.made.values()]
        return Comparison(
            success=self.success,
            own=self.own,
            promises=in_order(promises),
            left_out=left_out,
            names=names,
            answer=answer,
            answers=self.answers,
            scale=scale,
        )

    def of_worlds(self, count: int) -> Failures:
        try:
            self._worlds(count)
        except LeakcapError as error:
            yield "worlds", str(error)

    def of_bits(self, most: int | None = None) -> Failures:
        """`most` numbers that people may bring, or None."""
        try:
            self._bits(most)
        except LeakcapError as error:
            yield "bits", str(error)

    def of_pool(self, bounds: Any, rows: int | None) -> Failures:
        try:
            brings = self._bounded(bounds, rows)
        except LeakcapError as error:
            yield from ((name, str(error)) for name in ("pool", *PLAIN))
            return
        try:
            self._pool(brings)
        except LeakcapError as error:
            yield "pool", str(error)
        for name, calibrate in PLAIN.items():
            try:
                self._plain(name, brings, calibrate)
            except LeakcapError as error:
                yield name, str(error)

    def _worlds(self, count: int) -> None:
        began, request, run = time.process_time(), self.request, self.plan.run
        cap = (Membership(self.success),)
        if request.mode == "exact" and self.plan.caps == cap:
            self.scale = self.plan.noise.space.scale
            how, seconds = f"{run.worlds.m:,} worlds, the plan's own", self.plan.seconds
            self._linear("worlds", WORLDS, self.plan.noise, self._halving(run.simulation), how=how, seconds=seconds)
            return
        how = "simulated for this table"
        if request.mode == "exact":
            worlds, outputs = run.worlds, run.simulation
            how = "the plan's own, for this cap alone"
        else:
            worlds, outputs = self._simulated(count)
        space = subspace(outputs.table, self._weights(outputs), self.settings.machine.memory)
        releaser, _ = modes.exact.certified(
            space, worlds, cap, self.settings, attempts=Attempts(request.gamma), rng=stream(self.seed, 1)
        )
        self.scale = releaser.noise.space.scale
        self._linear(
            "worlds",
            WORLDS,
            releaser.noise,
            self._halving(outputs),
            how=f"{worlds.m:,} worlds, {how}",
            seconds=time.process_time() - began,
        )

    def _simulated(self, count: int) -> tuple[Worlds, Outputs]:
        job, rate = self.job, self.request.rate
        parts = as_share(rate).denominator
        rng = np.random.default_rng([self.seed, 1])
        worlds = draw_worlds(job.units.count, -(-count // parts) * parts, rng, rate, strata=self.request.strata)
        return worlds, replace(self.request, scale=scale_of(job.fn, rate)).usable(job.run(worlds))

    def _weights(self, outputs: Outputs) -> Any:
        """The plan's own, where there are as many as outputs."""
        weights = self.settings.weights
        return weights if weights is None or isinstance(weights, str) else self._fitting(weights, outputs.table)

    @staticmethod
    def _fitting(weights: Any, table: Floats) -> Any:
        return weights if np.size(weights) == table.shape[1] else None

    def _halving(self, outputs: Outputs) -> Floats:
        return _rms(outputs.table - self.whole[1])

    def _bits(self, most: int | None) -> None:
        began = time.process_time()
        self._refuse_clips()
        if isinstance(self.job.fn, Blocks):
            self._bits_in_blocks(self.job.fn)
            return
        brings = contributions(self.job.fn, self.job.pool.data, self.job.units)
        n, d = brings.values.shape
        if most is not None and n * d > most:
            raise InputError("people bring too many numbers for a quick look")
        if not n:
            raise InputError("there are no rows")
        coins = fair_bits(n, self._count(d, MAX_COINS // n), np.random.default_rng([self.seed, 2]))
        cap = (Membership(self.success),)
        releaser, _ = modes.bits.certified(brings, coins, cap, self.settings, draw=_nothing_is_drawn)
        noise = releaser.noise
        if brings.finish is None:
            seconds = time.process_time() - began
            self._linear("bits", BITS, noise, _spread(brings), how='design="bits"', seconds=seconds)
            return
        drawn = noise.space.lift(self._normal(noise.space.rank) * noise.deviations)
        errors = self._simulate(brings.finish, modes.bits.answers(brings, coins), drawn)
        seconds = time.process_time() - began
        self._keep("bits", BITS, 'design="bits"', errors, deviations=noise.deviations, seconds=seconds)

    def _bits_in_blocks(self, fn: Blocks) -> None:
        began, units = time.process_time(), self.job.units
        brings = fn.cut(self.job.pool.data, units, ANY_KEY)
        coins = fair_bits(units.count, COINS_IN_BLOCKS, np.random.default_rng([self.seed, 2]))
        cap = (Membership(self.success),)
        releaser, _ = modes.blocks.certified(brings, coins, cap, self.settings, draw=_nothing_is_drawn)
        deviations = releaser.noise.deviations
        errors = self._simulate(fn.finish, brings.sums(coins), self._normal(len(deviations)) * deviations)
        seconds = time.process_time() - began
        self._keep("bits", BITS, 'design="bits"', errors, deviations=deviations, seconds=seconds)

    def _bounded(self, bounds: Any, rows: int | None) -> Bounded:
        """What everybody brings within the bounds; the plan's own under a pool cap."""
        self._refuse_clips()
        own = self.plan.run.brings
        if isinstance(own, Bounded) and bounds is None and rows is None:
            return own
        pool, units = self.job.pool, self.job.units
        if units.of_row is not None and not isinstance(self.job.fn, Blocks):
            if rows is None:
                raise InputError("give rows_per_unit=, the most rows that one person may bring")
            pool, whose = first_rows(pool, units.of_row, rows)
            units = Units.of(pool.rows, whose)
        if units.count == 0:
            raise InputError("there are no rows")
        return bounded_contributions(self.job.fn, pool.data, units, Declared(bounds, rows or 1, ANY_KEY))

    def _pool(self, brings: Bounded) -> None:
        began = time.process_time()
        cap = (PoolMembership(self.success),)
        releaser, _ = modes.pool.certified(brings, cap, self.settings)
        deviations = releaser.noise.deviations
        drawn = self._normal(len(deviations)) * deviations
        errors = self._simulate(brings.finish, brings.values.sum(axis=0)[None], drawn)
        seconds = time.process_time() - began
        how = f"pool_membership({self.success:.6g})"
        self._keep("pool", POOL, how, errors, deviations=deviations, seconds=seconds)

    def _plain(self, name: str, brings: Bounded, calibrate: Callable[..., PlainNoise]) -> None:
        began = time.process_time()
        noise = calibrate(brings.extent, self.success)
        if noise.law == "normal":  # the same luck for all that is normal
            drawn = self._normal(len(noise.deviations)) * noise.deviations
        else:
            unit = replace(noise, deviations=np.ones(len(noise.deviations)))
            drawn = _balanced(unit.drawn, self._count(len(noise.deviations)), self.seed) * noise.deviations
        errors = self._simulate(brings.finish, brings.values.sum(axis=0)[None], drawn)
        seconds = time.process_time() - began
        how = f"{noise.law} noise, {noise.parameters}"
        self._keep(name, POOL, how, errors, deviations=noise.deviations, seconds=seconds)

    def _refuse_clips(self) -> None:
        if self.request.clip is not None:
            raise InputError("clip= is for worlds alone: bound the rows instead")

    def _count(self, d: int, most: int = 2**62) -> int:
        """Answers that are simulated: fewer of very long ones."""
        fitting = min(self.answers, most, MAX_SIMULATED // max(d, len(self.whole[1]), 1))
        self.answers = max(MIN_ANSWERS, fitting - fitting % 2)
        return self.answers

    def _normal(self, d: int) -> Floats:
        return _balanced(lambda count, rng: rng.standard_normal((count, d)), self._count(d), self.seed)

    def _simulate(self, finish: Callable[[Floats], Any], sums: Floats, drawn: Floats) -> tuple[Floats, Floats, Floats]:
        """Errors without noise, of noise, and in all, for sums as they may be and noise that was drawn."""
        whole = self.whole[1]
        made, outputs = finished(finish, sums, self.job.units.rows)
        plain = outputs.table
        if plain.shape[1] != len(whole):
            raise OutputError("its answer has another form than the function's")
        place = np.arange(len(drawn)) % len(sums)
        noised = np.stack([made.numbers(sums[i] + one) for i, one in zip(place, drawn, strict=True)])
        return _rms(plain - whole), _rms(noised - plain[place]), _rms(noised - whole)

    def _linear(self, name: str, hides: str, noise: Noise, before: Floats, *, how: str, seconds: float) -> None:
        """Noise is added to the answer itself: its part of the error is known."""
        apart = noise.output_deviations
        if len(apart) != len(self.whole[1]):
            raise OutputError("its answer has another form than the function's")
        self._keep(
            name, hides, how, (before, apart, np.hypot(before, apart)), deviations=noise.deviations, seconds=seconds
        )

    def _keep(
        self,
        name: str,
        hides: str,
        how: str,
        errors: tuple[Floats, Floats, Floats],
        *,
        deviations: Floats,
        seconds: float,
    ) -> None:
        before, noise, error = errors
        self.made[name] = Promise(
            name=name,
            hides=hides,
            how=how,
            strength=STRENGTH[name],
            before_noise=before,
            noise=noise,
            error=error,
            total=0.0,
            seconds=seconds,
            deviations=deviations,
        )


def _balanced(draw: Callable[[int, np.random.Generator], Floats], count: int, seed: int) -> Floats:
    """Draws with their negatives, of root mean square 1 in every column: errors of sums come out exactly."""
    half = draw(count // 2, np.random.default_rng([seed, 3]))
    both = np.concatenate([half, -half])
    return both / np.maximum(_rms(both), 1e-300)


def _spread(brings: Contributions) -> Floats:
    """Deviation of the answer over all coins."""
    weight = 2 / len(brings.values) if brings.averaged else 2.0
    apart = brings.values - brings.values.mean(axis=0)
    return np.asarray(np.sqrt((apart**2).sum(axis=0)) * weight / 2)


def _rms(errors: Floats) -> Floats:
    return np.asarray(np.sqrt((errors**2).mean(axis=0)))


def _nothing_is_drawn(_: Randomness) -> Bools:
    raise LeakcapError("a comparison draws no secret")
