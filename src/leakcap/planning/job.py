"""All it takes to run the function of a plan: the function, the rows, and where it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leakcap.custody.checkpoint import Checkpoint
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.cores import Machine
from leakcap.kernels.blocks import Blocks
from leakcap.modes.interface import Rerun
from leakcap.planning.offers import Variant
from leakcap.planning.request import Request
from leakcap.simulate import Outputs, Pool, Simulation
from leakcap.simulate.executors import threads_for
from leakcap.simulate.progress import Watcher
from leakcap.simulate.silence import unheard
from leakcap.simulate.warm_start import Started
from leakcap.simulate.worker import one_answer
from leakcap.worlds import Units, Worlds

__all__ = ["Job"]


@dataclass(frozen=True, eq=False)
class Job:
    """A function, the rows it is asked about, and where it runs; custodian side."""

    fn: Callable[..., Any]
    pool: Pool
    units: Units
    drop: frozenset[str]
    backend: Any
    workers: int | None
    device: str | None
    memory: int = Machine().memory  # bytes

    @property
    def in_a_world(self) -> tuple[Callable[..., Any], Pool]:
        """What runs on the rows of a world. Of an average over blocks everybody's block comes along: it stays."""
        if not isinstance(self.fn, Blocks):
            return self.fn, self.pool
        return self.fn.each_row_told, Pool((*self.pool.data, self.fn.of_rows(self.units)))

    def simulation(self, watch: Watcher, checkpoint: Checkpoint | None) -> Simulation:
        """The function, ready to be run in more and more worlds."""
        fn, pool = self.in_a_world
        return Simulation(
            fn,
            pool,
            self.units,
            self.drop,
            backend=self.backend,
            workers=self.workers,
            watch=watch,
            checkpoint=checkpoint,
            device=self.device,
            memory=self.memory,
            for_custodian=True,
        )

    def run(self, worlds: Worlds, variant: Variant | None = None) -> Outputs:
        """The answers in other worlds, or those of another function on the same rows."""
        (fn, pool), drop = self.in_a_world, self.drop
        if variant is not None:
            fn, pool, drop = variant.fn, Pool(variant.data), frozenset(variant.drop)
        with Simulation(
            fn,
            pool,
            self.units,
            drop,
            backend=self.backend,
            workers=self.workers,
            device=self.device,
            memory=self.memory,
        ) as running:
            running.add(worlds)
            return running.outputs()

    def rerun(self, request: Request, simulation: Outputs) -> Rerun:
        """The answer in one more world, clipped as requested; None where it fails in any way, or has another form."""
        limits = request.limits(simulation.table.shape[1])
        fn, pool = self.in_a_world
        asked = fn if simulation.start is None else Started(fn, simulation.start)

        def answer(mask: Bools) -> Floats | None:
            with threads_for(self.workers in (None, 1)):
                node, numbers = one_answer(asked, pool, self.units.rows_in(mask), self.drop)
            if any(simulation.node.differences(node)):
                return None
            numbers = numbers * request.scales(simulation.node)
            if limits:  # as in simulated worlds: infinite numbers too
                numbers = np.clip(numbers, *limits)
            return numbers if np.isfinite(numbers).all() else None

        # A word, a warning or an error that is heard only now would tell about the secret world.
        return lambda mask: unheard(partial(answer, mask))
