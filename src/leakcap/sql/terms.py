"""What sums over people are added up from: a whole number of every row, so that no order of rows changes a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from leakcap.sessions.cell_rows import Making
from leakcap.sql.aggregates import SumOf, has_room

__all__ = ["ROWS", "Term", "listed_terms", "making"]

FAR = 2.0**10  # half ranges that a middle may lie from 0, so that taking it off afterwards loses nothing


@dataclass(frozen=True)
class Term:
    """A whole number of every row: a count, an amount in its last digit, or a multiple of a grain."""

    of: str = ""  # SQL; empty for a count of rows
    where: str = ""  # SQL of the rows that have it; empty for all
    digits: int = 0  # after the point
    grain: float = 1.0
    size: float | None = None  # the largest whole number of a row; None where there is no telling
    distinct: bool = False  # different values are counted

    @property
    def summed(self) -> str:
        """The sum over rows, whole and wide, in SQL; as a number of 64 bits at its end."""
        rows = f" FILTER (WHERE {self.where})" if self.where else ""
        if self.distinct:
            return f"count(DISTINCT {self.of}){rows}::DOUBLE"
        return f"coalesce(sum({self.of}){rows}, 0)::DOUBLE" if self.of else f"count(*){rows}::DOUBLE"

    @property
    def of_row(self) -> str:
        """What one row adds, in SQL; NULL is nothing."""
        made = self.of or "1::TINYINT"
        return f"CASE WHEN {self.where} THEN {made} END" if self.where else made


ROWS = Term(size=1.0)  # a count of all rows


def terms_of(one: SumOf) -> tuple[tuple[Term, float], ...]:
    """A sum as terms, each with what it is multiplied by."""
    where = one.where.safe if one.where is not None else ""
    if one.distinct is not None:
        return ((Term(one.distinct.safe, where, distinct=True), 1.0),)
    count = Term(where=where, size=1.0)
    if not one.of:
        return ((count, 1.0),)
    first, middle = one.of[0], one.middles[0]
    if len(one.of) == 1 and has_room(first) and _near(first.range, middle):
        digits = first.digits[1] if first.kind == "decimal" and first.digits else 0
        size = None if first.range is None else max(map(abs, first.range)) * 10.0**digits
        whole = Term(first.safe, where, digits, size=size)
        return ((whole, 1.0), (count, -middle)) if middle else ((whole, 1.0),)
    parts = " * ".join(f"({of.safe}::DOUBLE - {middle!r})" for of, middle in zip(one.of, one.middles, strict=True))
    grain = one.size / 2.0**52 or 1.0
    return ((Term(f"TRY_CAST(round({parts} / {grain!r}) AS BIGINT)", where, grain=grain, size=2.0**52), 1.0),)


def _near(span: tuple[float, float] | None, middle: float) -> bool:
    return not middle or (span is not None and abs(middle) <= FAR * (span[1] - span[0]) / 2)


def listed_terms(sums: Sequence[SumOf]) -> list[Term]:
    """All terms of some sums, each of them once, but for the count of all rows."""
    listed = dict.fromkeys(term for term, _ in chain.from_iterable(terms_of(one) for one in sums))
    return [one for one in listed if one != ROWS]


def making(sums: Sequence[SumOf], *, whole: bool) -> Making:
    """How sums are made of what stands in rows: a count, which is of rows where they are `whole`, and the terms."""
    listed = [ROWS, *listed_terms(sums)] if whole else [None, ROWS, *listed_terms(sums)]
    parts, scales = np.full((len(sums), 2), -1), np.ones((len(sums), 3))
    for at, one in enumerate(sums):
        (first, _), *others = terms_of(one)
        parts[at, 0] = listed.index(first)
        if whole:
            scales[at, :2] = 10.0**first.digits, first.grain
        for other, factor in others:  # a count
            parts[at, 1], scales[at, 2] = listed.index(other), factor
    return Making(parts, scales)
