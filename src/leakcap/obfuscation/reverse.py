"""How hard it is to rebuild the mask itself: Definition 8 and Theorem 7 of the paper, *if its assumptions held*.

The assumptions are about the law of new rows, and no data can show that they hold. What is computed here is therefore
no guarantee, has no certificate, and says so in its type and words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammainc, gammaln

from leakcap import convert
from leakcap.errors import InputError
from leakcap.ground import checks

__all__ = ["AssumedRows", "IfAssumptionsHeld", "reverse_engineering"]

CONSTANT = 4.0  # of (44): the fourth moment of a row along a direction is at most 4 K^4
LEAST_PRIOR = 1e-290
MOST_TERMS = 10**6


@dataclass(frozen=True)
class AssumedRows:
    """What is assumed of new rows, whose mean is 0; nothing can show it.

    Attributes:
        spread: kappa: along every direction the variance is at least kappa^2.
        tail: K: beyond `t` along every direction lies at most the share `2 exp(-t^2/K^2)`.
    """

    spread: float
    tail: float

    def __post_init__(self) -> None:
        checks.positive(spread=self.spread)
        checks.positive(tail=self.tail)
        if self.spread**2 > 2 * self.tail**2:
            raise InputError("no rows are such: a variance is at most twice the square of the tail's scale")


@dataclass(frozen=True)
class IfAssumptionsHeld:
    """How likely somebody finds a map that encodes nearly as the mask does, *if the assumptions held*. No guarantee.

    Attributes:
        success: after the release, at most.
        prior: before it, at most.
        log_prior: its logarithm, which is told where the prior itself is too small for a number.
        radius: masks that one map imitates lie within this distance of each other (Frobenius).
        error: of the map, on an encoded row (psi).
        missed: share of rows on which the map may be off by more (tau).
        nats: about the mask, in the release.
        assumed: about new rows.
    """

    success: float
    prior: float
    log_prior: float
    radius: float
    error: float
    missed: float
    nats: float
    assumed: AssumedRows

    @property
    def is_guarantee(self) -> bool:
        """Never: assumptions about the law of new rows cannot be verified."""
        return False

    def __str__(self) -> str:
        before = f"{self.prior:.3g}" if self.prior else f"e^{self.log_prior:,.0f}"
        return (
            f"If the assumptions held (variance at least {self.assumed.spread**2:.3g} along every direction, tails of "
            f"scale {self.assumed.tail:.3g}), a map that is within {self.error:.3g} of the mask's encoding for all but "
            f"a share {self.missed:.3g} of rows would be found with probability at most {self.success:.3g} "
            f"({before} before the release). This is no guarantee: no data show that they hold."
        )


def reverse_engineering(
    nats: float, *, shape: tuple[int, int], error: float, missed: float, assumed: AssumedRows
) -> IfAssumptionsHeld:
    """What Theorem 7 says, put right, for a mask of `shape` whose entries are normal of variance `1/shape[1]`.

    Differs from the paper: the constant of (44) is 4, by the inequality of Paley and Zygmund; the prior is the
    chi-square's own, not its exponential bound; masks that one map imitates lie in a ball of the radius that Jung's
    theorem gives; and success is the root of the Kullback-Leibler divergence, not Fano's form.

    Args:
        nats: about the mask in the release: those about the sample and `d/2 E log det(S S_B^-1)` together.
        shape: columns of a row, columns of an encoded row.
        error: psi of Definition 8.
        missed: tau of Definition 8; small enough beside the assumptions.
        assumed: about new rows.

    Raises:
        InputError: the assumptions say nothing about so large a share of rows.
    """
    checks.nonnegative(nats=nats)
    error, missed = checks.positive(error=error), checks.fraction(missed=missed)
    inside, outside = (checks.count(columns=size) for size in shape)
    # Two masks at distance b: |x(W - W')|^2 has mean at least (kappa b)^2 and second moment at most 4 K^4 b^4, so it
    # exceeds (kappa b)^2 - t with probability t^2/(4 K^4 b^4) at least; beyond the radius that is more than 2 tau.
    room = assumed.spread**2 - math.sqrt(2 * CONSTANT * missed) * assumed.tail**2
    if room <= 0:
        raise InputError("missed is too large beside what is assumed: nothing follows for such a share of rows")
    radius = 2 * error / math.sqrt(room)
    entries = inside * outside
    ball = radius * math.sqrt(entries / (2 * (entries + 1)))  # Jung: all within this of one centre
    scaled = ball**2 * outside / 2  # the squared radius beside twice an entry's variance
    log_prior = _log_chance(entries / 2, scaled)
    prior = math.exp(log_prior) if log_prior > math.log(LEAST_PRIOR) else 0.0
    if prior >= 1:
        success = 1.0
    elif prior > 0:
        success = float(convert.posterior(nats, prior))
    else:
        success = _posterior_of_log(nats, log_prior)
    return IfAssumptionsHeld(
        success=success,
        prior=prior,
        log_prior=log_prior,
        radius=radius,
        error=error,
        missed=missed,
        nats=nats,
        assumed=assumed,
    )


def _log_chance(half: float, scaled: float) -> float:
    """Logarithm of the chance that a Gamma(half) variable is at most `scaled`, from above."""
    direct = float(gammainc(half, scaled))
    if direct > LEAST_PRIOR:
        return min(0.0, math.log(direct) + 1e-9)
    # The series of the incomplete gamma function: scaled^half e^-scaled / Gamma(half + 1) times the sum over j of
    # scaled^j / ((half + 1) ... (half + j)), whose terms fall at least as fast as those of a geometric one.
    share = scaled / (half + 1)
    if share >= 1:  # far from here: the chance is not small
        return 0.0
    total, term, place = 1.0, 1.0, 1
    while term > 1e-17 * total and place < MOST_TERMS:
        term *= scaled / (half + place)
        total += term
        place += 1
    total += term / (1 - share)  # never less than the terms that are left out
    log_chance = half * math.log(scaled) - scaled - float(gammaln(half + 1)) + math.log(total)
    # Logarithms of numbers as large as half are off by their rounding.
    return min(0.0, log_chance + 1e-14 * half * (1 + abs(math.log(scaled))) + 1e-9)


def _posterior_of_log(nats: float, log_prior: float) -> float:
    """The largest `a` whose divergence from the prior is at most `nats`, from above, for a prior below any number."""

    def divergence(a: float) -> float:
        entropy = a * math.log(a) + (1 - a) * math.log1p(-a) if 0 < a < 1 else 0.0
        return entropy - a * log_prior  # log(1 - prior) is nothing beside the rounding

    if nats >= -log_prior * (1 - 1e-12):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) <= nats else (low, middle)
        if high < 1e-300:
            break
    return min(1.0, high * (1 + 1e-11))
