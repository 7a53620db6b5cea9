"""Frozen records from JSON text: the right entries, each of its kind. It says nothing about who wrote the text."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import Any

from leakcap.errors import InputError

__all__ = ["entries", "is_number", "is_whole", "is_words"]


def entries(record: type, text: str, what: str) -> dict[str, Any]:
    """The entries of a record as JSON has them; anything missing or unknown raises.

    A field that is None by default came later than the first records: it may be missing.
    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError("this is no JSON text") from error
    known = {field.name for field in fields(record)}
    needed = {field.name for field in fields(record) if field.default is not None}
    if not isinstance(given, dict) or not needed <= set(given) <= known:
        raise InputError(f"this JSON text is no {what} of this version")
    return given


def is_number(low: float, high: float, *values: Any) -> bool:
    """Whether all of these are numbers within the range that a float can hold."""
    return all(type(x) in (int, float) and low <= x <= high and abs(x) <= sys.float_info.max for x in values)


def is_whole(*values: Any) -> bool:
    return all(type(x) is int and x >= 0 for x in values)


def is_words(*values: Any, least: int = 0) -> bool:
    return all(isinstance(x, str) and len(x) >= least for x in values)
