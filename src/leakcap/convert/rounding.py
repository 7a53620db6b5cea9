"""Numbers in words, rounded to the safe side: attackers' success up, budgets down."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["above", "below", "exact", "percent", "percent_up", "rounded_down", "rounded_up"]


def above(value: Fraction) -> float:
    """The nearest float that is not below an exact value."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def below(value: Fraction) -> float:
    """The nearest float that is not above an exact value."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def percent(share: Fraction) -> str:
    """Per cent of a share that was given, or is fixed, as it is."""
    return f"{exact(share * 100)} %"


def percent_up(share: float | Fraction) -> str:
    """Per cent, rounded up: two places, or three digits of what is small.

    Guarantee: the text is never below the share by more than a billionth of its last place, as in certificates.

    Args:
        share: a certified figure, such as `certificate.membership_success`, from 0 to 1.

    Returns:
        Text such as "54.94 %".

    Examples:
        >>> percent_up(0.54931), percent_up(0.022), percent_up(0.00012345)
        ('54.94 %', '2.20 %', '0.0124 %')
    """
    value = Fraction(share) * 100
    if value <= 0:
        return "0 %"
    places = max(2, 2 - math.floor(math.log10(value)))
    shown = Fraction(math.ceil(value * 10**places - Fraction(1, 10**9)), 10**places)
    return f"{float(min(shown, Fraction(100))):.{places}f} %"


def exact(value: Fraction) -> str:
    """A number that was given, or is fixed, as it is."""
    return f"{float(value):.10g}"


def rounded_up(value: float) -> str:
    """Four digits, never below the value."""
    return _rounded(value, math.ceil)


def rounded_down(value: float) -> str:
    """Four digits, never above the value."""
    return _rounded(value, math.floor)


def _rounded(value: float, way: Callable[[Fraction], int]) -> str:
    if value <= 0:
        return "0"
    scale = Fraction(10) ** (3 - math.floor(math.log10(value)))
    return f"{float(way(Fraction(value) * scale) / scale):.4g}"
