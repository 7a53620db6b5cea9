"""What cannot be asked, with the place in the question and what would work."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import ErrorLevel

from leakcap.errors import InputError

__all__ = ["Node", "NotAnswered", "placed", "refused", "shown"]

Node: TypeAlias = Any  # of a parsed query: what it is follows from its class, which the parser's types do not tell

SHOWN = 80  # letters of the place


class NotAnswered(InputError):
    """A question that is not answered. It says why by the question and what is declared, never by the data."""


def refused(why: str, at: Any = None) -> NotAnswered:
    """The refusal of a part of a query."""
    if at is None:
        return NotAnswered(why)
    text = shown(at)
    return NotAnswered(f"at `{text}`: {why}" if text else why)


def shown(at: Any) -> str:
    """A part of a query as it is shown, cut where it is long; empty where it cannot be written."""
    try:
        text = str(at.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE))
    except Exception:  # what cannot be written is not shown
        return ""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def placed(refusal: NotAnswered, at: Any) -> NotAnswered:
    """The refusal with its place, where it has none."""
    return refusal if str(refusal).startswith("at `") else refused(str(refusal), at)
