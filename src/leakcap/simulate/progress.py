"""How far a plan is, and how long it will take. Plain records; showing them is the caller's business."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

from leakcap.ground.announce import heard_by

__all__ = ["STAGES", "Forecast", "Progress", "Watcher", "compiling_in_words", "ignore", "watching"]

STAGES = ("worlds", "noise", "certificate")  # run the function everywhere, search the noise, certify it
PATIENCE = 3.0  # seconds of a plan that nobody needs to be told about unless they ask


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

    @property
    def whole_seconds(self) -> float:
        """Of the whole plan, as far as a forecast was asked for."""
        return self.seconds + self.certificate_seconds

    def __str__(self) -> str:
        then = f"; noise and certificate about {self.certificate_seconds:.2g} s" if self.certificate_seconds else ""
        return (
            f"{self.worlds:,} worlds at {self.seconds_per_world:.3g} s on {self.workers} worker(s): "
            f"about {self.seconds:.3g} s, {self.output_bytes / 2**20:.3g} MiB of outputs{then}"
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
    moved: int = 0  # bytes to and from workers of a cluster

    @property
    def per_second(self) -> float:
        """Steps that are done in a second; 0 where that is not known yet."""
        return (self.done - self.resumed) / self.seconds if self.seconds > 0 and self.done > self.resumed else 0.0

    @property
    def pace(self) -> str:
        """How fast it goes, in words: worlds a second, and what has travelled; nothing where it is not known."""
        told = [f"{self.per_second:,.3g} {self.stage}/s"] if self.per_second and self.stage == "worlds" else []
        return ", ".join([*told, *([f"{self.moved / 1e6:,.3g} MB moved"] if self.moved else [])])

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
    """The caller's own function; a bar on standard error for `True`, and for None where somebody looks and waits."""
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not _somebody_looks()):
        yield ignore
    else:
        shown = _Shown(patience=0.0 if progress else PATIENCE, bar=bool(progress) or sys.stderr.isatty())
        try:
            with heard_by(shown.compiling):
                yield shown
        finally:
            shown.close()


def _somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _Shown:
    """A bar, or in a notebook a line for each stage, from when the plan is known to take longer than the patience."""

    def __init__(self, patience: float, bar: bool) -> None:
        self._patience, self._began = patience, monotonic()
        self._bar, self._stage = (_Bar() if bar else None), ""

    def __call__(self, state: Progress) -> None:
        if max(state.forecast.whole_seconds, monotonic() - self._began) < self._patience:
            return
        if self._bar:
            self._bar.show(state)
        elif state.stage != self._stage:
            print(f"leakcap: {state.stage}; {state.forecast}", file=sys.stderr)
        self._stage = state.stage

    def compiling(self, seconds: float) -> None:
        words = compiling_in_words(seconds)
        if self._bar:
            self._bar.say(words)
        else:
            print(f"leakcap: {words}", file=sys.stderr)

    def close(self) -> None:
        if self._bar:
            self._bar.close()


def compiling_in_words(seconds: float) -> str:
    """What is told before loops are compiled."""
    return f"compiling inner loops, once for this version: about {seconds:.0f} s"


class _Bar:
    """A bar of rich on standard error, which appears when there is something to show."""

    def __init__(self) -> None:
        self._rich: Any = None
        self._task: Any = None

    def show(self, state: Progress) -> None:
        facts = {"completed": state.done, "total": state.total or None, "pace": state.pace}
        self._begun().update(self._task, description=state.stage, **facts)

    def say(self, words: str) -> None:
        self._begun().update(self._task, description=words)

    def close(self) -> None:
        if self._rich is not None:
            self._rich.stop()

    def _begun(self) -> Any:
        if self._rich is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichBar

            pace = TextColumn("{task.fields[pace]}")
            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), pace
            self._rich = RichBar(*columns, console=Console(file=sys.stderr), transient=True)
            self._rich.start()
            self._task = self._rich.add_task("worlds", total=None, pace="")
        return self._rich
