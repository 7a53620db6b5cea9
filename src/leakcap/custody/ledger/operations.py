"""What the custodian does with a ledger besides answering: look, verify, export, set budgets, forget.

Plain records go out, and nothing is printed here. How long a clock is belongs to sessions: numbers of ticks come in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from leakcap.caps import Cap
from leakcap.custody.ledger.book import Account, Book
from leakcap.custody.ledger.budgets import EVERYBODY
from leakcap.custody.ledger.capped import are_larger, caps_now, in_numbers, in_words
from leakcap.custody.ledger.opened import Open
from leakcap.errors import InputError

__all__ = ["LedgerFindings", "Standing", "account_named", "export", "forget", "set_budget", "show", "verify"]

LISTED = ("worlds", "cohorts")
COLUMNS = ("number", "at", "kind", "who", "charge", "text", "why", "numbers")


@dataclass(frozen=True)
class Standing:
    """Where an account stands. Custodian side. Amounts are ticks, 10^-12 of the clock it was opened with."""

    name: str
    design: str
    caps: tuple[str, ...]  # with which it was opened, and is opened again
    raised: tuple[str, ...]  # caps that were raised later, in words; empty where none were
    answers: int
    allowance: int  # how long everybody's clock is
    groups: Mapping[str, tuple[str, ...]]  # analysts who have a clock of their own
    declared: Mapping[str, int]  # by group: the most that answers took from anybody
    analysts: Mapping[str, tuple[int, int | None]]  # what each has used, and may use
    days: Mapping[str, int]  # what was used on each
    day_budget: int | None
    opened: str
    latest: str  # when the last answer was given; empty where there is none
    forgotten: bool
    square: float = 0.0  # of a clock as it was opened, where charges are squared distances
    distance: float = 0.0  # in total variation, by which all answers together may be off
    encoded: str = ""  # when the data were encoded for a server; empty where they were not

    @property
    def listed(self) -> bool:
        """Whether the secret is one of a list of halves."""
        return self.design in LISTED


@dataclass(frozen=True)
class LedgerFindings:
    """What was found in a ledger."""

    accounts: int
    entries: int
    faults: tuple[str, ...] = field(default=())

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def show(book: Book) -> list[Standing]:
    """Where every account stands, in the order of their names."""
    found = []
    for account in book.accounts():
        with account.reading(forgotten=True) as now:
            if now.title is not None and "design" in now.title:  # others are the ledger's own
                found.append(_standing(now))
    return sorted(found, key=lambda one: one.name)


def account_named(book: Book, name: str) -> Account:
    """The account of a data set; an InputError where there is none."""
    account = book.account(name)
    with account.reading(forgotten=True) as now:
        if now.title is not None and "design" in now.title:  # others are the ledger's own
            return account
    raise InputError(f"the ledger {book.store.place} has no account {name!r}: see its names with leakcap ledger show")


def verify(book: Book) -> LedgerFindings:
    """Walk all chains, open all that is stored, compare with the key file; what is wrong, in words."""
    faults: list[str] = []
    entries = 0
    accounts = book.accounts()
    for place, account in enumerate(accounts, start=1):
        name = f"account {place}"
        try:
            with account.reading(forgotten=True) as now:
                name = repr((now.title or {}).get("name", name))
                charges = 0
                for entry in now.entries():
                    entries += 1
                    charges += entry.charge
                for value in now.names():
                    now.value(value, fresh=True)
                if "declared" in now.state and charges != sum(now.state["declared"].values()):
                    faults.append(f"{name}: charges do not add up to what the groups have spent")
        except InputError as error:
            faults.append(f"{name}: {error}")
    return LedgerFindings(len(accounts), entries, tuple(faults))


def export(account: Account) -> Iterator[dict[str, Any]]:
    """Every entry as a row with the same columns, for JSON or CSV. It holds answers, and no secret, clock or person."""
    with account.reading(forgotten=True) as now:
        rows = []
        for entry in now.entries():
            body = entry.body
            rows.append(
                {
                    "number": entry.number,
                    "at": body.get("at", ""),
                    "kind": entry.kind,
                    "who": body.get("analyst", body.get("who", "")),
                    "charge": entry.charge,
                    "text": body.get("question", body.get("what", "")),
                    "why": body.get("why", ""),
                    "numbers": list(body.get("numbers", [])),
                }
            )
    yield from rows


def set_budget(
    account: Account,
    *,
    who: str,
    why: str,
    analysts: Mapping[str, int | None] | None = None,
    day: int | str | None = "",
    groups: Mapping[str, Sequence[str]] | None = None,
    allowance: int | None = None,
    caps: Sequence[Cap] = (),
) -> None:
    """Set budgets, with who did it and why in an entry of its own.

    Args:
        account: whose.
        who: sets them.
        why: they are set.
        analysts: ticks that each may use; None takes a budget away.
        day: ticks that a day may use, None for no such budget, empty to leave it as it is.
        groups: analysts by group, each of which gets a clock of its own: they tell more together than one cap allows.
            Groups that there are stay, with all that they have spent, and nobody leaves one for another.
        allowance: how long everybody's clock is from now on, in ticks of the one it was opened with: longer for a cap
            that was raised. Never shorter: answers were given by what was promised before.
        caps: the larger caps that make it so long, of the same kinds. Ticks are still counted by those with which the
            account was opened.
    """
    if not who or not why:
        raise InputError("say who sets a budget and why: it is written down")
    with account.writing() as now:
        if now.title is None:
            raise InputError("there is no such account: open a session on the data first")
        if now.title.get("design") in LISTED and (groups is not None or allowance is not None):
            raise InputError(
                "with a list of worlds nothing bounds groups together, and a clock cannot be made longer like this: "
                "give analysts or days a budget"
            )
        if now.title.get("always") and (analysts or not isinstance(day, str)):
            raise InputError(
                "with always=True no clock runs down, so that a share of it is no budget: every answer is checked by "
                "itself"
            )
        what: dict[str, Any] = {}
        budgets = now.state.setdefault("budgets", {})
        for analyst, ticks in (analysts or {}).items():
            own = budgets.setdefault("analysts", {})
            own.pop(analyst, None)
            if ticks is not None:
                own[analyst] = _ticks(ticks)
            what.setdefault("analysts", {})[analyst] = ticks
        if not isinstance(day, str):
            budgets["day"] = what["day"] = None if day is None else _ticks(day)
        if groups is not None:
            now.state["groups"] = what["groups"] = _grown(now, groups)
        if allowance is not None:
            _raise_clock(now, _ticks(allowance), caps)
            what |= {"allowance": allowance, "caps": in_words(caps)}
        if not what:
            raise InputError("name a budget to set: of an analyst, of a day, of groups, or a cap")
        now.append("budget", {"what": what, "who": who, "why": why, "at": _at()})


def forget(account: Account, *, who: str, why: str) -> None:
    """Erase the secret, all clocks and all that was asked and answered, and close the account for ever.

    The chain and its charges stay, so that nobody can begin anew under the same name. Copies of the ledger, and the
    key together with them, are the custodian's to destroy.
    """
    if not who or not why:
        raise InputError("say who wants this to be forgotten and why: it is written down")
    with account.writing() as now:
        if now.title is None:
            raise InputError("there is no such account, so that there is nothing to forget")
        for name in now.names():
            now.put(name, None)
        now.erase()
        now.title = {name: now.title[name] for name in ("name", "design", "caps") if name in now.title}
        now.state = {"forgotten": True, "values": now.state.get("values", {})}
        now.append("forgotten", {"who": who, "why": why, "at": _at()})
    account.book.store.scrub()


def _standing(now: Open) -> Standing:
    title, state = now.title or {}, now.state
    answers, opened, encoded = 0, "", ""
    for entry in now.entries():
        answers += entry.charge > 0
        opened = opened or entry.body.get("at", "")
        encoded = entry.body.get("at", "") if entry.body.get("encoded") else encoded
    used, budgets = state.get("used", {}), state.get("budgets", {})
    analysts = {**dict.fromkeys(budgets.get("analysts", {}), 0), **used.get("analysts", {})}
    return Standing(
        name=title["name"],
        design=title["design"],
        caps=tuple(title["caps"]),
        raised=tuple(state.get("raised", ())),
        answers=answers,
        allowance=int(state.get("allowance", 0)),
        groups={name: tuple(members) for name, members in state.get("groups", {}).items()},
        declared=dict(state.get("declared", {})),
        analysts={name: (spent, budgets.get("analysts", {}).get(name)) for name, spent in analysts.items()},
        days=dict(Counter(used.get("days", {})) + Counter(used.get("days_of_pool", {}))),
        day_budget=budgets.get("day"),
        opened=opened,
        latest=state.get("latest", ""),
        forgotten=now.forgotten,
        square=float(title.get("square", 0.0)),
        distance=float(title.get("distance", 0.0)),
        encoded=encoded,
    )


def _grown(now: Open, groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Groups after a change: whoever has asked stays with the clock they asked by."""
    before = now.state.get("groups", {})
    after = {str(name): [str(one) for one in members] for name, members in groups.items()}
    everyone = [one for members in after.values() for one in members]
    if EVERYBODY in after or not all(everyone):
        raise InputError("groups and analysts need names")
    if len(set(everyone)) != len(everyone):
        raise InputError("an analyst is in one group, or in none: a second clock would be a second budget")
    if not all(set(members) <= set(after.get(name, ())) for name, members in before.items()):
        raise InputError("groups stay, and nobody leaves one: what they know cannot be taken back")
    asked = set(now.state.get("used", {}).get("analysts", {}))
    joined = set(everyone) - {one for members in before.values() for one in members}
    if joined & asked:
        raise InputError(
            "an analyst who has asked already keeps the clock of everybody: only those who have not may join a group"
        )
    return after


def _raise_clock(now: Open, allowance: int, caps: Sequence[Cap]) -> None:
    if not caps:
        raise InputError("name the caps that allow a longer clock")
    before = caps_now(now.title or {}, now.state)
    if before and not are_larger(caps, before):
        raise InputError(
            "raise a cap to a larger one of its own kind, such as 0.55 to 0.6. It is never lowered: answers were given "
            "by it. Give analysts or days a budget"
        )
    if allowance < int(now.state["allowance"]):
        raise InputError("a cap is raised, never lowered: answers were given by it. Give analysts or days a budget")
    now.state |= {"raised": in_words(caps), "capped": in_numbers(caps), "allowance": allowance}


def _ticks(amount: int) -> int:
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
        raise InputError("a budget must be a whole number of ticks, and not below 0")
    return amount


def _at() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
