"""Caps on one person, where the attacker is left with two laws of noise at a distance (`design="bits"`)."""

from __future__ import annotations

from scipy.special import ndtr, ndtri

from leakcap.caps import Cap, Membership, TruePositiveRate
from leakcap.errors import CapError
from leakcap.ground.proofs import proves
from leakcap.leakage.measures import check_limit
from leakcap.noise.laws import NORMAL, Law

__all__ = ["furthest_apart", "rate_of_recognised", "refuse_other_caps", "values_of"]

ROUNDING = 1e-12
TOLD = 1e-8  # relative: what is read off a certificate is rounded up by less


def refuse_other_caps(caps: tuple[Cap, ...], rate: float, law: Law = NORMAL) -> None:
    """A CapError for what is not about one person named in advance, and for limits that nothing keeps."""
    for cap in caps:
        if type(cap) not in (Membership, TruePositiveRate):
            raise CapError(
                f"design='bits' caps guesses at one person named in advance, and {type(cap).__name__} is none: use "
                "leakcap.membership(...), mip(...) or true_positive_rate(...), or mode='exact' with design='worlds'"
            )
        if type(cap) is TruePositiveRate and law is not NORMAL:
            raise CapError("true_positive_rate under design='bits' is for Gaussian noise: leave mechanism out")
        check_limit(cap, rate, 2)


@proves("bits")
def furthest_apart(caps: tuple[Cap, ...], law: Law, distance: float) -> float:
    """How many noise deviations two answers may be apart under all caps; `distance` is the sampler's.

    Guarantee: rounded down.
    """
    allowed = min(_furthest(cap, law, distance) for cap in caps)
    if not allowed > 0:
        raise CapError("this cap is too close to a coin flip, or to its rate of false alarms: choose a larger one")
    return allowed * (1 - 4 * ROUNDING)


def _furthest(cap: Cap, law: Law, distance: float) -> float:
    if isinstance(cap, TruePositiveRate):
        return float(ndtri((cap.at_most - distance) * (1 - TOLD)) - ndtri(cap.fpr + distance)) * (1 - TOLD)
    return law.furthest((cap.limit - distance) * (1 - 4 * ROUNDING))


@proves("bits")
def rate_of_recognised(apart: float, fpr: float, distance: float) -> float:
    """Share of participants recognised, at most, between two normal laws so far apart; rounded up."""
    return min(1.0, float(ndtr(ndtri(min(1.0, fpr + distance)) + apart)) * (1 + 1e-9) + distance)


def values_of(caps: tuple[Cap, ...], worst: float, *, apart: float, distance: float) -> tuple[float, ...]:
    """What is certified of each cap: `worst` is the success, `apart` the largest distance of two answers."""
    return tuple(
        rate_of_recognised(apart, cap.fpr, distance) if isinstance(cap, TruePositiveRate) else worst for cap in caps
    )
