"""Upper bounds on means of bounded variables, and how the failure probability is shared out.

Empirical Bernstein (Maurer and Pontil 2009): for independent variables in an interval of
length R, the mean of their expectations is at most
`mean + sqrt(2 V ln(2/g) / K) + 7 R ln(2/g) / (3 (K-1))` with probability 1 - g. Proof page: confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["Attempts", "Bound", "MeanEstimate", "forecast", "log_term", "upper"]


@dataclass(frozen=True, eq=False)
class MeanEstimate:
    """Estimated expectations of variables that lie in intervals of length `span`.

    `draws` may differ between entries; 0 means integrated, without sampling error. `rounding` bounds the
    arithmetic error of each single value.
    """

    estimate: Floats
    variance: Floats
    draws: Floats
    span: float | Floats
    rounding: float

    @classmethod
    def from_sums(
        cls, total: Floats, squares: Floats, draws: npt.ArrayLike, span: float | Floats, rounding: float
    ) -> MeanEstimate:
        """From sums over independent draws of the variables and of their squares."""
        # A unit that no draw counted has no bound: one draw gives an infinite margin, 0 would mean integrated.
        k = np.maximum(np.broadcast_to(np.asarray(draws, dtype=np.float64), total.shape), 1.0)
        estimate = total / k
        # 2^-16: sums of squares were added in f32, 64 at a time.
        variance = (np.maximum(squares - total * estimate, 0.0) + 2.0**-16 * squares) / np.maximum(k - 1, 1)
        return cls(estimate, variance, k, span, rounding)

    @classmethod
    def exact(cls, value: Floats, rounding: float = 0.0) -> MeanEstimate:
        """An integral over all releases."""
        value = np.asarray(value, dtype=np.float64)
        return cls(value, np.zeros_like(value), np.zeros_like(value), 0.0, rounding)

    @property
    def sampled(self) -> bool:
        return bool(np.any(self.draws > 0))

    def blurred(self, error: float) -> MeanEstimate:
        """The same with a further arithmetic or sampler error."""
        return MeanEstimate(
            estimate=self.estimate,
            variance=self.variance,
            draws=self.draws,
            span=self.span,
            rounding=self.rounding + error,
        )

    def scaled(self, factor: float, shift: float = 0.0) -> MeanEstimate:
        """The mean of `shift + factor * variable`."""
        return MeanEstimate(
            estimate=shift + factor * self.estimate,
            variance=factor**2 * self.variance,
            draws=self.draws,
            span=abs(factor) * self.span,
            rounding=abs(factor) * self.rounding,
        )


Bound: TypeAlias = Callable[[MeanEstimate], Floats]


@proves("confidence")
def upper(mean: MeanEstimate, log_term: float) -> Floats:
    """Bounds that all hold together when `log_term` is `ln(2 / g)` with `g` the failure probability of each.

    Guarantee: for each entry, the expectation exceeds its bound with probability at most
    `2 exp(-log_term)`, over the draws.
    """
    if not np.isfinite(mean.estimate).all():
        raise NumericalError("an expectation over releases is not finite; nothing was certified")
    return mean.estimate + mean.rounding + _margin(mean, mean.draws, log_term)


def forecast(mean: MeanEstimate, draws: int, log_term: float, sigmas: float = 2.5) -> Floats:
    """What `upper` will likely give on `draws` fresh draws, on the careful side by `sigmas` standard errors.

    No guarantee: it only aims the search. What it aims at is certified on fresh draws.
    """
    if not mean.sampled:
        return upper(mean, log_term)
    fresh = np.where(mean.draws > 0, draws, 0.0)
    # The error of the fresh mean and of the one at hand, which chose the noise.
    spread = np.sqrt(mean.variance * (1 / draws + 1 / np.maximum(mean.draws, 1)))
    return mean.estimate + mean.rounding + _margin(mean, fresh, log_term) + sigmas * spread


def _margin(mean: MeanEstimate, draws: Floats, log_term: float) -> Floats:
    k = np.maximum(draws, 2.0)
    margin = np.sqrt(2 * mean.variance * log_term / k) + 7 * mean.span * log_term / (3 * (k - 1))
    return np.where(draws == 0, 0.0, np.where(draws < 2, np.inf, margin))


@dataclass
class Attempts:
    """One failure probability for everything ever certified from one set of outputs.

    Attempt j may fail with probability `gamma / (j (j+1))`; these add up to less than `gamma` however many
    attempts, recaps included, are made. Nothing is certified twice with the same share.
    """

    gamma: float
    made: int = 0

    def next(self) -> float:
        """The share of the next attempt, spent by asking for it."""
        self.made += 1
        return self.share(self.made)

    def share(self, attempt: int) -> float:
        return self.gamma / (attempt * (attempt + 1))


def log_term(gamma: float, bounds: int) -> float:
    """`ln(2 / g)` for `bounds` statements that may fail with probability `gamma` together."""
    return math.log(2 * max(bounds, 1) / gamma)
