"""The ledger: accounts of data sets, whose entries are sealed, chained, and remembered by the key file.

Every entry has a head: a keyed digest of the entry and of the head before it, so that none can be changed, left out,
put in or moved without the key. The values beside the entries (the secret, clocks, budgets) are digested in the latest
entry. An entry is stored for good, and its head written down in the key file, before what it holds is handed out.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from leakcap.custody import heads, keys
from leakcap.custody.ledger.store import VERSION, Header, Row, Store, Transaction
from leakcap.custody.sealing import Seal
from leakcap.errors import InputError

__all__ = ["Account", "Book", "Entry", "Open"]

FIRST = bytes(32)  # the head before the first entry
BODY_GONE: Mapping[str, Any] = {"forgotten": True}


@dataclass(frozen=True)
class Entry:
    """One entry, opened. Custodian side."""

    number: int
    kind: str
    charge: int  # 10^-12 of a clock
    body: Mapping[str, Any]
    head: bytes = field(repr=False)


@dataclass(frozen=True, eq=False)
class Book:
    """All accounts in one store, opened with the user's key."""

    store: Store
    header: Header
    seal: Seal
    remembered: bool = True  # by the key file

    @classmethod
    def in_memory(cls) -> Book:
        """A ledger that ends with this process, and that no key opens."""
        from leakcap.custody.ledger.memory import MemoryStore

        return cls(MemoryStore(), Header(VERSION, b"", b"", False), Seal(secrets.token_bytes(32), False), False)

    @classmethod
    def open(cls, store: Store) -> Book:
        """The ledger in a store, a new one if there is none."""
        header = store.header()
        if header is None:
            store.make(Header(VERSION, secrets.token_bytes(32), secrets.token_bytes(32), keys.can_seal()))
            header = store.header()
            assert header is not None
        if header.version > VERSION:
            raise InputError(
                f"{store.place} was written by a later version of leakcap: use that, or a ledger of its own"
            )
        return cls(store, header, Seal(keys.derived_key(header.salt, header.sealed), header.sealed))

    def account(self, name: str) -> Account:
        """The account of a name, whether it has entries or not."""
        return Account(self, self.seal.mark(b"account " + name.encode()))

    def accounts(self) -> list[Account]:
        """All that have entries."""
        return [Account(self, mark) for mark in self.store.accounts()]


@dataclass(frozen=True, eq=False)
class Account:
    """The entries of one data set, and what lies beside them."""

    book: Book
    mark: bytes

    @contextmanager
    def reading(self) -> Iterator[Open]:
        """As it is now, to look at."""
        with self.book.store.reading(self.mark) as transaction:
            yield self._opened(transaction)

    @contextmanager
    def writing(self) -> Iterator[Open]:
        """Alone, to write entries, which are stored and remembered when the block ends: hand out nothing before."""
        with self.book.store.writing(self.mark) as transaction:
            now = self._opened(transaction)
            yield now
            now.settle()
        if now.written:
            self.remember()  # only now may what was written be handed out

    def remember(self) -> None:
        """Write the latest head down in the key file; an InputError if another copy of the ledger was faster."""
        if not self.book.remembered:
            return
        with self.book.store.reading(self.mark) as transaction:
            last = transaction.last()
            if last is not None:
                heads.advance(self.own_name, last.number, last.head, _heads_in(transaction))

    @property
    def own_name(self) -> bytes:
        """By which the key file knows it: of this account in this ledger and its copies."""
        return hashlib.sha256(b"leakcap account " + self.book.header.name + self.mark).digest()

    def _opened(self, transaction: Transaction) -> Open:
        if self.book.remembered:
            heads.refuse_older(self.own_name, _heads_in(transaction))
        return Open(self, transaction)


class Open:
    """An account in a transaction: what it holds now, and what is to be written. Custodian side."""

    def __init__(self, account: Account, transaction: Transaction) -> None:
        self._account, self._transaction = account, transaction
        self._seal = account.book.seal
        self._last = transaction.last()
        self._values: dict[str, bytes | None] = {}
        self.written = 0
        if self._last is not None:
            self._check_latest(self._last)
        self.state: dict[str, Any] = self._json("state") or {}
        self.title: dict[str, Any] | None = self._json("title")

    @property
    def number(self) -> int:
        """How many entries there are."""
        return 0 if self._last is None else self._last.number

    @property
    def head(self) -> bytes:
        """Tells this state of the account from all others."""
        return FIRST if self._last is None else self._last.head

    def value(self, name: str) -> bytes | None:
        """What lies beside the entries under a name."""
        stored = self._transaction.value(name)
        known = self.state.get("values", {}).get(name)
        if (None if stored is None else _digest(stored).hex()) != known:
            raise self._damaged()
        return None if stored is None else self._opened(stored, name)

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
                raise self._damaged()
            previous, number = row.head, row.number
            yield self.entry(row)
        if number != self.number or previous != self.head:
            raise self._damaged()

    def append(
        self, kind: str, body: Mapping[str, Any], *, charge: int = 0, request: str = "", question: str = ""
    ) -> None:
        """Write an entry, with the state and the values as they are now."""
        if not isinstance(charge, int) or isinstance(charge, bool) or charge < 0:
            raise InputError("a charge must be a whole number, and not below 0")
        values = self._sealed_values()
        marks = self._mark("request", request), self._mark("question", question)
        number, previous = self.number + 1, self.head
        text = json.dumps({"kind": kind, **body}).encode()
        row = Row(
            number,
            charge,
            *marks,
            digest=b"",
            beside=_digest(self._beside(values)),
            head=b"",
            body=self._seal.closed(text, self._bound(number, charge, marks, previous)),
        )
        assert row.body is not None
        row = replace(row, digest=_digest(row.body))
        row = replace(row, head=self._head(previous, row))
        self._transaction.append(row, values)
        self._last, self._values = row, {}
        self.written += 1

    def erase(self) -> None:
        """Take away the bodies of all entries so far: what was asked and answered is forgotten, charges stay."""
        self._transaction.erase()

    def settle(self) -> None:
        """Called at the end: what was laid beside entries and has none is a mistake of ours."""
        assert not self._values

    def entry(self, row: Row) -> Entry:
        """A row, opened."""
        if row.body is None:
            return Entry(row.number, "forgotten", row.charge, BODY_GONE, row.head)
        previous = FIRST if row.number == 1 else self._previous(row.number)
        bound = self._bound(row.number, row.charge, (row.request, row.question), previous)
        text = self._seal.opened(row.body, bound)
        if text is None or _digest(row.body) != row.digest:
            raise self._damaged()
        body = json.loads(text)
        return Entry(row.number, body.pop("kind"), row.charge, body, row.head)

    def _previous(self, number: int) -> bytes:
        row = self._transaction.row(number - 1)
        if row is None:
            raise self._damaged()
        return row.head

    def _check_latest(self, last: Row) -> None:
        previous = FIRST if last.number == 1 else self._previous(last.number)
        title, state = self._transaction.value("title"), self._transaction.value("state")
        if last.head != self._head(previous, last) or last.beside != _digest(_joined(title, state)):
            raise self._damaged()

    def _sealed_values(self) -> dict[str, bytes | None]:
        values = {
            name: None if content is None else self._seal.closed(content, self._name(name))
            for name, content in self._values.items()
        }
        digests = self.state.setdefault("values", {})
        for name, stored in values.items():
            if stored is None:
                digests.pop(name, None)
            else:
                digests[name] = _digest(stored).hex()
        values["state"] = self._seal.closed(json.dumps(self.state).encode(), self._name("state"))
        if self._transaction.value("title") is None:
            values["title"] = self._seal.closed(json.dumps(self.title or {}).encode(), self._name("title"))
        return values

    def _beside(self, values: Mapping[str, bytes | None]) -> bytes:
        return _joined(
            values["title"] if "title" in values else self._transaction.value("title"),
            values["state"] if "state" in values else self._transaction.value("state"),
        )

    def _json(self, name: str) -> dict[str, Any] | None:
        stored = self._transaction.value(name)
        return None if stored is None else json.loads(self._opened(stored, name))

    def _opened(self, stored: bytes, name: str) -> bytes:
        content = self._seal.opened(stored, self._name(name))
        if content is None:
            raise self._damaged()
        return content

    def _name(self, name: str) -> bytes:
        return self._account.mark + name.encode()

    def _mark(self, kind: str, text: str) -> bytes:
        return self._seal.mark(kind.encode() + self._account.mark + text.encode()) if text else b""

    def _bound(self, number: int, charge: int, marks: tuple[bytes, bytes], previous: bytes) -> bytes:
        return json.dumps([number, charge, *(part.hex() for part in (*marks, previous, self._account.mark))]).encode()

    def _head(self, previous: bytes, row: Row) -> bytes:
        parts = previous, row.request, row.question, row.digest, row.beside
        text = json.dumps([row.number, row.charge, *(part.hex() for part in parts)]).encode()
        return self._seal.mark(b"head " + self._account.mark + text)

    def _damaged(self) -> InputError:
        return InputError(
            f"the ledger {self._account.book.store.place} does not open with this key: it was damaged, changed by "
            "hand, or made with another key. Bring it back from a copy, or set LEAKCAP_KEY to its key"
        )


def _heads_in(transaction: Transaction) -> heads.Known:
    def known(number: int) -> bytes | None:
        row = transaction.row(number)
        return None if row is None else row.head

    return known


def _joined(title: bytes | None, state: bytes | None) -> bytes:
    return _digest(title or b"") + _digest(state or b"")


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
