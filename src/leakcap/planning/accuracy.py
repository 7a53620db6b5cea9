"""How far a released answer is from the answer on the whole pool: expected errors and error bars."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakcap.certificates.display import Displayed
from leakcap.certificates.release import Certificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.noise.laws import NORMAL, Law

__all__ = [
    "LEVELS",
    "Expected",
    "Summary",
    "half_width",
    "half_widths",
    "interval_at",
    "mean_and_spread",
    "noise_widths",
    "round_up",
    "worlds_drawn",
]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
WIDTH = 100
HEADS = ("whole pool", "error", "halving", "noise")


@dataclass(frozen=True)
class Expected:
    """What a score of the released answer would be, over many simulated releases; custodian side."""

    mean: float
    spread: float  # standard deviation between releases
    without_noise: float  # the mean over worlds, of answers as they are
    releases: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} +- {self.spread:.2g} (without noise {self.without_noise:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Displayed):
    """Expected errors per output, against the answer on the whole pool; custodian side."""

    names: tuple[str, ...]
    answer: Floats
    halving: Floats
    noise: Floats
    certificate: Certificate
    forecast: str
    seconds: float = 0.0  # that the whole plan took, compiling included
    hints: tuple[str, ...] = ()  # where another promise would be better, or outputs drown in noise
    _custodian_only: ClassVar[bool] = True

    @property
    def error(self) -> Floats:
        """Root-mean-square error of each output."""
        return np.sqrt(self.halving**2 + self.noise**2)

    @property
    def noise_share(self) -> Floats:
        """The part of the squared error that is due to noise."""
        total = np.maximum(self.error**2, np.finfo(float).tiny)
        return self.noise**2 / total

    def __repr__(self) -> str:
        worst = int(np.argmax(self.noise_share)) if len(self.answer) else 0
        rest = "between inputs" if self.certificate.of_inputs else "halving"
        return (
            f"Summary of {len(self.answer):,} expected errors, for the custodian alone\n"
            f"  {100 * float(np.mean(self.noise_share)):.0f} % of the squared error is noise, the rest {rest}; most "
            f"noise: {self.names[worst]}\n"
            "  print(summary) lists them, .to_html() shows them"
        )

    def __str__(self) -> str:
        names = [name[:47] for name in self.names[:20]]
        width = max(32, *(len(name) + 1 for name in names))
        heads = ("mean", "together", "spread", "noise") if self.certificate.of_inputs else HEADS
        lines = [f"{'output':<{width}}{heads[0]:>14}" + "".join(f"{head:>12}" for head in heads[1:])]
        for i, name in enumerate(names):
            lines.append(
                f"{name:<{width}}{self.answer[i]:>14.5g}{self.error[i]:>12.3g}"
                f"{self.halving[i]:>12.3g}{self.noise[i]:>12.3g}"
            )
        if len(self.answer) > 20:
            lines.append(f"... and {len(self.answer) - 20:,} more outputs")
        if self.certificate.noise is not None:
            lines.append(f"noise: {self.certificate.noise}")
        lines.append(f"simulation: {self.forecast}")
        lines.append(f"whole plan, noise and certificate included: {self.seconds:.2g} s")
        if self.certificate.of_inputs:
            lines.append("mean and spread: of the answers on all inputs, by their chances")
        for hint in self.hints:
            lines += textwrap.wrap(hint, WIDTH)
        return "\n".join(lines)


def mean_and_spread(outputs: Floats, pool: Floats | None, shares: Floats | None) -> tuple[Floats, Floats]:
    """The answer on the whole pool, or the mean answer where there is none, and how far worlds are from it."""
    centre = np.average(outputs, axis=0, weights=shares) if pool is None else pool
    return centre, np.sqrt(np.average((outputs - centre) ** 2, axis=0, weights=shares))


def worlds_drawn(m: int, shares: Floats | None, releases: int, seed: int) -> tuple[Ints, Ints]:
    """Worlds for simulated releases by their chances, and how often each is drawn."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(m, size=releases) if shares is None else rng.choice(m, size=releases, p=shares)
    worlds, times = np.unique(drawn, return_counts=True)
    return worlds, times


def noise_widths(noise: Floats, law: Law) -> tuple[tuple[float, Floats], ...]:
    """Half-widths, for all levels, of intervals that allow for the noise alone."""
    nothing = np.zeros((1, len(noise)))
    return tuple((level, half_width(nothing, noise, level, law)) for level in LEVELS)


def half_width(offsets: Floats, noise: Floats, level: float, law: Law = NORMAL) -> Floats:
    """Half-width that covers the whole-pool answer with probability `level`, rounded up to two digits.

    `noise` are deviations of the noise in each output, `law` its law along any direction.
    """
    m, d = offsets.shape
    if m * d <= 2**22:
        return _least_that_covers(offsets, noise, level, law)
    # Many outputs: each error gets half of what may go wrong.
    apart = np.quantile(np.abs(offsets), 0.5 + level / 2, axis=0, method="higher")
    return round_up(apart + noise * law.quantile(1 - (1 - level) / 4))


def interval_at(numbers: Floats, widths: tuple[tuple[float, Floats], ...], level: float) -> tuple[Floats, Floats]:
    """Ends of the narrowest kept interval of at least this level."""
    checks.fraction(level=level)
    for known, width in widths:
        if known >= level:
            return numbers - width, numbers + width
    raise InputError(f"intervals are kept for levels up to {widths[-1][0]}")


def half_widths(outputs: Floats, pool: Floats, noise: Floats, law: Law) -> tuple[tuple[float, Floats], ...]:
    """Those of every level: outputs of all worlds about the answer on the whole pool, and noise."""
    widths = np.empty((len(LEVELS), len(pool)))
    for start in range(0, len(pool), 2**16):  # outputs may be many: no second copy of them all
        part = slice(start, start + 2**16)
        offsets = outputs[:, part] - pool[part]
        for level, width in zip(LEVELS, widths, strict=True):
            width[part] = half_width(offsets, noise[part], level, law)
    return tuple(zip(LEVELS, widths, strict=True))


def _least_that_covers(offsets: Floats, noise: Floats, level: float, law: Law) -> Floats:
    """The least number of two digits that does: they are few, and each that is tried costs a look at all worlds."""
    alone = noise * law.quantile(0.5 + level / 2)  # what noise needs where nothing else is off
    most = np.abs(offsets).max(axis=0) + alone
    spread = np.where(noise > 0, noise, 1e-300)
    low, high = _place(np.maximum(alone, most * 2.0**-40)), _place(most) + 1
    # If halving were normal too: mostly right to a digit, so that steps from there find it sooner than halves of all.
    likely = _place(np.sqrt((offsets**2).mean(axis=0) + noise**2) * NORMAL.quantile(0.5 + level / 2))
    asked, step = np.clip(likely, low + 1, np.maximum(high - 1, low + 1)), 1
    unsettled = np.flatnonzero(high - low > 1)
    while len(unsettled):
        width, off, wide = _two_digits(asked[unsettled]), offsets[:, unsettled], spread[unsettled]
        short = (law.below((width - off) / wide) - law.below((-width - off) / wide)).mean(axis=0) < level
        low[unsettled[short]], high[unsettled[~short]] = asked[unsettled[short]], asked[unsettled[~short]]
        unsettled, step = unsettled[(high - low > 1)[unsettled]], 2 * step
        asked = _next(asked, low, high, step)
    return np.where(most > 1e-290, _two_digits(high), 0.0)


def _next(asked: Ints, low: Ints, high: Ints, step: int) -> Ints:
    """The next place to ask between two: a step from the last one, unless the middle is nearer."""
    middle = (low + high) // 2
    return np.where(asked == low, np.minimum(asked + step, middle), np.maximum(asked - step, middle))


def _place(width: Floats) -> Ints:
    """Which of the numbers of two digits, in order, is the largest that is not above `width`."""
    positive = np.maximum(width, 1e-290)
    power = np.floor(np.log10(positive)).astype(np.int64)
    digits = np.floor(positive / 10.0 ** (power - 1)).astype(np.int64)
    return np.asarray(90 * power + digits - 10)


def _two_digits(place: Ints) -> Floats:
    power, digits = np.divmod(place, 90)
    return np.asarray((digits + 10) * 10.0 ** (power - 1))


def round_up(width: Floats) -> Floats:
    positive = np.maximum(width, 1e-290)
    unit = 10.0 ** (np.floor(np.log10(positive)) - 1)
    return np.where(width > 1e-290, np.ceil(positive / unit) * unit, 0.0)
