"""What the paper says of its noised releases, beside what they are as printed and done right: the table of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reproductions.pac_private_algorithms.paper import ANISOTROPIC, QUOTES, Quote
from reproductions.pac_private_algorithms.picture import read
from reproductions.pac_private_algorithms.series import AS_PRINTED, RULE, Row

__all__ = ["ABOUT", "agrees", "told"]

ABOUT = 0.02  # how far "about", "above" and "below" may be off: the error of 200 releases and of a word
HEAD = ("figure", "data", "nats", "the paper says", "as printed", "done right")


def told(folder: Path) -> list[tuple[str, ...]]:
    """A line for each statement about anisotropic releases whose figure was measured."""
    lines = [HEAD]
    for quote in (quote for quote in QUOTES if quote.series == ANISOTROPIC):
        rows = [row for row in read(folder / f"figure_{quote.figure}.csv") if row.data == quote.data]
        cells = [_cell(quote, values(rows, quote, series)) for series in (AS_PRINTED, RULE)]
        if all(cells):
            lines.append((quote.figure, quote.data, _nats(quote), f"{quote.says} {quote.value:.0%}", *cells))
    return lines


def values(rows: Sequence[Row], quote: Quote, series: str) -> list[float]:
    """The means of a series at the budgets that a statement is about."""
    return [r.mean for r in rows if r.series == series and quote.low <= r.mutual_information <= quote.high]


def agrees(quote: Quote, found: Sequence[float]) -> bool:
    """Whether all values are what the statement says, up to `ABOUT`."""
    over, under = quote.says in ("<", "≤"), quote.says in (">", "≥")
    upper = quote.value + ABOUT if not under else float("inf")
    lower = quote.value - ABOUT if not over else -float("inf")
    return all(lower <= value <= upper for value in found)


def _cell(quote: Quote, found: Sequence[float]) -> str:
    if not found:
        return ""
    ends = sorted({f"{value:.1%}" for value in (min(found), max(found))}, key=lambda text: float(text[:-1]))
    return " to ".join(ends) + (", agrees" if agrees(quote, found) else "")


def _nats(quote: Quote) -> str:
    low, high = (f"{budget:g}" if budget >= 1 else f"1/{round(1 / budget)}" for budget in (quote.low, quote.high))
    return low if low == high else f"{low} to {high}"
