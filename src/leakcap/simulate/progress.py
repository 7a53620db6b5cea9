"""How far a plan is, and how long it will take. Plain records; showing them is the caller's business."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, TypeAlias

from leakcap.ground.announce import heard_by

__all__ = ["STAGES", "Forecast", "Progress", "Watcher", "compiling_in_words", "ignore", "watching"]

COUNTED = ("worlds", "rows", "shards")  # stages whose steps are things; those of others are shares
STAGES = ("worlds", "noise", "certificate")  # run the function everywhere, search the noise, certify it
OFTEN = 0.5  # seconds between two lines of a notebook
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
    rows: int = 0  # that were worked on in all steps of this run together, about; 0 where steps are no work on rows

    @property
    def rows_per_second(self) -> float:
        """Rows that are worked on in a second; 0 where that is not known yet."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def per_second(self) -> float:
        """Steps that are done in a second; 0 where that is not known yet."""
        return (self.done - self.resumed) / self.seconds if self.seconds > 0 and self.done > self.resumed else 0.0

    @property
    def pace(self) -> str:
        """How fast it goes, in words: steps and rows a second, what has travelled; nothing where it is not known."""
        told = [f"{self.per_second:,.3g} {self.stage}/s"] if self.per_second and self.stage in COUNTED else []
        told += [f"{self.rows_per_second:,.3g} rows/s"] if self.rows and self.stage != "rows" else []
        return ", ".join([*told, *([f"{self.moved / 1e6:,.3g} MB moved"] if self.moved else [])])

    @property
    def in_words(self) -> str:
        """All of it in one line."""
        count = f"{self.done:,}" + (f" of {self.total:,}" if self.total else "") if self.stage in COUNTED else ""
        left = self.seconds_left
        soon = f"about {left:,.0f} s left" if self.total and self.done < self.total and left < math.inf else ""
        return ", ".join(filter(None, [f"{self.stage} {count}".strip(), self.pace, soon]))

    @property
    def seconds_left(self) -> float:
        if not self.total and self.stage not in STAGES:
            return math.inf  # nobody knows how much there is
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
    told: Watcher = ignore
    if callable(progress):
        told, progress = progress, getattr(progress, "beside", False)
    if progress is False or (progress is None and not _somebody_looks()):
        yield told
        return
    shown = _Shown(patience=0.0 if progress else PATIENCE, kind=_kind_shown())
    try:
        with heard_by(shown.compiling):
            yield shown if told is ignore else partial(_both, told, shown)
    finally:
        shown.close()


def _both(one: Watcher, other: Watcher, state: Progress) -> None:
    one(state)
    other(state)


def _somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _Shown:
    """Something that shows, from when the run is known to take longer than the patience."""

    def __init__(self, patience: float, kind: _Bar | _Cell) -> None:
        self._patience, self._began, self._kind = patience, monotonic(), kind

    def __call__(self, state: Progress) -> None:
        if max(state.forecast.whole_seconds, monotonic() - self._began) >= self._patience:
            self._kind.show(state)

    def compiling(self, seconds: float) -> None:
        self._kind.say(compiling_in_words(seconds))

    def close(self) -> None:
        self._kind.close()


def _kind_shown() -> _Bar | _Cell:
    """A line of its own in a notebook; a bar in a terminal, and wherever else somebody asked for it."""
    return _Cell() if "ipykernel" in sys.modules and not sys.stderr.isatty() else _Bar()


class _Cell:
    """In a notebook: one line under the cell, written anew as the run goes on."""

    def __init__(self) -> None:
        self._line: Any = None
        self._shown, self._stage = -math.inf, ""

    def show(self, state: Progress) -> None:
        if state.stage == self._stage and state.done != state.total and monotonic() - self._shown < OFTEN:
            return
        new, self._shown, self._stage = state.stage != self._stage, monotonic(), state.stage
        self._say(f"{state.in_words}; {state.forecast}" if new and state.forecast.worlds else state.in_words)

    def say(self, words: str) -> None:
        self._say(words)

    def close(self) -> None:
        """The last line stays."""

    def _say(self, words: str) -> None:
        from IPython.display import display

        content = {"text/plain": f"leakcap: {words}"}
        if self._line is None:
            self._line = display(content, raw=True, display_id=True)
        else:
            self._line.update(content, raw=True)


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
