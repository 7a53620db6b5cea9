"""All worlds at once or one by one: chosen before either has run, by counting and not by a clock.

The two agree to a tolerance, not to the last digit. So the choice is the same for the same data, worlds and settings,
and a run that is resumed keeps the one that it began with. It is made before the secret is drawn, from all of the pool.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import OutputError
from leakcap.ground.arrays import Floats
from leakcap.kernels import Kernel, deviation_of, forecast_of, kernel_of, tolerance_of
from leakcap.simulate.worker import PooledUnits
from leakcap.worlds import Worlds

__all__ = ["Choice", "Way", "refuse_disagreement"]

ROUNDED = 1e-6  # share of the largest output, below which an output may be the rounding of others: a variance of 0
NAME = "choice"  # in the checkpoint
logger = logging.getLogger("leakcap.simulate")


@dataclass(frozen=True)
class Choice:
    """Which way worlds are run, and why; custodian side."""

    by_kernel: bool
    reason: str

    def __str__(self) -> str:
        return f"{'all worlds at once' if self.by_kernel else 'world by world'}: {self.reason}"


@dataclass(eq=False)
class Way:
    """A function's way through its worlds, chosen when the first of them are known."""

    fn: Callable[..., Any]
    device: str | None
    memory: int
    checkpoint: Checkpoint | None
    choice: Choice | None = None

    def kernel(self, pooled: PooledUnits, worlds: Worlds) -> Kernel | None:
        """The function's kernel, if it has one and that is chosen."""
        found = kernel_of(self.fn, self.device, self.memory)
        if found is None:
            return None
        if self.choice is None:
            kept = self.checkpoint.kept(NAME) if self.checkpoint else None
            self._settle(Choice(*kept) if kept else self._chosen(pooled, worlds))
        return found if self.choice is not None and self.choice.by_kernel else None

    def refuse_kernel(self) -> None:
        """The kernel does not serve these data: it says so itself."""
        self._settle(Choice(False, "the kernel does not serve these data"))

    def _settle(self, choice: Choice) -> None:
        self.choice = choice
        if self.checkpoint:
            self.checkpoint.keep(NAME, (choice.by_kernel, choice.reason))
        logger.info("worlds are run %s", choice)

    def _chosen(self, pooled: PooledUnits, worlds: Worlds) -> Choice:
        forecast = forecast_of(self.fn)
        if self.device is not None:
            return Choice(True, "on a device")
        if forecast is None:
            return Choice(True, "by the function's kernel")
        costs = forecast(pooled.pool.data, pooled.units, worlds, self.memory)
        if costs.bytes > self.memory:
            needed, allowed = costs.bytes / 2**20, self.memory / 2**20
            return Choice(False, f"the kernel needs {needed:,.0f} MiB, and memory= allows {allowed:,.0f}")
        compared = f"the kernel counts {costs.kernel / 1e9:.3g} s of one core, the loop {costs.loop / 1e9:.3g}"
        return Choice(costs.kernel_serves(self.memory), compared)


def refuse_disagreement(
    fn: Callable[..., Any], pooled: PooledUnits, worlds: Worlds, *, rows: Floats, pair: Any
) -> None:
    """A kernel's answers must be the function's in the first pair of worlds: `pair` has their numbers and answers."""
    numbers, answers = pair
    tolerance, deviation = tolerance_of(fn), deviation_of(fn)
    if deviation is None:
        apart, size = np.abs(rows[numbers] - answers), np.maximum(np.abs(answers), np.abs(rows).max(axis=0))
        agrees = bool((apart <= tolerance * np.maximum(size, ROUNDED * size.max())).all())
    else:
        taken = [pooled.pool.take(pooled.units.rows_in(worlds.mask(number))) for number in numbers]
        found = zip(rows[numbers], answers, taken, strict=True)
        agrees = all(deviation(one, other, data) <= tolerance for one, other, data in found)
    if not agrees:
        raise OutputError("the kernel and the function give different answers: see leakcap.testing.check_kernel")
