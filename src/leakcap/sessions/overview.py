"""What all releases on a data set together allow, and how it came about: a ledger at a glance.

Read from the ledger's own entries: what was asked, by whom, and what it took at most. No secret, no clock of a person
and no released number is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from leakcap.certificates.display import Displayed
from leakcap.certificates.release import Certificate
from leakcap.certificates.text import in_short
from leakcap.custody.ledger import Account, Book, Store, open_book
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.budgets import EVERYBODY, group_of
from leakcap.custody.ledger.operations import LedgerFindings, Standing, account_named, export, show, verify
from leakcap.errors import InputError
from leakcap.sessions.standing import Together, together

__all__ = ["AccountOverview", "BudgetChange", "CountedAnswer", "LedgerOverview", "UncountedRelease", "overview"]


@dataclass(frozen=True)
class CountedAnswer:
    """An answer or a release that the account was charged for; shares are of the clock that it was opened with."""

    at: str  # ISO time in UTC; empty where it was forgotten
    who: str  # empty for the custodian
    group: str  # by whose clock; empty for everybody's
    question: str
    share: float  # of the clock of whoever pays the most


@dataclass(frozen=True)
class BudgetChange:
    """A budget that was set, or a cap that was raised."""

    at: str
    who: str
    why: str
    what: Mapping[str, Any]  # amounts in ticks


@dataclass(frozen=True)
class UncountedRelease:
    """A release that was written down and not counted."""

    at: str
    what: str


@dataclass(frozen=True)
class AccountOverview:
    """One data set. Custodian side.

    Attributes:
        standing: where its account stands.
        together: what all of it allows.
        answers: what was counted, in order.
        changes: budgets and raised caps, in order.
        uncounted: releases that were recorded and not counted.
        closed: when it was forgotten, by whom and why; None for an open account.
        own: of a release that has the account for itself, what its certificate says in short.
        same_data: other names under which the ledger knows the same contents.
    """

    standing: Standing
    together: Together
    answers: tuple[CountedAnswer, ...]
    changes: tuple[BudgetChange, ...]
    uncounted: tuple[UncountedRelease, ...]
    closed: BudgetChange | None = None
    own: tuple[tuple[str, str, str], ...] = ()
    same_data: tuple[str, ...] = ()

    @property
    def success(self) -> float | None:
        """Of the best guess at one person once all clocks have run out; None where that is not one figure."""
        return self.together.success

    @property
    def words(self) -> str:
        """What all that is counted allows, in a sentence; and that nothing bounds what is not."""
        if not self.uncounted and not self.same_data:
            return self.together.words
        if self.standing.design == "release":
            return "Nothing bounds all that was released of these data together: each release had a secret of its own."
        words = self.together.words
        besides = f" Nothing bounds it together with {_listed(self.same_data)}." if self.same_data else ""
        return f"Of what is counted: {words[0].lower()}{words[1:]}{besides}"

    @property
    def whole(self) -> float | None:
        """How long everybody's clock is; None for listed worlds, where what is left follows from the answers, too."""
        return None if self.standing.listed else self.standing.allowance / TICKS

    @property
    def by_group(self) -> dict[str, float]:
        """What was taken from each group's clock, at most; that of everybody comes first."""
        groups = dict.fromkeys((EVERYBODY, *self.standing.groups), 0.0)
        return _added(groups, ((one.group, one.share) for one in self.answers))

    @property
    def by_analyst(self) -> dict[str, float]:
        """What each asked for; those with a budget who did not ask are there, too."""
        return _added(dict.fromkeys(self.standing.analysts, 0.0), ((one.who, one.share) for one in self.answers))

    @property
    def by_day(self) -> dict[str, float]:
        """What was asked for on each day, by the clock in UTC."""
        return _added({}, ((one.at[:10], one.share) for one in self.answers if one.at))


@dataclass(frozen=True)
class LedgerOverview(Displayed):
    """Some or all data sets of a ledger. Custodian side.

    Attributes:
        place: of the ledger.
        made: when it was looked at, ISO time in UTC.
        accounts: the data sets that are shown.
        others: names of those that are not.
        findings: whether the whole ledger is as it was written.
    """

    _custodian_only: ClassVar[bool] = True

    place: str
    made: str
    accounts: tuple[AccountOverview, ...]
    others: tuple[str, ...]
    findings: LedgerFindings


def overview(ledger: str | Store | None = None, name: str | None = None) -> LedgerOverview:
    """A ledger at a glance, for the custodian: `overview("sqlite:///ledger.db").save("ledger.html")` is its page.

    Args:
        ledger: "sqlite:///file", "postgresql://..." or a store; None for the one beside the key.
        name: one data set; None for all.

    Returns:
        The record. In a notebook it shows itself.

    Raises:
        InputError: there is no such ledger or data set, or an account does not open: figures would mean nothing.
    """
    book = open_book(ledger)
    if name is not None:
        account_named(book, name)  # says what can be done where there is none
    standings = show(book)
    contents = {one.name: _contents(book.account(one.name)) for one in standings}
    return LedgerOverview(
        place=book.store.place,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        accounts=tuple(_account(book, one, contents) for one in standings if name in (None, one.name)),
        others=tuple(one.name for one in standings if name not in (None, one.name)),
        findings=verify(book),
    )


def _account(book: Book, standing: Standing, contents: Mapping[str, set[str]]) -> AccountOverview:
    account = book.account(standing.name)
    rows = list(export(account))
    own = contents[standing.name]
    told = [row for row in rows if row["kind"] == "forgotten" and row["who"]]
    return AccountOverview(
        standing=standing,
        together=together(standing),
        answers=tuple(_counted(standing, rows)),
        changes=tuple(_change(row) for row in rows if row["kind"] == "budget"),
        uncounted=tuple(UncountedRelease(row["at"], str(row["text"])) for row in rows if row["kind"] == "alone"),
        closed=_change(told[-1]) if told else None,
        own=_own_words(account) if standing.design == "release" else (),
        same_data=tuple(name for name, one in contents.items() if one & own and name != standing.name),
    )


def _counted(standing: Standing, rows: list[dict[str, Any]]) -> Iterator[CountedAnswer]:
    """Everything that was charged for; the numbers of an answer from listed worlds are one."""
    whole: dict[str, int] = {}
    for row in rows:
        if row["kind"] == "number":
            whole[row["text"]] = whole.get(row["text"], 0) + row["charge"]
    for row in rows:
        charge = whole.pop(row["text"], 0) if row["kind"] == "number" else row["charge"]
        if charge > 0:
            who = str(row["who"])
            group = group_of({"groups": standing.groups}, who)
            yield CountedAnswer(row["at"], who, group, question=str(row["text"]), share=charge / TICKS)


def _change(row: Mapping[str, Any]) -> BudgetChange:
    what = row["text"] if isinstance(row["text"], Mapping) else {}
    return BudgetChange(row["at"], str(row["who"]), str(row["why"]), what)


def _contents(account: Account) -> set[str]:
    """By which the data are known, as they were last; empty where they are forgotten."""
    with account.reading(forgotten=True) as now:
        return {*now.state.get("contents", ()), *filter(None, [now.state.get("version")])}


def _own_words(account: Account) -> tuple[tuple[str, str, str], ...]:
    """What the certificate of the one release says; nothing where another version wrote it."""
    with account.reading(forgotten=True) as now:
        told = [entry.body["certificate"] for entry in now.entries() if "certificate" in entry.body]
    try:
        return tuple(row for text in told for row in in_short(Certificate.from_json(text)))
    except InputError:
        return ()


def _listed(names: tuple[str, ...]) -> str:
    return f"what is known as {' and '.join(map(repr, names))}, data of the same people"


def _added(start: dict[str, float], amounts: Iterator[tuple[str, float]]) -> dict[str, float]:
    for name, share in amounts:
        start[name] = start.get(name, 0.0) + share
    return start
