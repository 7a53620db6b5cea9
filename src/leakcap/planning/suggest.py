"""The knobs of a plan, tried one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import CapError, InputError, LeakcapError
from leakcap.ground import checks
from leakcap.planning.job import Job
from leakcap.planning.offers import Offered, Variant
from leakcap.planning.plans import Plan
from leakcap.planning.rehearsal import Judge, Rehearsals, Trial, relative_error, scored
from leakcap.planning.request import Request
from leakcap.planning.suggestions import Suggestion, Suggestions
from leakcap.simulate import Outputs
from leakcap.worlds import Worlds, draw_worlds
from leakcap.worlds.draw import as_share
from leakcap.worlds.join import joined

__all__ = ["suggest"]

QUANTILES = (0.01, 0.05)
RATES = ((1, 2), (2, 3), (3, 4))
MIN_WORLDS = 64  # worlds in which it makes sense to compare
MAX_UNIT_WORLDS = 2**28  # units times worlds: beyond, an estimate of the noise takes minutes
SAME = 0.02  # relative standard error of an estimated noise, on the same worlds as its counterpart
OWN = 1.0  # the least for worlds of its own, over the root of their number
GROUPS = 4  # of worlds, between which the luck of worlds is measured
# On heavy-tailed data the luck of worlds falls more slowly than it should (up to twice the error was measured), and
# four groups know their own spread badly: doubled, a knob that changes nothing is called clear in 5 % of cases or less.
SAFE = 2.0


@dataclass(frozen=True)
class Found:
    """Both sides of one knob."""

    now: Trial
    then: Trial
    seconds: float  # of a world
    luck: float = SAME  # relative standard error of the noise
    extrapolated: bool = False


def suggest(
    plan: Plan,
    score: Callable[[Any], float] | None,
    *,
    strata: Mapping[str, npt.ArrayLike],
    worlds: int,
    releases: int,
    seconds: float,
    seed: int,
    request: Request,
    job: Job | None,
) -> Suggestions:
    """See `Plan.suggest`."""
    if request.mode != "exact":
        raise InputError("suggest() compares plans of mode='exact': plan with it first, to see which knob helps")
    if score is not None and not callable(score):
        raise InputError("score must be a function of a released value, such as lambda value: -abs(value - 1)")
    checks.count(at_least=2, releases=releases)
    checks.count(at_least=2, worlds=worlds)
    checks.count(at_least=0, seed=seed)
    checks.nonnegative(seconds=seconds)
    trials = Rehearsals(plan.caps, request.settings, request.gamma, releases=releases, seed=seed)
    bench = _Bench(
        plan,
        request,
        job,
        score=score,
        strata=dict(strata),
        max_worlds=worlds,
        max_seconds=float(seconds),
        trials=trials,
    )
    tried: list[Suggestion] = []
    left_out = list(bench.not_tried)
    for knob, how, m, measure in bench.knobs():
        try:
            found = measure()
        except LeakcapError as error:
            left_out.append((knob, str(error)))
            continue
        tried.append(_told(knob, how, found, m))
    tried.sort(key=lambda one: -one.gain)
    return Suggestions(bench.utility, tuple(tried), tuple(left_out), releases)


def _told(knob: str, how: str, found: Found, m: int) -> Suggestion:
    now, then = found.now, found.then
    apart = then.scores - now.scores
    sampled = float(apart.std(ddof=1)) / np.sqrt(len(apart))
    # What noise costs grows at most like its square: a relative error of the noise is twice that of its cost.
    estimated = 2 * found.luck * float(np.hypot(now.lost, then.lost))
    ratio = then.noise.std / now.noise.std if now.noise.std > 0 else 1.0
    error = float(np.hypot(sampled, estimated))
    return Suggestion(
        knob,
        how,
        now.mean,
        then.mean,
        error=error,
        noise=ratio,
        worlds=now.worlds,
        seconds=m * found.seconds,
        extrapolated=found.extrapolated,
    )


Knob = tuple[str, str, int, Callable[[], Found]]  # name, what to plan with, worlds of such a plan, how to try it


@dataclass(frozen=True, eq=False)
class _Bench:
    """A plan on which knobs are tried."""

    plan: Plan
    request: Request
    job: Job | None
    score: Callable[[Any], float] | None
    strata: Mapping[str, npt.ArrayLike]
    max_worlds: int
    max_seconds: float  # that running the function again may take
    trials: Rehearsals

    @property
    def outputs(self) -> Outputs:
        return self.plan.run.simulation

    @property
    def offered(self) -> Offered:
        return self.plan.offered or Offered(lambda value: value)

    @property
    def seconds(self) -> float:
        """Of one world."""
        return self.outputs.forecast.seconds_per_world / self.outputs.forecast.workers

    @property
    def utility(self) -> str:
        if self.score is not None:
            return "score"
        return self.offered.name.partition(" (")[0] if self.offered.score else "minus relative error"

    def judge(self, build: Callable[[Any], Any] | None = None) -> Judge:
        """What a released vector is worth, where `build` makes something of its value."""
        score = self.score or self.offered.score
        if score is not None:
            return scored(score, build or self.offered.build)
        return relative_error(self.outputs, self.plan.noise.space.scale)

    @cached_property
    def now(self) -> Trial:
        """The plan as it is, in all of its worlds."""
        return self.trials.of(self.outputs, self.plan.worlds, self.judge())

    @cached_property
    def some(self) -> tuple[Worlds, Trial]:
        """The plan as it is, in as many worlds as settings are compared in that need it to be run again."""
        count = self._affordable
        if count >= self.plan.worlds.m:
            return self.plan.worlds, self.now
        worlds, outputs = self._some_of(count)
        return worlds, self.trials.of(outputs, worlds, self.judge())

    @cached_property
    def _reruns(self) -> list[tuple[str, str, Callable[[], Found]]]:
        """Knobs for which the function has to be run again."""
        found: list[tuple[str, str, Callable[[], Found]]] = []
        if self._at_random:
            for up, parts in RATES:
                if abs(up / parts - self.request.rate) > 1e-9 and up / parts > self.request.rate:
                    how = f"rate={up}/{parts}; that share of the pool then takes part, and attackers know the share"
                    found.append((f"rate {up}/{parts}", how, partial(self._rate, up / parts)))
            for name, labels in {**self.offered.strata, **self.strata}.items():
                how = name if name.startswith("strata=") else f"these strata: {name}"
                found.append((name, how, partial(self._strata, labels)))
        for name, make in self.offered.variants.items():
            found.append((name, name, partial(self._variant, make)))
        return found

    @cached_property
    def _affordable(self) -> int:
        """Worlds in which all of these can be run within the budget; 0 where too few."""
        count = min(self.max_worlds, self.plan.worlds.m)
        while count >= 2 and count * self.seconds * max(len(self._reruns), 1) > self.max_seconds:
            count //= 2
        count -= count % self._parts
        return count if count >= min(MIN_WORLDS, self.plan.worlds.m) else 0

    @property
    def not_tried(self) -> Iterator[tuple[str, str]]:
        if self.job is None:
            for knob, _, _ in self._reruns:
                yield knob, "a stored plan has neither the data nor the function"
        elif not self._affordable:
            for knob, _, _ in self._reruns:
                yield knob, f"{MIN_WORLDS} worlds would take longer than seconds={self.max_seconds:g} allows"

    def knobs(self) -> Iterator[Knob]:
        """All that there are for this plan."""
        m = self.plan.worlds.m
        if self.plan.noise.space.rank == 0:
            return  # the answer is the same in all worlds: there is no noise to save
        if self._twice_is_cheap:
            yield f"{2 * m:,} worlds", f"worlds={2 * m}", 2 * m, self._twice
        elif self._splits and m >= 8 * self._parts:
            yield f"{2 * m:,} worlds", f"worlds={2 * m}", 2 * m, self._extrapolated
        if self.request.clip is None:
            for q in QUANTILES:
                how = f"clip=np.quantile(plan.outputs, ({q}, {1 - q}), axis=0)"
                yield f"outputs clipped at {100 * q:g} %", how, m, partial(self._clip, q)
        if self.outputs.table.shape[1] > 1 and not isinstance(self.request.settings.weights, (np.ndarray, list, tuple)):
            other = "relative" if (self.plan.noise.space.scale == 1).all() else "equal"
            yield f"weights {other}", f"weights={other!r}", m, partial(self._noise, weights=other)
        if self.request.settings.shape != "best":
            yield "shape best", "shape='best'", m, partial(self._noise, shape="best")
        if self.job is not None and self._affordable:
            for knob, how, measure in self._reruns:
                yield knob, how, m, measure

    @property
    def _splits(self) -> bool:
        """Whether some of the worlds are balanced, too."""
        return self.plan.worlds.paired or not isinstance(self.request.worlds, np.ndarray)

    @property
    def _twice_is_cheap(self) -> bool:
        m, n = self.plan.worlds.m, self.plan.worlds.n
        short = m * self.seconds <= self.max_seconds / 4 and 2 * m * n <= MAX_UNIT_WORLDS
        return self.job is not None and short and self._at_random

    @property
    def _at_random(self) -> bool:
        """Whether more worlds, and worlds of another kind, are drawn like those of the plan."""
        return not isinstance(self.request.worlds, np.ndarray) and self.request.drawing is None

    @property
    def _parts(self) -> int:
        """Worlds that belong together: a pair, or a partition."""
        return self.plan.worlds.share.denominator

    def _some_of(self, count: int, start: int = 0) -> tuple[Worlds, Outputs]:
        """Some worlds of the plan, whole pairs or partitions of them, and their answers."""
        all_of = self.plan.worlds
        if all_of.paired:
            half = np.arange(start // 2, (start + count) // 2)
            chosen = np.concatenate([half, all_of.m // 2 + half])
        else:
            chosen = np.arange(start, start + count)
        worlds = replace(all_of, packed=all_of.packed[chosen])
        return worlds, replace(self.outputs, table=self.outputs.table[chosen])

    def _draw(self, count: int, rate: float, strata: npt.NDArray[np.intp] | None, number: int) -> Worlds:
        assert self.job is not None
        parts = as_share(rate).denominator
        rng = np.random.default_rng([self.trials.seed, number])
        return draw_worlds(self.job.units.count, -(-count // parts) * parts, rng, rate, strata=strata)

    def _twice(self) -> Found:
        """Twice as many worlds, really simulated: those of the plan and as many again."""
        assert self.job is not None
        more = self._draw(self.plan.worlds.m, self.request.rate, self.request.strata, 1)
        added = self.request.usable(self.job.run(more))
        worlds, order = joined([self.plan.worlds, more])
        table = np.concatenate([self.outputs.table, added.table])[order]
        then = self.trials.of(replace(self.outputs, table=table), worlds, self.judge())
        return Found(self.now, then, self.seconds, self._luck(self.plan.worlds.m))

    def _luck(self, count: int) -> float:
        """Relative standard error of the noise that comes from which worlds were drawn, when there are so many."""
        size, apart = self._between_groups
        return float(max(OWN, SAFE * apart * np.sqrt(size)) / np.sqrt(count))  # it falls like the root of their number

    @cached_property
    def _between_groups(self) -> tuple[int, float]:
        """The noise in groups of the plan's worlds: their size, and the relative spread between them."""
        size = self.plan.worlds.m // GROUPS // self._parts * self._parts
        if not self._splits or size < 2 * self._parts:
            return self.plan.worlds.m, 1.0  # nothing can be said: no difference will be called clear
        groups = [self._some_of(size, size * group) for group in range(GROUPS)]
        try:
            noise = [self.trials.noise(outputs, worlds).std for worlds, outputs in groups]
        except CapError:  # in so few worlds
            return self.plan.worlds.m, 1.0
        return size, float(np.log(noise).std(ddof=1))

    def _extrapolated(self) -> Found:
        """Twice as many worlds, from what the last two doublings have brought."""
        m, parts = self.plan.worlds.m, self._parts
        sizes = [max(m // by // parts, 2) * parts for by in (4, 2)]
        before = [self.trials.of(outputs, worlds, self.judge()) for worlds, outputs in map(self._some_of, sizes)]
        first, last = (np.log(a.noise.std / b.noise.std) for a, b in ((before[0], before[1]), (before[1], self.now)))
        # A doubling brings as much as the one before at most, and less where gains are falling.
        gain = 0.0 if last <= 0 else last if first <= 0 else last * min(1.0, last / first)
        noise = replace(self.now.noise, deviations=self.now.noise.deviations * np.exp(-gain))
        then = self.trials.with_noise(noise, self.outputs, self.judge())
        luck = float(np.hypot(self._luck(m), gain / 2))
        return Found(self.now, then, self.seconds, luck, extrapolated=True)

    def _clip(self, q: float) -> Found:
        low, high = np.quantile(self.outputs.table, (q, 1 - q), axis=0)
        clipped = replace(self.outputs, table=np.clip(self.outputs.table, low, high))
        return Found(self.now, self.trials.of(clipped, self.plan.worlds, self.judge()), self.seconds)

    def _noise(self, **changed: Any) -> Found:
        return Found(self.now, self.trials.of(self.outputs, self.plan.worlds, self.judge(), **changed), self.seconds)

    def _rate(self, rate: float) -> Found:
        return self._elsewhere(rate, self.request.strata, 2)

    def _strata(self, labels: npt.ArrayLike) -> Found:
        assert self.job is not None
        return self._elsewhere(self.request.rate, self.job.units.strata(labels), 3)

    def _elsewhere(self, rate: float, strata: npt.NDArray[np.intp] | None, number: int) -> Found:
        """The same function in worlds of another kind."""
        assert self.job is not None
        _, now = self.some
        worlds = self._draw(now.worlds, rate, strata, number)
        started = time.perf_counter()
        outputs = self.request.usable(self.job.run(worlds))
        seconds = (time.perf_counter() - started) / worlds.m
        return Found(now, self.trials.of(outputs, worlds, self.judge()), seconds, self._luck(worlds.m))

    def _variant(self, make: Callable[[], Variant]) -> Found:
        """Another function in the same worlds."""
        assert self.job is not None
        worlds, now = self.some
        variant = make()
        started = time.perf_counter()
        outputs = self.request.usable(self.job.run(worlds, variant))
        seconds = (time.perf_counter() - started) / worlds.m
        then = self.trials.of(outputs, worlds, self.judge(variant.build), weights=variant.weights)
        return Found(now, then, seconds)
