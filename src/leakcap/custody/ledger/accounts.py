"""The account of a data set in the ledger: its secret, everybody's clock, and what was answered; custodian side."""

from __future__ import annotations

import hmac
import json
import secrets
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from leakcap.caps import Cap
from leakcap.custody.ledger.book import Account, Book
from leakcap.custody.ledger.budgets import EVERYBODY
from leakcap.custody.ledger.capped import caps_now, caps_then, in_numbers, in_words
from leakcap.custody.ledger.opened import Open
from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Ints
from leakcap.worlds.keyed import KEY_BYTES, keyed_bits, keyed_numbers

__all__ = [
    "TICKS",
    "Opened",
    "Secret",
    "Spent",
    "as_text",
    "checked_name",
    "known_secret",
    "name_of",
    "open_account",
    "record_alone",
]

TICKS = 10**12  # of a clock at its start

CONTENTS = "\0contents"  # the account of which data are known by which name
DESIGNS = {
    "bits": "a coin for everybody",
    "pool": "everybody takes part, under a pool cap",
    "worlds": "one of a list of worlds",
    "cohorts": "one of a list of halves of cohorts, whose people share a bit",
    "release": "a release with a secret world of its own",
}

GO_ON = {
    "bits": "Go on with design='bits' and its membership cap",
    "pool": "Go on with its pool cap",
    "worlds": "Go on with design='worlds', in a session",
    "cohorts": "Go on with design='cohorts', in a session",
    "release": "Keep what was released: it is all that these data give",
}


@dataclass(frozen=True)
class Secret:
    """One for each account. Keys for different purposes have nothing to do with each other."""

    seed: bytes = field(repr=False)

    def key(self, purpose: str) -> bytes:
        """Of `KEY_BYTES`; whoever has one of them knows none of the others."""
        return hmac.digest(self.seed, b"leakcap session " + purpose.encode(), "sha256")[:KEY_BYTES]

    def coins(self, names: Any) -> Bools:
        """A fair coin for everybody, the same for ever."""
        return keyed_bits(names, self.key("coins"))

    def people(self, names: Any) -> Any:
        """A number for everybody by which clocks are found."""
        return keyed_numbers(names, self.key("people"))


@dataclass(frozen=True, eq=False)
class Opened:
    """A session's account."""

    account: Account
    secret: Secret
    name: str
    world: int | None = None  # the secret one, where there is a list of them
    square: float = 0.0  # of everybody's clock, where charges are squares
    distance: float = 0.0  # in total variation, by which the laws of all answers together may be off
    caps_then: tuple[Cap, ...] = ()  # with which it was opened: by these clocks are counted
    caps_now: tuple[Cap, ...] = ()  # those, or what they were raised to


@dataclass(frozen=True, eq=False)
class Spent:
    """The clocks of a group of analysts: ticks spent on every person who was ever in the data.

    People are known by keyed numbers, in the order in which they came. Should two have the same number, they share a
    clock, which then is too fast for both.
    """

    people: Any  # (k,): uint64
    ticks: Ints  # (k,)

    @classmethod
    def read(cls, now: Open, group: str) -> Spent:
        people, ticks = now.value(f"people/{group}"), now.value(f"clocks/{group}")
        if people is None or ticks is None:
            return cls(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
        return cls(np.frombuffer(people, dtype="<u8"), np.frombuffer(ticks, dtype="<i8"))

    def of(self, people: Any) -> Ints:
        """Ticks that were spent on these people; 0 where they are new."""
        if len(self.people) == len(people) and np.array_equal(self.people, people):
            return self.ticks
        known, place = self._places(people)
        found = np.zeros(len(people), dtype=np.int64)
        found[known] = self.ticks[place]
        return found

    def after(self, people: Any, ticks: Ints) -> Spent:
        """With what is spent now on these people; everybody else keeps their clock."""
        if len(self.people) == len(people) and np.array_equal(self.people, people):
            return Spent(self.people, ticks)
        known, place = self._places(people)
        first = np.sort(np.unique(people[~known], return_index=True)[1])  # in the order in which they came
        both = np.concatenate([self.people, people[~known][first]])
        spent = np.concatenate([self.ticks, ticks[~known][first]])
        np.maximum.at(spent, place, ticks[known])
        return Spent(both, spent)

    def _places(self, people: Any) -> tuple[Bools, Ints]:
        order = np.argsort(self.people)
        ordered = self.people[order]
        place = np.minimum(np.searchsorted(ordered, people), max(0, len(ordered) - 1))
        known = ordered[place] == people if len(ordered) else np.zeros(len(people), dtype=bool)
        return known, order[place[known]] if len(ordered) else np.empty(0, dtype=np.intp)

    def write(self, now: Open, group: str, before: Spent) -> None:
        """Lay the clocks beside the next entry; the list of people only where somebody is new."""
        if len(before.people) != len(self.people):
            now.put(f"people/{group}", np.asarray(self.people, dtype="<u8").tobytes())
        now.put(f"clocks/{group}", np.asarray(self.ticks, dtype="<i8").tobytes())


def open_account(
    book: Book,
    name: str,
    *,
    design: str,
    caps: tuple[Cap, ...],
    version: str,
    named: bool,
    worlds: int | None = None,
    cohorts: int | None = None,
    clock: tuple[float, float] = (0.0, 0.0),
    always: bool = False,
    contents: tuple[str, ...] = (),
    people: Any = (),
    numbers: Any = None,
    secret: Secret | None = None,
    other_caps: bool = False,
) -> Opened:
    """The account of a data set; a new one, with a new secret, where the ledger does not know it.

    `version` is a fingerprint of the contents, `contents` are names of which the same people's data share one, `named`
    says whether rows carry the names of `people`, so that contents may change; `worlds` is how many there are to choose
    from, where there is a list of them, and `cohorts` how many share bits there; `clock` the square and the distance
    that the caps allow. `numbers` are those of people who were numbered before, by the `secret` that a new account
    shall have. With `other_caps` an account that is there keeps its own.
    """
    _known_contents(book, checked_name(name), contents)
    account = book.account(name)
    with account.writing() as now:
        if now.title is None:
            seed = (secrets.token_bytes(32) if secret is None else secret.seed).hex()
            now.title = {"name": name, "design": design, "caps": in_words(caps), "named": named, "secret": seed}
            now.title |= {"square": clock[0], "distance": clock[1], "always": always, "capped": in_numbers(caps)}
            if worlds is not None:
                width = len(str(worlds - 1))  # whoever sees how long a sealed title is learns nothing about the world
                now.title |= {"worlds": worlds, "world": f"{secrets.randbelow(worlds):0{width}d}"}
            if cohorts is not None:
                now.title["cohorts"] = cohorts
            now.state = {"version": version, "contents": list(contents), "allowance": TICKS}
            at = datetime.now(UTC).isoformat(timespec="seconds")
            now.append("opened", {"name": name, "design": design, "caps": in_words(caps), "at": at})
        title, state = now.title, now.state
        if state.get("forgotten"):
            raise InputError(
                f"what was answered about {name!r} was forgotten, so that nothing more can be answered about it"
            )
        _refuse_mixture(name, title, design)
        if not other_caps:
            _refuse_other_caps(name, in_words(caps), title["caps"], state.get("raised", []))
        if named != title["named"] and design != "release":
            raise InputError(
                f"in the account of {name!r} people are known {'by name' if title['named'] else 'by their rows'}: "
                f"open it {'with the same unit=' if title['named'] else 'without unit='}, or each would have two coins"
            )
        if always != title.get("always", False):
            raise InputError(f"{name!r} has an account with always={title.get('always', False)}: open it as it is")
        if worlds != title.get("worlds"):
            raise InputError(f"{name!r} has an account with {title.get('worlds')} worlds: open it with as many")
        if cohorts != title.get("cohorts"):
            raise InputError(f"{name!r} has an account with {title.get('cohorts')} cohorts: open it with as many")
        if state["version"] != version:
            if worlds is not None:
                raise InputError(
                    f"the data of {name!r} have changed, and worlds were listed for the people that were in them: go "
                    "on with those data. A session with a coin for everybody takes changes"
                )
            if not named or not title["named"]:
                raise InputError(
                    f"the data of {name!r} have changed, and nothing says whose rows are whose: name the people with "
                    "unit=, so that each keeps their coin and their clock. An account that was begun without has to "
                    "go on with the data it was begun with"
                )
            held = Secret(bytes.fromhex(title["secret"]))
            _refuse_strangers(name, now, held.people(people) if numbers is None else numbers)
            state |= {"version": version, "contents": list(contents)}
            now.append("contents", {"changed": True})
    _known_contents(book, name, contents, remember=True)  # last: what was not opened is nobody's name
    return Opened(
        account,
        Secret(bytes.fromhex(title["secret"])),
        name,
        world=None if title.get("world") is None else int(title["world"]),
        square=title["square"],
        distance=title["distance"],
        caps_then=caps_then(title) or caps,
        caps_now=caps_now(title, state) or caps,
    )


def known_secret(book: Book, name: str) -> Secret | None:
    """That of an account which the ledger has, for rows that are dealt by it before the account is opened."""
    with book.account(checked_name(name)).reading() as now:
        seed = (now.title or {}).get("secret")
    return Secret(bytes.fromhex(seed)) if seed else None


def record_alone(book: Book, name: str, version: str, words: str) -> None:
    """Write down that data are released without being counted: nothing bounds it together with anything else."""
    with book.account(checked_name(name)).writing() as now:
        if now.title is None:
            now.title = {"name": name, "design": "release", "caps": [], "named": False, "secret": ""}
            now.title |= {"square": 0.0, "distance": 0.0}
            now.state = {"version": version, "allowance": TICKS}
        now.append("alone", {"what": words, "at": datetime.now(UTC).isoformat(timespec="seconds")})


def checked_name(name: str) -> str:
    """A name that a data set can have: the ledger's own accounts begin with a control character."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise InputError("name must be plain text, without control characters: it says which data set is meant")
    return name


def name_of(version: str) -> str:
    """Of data that the custodian does not name."""
    return f"data {version[:32]}"


def _known_contents(book: Book, name: str, contents: tuple[str, ...], remember: bool = False) -> None:
    """One data set, one secret: the same people under another name would have another."""
    with book.account(CONTENTS).writing() as now:
        known = {one: now.answered(one) for one in contents}
        for entry in known.values():
            if entry is not None and entry.body.get("name") != name:
                raise InputError(
                    f"these data, or a column of them, are known to the ledger as {entry.body.get('name')!r}: nothing "
                    "bounds two secrets of the same people together. Go on with that name. Data of other people that "
                    "happen to hold the same column need a ledger of their own"
                )
        for one, entry in known.items():
            if remember and entry is None:
                now.append("contents", {"name": name}, question=one)


def _refuse_strangers(name: str, now: Open, people: Any) -> None:
    """People who are called otherwise than before would get a second coin and a second clock."""
    known = Spent.read(now, EVERYBODY).people
    if 2 * np.isin(people, known).sum() < min(len(known), len(people)):
        raise InputError(
            f"the data of {name!r} have changed, and hardly anybody who was in them is still called the same: open "
            "them with the same unit= and the same ids, or each would have two coins. Data of other people need a name "
            "of their own"
        )


def _refuse_mixture(name: str, title: dict[str, Any], design: str) -> None:
    if title["design"] != design:
        raise InputError(
            f"{name!r} has an account with another secret ({DESIGNS[title['design']]}), and nothing bounds two "
            f"secrets together. {GO_ON[title['design']]}"
        )


def _refuse_other_caps(name: str, given: list[str], then: list[str], raised: list[str]) -> None:
    """Both those of the beginning and those of today are meant by whoever opens an account again."""
    if given not in (then, raised):
        raise InputError(
            f"{name!r} has an account with other caps ({'; '.join(raised or then)}): open it with those. The custodian "
            "can raise them with `leakcap ledger budget`"
        )


def as_text(thing: Any) -> str:
    """JSON in one line, the same for the same thing."""
    return json.dumps(thing, sort_keys=True)
