"""Budgets inside an account: how much of the clock an analyst, a group of them, or a day may take.

They are limits on top of the cap, never in its place: whatever they say, everybody's clock bounds what is learnt.
Counted is what each question takes of the clock of whoever pays the most, in ticks of 10^-12 of the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from leakcap.errors import BudgetError, InputError

__all__ = ["EVERYBODY", "count", "group_of", "groups", "refuse", "refuse_clock_set_back", "today"]

EVERYBODY = ""  # the group of analysts who are in no other: they share one clock
TOLERANCE = timedelta(minutes=5)  # by which clocks of machines may differ


def group_of(state: Mapping[str, Any], analyst: str) -> str:
    """The group with which an analyst shares a clock."""
    for name, members in state.get("groups", {}).items():
        if analyst in members:
            return str(name)
    return EVERYBODY


def groups(state: Mapping[str, Any]) -> list[str]:
    """All groups that have a clock of their own, that of everybody else included."""
    return [EVERYBODY, *state.get("groups", {})]


def today(now: datetime | None = None) -> str:
    """The day, by the clock of this machine, in UTC."""
    return (now or datetime.now(UTC)).date().isoformat()


def refuse_clock_set_back(state: Mapping[str, Any], now: datetime) -> None:
    """An InputError where a budget by day is kept and this machine's clock is behind the last answer."""
    last = state.get("latest")
    if last and _daily(state) is not None and now < datetime.fromisoformat(last) - TOLERANCE:
        raise InputError(
            "this machine's clock is behind the last answer in the ledger, and a budget by day is kept: set the clock"
        )


def refuse(state: Mapping[str, Any], analyst: str, charge: int, now: datetime) -> None:
    """A BudgetError where a question would take more than an analyst or a day may; it costs nothing."""
    refuse_clock_set_back(state, now)
    used = state.get("used", {})
    own = state.get("budgets", {}).get("analysts", {}).get(analyst)
    if own is not None and used.get("analysts", {}).get(analyst, 0) + charge > own:
        raise BudgetError(
            "this question takes more than is left of your budget: give more noise or a smaller share, or ask the "
            "custodian, who can raise it (leakcap ledger budget)"
        )
    daily, taken = _daily(state), used.get("days", {}).get(today(now), 0)
    if not analyst:  # prices that were read off the pool are not for analysts to hear of
        taken += used.get("days_of_pool", {}).get(today(now), 0)
    if daily is not None and taken + charge > daily:
        raise BudgetError(
            "this question takes more than is left for today: give more noise or a smaller share, or ask tomorrow"
        )


def count(state: dict[str, Any], analyst: str, charge: int, now: datetime, *, pool_made: bool = False) -> None:
    """Add a charge to what an analyst and the day have used; apart, where its price was read off the pool."""
    used = state.setdefault("used", {})
    for kind, name in (("analysts", analyst), ("days_of_pool" if pool_made else "days", today(now))):
        so_far = used.setdefault(kind, {})
        so_far[name] = so_far.get(name, 0) + charge
    latest = state.get("latest")
    state["latest"] = max(now, datetime.fromisoformat(latest)).isoformat() if latest else now.isoformat()


def _daily(state: Mapping[str, Any]) -> int | None:
    found = state.get("budgets", {}).get("day")
    return None if found is None else int(found)
