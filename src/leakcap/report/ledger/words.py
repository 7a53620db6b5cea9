"""What a ledger holds, as people say it. Names and questions are others' words: they are shortened, and escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leakcap.custody.ledger.accounts import TICKS
from leakcap.report.html import Markup, markup, shortened
from leakcap.report.numbers import UNBROKEN, at_most, neat

__all__ = ["NONE", "analyst", "changed", "count", "moment", "share", "taken", "when"]

NONE = "-"  # where there is no figure


def share(amount: float) -> str:
    """Of a clock, in per cent."""
    return f"{neat(100 * amount)}{UNBROKEN}%"


def taken(amount: float) -> str:
    """What was taken from a clock, in per cent, rounded up."""
    return f"{at_most(100 * amount, 3)}{UNBROKEN}%"


def moment(at: str) -> str:
    """A time in UTC, to the minute."""
    return at[:16].replace("T", UNBROKEN)


def when(at: str) -> Markup:
    """The same, in one line."""
    return markup('<span class="at">{}</span>', moment(at))


def count(answers: int) -> str:
    """How many answers."""
    return "1 answer" if answers == 1 else f"{answers:,} answers"


def analyst(who: str) -> Markup:
    """Who asked; the custodian in other letters than anybody who calls themselves so."""
    return shortened(who) if who else markup("<i>custodian</i>")


def changed(what: Mapping[str, Any]) -> Iterator[str]:
    """Budgets that were set, in sentences."""
    for who, ticks in what.get("analysts", {}).items():
        yield f"{who} {_may_use(ticks)}."
    if "day" in what:
        yield f"A day {_may_use(what['day'])}."
    for group, members in what.get("groups", {}).items():
        yield f"The group {group} has a clock of its own: {', '.join(members)}."
    caps = "; ".join(what.get("caps", ()))
    if "allowance" in what:
        yield f"Caps were raised, so that every clock is {neat(what['allowance'] / TICKS, 3)} times the first: {caps}."
    elif caps:  # on a list of worlds, where clocks go up by what is known
        yield f"Caps were raised: {caps}."


def _may_use(ticks: int | None) -> str:
    return "has no budget any more" if ticks is None else f"may use {share(ticks / TICKS)} of the clock"
