"""How far a plan is, and how long it will take. Plain records; showing them is the caller's business."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["STAGES", "Forecast", "Progress", "Watcher", "ignore", "watching"]

STAGES = ("worlds", "noise", "certificate")  # run the function everywhere, search the noise, certify it


@dataclass(frozen=True)
class Forecast:
    """What a plan will cost: the simulation, from one timed world, and noise and certificate after it."""

    worlds: int
    workers: int
    seconds_per_world: float
    output_bytes: int
    certificate_seconds: float = 0.0
    way: str = ""  # all worlds at once or one by one, and why; only where there was a choice

    @property
    def seconds(self) -> float:
        return self.worlds * self.seconds_per_world / self.workers

    def __str__(self) -> str:
        return (
            f"{self.worlds:,} worlds at {self.seconds_per_world:.3g} s on {self.workers} worker(s): "
            f"about {self.seconds:.3g} s, {self.output_bytes / 2**20:.3g} MiB of outputs"
            + (f"; {self.way}" if self.way else "")
        )


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of a stage; `total` is 0 where nobody knows. `resumed` worlds were done before."""

    done: int
    total: int
    seconds: float
    forecast: Forecast
    resumed: int = 0
    stage: str = "worlds"

    @property
    def seconds_left(self) -> float:
        if self.done <= self.resumed:
            left = self.total - self.done
            return self.forecast.seconds * left / max(self.total, 1) if self.stage == "worlds" else float("inf")
        return self.seconds / (self.done - self.resumed) * (self.total - self.done)


Watcher: TypeAlias = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Watch nothing."""


@contextmanager
def watching(progress: bool | Watcher | None) -> Iterator[Watcher]:
    """The caller's own function, a bar on standard error for `True`, or nothing."""
    if callable(progress):
        yield progress
    elif not progress:
        yield ignore
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichBar

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with RichBar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
            task = bar.add_task("worlds", total=None)

            def show(state: Progress) -> None:
                bar.update(task, description=state.stage, completed=state.done, total=state.total or None)

            yield show
