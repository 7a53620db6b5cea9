"""For one person: what gives a function's answers after swaps, told by the function itself or by running it again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from leakcap.errors import InputError, OutputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.kernels.blocks import Blocks
from leakcap.kernels.contributions import Contributions, contributions, is_a_sum
from leakcap.kernels.swapping import Swapper, swapped_masks, swapper_of
from leakcap.modes.swapped import Swapped
from leakcap.planning.job import Job
from leakcap.planning.request import Request
from leakcap.simulate import Outputs
from leakcap.simulate.warm_start import Started
from leakcap.simulate.worker import one_answer
from leakcap.worlds import Worlds

__all__ = ["OnePerson", "swapped_by"]

COMPARED_WORLDS, COMPARED_SWAPS = 4, 8
SAME = 1e-9  # how far a swapper's answers may be from the function's, relative to the largest in any world
MAX_RUNS = 2**22  # of a function that is run for every swap
CAREFUL = 1000  # times the largest difference seen


@dataclass(frozen=True, eq=False)
class OnePerson:
    """How one person is protected in mode "individual": as part of a "sum", by "swaps", or by worlds drawn "alike".

    The last serves any function. One that says nothing about swaps is run for each of them only if `draws` says so.
    """

    way: str = ""  # empty in other modes
    brings: Contributions | None = None  # what everybody adds to a sum

    @classmethod
    def of(cls, job: Job, mode: str, design: str, *, draws: int | None, clipped: bool, mechanism: str) -> OnePerson:
        """The way for a function: the surest that it allows."""
        if mode != "individual":
            return cls()
        brings = None
        if is_a_sum(job.fn) or (design == "bits" and not isinstance(job.fn, Blocks)):
            brings = contributions(job.fn, job.pool.data, job.units)
        if design == "bits" or (brings is not None and brings.finish is None):
            if clipped or draws is not None:
                raise InputError(
                    "sums over units take neither clip nor draws: bound the rows instead; nothing is sampled"
                )
            return cls("sum", brings)
        if mechanism != "gaussian":
            raise InputError(
                f"mechanism={mechanism!r} is for sums over people: for other functions, mode='individual' is proved "
                "for Gaussian noise alone. Leave mechanism out"
            )
        if swapper_of(job.fn, job.pool.data, job.units) is not None:
            return cls("swaps")
        if draws is None:
            return cls("alike")
        runs = job.units.count * draws // 8
        if runs > MAX_RUNS:
            raise InputError(
                f"swaps of {job.units.count:,} people would take about {runs:,} runs of the function: leave draws out, "
                "then some thousand runs bound everybody"
            )
        return cls("swaps")


def swapped_by(job: Job, request: Request, simulation: Outputs, worlds: Worlds) -> Swapped:
    """Answers after swaps: by what the function offers, which must agree with the function, or by its runs."""
    requested = partial(
        _AsRequested, scale=request.scales(simulation.node), limits=request.limits(simulation.table.shape[1])
    )
    running, made = requested(_Rerunning(job, simulation)), swapper_of(job.fn, job.pool.data, job.units)
    if made is None:
        return Swapped(running, True, request.strata, np.zeros(simulation.table.shape[1]))
    offered = requested(made)
    off = _rounding(offered, running, worlds, np.abs(simulation.table).max(axis=0))
    return Swapped(offered, False, request.strata, off)


@dataclass(frozen=True, eq=False)
class _Rerunning:
    """Runs the function in every world; NaN where it fails, or where its answer has another form."""

    job: Job
    simulation: Outputs

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        return np.stack([self._answer(world) for world in (mask, *swapped_masks(mask, out, into))])

    def _answer(self, mask: Bools) -> Floats:
        start, job = self.simulation.start, self.job
        fn, pool = job.in_a_world
        asked = fn if start is None else Started(fn, start)
        size = self.simulation.table.shape[1]
        try:
            node, numbers = one_answer(asked, pool, job.units.rows_in(mask), job.drop)
        except OutputError:
            return np.full(size, np.nan)
        return np.full(size, np.nan) if any(self.simulation.node.differences(node)) else numbers


@dataclass(frozen=True, eq=False)
class _AsRequested:
    """Answers on the scale of the whole pool, clipped."""

    swapper: Swapper
    scale: float | Floats
    limits: tuple[Floats, Floats] | None

    def answers(self, mask: Bools, out: Ints, into: Ints) -> Floats:
        found = self.swapper.answers(mask, out, into) * self.scale
        return np.clip(found, *self.limits) if self.limits else found


def _rounding(offered: Swapper, running: Swapper, worlds: Worlds, largest: Floats) -> Floats:
    """How far a swapper's numbers are from the function's own, on the careful side, from some swaps; or a refusal.

    The same swaps each time. Both differ by rounding, whose size is much the same in all worlds.
    """
    rng, seen = np.random.default_rng(0), np.zeros(len(largest))
    for world in range(min(COMPARED_WORLDS, worlds.m)):
        mask = worlds.mask(world)
        out = rng.choice(np.flatnonzero(mask), COMPARED_SWAPS)
        into = rng.choice(np.flatnonzero(~mask), COMPARED_SWAPS)
        found, expected = offered.answers(mask, out, into), running.answers(mask, out, into)
        if found.shape != expected.shape:
            raise OutputError("the function's swapper gives answers of another length than the function")
        seen = np.maximum(seen, np.abs(found - expected).max(axis=0))
    if not (seen <= SAME * np.maximum(largest, 1e-300)).all():
        raise OutputError("what the function says about swaps is not what it answers: correct its swapper")
    return np.asarray(CAREFUL * np.maximum(seen, 2.0**-52 * largest))
