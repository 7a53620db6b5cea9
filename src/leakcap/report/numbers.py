"""Numbers as people read them: as many digits as the error leaves, bounds always rounded up."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from leakcap.certificates.text import percent
from leakcap.report.html import Markup, markup

__all__ = [
    "MINUS",
    "UNBROKEN",
    "at_most",
    "bound",
    "data",
    "decimals_for",
    "neat",
    "of_hundred",
    "outward",
    "shown",
    "unbroken",
]


MINUS = "\u2212"
UNBROKEN = "\u00a0"  # a space at which no line ends
PLAIN = 5  # decimals up to which numbers are written out


def bound(success: float) -> str:
    """A bound in per cent, rounded up, without idle zeros."""
    return percent(success).replace(".00 %", " %")


def unbroken(words: str) -> str:
    """No line ends before a per cent sign, and none stands right at its number."""
    return re.sub(r"(\d) ?%", rf"\1{UNBROKEN}%", words)


def of_hundred(success: float) -> int:
    """How many of 100 guesses are right at most: a whole number, rounded up."""
    return min(100, math.ceil(100 * success - 1e-9))


def decimals_for(spread: float) -> int:
    """Decimals that show two digits of an error."""
    return 1 - math.floor(math.log10(spread)) if spread > 0 and math.isfinite(spread) else 6


def shown(value: float, decimals: int) -> str:
    """A number at so many decimals, with a true minus sign."""
    if not math.isfinite(value):
        return _no_number(value)
    if value and (decimals > PLAIN or abs(value) >= 1e12):
        return _scientific(value, decimals)
    return _signed(f"{value:,.{max(decimals, 0)}f}")


def neat(value: float, digits: int = 4) -> str:
    """A number at a few significant digits."""
    if not math.isfinite(value):
        return _no_number(value)
    if value and not 1e-5 <= abs(value) < 1e12:
        return _scientific(value, digits - 1 - math.floor(math.log10(abs(value))))
    places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    plain = f"{value:,.{max(places, 0)}f}"
    return _signed(plain.rstrip("0").rstrip(".") if "." in plain else plain)


def at_most(value: float, digits: int = 4) -> str:
    """A bound at a few significant digits, never below itself."""
    if not math.isfinite(value) or value <= 0:
        return neat(value, digits)
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    return neat(float(math.ceil(Fraction(value) / unit - Fraction(1, 10**9)) * unit), digits)


def outward(low: float, high: float, decimals: int) -> tuple[str, str]:
    """Both ends of an interval, rounded so that what is shown covers what is meant."""
    if not (math.isfinite(low) and math.isfinite(high)) or decimals > PLAIN or max(abs(low), abs(high)) >= 1e12:
        return shown(low, decimals), shown(high, decimals)
    unit = 10.0 ** max(decimals, 0)
    return shown(math.floor(low * unit + 1e-6) / unit, decimals), shown(math.ceil(high * unit - 1e-6) / unit, decimals)


def data(value: float, words: str) -> Markup:
    """A number as it is shown, with the whole of it for machines."""
    return markup('<data value="{!r}">{}</data>', float(value), words)


def _no_number(value: float) -> str:
    return "no number" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"


def _scientific(value: float, decimals: int) -> str:
    power = math.floor(math.log10(abs(value)))
    mantissa, _, exponent = f"{value:.{min(max(power + decimals, 1), 5)}e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{_signed(mantissa)}\u202f\u00d7\u202f10{raised}"


def _signed(plain: str) -> str:
    if plain.startswith("-"):
        return plain[1:] if not plain.strip("-0.,") else f"{MINUS}{plain[1:]}"
    return plain
