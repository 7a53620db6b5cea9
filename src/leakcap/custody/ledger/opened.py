"""An account in a transaction: what it holds, opened and checked, and what is to be written, chained and sealed.

Every entry has a head: a keyed digest of the entry and of the head before it, so that none can be changed, left out,
put in or moved without the key. The values beside the entries (the secret, clocks, budgets) are digested in the latest
entry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from leakcap.custody.heads import Seen
from leakcap.custody.ledger.store import StoredEntry, Transaction
from leakcap.custody.sealing import Seal
from leakcap.errors import InputError

__all__ = ["Entry", "Open"]

FIRST = bytes(32)  # the head before the first entry
BODY_GONE: Mapping[str, Any] = {"forgotten": True}
TITLE, STATE = "title", "state"
AtHand = dict[str, tuple[str, bytes]]  # the tag and the content of values by name


@dataclass(frozen=True)
class Entry:
    """One entry, opened. Custodian side."""

    number: int
    kind: str
    charge: int  # 10^-12 of a clock
    body: Mapping[str, Any]
    head: bytes = field(repr=False)


class Open:
    """An account in a transaction. Custodian side."""

    def __init__(self, transaction: Transaction, *, seal: Seal, mark: bytes, place: str, at_hand: AtHand) -> None:
        """`mark` is the account's, `place` where its ledger is, `at_hand` what was opened before."""
        self._transaction, self._seal, self._own, self._place = transaction, seal, mark, place
        self._at_hand = at_hand
        self._last = transaction.last()
        self._values: dict[str, bytes | None] = {}
        self._stored = {name: transaction.value(name) for name in (TITLE, STATE)}
        self.known: dict[int, bytes] = {}  # heads that were seen or made here
        self.remembered: Seen | None = None  # by the key file, when the transaction began
        self.written = 0
        if self._last is not None:
            self._check_latest(self._last)
        elif any(stored is not None for stored in self._stored.values()):
            raise self.damaged()
        self.state: dict[str, Any] = self._json(STATE) or {}
        self.title: dict[str, Any] | None = self._json(TITLE)
        self._title_was = json.dumps(self.title)

    @property
    def number(self) -> int:
        """How many entries there are."""
        return 0 if self._last is None else self._last.number

    @property
    def head(self) -> bytes:
        """Tells this state of the account from all others."""
        return FIRST if self._last is None else self._last.head

    @property
    def seen(self) -> Seen:
        """Both."""
        return self.number, self.head

    @property
    def forgotten(self) -> bool:
        """Whether the account is closed for ever."""
        return bool(self.state.get("forgotten"))

    def value(self, name: str, *, fresh: bool = False) -> bytes | None:
        """What lies beside the entries under a name; `fresh`: read and opened again, even if it is at hand.

        The state tells by its tag which value it is: one that has this tag needs not be read again.
        """
        known = self.state.get("values", {}).get(name)
        tag, content = self._at_hand.get(name, ("", b""))
        if tag and tag == known and not fresh:
            return content
        stored = self._transaction.value(name)
        if (None if stored is None else self._seal.tag(stored).hex()) != known:
            raise self.damaged()
        if stored is None:
            return None
        content = self._unsealed(stored, name)
        self._at_hand[name] = known, content
        return content

    def names(self) -> list[str]:
        """The names of all values; an InputError where one is missing or too many."""
        names = [name for name in self._transaction.names() if name not in (TITLE, STATE)]
        if sorted(names) != sorted(self.state.get("values", {})):
            raise self.damaged()
        return names

    def put(self, name: str, content: bytes | None) -> None:
        """Lay a value beside the entries, with the next entry; None takes it away."""
        self._values[name] = content

    def latest(self) -> Entry:
        """The last entry."""
        assert self._last is not None
        return self.entry(self._last)

    def asked(self, request: str) -> Entry | None:
        """The entry of a request, or None."""
        row = self._transaction.asked(self._mark("request", request))
        return None if row is None else self.entry(row)

    def answered(self, question: str) -> Entry | None:
        """The latest entry of a question, or None."""
        row = self._transaction.answered(self._mark("question", question))
        return None if row is None else self.entry(row)

    def entries(self) -> Iterator[Entry]:
        """All of them, in order; an InputError where one is damaged, missing or out of place."""
        previous, number = FIRST, 0
        for row in self._transaction.rows():
            if row.head != self._head(previous, row) or row.number != number + 1:
                raise self.damaged()
            yield self.entry(row, previous)
            previous, number = row.head, row.number
        if (number, previous) != self.seen:
            raise self.damaged()

    def append(
        self, kind: str, body: Mapping[str, Any], *, charge: int = 0, request: str = "", question: str = ""
    ) -> None:
        """Write an entry, with the title, the state and the values as they are now."""
        if not isinstance(charge, int) or isinstance(charge, bool) or charge < 0:
            raise InputError("a charge must be a whole number, and not below 0")
        values = self._sealed_values()
        marks = self._mark("request", request), self._mark("question", question)
        number, previous = self.number + 1, self.head
        text = json.dumps({"kind": kind, **body}).encode()
        sealed = self._seal.closed(text, self._bound(number, charge, marks, previous))
        row = StoredEntry(number, charge, *marks, digest=_digest(sealed), beside=self._beside(), head=b"", body=sealed)
        row = replace(row, head=self._head(previous, row))
        self._transaction.append(row, values)
        self._last, self._values = row, {}
        self.known |= {number - 1: previous, number: row.head}
        self.written += 1

    def erase(self) -> None:
        """Take away the bodies of all entries so far: what was asked and answered is forgotten, charges stay."""
        self._transaction.erase()
        self.state["forgotten"] = True

    def settle(self) -> None:
        """Called at the end: what was laid beside entries and has none is a mistake of ours."""
        assert not self._values

    def entry(self, row: StoredEntry, previous: bytes | None = None) -> Entry:
        """A row, opened; `previous` is the head before it, where it is known."""
        if row.body is None:
            if not self.forgotten:
                raise self.damaged()
            return Entry(row.number, "forgotten", row.charge, BODY_GONE, head=row.head)
        before = self._previous(row.number) if previous is None else previous
        text = self._seal.opened(row.body, self._bound(row.number, row.charge, (row.request, row.question), before))
        if text is None or _digest(row.body) != row.digest:
            raise self.damaged()
        body = json.loads(text)
        return Entry(row.number, body.pop("kind"), row.charge, body, head=row.head)

    def damaged(self) -> InputError:
        """What is wrong where something does not fit."""
        return InputError(
            f"the ledger {self._place} does not open with this key: it was damaged, changed by hand, or made with "
            "another key. Bring it back from a copy, or set LEAKCAP_KEY to its key"
        )

    def _previous(self, number: int) -> bytes:
        """The head before an entry."""
        if number == 1:
            return FIRST
        if number - 1 not in self.known:
            head = self._transaction.head(number - 1)
            if head is None:
                raise self.damaged()
            self.known[number - 1] = head
        return self.known[number - 1]

    def _check_latest(self, last: StoredEntry) -> None:
        if last.head != self._head(self._previous(last.number), last) or last.beside != self._beside():
            raise self.damaged()
        self.known[last.number] = last.head

    def _sealed_values(self) -> dict[str, bytes | None]:
        """What is to be stored beside the next entry."""
        values: dict[str, bytes | None] = {}
        digests = self.state.setdefault("values", {})
        for name, content in self._values.items():
            values[name] = None if content is None else self._seal.closed(content, self._name(name))
            digests.pop(name, None)
            self._at_hand.pop(name, None)
            if content is not None and (stored := values[name]) is not None:
                digests[name] = self._seal.tag(stored).hex()
                self._at_hand[name] = digests[name], content  # should it not be stored, no state will have this tag
        title = json.dumps(self.title)
        if self._stored[TITLE] is None or title != self._title_was:
            self._stored[TITLE] = self._seal.closed(json.dumps(self.title or {}).encode(), self._name(TITLE))
            self._title_was, values[TITLE] = title, self._stored[TITLE]
        self._stored[STATE] = self._seal.closed(json.dumps(self.state).encode(), self._name(STATE))
        values[STATE] = self._stored[STATE]
        return values

    def _beside(self) -> bytes:
        return _digest(b"".join(_digest(self._stored[name] or b"") for name in (TITLE, STATE)))

    def _json(self, name: str) -> dict[str, Any] | None:
        stored = self._stored[name]
        return None if stored is None else json.loads(self._unsealed(stored, name))

    def _unsealed(self, stored: bytes, name: str) -> bytes:
        content = self._seal.opened(stored, self._name(name))
        if content is None:
            raise self.damaged()
        return content

    def _name(self, name: str) -> bytes:
        return self._own + name.encode()

    def _mark(self, kind: str, text: str) -> bytes:
        return self._seal.mark(kind.encode() + self._own + text.encode()) if text else b""

    def _bound(self, number: int, charge: int, marks: tuple[bytes, bytes], previous: bytes) -> bytes:
        return json.dumps([number, charge, *(part.hex() for part in (*marks, previous, self._own))]).encode()

    def _head(self, previous: bytes, row: StoredEntry) -> bytes:
        parts = previous, row.request, row.question, row.digest, row.beside
        text = json.dumps([row.number, row.charge, *(part.hex() for part in parts)]).encode()
        return self._seal.mark(b"head " + self._own + text)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
