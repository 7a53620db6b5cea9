"""What each promise would cost for a plan's function and data: figures for `Plan.compare` and lines for its summary.

Noise is found as a release would find it, and no answer is drawn: what is simulated are errors. Nothing is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.caps import Membership
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.kernels.additive import Additive
from leakcap.planning.bench import MIN_ANSWERS, PromiseBench
from leakcap.planning.comparison import CLOSE, Comparison, share, size_of
from leakcap.planning.job import Job
from leakcap.planning.plans import Plan
from leakcap.planning.request import Request
from leakcap.planning.spoilers import spoilers

__all__ = ["Promises"]

MAX_QUICK = 2**18  # numbers that people bring, up to which a summary looks at another promise
QUICK_ANSWERS = 256
MAX_NAMED = 3  # outputs that a hint names


@dataclass(frozen=True, eq=False)
class Promises:
    """A plan's function and data, asked what other promises would cost; custodian side."""

    request: Request
    job: Job | None

    def compare(
        self, plan: Plan, *, bounds: Any, rows_per_unit: int | None, worlds: int, answers: int, seed: int
    ) -> Comparison:
        """See `Plan.compare`."""
        checks.count(at_least=2, worlds=worlds)
        checks.count(at_least=MIN_ANSWERS, answers=answers)
        checks.count(at_least=0, seed=seed)
        if rows_per_unit is not None:
            checks.count(rows_per_unit=rows_per_unit)
        if self.job is None:
            raise InputError("a stored plan has neither the data nor the function: compare() on the plan of plan()")
        bench = PromiseBench(plan, self.request, self.job, answers=answers, seed=seed)
        found = list(bench.of_worlds(worlds))
        found += bench.of_bits()
        found += bench.of_pool(bounds, rows_per_unit)
        if not bench.made:
            raise InputError("no promise can be compared: " + "; ".join(f"{name}: {why}" for name, why in found))
        return bench.comparison(tuple(found))

    def hints(self, plan: Plan, answer: Floats, errors: tuple[Floats, Floats]) -> tuple[str, ...]:
        """Lines for a summary: another promise that is better, an output that spoils others, some that drown."""
        spoiling = spoilers(plan, self.request, plan.labels)
        return (*self._better(plan, answer, errors), *spoiling, *_drowned(plan, answer, errors))

    def _better(self, plan: Plan, answer: Floats, errors: tuple[Floats, Floats]) -> Iterator[str]:
        """Only where it is quick: coins for everybody, in place of worlds, for a function that adds up."""
        job, request = self.job, self.request
        if job is None or request.mode != "exact" or request.clip is not None or request.rate != 0.5:
            return
        if len(plan.caps) != 1 or not isinstance(plan.caps[0], Membership):
            return
        slow = isinstance(job.fn, Additive) and job.fn.finish is not None
        if slow or job.units.count * len(answer) > MAX_QUICK:
            return
        bench = PromiseBench(plan, request, job, answers=QUICK_ANSWERS, seed=0)
        if list(bench.of_bits(MAX_QUICK)):
            return
        other, scale = bench.made["bits"], plan.noise.space.scale
        own = size_of(np.hypot(*errors), answer, scale)
        then = size_of(other.error, answer, scale)
        if CLOSE * then < own:
            yield (
                f'design="bits" would do better, and promise more: a total error of {share(then)} instead of '
                f"{share(own)}. plan.compare() shows all promises."
            )


def _drowned(plan: Plan, answer: Floats, errors: tuple[Floats, Floats]) -> Iterator[str]:
    before, noise = errors
    drowned = np.flatnonzero((noise > np.abs(answer)) & (noise > before))
    if not len(drowned):
        return
    worst = drowned[np.argsort(-noise[drowned], kind="stable")[:MAX_NAMED]]
    labels = plan.labels
    named = ", ".join(labels[i] or "the answer" for i in worst) if labels else f"number {worst[0] + 1}"
    pool = plan.run.design == "pool"
    way = "narrower bounds" if pool else "a pool_membership cap with bounds"
    yield (
        f"{len(drowned):,} of {len(answer):,} outputs drown in noise: it is larger than the answer itself. Most noise: "
        f"{named}. The way out: fewer groups or coarser bins, more people, a higher cap, or {way}. "
        "plan.compare() shows what each promise costs."
    )
