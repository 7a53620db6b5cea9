"""The page of a ledger: what all releases on a data set together allow, and how it came about. For the custodian.

One file without scripts or outside references, and a pure function of its record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from leakcap.certificates.session import spoken
from leakcap.custody.ledger.accounts import TICKS
from leakcap.report.compared import guesses_after_all
from leakcap.report.html import Markup, markup, render, shortened
from leakcap.report.ledger.spending import bar, bars, line
from leakcap.report.ledger.words import NONE, analyst, changed, count, moment, share, taken, when
from leakcap.report.numbers import bound, unbroken
from leakcap.report.words import ATTACK_HEADS
from leakcap.sessions.overview import AccountOverview, LedgerOverview
from leakcap.version import __version__

__all__ = ["ledger_facts", "ledger_fragment", "ledger_page"]

ALL = "All data sets of the ledger"
MEETING = "Where a line meets the orange one, whoever brings the most cannot pay any more."
LEANING = "Added up, the most that each took. How much is left follows from the answers, too, and may be more."
MAX_LISTED = 200  # answers on the page; all of them are in the ledger


def ledger_page(record: LedgerOverview) -> str:
    """A whole HTML document for the custodian."""
    return render("ledger/page.html", **ledger_facts(record))


def ledger_fragment(record: LedgerOverview) -> str:
    """A part of a notebook: the sentence and the figure of every data set, and what is left of its clocks."""
    return render("ledger/fragment.html", **ledger_facts(record))


def ledger_facts(record: LedgerOverview) -> dict[str, Any]:
    """What the page shows, for templates of other pages that show it too."""
    accounts = [_account(one, record.others) for one in record.accounts]
    single = len(accounts) == 1
    return {
        "title": accounts[0]["name"] if single else ALL,
        "kicker": f"leakcap ledger {record.place} · {moment(record.made)} UTC",
        "lead": accounts[0]["lead"] if single else _lead(record),
        "accounts": accounts,
        "single": single,
        "index": [_indexed(place, one) for place, one in enumerate(record.accounts, start=1)],
        "warning": _warning(record),
        "whole": _whole(record),
        "faults": record.findings.faults,
        "version": __version__,
    }


def _lead(record: LedgerOverview) -> str:
    if not record.accounts:
        return "Nothing was answered yet."
    return (
        f"{len(record.accounts):,} data sets. Every figure is about all answers on one of them: nothing bounds several "
        "together for people who are in more than one."
    )


def _warning(record: LedgerOverview) -> tuple[str, str] | None:
    if not record.findings.whole:
        return "THE LEDGER IS NOT WHOLE", "What stands here may be wrong: bring the ledger back from its latest copy."
    uncounted = sum(len(one.uncounted) for one in record.accounts)
    if uncounted:
        why = f"{uncounted:,} releases were made besides, with secrets of their own: no figure covers them."
        if uncounted == 1:
            why = "A release was made besides, with a secret of its own: no figure covers it."
        return "NOT EVERYTHING IS COUNTED", why
    return None


def _whole(record: LedgerOverview) -> str:
    found = record.findings
    if not found.whole:
        return "No. Found wrong:"
    return (
        f"Yes: all {found.entries:,} entries of {found.accounts:,} accounts, the ledger's own among them, are whole, "
        "in their places, and the latest that the key file knows of."
    )


def _account(one: AccountOverview, others: tuple[str, ...]) -> dict[str, Any]:
    standing = one.standing
    asked = [] if standing.forgotten else list(_asked(one))
    listed = asked[-MAX_LISTED:]
    return {
        "name": shortened(standing.name),
        "lead": unbroken(one.words),
        "told": _told(one),
        "card": None if one.success is None else guesses_after_all(standing.design == "pool", one.success),
        "own": one.own,
        "own_heads": ATTACK_HEADS,
        "limits": _limits(one),
        "changes": [
            (" ".join(changed(change.what)), change.why, shortened(change.who), when(change.at))
            for change in one.changes
        ],
        "bars": [] if standing.forgotten or standing.design == "release" else bars(one),
        "line": None if standing.forgotten or standing.design == "release" else line(one),
        "line_words": LEANING if standing.listed else MEETING,
        "answered": "" if standing.forgotten else count(len(one.answers)),
        "answers": listed,
        "earlier": f"{len(asked) - len(listed):,}" if len(asked) > len(listed) else "",
        "uncounted": [(shortened(release.what), when(release.at)) for release in one.uncounted],
        "not_counted": _not_counted(one, others),
    }


def _answers(one: AccountOverview) -> int:
    return one.standing.answers if one.standing.forgotten else len(one.answers)


def _told(one: AccountOverview) -> list[tuple[str, list[str]]]:
    standing = one.standing
    if one.closed is not None:
        closed = f"Forgotten {moment(one.closed.at)} UTC by {one.closed.who}: {one.closed.why}"
        erased = f"What was asked is erased. That there were charges, {count(standing.answers)}, stays on record."
        return [("Closed for ever", [closed, erased])]
    opened = f"Since {moment(standing.opened)} UTC." if standing.opened else ""
    found = [("The secret", [f"{one.together.promise}.", opened])]
    caps = [unbroken(f"{cap[:1].upper()}{cap[1:]}.") for cap in standing.raised or standing.caps]
    if caps:
        found.append(("What is capped", [*caps, "This was raised: see below." if standing.raised else ""]))
    if standing.design != "release":
        found.append((f"So far: {count(_answers(one))}", _so_far(one)))
    return found


def _so_far(one: AccountOverview) -> list[str]:
    if not one.answers:
        return ["Nothing was asked yet."]
    if one.together.so_far is None:
        return ["What every answer took is known. What is left follows from all of them together."]
    used = max(one.by_group.values()) / (one.whole or 1.0)
    short = "By what was declared a clock has run out: whoever cannot pay is left out, or the question is refused."
    return [
        unbroken(f"They allow at most {bound(one.together.so_far)} right guesses."),
        f"At most {taken(used)} of any clock is used up." if used < 1 else short,
    ]


def _limits(one: AccountOverview) -> list[tuple[str, str]]:
    standing = one.standing
    none = "none here: the certificate of the encoded set has them" if standing.encoded else "none: nothing was counted"
    found = [("Caps", "; ".join(standing.caps) or none)]
    if standing.raised:
        found = [("Caps, as raised", "; ".join(standing.raised)), ("Opened with", "; ".join(standing.caps))]
    if standing.day_budget is not None:
        found.append(("A day may use", f"{share(standing.day_budget / TICKS)} of the clock"))
    return found


def _asked(one: AccountOverview) -> Iterator[tuple[Markup | str, ...]]:
    """What was asked, in order; the steps of a fit as one."""
    for (words, who), group in groupby(one.answers, key=lambda answer: (spoken(answer.question), answer.who)):
        answers = list(group)
        many = f", {count(len(answers))}" if len(answers) > 1 else ""
        share_of_all = taken(sum(answer.share for answer in answers))
        yield markup("{}{}", shortened(words), many), analyst(who), when(answers[0].at), share_of_all


def _indexed(place: int, one: AccountOverview) -> tuple[Markup | str, ...]:
    name = markup('<a href="#account-{}">{}</a>', place, shortened(one.standing.name))
    most = NONE if one.success is None else bound(one.success)
    if one.standing.forgotten:
        return name, f"{_answers(one):,}", most, "closed", ""
    spent = max(one.by_group.values())
    return name, f"{_answers(one):,}", most, taken(spent), bar(spent, one.whole, max(spent, one.whole or 1.0))


def _not_counted(one: AccountOverview, others: tuple[str, ...]) -> list[Markup | str]:
    found: list[Markup | str] = []
    if one.same_data:
        names = ", ".join(repr(name) for name in one.same_data)
        found.append(f"The ledger knows the same contents under other names, each with a secret of its own: {names}.")
    if others:
        names = ", ".join(others)
        found.append(markup("Other data sets of this ledger, should they hold the same people: {}.", shortened(names)))
    found.append("Releases that this ledger was not told of: of other ledgers, or of plans without one.")
    return found
