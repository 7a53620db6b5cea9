"""What was found about the knobs of a plan; custodian side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leakcap.errors import LeakcapError

__all__ = ["Suggestion", "Suggestions"]

CLEAR = 2.0  # standard errors that a difference must exceed to be called one
WIDTH = 100


@dataclass(frozen=True)
class Suggestion:
    """One knob: the expected utility with and without it, both measured in the same way."""

    knob: str
    how: str  # what to plan with
    now: float
    then: float
    error: float  # standard error of the difference
    noise: float  # total noise with it, as a multiple of that without
    worlds: int  # in which both sides were measured
    seconds: float  # of simulation for a whole plan with it
    extrapolated: bool = False

    @property
    def gain(self) -> float:
        return self.then - self.now

    @property
    def verdict(self) -> str:
        """What may be said: differences within two standard errors are none."""
        if abs(self.gain) <= CLEAR * self.error:
            return "no clear difference"
        return "better" if self.gain > 0 else "worse"


@dataclass(frozen=True)
class Suggestions:
    """All knobs that were tried, what promises most first; custodian side: figures may tell about the data."""

    utility: str
    tried: tuple[Suggestion, ...]
    left_out: tuple[tuple[str, str], ...]  # a knob, and why it was not tried
    releases: int

    @property
    def best(self) -> Suggestion | None:
        """The knob that clearly buys most, or None."""
        return next((one for one in self.tried if one.verdict == "better"), None)

    @property
    def sentence(self) -> str:
        """The best one in plain words."""
        best = self.best
        if best is None:
            return (
                "No knob that was tried brings a clear gain: what is left are a looser cap, fewer outputs, "
                "or more people."
            )
        told = " (extrapolated from fewer worlds, not measured)" if best.extrapolated else ""
        return (
            f"Most would be bought by {best.knob}{told}: expected {self.utility} {_figure(best.now)} -> "
            f"{_figure(best.then)}, with {best.noise:.2g} times the noise. Plan again with {best.how}."
        )

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.tried)

    def __len__(self) -> int:
        return len(self.tried)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        best = self.best.knob if self.best else "none clear"
        return f"Suggestions(CUSTODIAN ONLY, {len(self.tried)} knobs tried, best: {best})"

    def __reduce__(self) -> Any:
        raise LeakcapError("suggestions are custodian-side and are not pickled; keep str(suggestions) if you need them")

    def _lines(self) -> Iterator[str]:
        yield f"CUSTODIAN ONLY: {self.utility}, now and with one knob changed. Nothing was released."
        yield f"{'knob':<28}{'now -> then':>20}{'change':>22}{'noise':>8}{'worlds':>8}{'time':>9}"
        for one in self.tried:
            pair = f"{_figure(one.now)} -> {_figure(one.then)}"
            change = f"{one.gain:+.2g} +- {CLEAR * one.error:.2g}"
            row = (
                f"{one.knob:<28}{pair:>20}{change:>22}{_times(one.noise):>8}{one.worlds:>8,}{_duration(one.seconds):>9}"
            )
            yield f"{row}  {one.verdict}{' (extrapolated)' if one.extrapolated else ''}"
        yield ""
        yield from textwrap.wrap(self.sentence, WIDTH)
        yield from textwrap.wrap(
            f"Means over {self.releases} simulated releases, the same random numbers on both sides; +- is two "
            "standard errors. 'worlds': in how many both sides were measured; 'time': to simulate a whole plan. A "
            "setting that was chosen by looking at the pool must be named in pool_public= of the next plan.",
            WIDTH,
        )
        for knob, why in self.left_out:
            yield from textwrap.wrap(f"Not tried: {knob}: {why}", WIDTH, subsequent_indent="  ")


def _figure(value: float) -> str:
    return f"{value:.4f}" if 1e-2 <= abs(value) < 10 else f"{value:.4g}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} x" if ratio < 100 else f"{ratio:.2g} x"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
