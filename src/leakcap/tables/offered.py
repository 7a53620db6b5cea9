"""Which `--read` would make numbers of a column: tried on its cells, and told in words that quote none of them."""

from __future__ import annotations

from typing import Any

from leakcap.errors import InputError
from leakcap.tables.dates import date_parts
from leakcap.tables.reading import Reading

__all__ = ["offered_parts", "offered_reading"]

COMMA, THOUSANDS = "decimal=,", "thousands=,"
# The likeliest first: what to say, and what the cells then look like.
WAYS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((COMMA,), "with a decimal comma"),
    ((THOUSANDS,), "with commas for thousands"),
    (("thousands=.",), "with points for thousands"),
    (("thousands=space", COMMA), "with spaces for thousands and a decimal comma"),
    (("thousands=space",), "with spaces for thousands"),
    (("thousands=apostrophe",), "with apostrophes for thousands"),
)
MISSING = "missing=marks"
MARKED = "with marks such as ? or - where a value is missing"


def offered_reading(column: Any) -> str:
    """What to add to the command for a text column whose cells are numbers in another way of writing; or nothing."""
    if _makes_numbers(column, (MISSING,)):
        return (
            f"The cells look like numbers, {MARKED}: add --read {MISSING}, or leave those cells empty, then see "
            "--missing"
        )
    for marks, words in ((), ""), ((MISSING,), f", and {MARKED}"):
        fit = [(way, looks) for way, looks in WAYS if _makes_numbers(column, (*way, *marks))]
        if not fit:
            continue
        way, looks = fit[0]
        options = " ".join(f"--read {one}" for one in (*way, *marks))
        if [one for one, _ in fit[:2]] == [(COMMA,), (THOUSANDS,)]:
            return (
                f"The cells look like numbers with a decimal comma, or with commas for thousands{words}: add {options} "
                f"for the one or --read {THOUSANDS} for the other. Nobody but you can know which"
            )
        return (
            f"The cells look like numbers {looks}{words}: add {options}, or save the file with a decimal point and no "
            "other separator"
        )
    return ""


def offered_parts(column: Any, name: str) -> str:
    """What to add to the command for a column of dates; nothing where it holds times, or several kinds of dates."""
    fit = [order for order in ("ymd", "dmy", "mdy") if _makes_parts(column, order)]
    if not fit:
        return ""
    option = "parts" if "ymd" in fit else " or dates=".join(fit)
    which = ", whichever it is," if "ymd" not in fit and len(fit) > 1 else ""
    return f"add --read dates={option}{which} and ask for {name}.year, {name}.month, {name}.day or {name}.weekday; or "


def _makes_numbers(column: Any, words: tuple[str, ...]) -> bool:
    read = Reading.of(words).cells(column)
    return getattr(read.dtype, "kind", "O") in "iuf"


def _makes_parts(column: Any, order: str) -> bool:
    try:
        return bool(date_parts(column, "", order))
    except (InputError, AttributeError, TypeError, ValueError):
        return False
