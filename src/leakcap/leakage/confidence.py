"""Upper bounds on means of bounded variables, and how the failure probability is shared out.

Wagers (ours; proof page: wagers): fix `base` and `stake` before the draws, so that `base - stake X` stays positive.
With probability 1 - g the mean is below `(base - exp((G - ln(1/g)) / K)) / stake`, where `G` is the sum of
`log(base - stake X)` over K draws: half to a quarter of the draws of the bound below.

Empirical Bernstein (Maurer and Pontil 2009): for independent variables in an interval of
length R, the mean of their expectations is at most
`mean + sqrt(2 V ln(2/g) / K) + 7 R ln(2/g) / (3 (K-1))` with probability 1 - g. Proof page: confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["Attempts", "Bound", "MeanEstimate", "Wagers", "forecast", "log_term", "upper"]

# Of the room up to the largest value, so that one draw leaves a fifth of the capital at least: enough beyond rounding
# to single precision and values that are computed a little above the largest true one.
LARGEST_STAKE = 0.8


@dataclass(frozen=True, eq=False)
class Wagers:
    """One for every mean: each draw multiplies its capital by `base - stake X`. Fixed before the draws.

    Both are numbers of single precision, so that a compiled loop multiplies by exactly what is written here.
    """

    base: npt.NDArray[np.float32]
    stake: npt.NDArray[np.float32]
    most: Floats  # what no draw exceeds

    @classmethod
    def placed(
        cls, mean: Floats, variance: Floats, most: float | Floats, draws: npt.ArrayLike, log_term: float
    ) -> Wagers:
        """The stakes that bound variables of about this mean and variance best after `draws` draws."""
        most = np.broadcast_to(np.asarray(most, dtype=np.float64), mean.shape)
        centre = np.clip(mean, 0.0, 0.75 * most)
        k = np.maximum(np.asarray(draws, dtype=np.float64), 1.0)
        with np.errstate(divide="ignore"):
            best = np.sqrt(2 * log_term / (k * variance))
        stake = np.minimum(best, LARGEST_STAKE / (most - centre)).astype(np.float32)
        return cls((1 + stake * centre).astype(np.float32), stake, most)

    def __getitem__(self, where: Any) -> Wagers:
        return Wagers(self.base[where], self.stake[where], self.most[where])

    @property
    def slip(self) -> Floats:
        """What rounding may take from the logarithm of the capital in one draw: three operations of 2^-24 each."""
        least = self.base - self.stake * self.most
        return np.asarray((3 + self.stake * self.most / least) * 2.0**-24 * 1.01)


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
    capital: Floats | None = None  # logarithms, with the rounding of their products taken off
    base: Floats | None = None
    stake: Floats | None = None

    @classmethod
    def from_wagers(
        cls,
        capital: Floats,
        wagers: Wagers,
        *,
        variance: Floats,
        draws: npt.ArrayLike,
        rounding: float,
        slip: Floats | float | None = None,
    ) -> MeanEstimate:
        """From the logarithm of what `draws` independent draws have left of each wager's capital.

        `variance` aims later stages only. `slip` is what rounding may have taken from the logarithm in one draw.
        """
        k = np.maximum(np.broadcast_to(np.asarray(draws, dtype=np.float64), capital.shape), 1.0)
        base, stake = wagers.base.astype(np.float64), wagers.stake.astype(np.float64)
        return cls(
            estimate=(base - np.exp(capital / k)) / stake - stake * variance / 2,  # the second term of the logarithm
            variance=variance,
            draws=k,
            span=wagers.most,
            rounding=rounding,
            capital=capital - k * (wagers.slip if slip is None else slip),
            base=base,
            stake=stake,
        )

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
        return replace(self, rounding=self.rounding + error)

    def scaled(self, factor: float, shift: float = 0.0) -> MeanEstimate:
        """The mean of `shift + factor * variable`."""
        wagered = {}
        if self.capital is not None and self.base is not None and self.stake is not None:
            # base - stake X, said of Y = shift + factor X.
            if factor <= 0:
                raise ValueError("a wager bounds a mean from above only")
            wagered = {"base": self.base + self.stake * (shift / factor), "stake": self.stake / factor}
        return replace(
            self,
            estimate=shift + factor * self.estimate,
            variance=factor**2 * self.variance,
            span=abs(factor) * self.span,
            rounding=abs(factor) * self.rounding,
            **wagered,
        )

    def at(self, where: Any) -> MeanEstimate:
        """Some of the entries."""
        names = ("estimate", "variance", "draws", "capital", "base", "stake")
        some: dict[str, Any] = {name: None if (all_ := getattr(self, name)) is None else all_[where] for name in names}
        return replace(self, span=np.broadcast_to(self.span, self.estimate.shape)[where], **some)


Bound: TypeAlias = Callable[[MeanEstimate], Floats]


@proves("confidence", "wagers")
def upper(mean: MeanEstimate, log_term: float) -> Floats:
    """Bounds that all hold together when `log_term` is `ln(2 / g)` with `g` the failure probability of each.

    Guarantee: for each entry, the expectation exceeds its bound with probability at most
    `2 exp(-log_term)`, over the draws.
    """
    if not np.isfinite(mean.estimate).all():
        raise NumericalError("an expectation over releases is not finite; nothing was certified")
    if mean.capital is None or mean.base is None or mean.stake is None:
        return mean.estimate + mean.rounding + _margin(mean, mean.draws, log_term)
    # One side only: ln(1 / g). The last factor is for rounding of the exponential and the difference.
    left = np.exp((mean.capital - (log_term - math.log(2))) / mean.draws) * (1 - 2.0**-48)
    return (mean.base - left) / mean.stake + mean.rounding + 2.0**-48 * mean.base / mean.stake


def forecast(mean: MeanEstimate, draws: int, log_term: float, sigmas: float = 2.5, *, wagered: bool = True) -> Floats:
    """What `upper` will likely give on `draws` fresh draws, on the careful side by `sigmas` standard errors.

    No guarantee: it only aims the search. What it aims at is certified on fresh draws.
    """
    if not mean.sampled:
        return upper(mean, log_term)
    # The error of the fresh mean and of the one at hand, which chose the noise.
    spread = np.sqrt(mean.variance * (1 / draws + 1 / np.maximum(mean.draws, 1)))
    fresh = np.where(mean.draws > 0, float(draws), 0.0)
    return mean.estimate + mean.rounding + _wagered_margin(mean, fresh, log_term) + sigmas * spread


def _wagered_margin(mean: MeanEstimate, draws: Floats, log_term: float) -> Floats:
    """How far the bound by well placed wagers will lie above the mean; 0 where it was integrated."""
    k = np.maximum(draws, 1.0)
    with np.errstate(divide="ignore"):
        stake = np.minimum(np.sqrt(2 * log_term / (k * mean.variance)), LARGEST_STAKE / mean.span)
    return np.where(draws == 0, 0.0, log_term / (k * stake) + stake * mean.variance / 2)


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
