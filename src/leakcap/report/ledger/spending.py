"""Pictures of what was taken from clocks: bars by group, analyst and day, and a line from the first answer on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from leakcap.custody.ledger.accounts import TICKS
from leakcap.report.chart import Axis, Chart, key, linear
from leakcap.report.html import Markup, markup
from leakcap.report.ledger.words import NONE, analyst, share, taken
from leakcap.report.numbers import UNBROKEN
from leakcap.sessions.overview import AccountOverview, CountedAnswer

__all__ = ["SpendingBars", "bar", "bars", "line"]

Row = tuple[Markup | str, ...]
MAX_ROWS = 24  # of one picture
MAX_DAYS = 7
LINES = "bound", "pool", "before"  # how the clocks are drawn that have gone furthest
MAX_TICKS = 5
LONGEST_LABEL = 40  # characters


@dataclass(frozen=True)
class SpendingBars:
    """A table whose last column draws what its others say."""

    title: str
    words: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int


def bars(account: AccountOverview) -> list[SpendingBars]:
    """By group, by analyst, and by day."""
    found = [_by_clock(account)]
    if account.answers:
        found += [_by_analyst(account), _by_day(account)]
    return found


def bar(spent: float, limit: float | None, scale: float) -> Markup:
    """What was taken, before all that may be, if that is limited; both on one scale."""
    over = " over" if limit is not None and spent > limit * (1 + 1e-9) else ""
    return markup(
        '<svg class="bar" aria-hidden="true"><rect class="allowed" y="3" height="12" rx="3" width="{:.2f}%"/>'
        '<rect class="taken{}" y="3" height="12" rx="3" width="{:.2f}%"/></svg>',
        *(100 * (limit or 0.0) / scale, over, 100 * spent / scale),
    )


def line(account: AccountOverview) -> Markup | None:
    """What was taken from every clock, answer by answer; None where nothing was."""
    dated = [(_time(one), one) for one in account.answers if one.at]
    if not dated:
        return None
    first = min(when for when, _ in dated).replace(hour=0, minute=0, second=0, microsecond=0)
    last = max(when for when, _ in dated)
    days = (last - first).days + 1
    groups = sorted(account.by_group, key=lambda name: -account.by_group[name])[: len(LINES)]
    lines = {
        name: _steps([(_days(first, when), one.share) for when, one in dated if one.group == name], days)
        for name in groups
    }
    allowed = _allowed(account, first, days)
    top = max(*(y[-1] for _, y in lines.values()), allowed[1][-1])
    chart = Chart(_calendar(first, days), _shares(top))
    marks = []
    if account.whole is not None:
        chart.line("cap", *allowed)
        marks.append(("line", "cap", "the whole clock"))
    for kind, (name, steps) in zip(LINES, lines.items(), strict=False):
        chart.line(kind, *steps)
        whose = f" by {name[:LONGEST_LABEL] or 'everybody else'}" if len(lines) > 1 else ""
        marks.append(("line", kind, f"taken{whose}"))
    return chart.svg("What answers took from each clock, of whoever paid most, from the first one on.") + key(marks)


def _by_clock(account: AccountOverview) -> SpendingBars:
    groups = account.standing.groups
    words = "Each group has a clock of its own." if groups else "All who ask share one clock."
    everybody = "everybody else" if groups else "everybody"
    given = [
        (_group(name or everybody, groups.get(name, ())), spent, account.whole)
        for name, spent in account.by_group.items()
    ]
    return SpendingBars("By clock", words, ("clock of", "taken", "whole", ""), *_rows(given, _least(account)))


def _by_analyst(account: AccountOverview) -> SpendingBars:
    budgets = {who: _limit(most) for who, (_, most) in account.standing.analysts.items()}
    busiest = sorted(account.by_analyst.items(), key=lambda one: -one[1])
    given = [(analyst(who), spent, budgets.get(who)) for who, spent in busiest]
    words = "What each asked for, and may ask for in all."
    return SpendingBars("By analyst", words, ("analyst", "taken", "budget", ""), *_rows(given, _least(account)))


def _by_day(account: AccountOverview) -> SpendingBars:
    days = sorted(account.by_day.items(), reverse=True)
    limit = _limit(account.standing.day_budget)
    words = f"The last {MAX_DAYS} days with answers." if len(days) > MAX_DAYS else "Days with answers, in UTC."
    given = [(markup("{}", day), spent, limit) for day, spent in days[:MAX_DAYS]]
    return SpendingBars(
        "By day", words, ("day", "taken", "budget", ""), *_rows(given, _least(account) if limit is None else 0.0)
    )


def _rows(given: Sequence[tuple[Markup, float, float | None]], least: float) -> tuple[tuple[Row, ...], int]:
    """As they are shown, the bars on one scale that is `least` long at least; and how many are not shown."""
    shown = given[:MAX_ROWS]
    scale = max([least, *(max(spent, limit or 0.0) for _, spent, limit in shown)])
    rows = tuple(
        (name, taken(spent), NONE if limit is None else share(limit), bar(spent, limit, scale))
        for name, spent, limit in shown
    )
    return rows, len(given) - len(shown)


def _group(name: str, members: Iterable[str]) -> Markup:
    told = ", ".join(members)
    return markup("{}{}", name, markup(' <span class="small">{}</span>', told) if told else "")


def _least(account: AccountOverview) -> float:
    """How long a scale is at least, so that little looks little."""
    return account.whole or 1.0


def _limit(ticks: int | None) -> float | None:
    return None if ticks is None else ticks / TICKS


def _time(one: CountedAnswer) -> datetime:
    return datetime.fromisoformat(one.at).astimezone(UTC)


def _days(first: datetime, when: datetime) -> float:
    return (when - first) / timedelta(days=1)


def _steps(charges: list[tuple[float, float]], days: int) -> tuple[list[float], list[float]]:
    """A line that rises at every answer."""
    x, y = [0.0], [0.0]
    for when, amount in charges:
        x += [when, when]
        y += [y[-1], y[-1] + amount]
    return [*x, float(days)], [*y, y[-1]]


def _allowed(account: AccountOverview, first: datetime, days: int) -> tuple[list[float], list[float]]:
    """How long every clock was, raised caps included."""
    x, y = [0.0], [1.0]
    for change in account.changes:
        if "allowance" in change.what and change.at:
            when = min(max(0.0, _days(first, datetime.fromisoformat(change.at).astimezone(UTC))), float(days))
            x += [when, when]
            y += [y[-1], change.what["allowance"] / TICKS]
    return [*x, float(days)], [*y, y[-1]]


def _calendar(first: datetime, days: int) -> Axis:
    if days == 1:
        hours = tuple((hour / 24, f"{hour}:00") for hour in (0, 6, 12, 18))
        return Axis(f"hour of {first.date().isoformat()}, UTC", 0.0, 1.0, hours)
    shown = np.unique(np.linspace(0, days - 1, min(days, MAX_TICKS)).round().astype(int))
    ticks = tuple((float(day), (first + timedelta(days=int(day))).strftime("%m-%d")) for day in shown)
    return Axis(f"day, from {first.date().isoformat()}, UTC", 0.0, float(days), ticks)


def _shares(top: float) -> Axis:
    found = linear("of the clock at its start", 0.0, 1.08 * top)
    return Axis(found.label, found.low, found.high, tuple((y, f"{100 * y:.4g}{UNBROKEN}%") for y, _ in found.ticks))
