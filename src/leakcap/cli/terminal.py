"""What commands say: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from leakcap.errors import LeakcapWarning
from leakcap.ground.announce import heard_by
from leakcap.simulate.progress import Progress, Watcher, compiling_in_words, ignore

__all__ = ["Terminal", "plain", "seconds_in_words"]

STAGES = {
    "worlds": "running the function in possible worlds",
    "noise": "searching the least noise that keeps the cap",
    "certificate": "certifying it against the best attacker",
}


@dataclass(frozen=True)
class Terminal:
    """Two streams and how much to say: everything, results only (`quiet`) or one JSON object (`json`)."""

    quiet: bool = False
    json: bool = False
    out: Console = field(default_factory=lambda: Console(highlight=False))
    aside: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))

    @property
    def talks(self) -> bool:
        return not (self.quiet or self.json)

    def heading(self, text: str) -> None:
        if self.talks:
            self.out.print()
            self.out.print(Rule(Text(text, style="bold"), align="left"))

    def say(self, text: str) -> None:
        if self.talks:
            self.out.print(Padding(text.replace(" %", "\u00a0%"), (0, 2)))

    def note(self, text: str) -> None:
        """Something for the person at the terminal, not part of the result."""
        if self.talks:
            self.aside.print(Text(f"  {text}", style="dim"))

    def tell(self, text: str) -> None:
        """Something that must be said, also where little is."""
        if text:
            self.aside.print(Text(f"  {text}", style="yellow"))

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Warnings of ours as sentences, also where little is said; those of others stay as they are."""
        show = warnings.showwarning

        def told(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, LeakcapWarning):
                self.aside.print(Text(f"  warning: {message}", style="yellow"))
            else:
                show(message, category, *place, **more)

        with warnings.catch_warnings():
            warnings.simplefilter("always", LeakcapWarning)
            warnings.showwarning = told
            yield

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
        if not self.talks:
            return
        table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
        for i, name in enumerate(columns):
            table.add_column(name, justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self.out.print(Padding(table, (1 if title else 0, 2, 0, 2)))

    def result(self, facts: dict[str, Any]) -> None:
        """The one object that `--json` prints."""
        if self.json:
            import json

            print(json.dumps(facts, indent=1, ensure_ascii=False))

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Bars where somebody looks, lines now and then in a log, nothing if nobody asked."""
        if not self.talks:
            yield ignore
            return
        with heard_by(lambda seconds: self.note(compiling_in_words(seconds))):
            if self.aside.is_terminal:
                with self._bars() as watch:
                    yield watch
            else:
                yield _Lines(self).see

    @contextmanager
    def _bars(self) -> Iterator[Watcher]:
        columns = (
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[left]}[/dim]"),
        )
        with Bars(*columns, console=self.aside) as bars:
            tasks: dict[str, Any] = {}

            def see(state: Progress) -> None:
                if state.stage not in tasks:
                    for done in tasks.values():
                        bars.update(done, total=1, completed=1, left="")
                    if state.stage == "worlds":
                        self.note(forecast_in_words(state))
                    tasks[state.stage] = bars.add_task(STAGES[state.stage], total=None, left="")
                left = _left(state) if 0 < state.done < state.total else ""
                bars.update(tasks[state.stage], total=state.total or None, completed=state.done, left=left)

            yield see


class _Lines:
    """A line at every stage, and one every ten seconds."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._stage, self._last_line = terminal, "", 0.0

    def see(self, state: Progress) -> None:
        now = time.monotonic()
        if state.stage != self._stage:
            if state.stage == "worlds":
                self._terminal.note(forecast_in_words(state))
            self._stage, self._last_line = state.stage, now
            self._terminal.note(STAGES[state.stage])
        elif now - self._last_line > 10 and state.total:
            self._last_line = now
            self._terminal.note(f"{state.stage}: {state.done:,} of {state.total:,}, {_left(state)}")
            sys.stderr.flush()


def _left(state: Progress) -> str:
    """How long it will take, how fast it goes, what has travelled."""
    return ", ".join(filter(None, [f"about {seconds_in_words(state.seconds_left)} left", state.pace]))


def forecast_in_words(state: Progress) -> str:
    """What the simulation will cost, and what was done before."""
    forecast = state.forecast
    further = forecast.certificate_seconds
    then = "noise and certificate" + (f", about {seconds_in_words(further)}" if further else "")
    if state.done == state.total and state.resumed < state.total:
        return f"{forecast.worlds:,} worlds at once took {seconds_in_words(forecast.seconds)}; now {then}"
    cost = (
        f"forecast: {forecast.worlds:,} worlds of {seconds_in_words(forecast.seconds_per_world)} on "
        f"{forecast.workers} worker{'s' if forecast.workers > 1 else ''}, about "
        f"{seconds_in_words(state.seconds_left)}; then {then}"
    )
    if state.resumed > 2:
        return f"going on: {state.resumed:,} of {state.total:,} worlds are done; {cost}"
    return cost


def plain(words: str) -> str:
    """Words of others, for `say`: neither markup nor control characters."""
    return escape(printable(words))


def printable(words: str) -> str:
    """Without control characters: a terminal would obey them."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def seconds_in_words(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 0.95:
        return f"{1000 * seconds:.0f} ms" if seconds > 0.0095 else f"{max(1000 * seconds, 0.1):.1g} ms"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} hours"
