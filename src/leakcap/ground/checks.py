"""Keyword validators: `probability(success=0.55)` returns the value or says what is wrong with it."""

from __future__ import annotations

import math
from numbers import Integral, Real

from leakcap.errors import InputError

__all__ = ["choice", "count", "finite", "fraction", "meant_by", "nonnegative", "positive", "probability"]


def _one(values: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = values.items()
    return name, value


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, not {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite")
    return number


def finite(**value: object) -> float:
    """Any finite number."""
    return _real(*_one(value))


def positive(**value: object) -> float:
    """A finite number above zero."""
    name, given = _one(value)
    number = _real(name, given)
    if number <= 0:
        raise InputError(f"{name} must be above 0, not {number:g}")
    return number


def nonnegative(**value: object) -> float:
    """A finite number, zero or above."""
    name, given = _one(value)
    number = _real(name, given)
    if number < 0:
        raise InputError(f"{name} must be 0 or above, not {number:g}")
    return number


def probability(**value: object) -> float:
    """A number from 0 to 1, both included."""
    name, given = _one(value)
    number = _real(name, given)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must be a probability from 0 to 1, not {number:g}{_in_per_cent(number)}")
    return number


def fraction(**value: object) -> float:
    """A number strictly between 0 and 1."""
    name, given = _one(value)
    number = _real(name, given)
    if not 0 < number < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, not {number:g}{_in_per_cent(number)}")
    return number


def meant_by(words: str) -> str:
    """The share that somebody may have meant who wrote it as text, as the end of a sentence; empty if there is none."""
    number, sign, rest = words.strip().partition("%")
    try:
        found = float(number)
    except ValueError:
        return ""
    if not sign and 0 < found < 1:
        return f": did you mean {found:g}?"
    return "" if rest else _in_per_cent(found)


def _in_per_cent(number: float) -> str:
    return f": did you mean {number / 100:g}?" if 1 < number < 100 else ""


def count(at_least: int = 1, **value: object) -> int:
    """A whole number of at least `at_least`."""
    name, given = _one(value)
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise InputError(f"{name} must be a whole number, not {type(given).__name__}")
    if given < at_least:
        raise InputError(f"{name} must be at least {at_least}, not {int(given)}")
    return int(given)


def choice(options: tuple[str, ...], **value: object) -> str:
    """One of a few words."""
    name, given = _one(value)
    if not isinstance(given, str) or given not in options:
        raise InputError(f"{name} must be one of {', '.join(map(repr, options))}")
    return given
