"""The questions that a session has answered, to be asked again in accounts that nobody has asked before.

That is what an audit plays with: the same data and the same code, other coins and other clocks. Nothing is charged to
the session's own account, and its coins are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from leakcap.custody.ledger import Book, Entry, budgets
from leakcap.custody.ledger.accounts import Spent, as_text, open_account
from leakcap.errors import InputError, LeakcapError
from leakcap.ground.arrays import Bools, Ints
from leakcap.noise import OperatingSystem, Randomness
from leakcap.sessions.answers import SessionAnswer
from leakcap.sessions.asked import sql_at
from leakcap.sessions.desk import Desk
from leakcap.sessions.partitioned import PartedQuestions
from leakcap.sessions.questions import SessionQuestion
from leakcap.sessions.session import Session, desk_of, questions_of

__all__ = ["AskedBefore", "Replay", "clocks_at", "desk_to_replay", "groups_asked", "new_desk", "replay_of"]

STATED = ("count", "sum", "mean", "histogram", "covariance", "quantile")  # questions that their words say in full
NO_TABLE = (
    "a session can be asked again where a coin was tossed for everybody, or under a pool cap, and all rows lie in one "
    "table: of this one, audit a plan of the same question"
)


@dataclass(frozen=True, eq=False)
class AskedBefore:
    """A question, and how it was paid for. Custodian side."""

    question: SessionQuestion
    noise: Any
    share: float | None


@dataclass(frozen=True, eq=False)
class Replay:
    """What a group of analysts asked, in the order in which it was answered. Custodian side."""

    asked: tuple[AskedBefore, ...]
    others: int  # answers whose questions cannot be asked again: fits, functions, and what was about other data


def desk_to_replay(session: Session) -> Desk:
    """That of a session whose questions can be asked again; an `InputError` otherwise."""
    desk = desk_of(session)
    if not isinstance(desk, Desk) or isinstance(questions_of(session), PartedQuestions):
        raise InputError(NO_TABLE)
    return desk


def new_desk(desk: Desk, account: str, coins: Bools, randomness: Randomness | None = None, **more: Any) -> Desk:
    """The same desk with an account that nobody has asked, and with these coins."""
    with desk.account.reading() as now:
        allowance = now.state["allowance"]
    opened = open_account(
        Book.in_memory(),
        account,
        design="pool" if desk.everybody else "bits",
        caps=(),
        version=desk.version,
        named=False,
        clock=(desk.clock.square, desk.clock.distance),
    )
    with opened.account.writing() as now:
        now.state["allowance"] = allowance
    given = {one.name: getattr(desk, one.name) for one in fields(Desk)}
    given |= {"account": opened.account, "coins": coins, "randomness": randomness or OperatingSystem()}
    return (_Stored if more else Desk)(**given, **more)


def clocks_at(desk: Desk) -> tuple[Ints, int]:
    """Ticks that everybody has paid from the clock of the desk's analyst, and how many anybody may."""
    with desk.account.reading() as now:
        spent = Spent.read(now, budgets.group_of(now.state, desk.analyst)).of(desk.people)
        return spent, int(now.state["allowance"])


def groups_asked(session: Session) -> list[str]:
    """Groups of analysts, each with a clock of its own, that were answered."""
    with desk_to_replay(session).account.reading() as now:
        asked = {entry.body["group"] for entry in now.entries() if entry.kind == "answer"}
        return [group for group in budgets.groups(now.state) if group in asked]


def replay_of(session: Session, group: str, coins: Bools) -> Replay:
    """The questions of a group that can be asked again."""
    desk, heard, known = desk_to_replay(session), list[AskedBefore](), list[Entry]()
    with desk.account.reading() as now:
        answered = [one for one in now.entries() if one.kind == "answer" and one.body["group"] == group]
        for one in answered:
            of_these = [
                now.answered(as_text([one.body["question"], desk.version, group, way])) for way in (True, False)
            ]
            if one.number in [found.number for found in of_these if found is not None]:
                known.append(one)
    desk = new_desk(desk, session.name, coins, heard=heard)
    with desk.account.writing() as now:
        for one in known:
            same = as_text([one.body["question"], desk.version, budgets.EVERYBODY, desk.retire])
            now.append("answer", one.body, charge=0, question=same)
    for words, steps in _in_words(known):
        before = len(heard)
        try:
            _asked(session, desk, words, steps)
        except LeakcapError:  # a text that is not what it was, or a function that is not at hand
            del heard[before:]
    return Replay(tuple(heard), len(answered) - len(heard))


@dataclass(frozen=True, eq=False)
class _Stored(Desk):
    """Hands out what was answered before, keeps what was asked, and answers nothing else."""

    heard: list[AskedBefore] = field(default_factory=list)

    def answer(
        self, question: SessionQuestion, *, noise: Any = None, share: float | None = None, request: str | None = None
    ) -> SessionAnswer:
        found = super().answer(question, noise=noise, share=share)
        self.heard.append(AskedBefore(question, noise, share))
        return found

    def _charge(self, *_: Any, **__: Any) -> Any:
        raise InputError("this question was not answered before: ask it in the session itself")


def _in_words(entries: list[Entry]) -> Iterator[tuple[dict[str, Any], int]]:
    """Questions as they were asked, and in how many steps each was answered."""
    steps: dict[str, int] = {}
    for entry in entries:
        words = json.loads(entry.body["question"])
        same = json.dumps({name: one for name, one in words.items() if name != "step"}, sort_keys=True)
        steps[same] = steps.get(same, 0) + 1
    for same, count in steps.items():
        yield json.loads(same), count


def _asked(session: Session, desk: Desk, words: dict[str, Any], steps: int) -> None:
    how: dict[str, Any] = {name: words.pop(name) for name in ("noise", "share") if name in words}
    kind = words.pop("kind")
    if kind == "sql":
        if "share" in how:
            how["share"] *= steps  # of all steps together
        sql_at(session, desk, words["sql"], how, rows=words.get("rows"))
    elif kind in STATED:
        desk.answer(getattr(questions_of(session), kind)(**_given(words)), **how)


def _given(words: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a question, as its words say them."""
    return {name: one for name, one in words.items() if one is not None}
