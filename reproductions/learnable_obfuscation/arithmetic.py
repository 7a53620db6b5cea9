"""What is printed, put right: the nats behind each figure, by the paper's own conversion, and what these nats do bound;
and how many draws Theorem 6 asks for.

The paper turns nats about one member into a failure of positive identification as if a claim "sampled" were a guess
with the prior q. It is not: a release that tells everything about the bit carries no more than the bit's entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from leakcap import convert
from leakcap.obfuscation.comparators import entropy_of_bit
from reproductions.learnable_obfuscation.published import COLUMNS, POOL, TABLES, Setting

__all__ = [
    "PrintedMember",
    "Trials",
    "least_trials",
    "nats_behind",
    "papers_failure",
    "printed_members",
    "right_failure",
    "trials_of",
]


def nats_behind(failure: float, prior: float) -> float:
    """Nats from which the paper's conversion gives this failure: the divergence of the success from the prior."""
    pairs = ((1 - failure, prior), (failure, 1 - prior))
    return sum(p * math.log(p / q) for p, q in pairs if p > 0)


def papers_failure(nats: float, rate: float) -> float:
    """The paper's conversion, which bounds nothing about one member: a guess whose prior is the rate."""
    return 1 - float(convert.posterior(nats, rate))


def right_failure(nats: float, rate: float) -> float:
    """Least share of wrong ones among claims "this row was sampled" that are as frequent as sampled rows are."""
    return 1 - float(convert.precision(nats, rate, rate))


@dataclass(frozen=True)
class PrintedMember:
    """One cell of Table 3 or 5 as it is printed."""

    table: int
    setting: Setting
    noise: float
    failure: float

    @property
    def rate(self) -> float:
        return self.setting[0] / POOL

    @property
    def nats(self) -> float:
        return nats_behind(self.failure, self.rate)

    @property
    def entropy(self) -> float:
        """Of the bit whether the row was sampled: nothing tells more about it."""
        return entropy_of_bit(self.rate)


def printed_members() -> Iterator[PrintedMember]:
    """All 36 cells."""
    for table in (3, 5):
        for setting, row in TABLES[table].items():
            for noise, cell in row.items():
                if cell.failure is not None:
                    yield PrintedMember(table, setting, noise, cell.failure)


@dataclass(frozen=True)
class Trials:
    """Decimal logarithms of the draws after which a mean over them is known within some nats, by Theorem 6.

    Attributes:
        nine: (9) as printed; holds, although a step of its proof does not.
        nine_mended: with the factor of (32) put right.
        nine_traces: from the diagonal alone, which is all that it needs.
        ten: (10) as printed; two steps of its proof are false.
        ten_mended: with the factor of (32) and the power of (34) put right.
        ten_tangent: by the tangent of the log-determinant in place of (34).
    """

    nine: float
    nine_mended: float
    nine_traces: float
    ten: float
    ten_mended: float
    ten_tangent: float


def trials_of(setting: Setting, noise: float, *, nats: float, gamma: float, columns: int = COLUMNS) -> Trials:
    """For one member (9) and the whole sample (10), as the proof page on nats has them.

    Args:
        setting: (n, m, k).
        noise: standard deviation.
        nats: the error that is allowed.
        gamma: how often it may be exceeded.
        columns: of a released row.
    """
    n, m, _ = setting
    q, power = n / POOL, 1 / noise**2

    def nine(reach: float) -> float:
        span = columns * q * (1 - q) * m * (1 + reach * power)
        return math.log10(math.log(2 / gamma) / 2) + 2 * math.log10(span / nats)

    def ten(reach: float, lost: Callable[[float], float]) -> Callable[[float], float]:
        def error(log_trials: float) -> float:
            log_alpha = math.log(32 * math.log(6 * m / gamma)) / 2 + math.log1p(reach * power) - log_trials / 2
            mean = math.sqrt(2 * math.log(3 / gamma)) * m * math.log1p(reach * power) * math.exp(-log_trials / 2)
            return columns / 2 * (lost(log_alpha) + mean)

        return error

    def printed(log_alpha: float) -> float:
        return _log1p_exp(math.log(m) + _log_sum(math.log(m) / 2, log_alpha) + log_alpha + m * math.log(power))

    def mended(log_alpha: float) -> float:
        return _log1p_exp(math.log(m) + (m - 1) * _log_sum(math.log1p(m * power), log_alpha) + log_alpha)

    def tangent(log_alpha: float) -> float:
        return m * math.exp(min(log_alpha, 700.0))

    return Trials(
        nine=nine(math.sqrt(m)),
        nine_mended=nine(m),
        nine_traces=nine(1),
        ten=least_trials(ten(math.sqrt(m), printed), nats),
        ten_mended=least_trials(ten(m, mended), nats),
        ten_tangent=least_trials(ten(m, tangent), nats),
    )


def least_trials(error: Callable[[float], float], nats: float) -> float:
    """Decimal logarithm of the least number of draws, given the error after a number with this natural logarithm."""
    low, high = 0.0, 1.0
    while error(high) > nats:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if error(middle) <= nats else (middle, high)
    return high / math.log(10)


def _log1p_exp(value: float) -> float:
    return value + math.log1p(math.exp(-value)) if value > 0 else math.log1p(math.exp(value))


def _log_sum(first: float, second: float) -> float:
    """`log(e^first + e^second)`."""
    return max(first, second) + math.log1p(math.exp(-abs(first - second)))
