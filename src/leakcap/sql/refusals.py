"""What cannot be asked, with the place in the question and what would work."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import ErrorLevel

from leakcap.errors import InputError

__all__ = ["Node", "NotAnswered", "refused"]

Node: TypeAlias = Any  # of a parsed query: what it is follows from its class, which the parser's types do not tell

SHOWN = 80  # letters of the place


class NotAnswered(InputError):
    """A question that is not answered. It says why by the question and what is declared, never by the data."""


def refused(why: str, at: Any = None) -> NotAnswered:
    """The refusal of a part of a query."""
    if at is None:
        return NotAnswered(why)
    try:
        text = at.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # what cannot be written is not shown
        return NotAnswered(why)
    text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return NotAnswered(f"at `{text}`: {why}")
