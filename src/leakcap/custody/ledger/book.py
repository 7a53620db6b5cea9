"""The ledger: accounts of data sets, whose entries are sealed, chained, and remembered by the key file.

An entry is stored for good, and its head written down in the key file, before what it holds is handed out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from leakcap.custody import keys
from leakcap.custody.heads import Heads, Known, Seen, refuse_older
from leakcap.custody.ledger.memory import MemoryStore
from leakcap.custody.ledger.migrations import STEPS
from leakcap.custody.ledger.opened import AtHand, Entry, Open
from leakcap.custody.ledger.store import VERSION, Header, Store, Transaction
from leakcap.custody.sealing import Seal
from leakcap.errors import InputError

__all__ = ["RELEASES", "Account", "Book", "Entry", "Open"]

RELEASES = "\0releases"  # the account of which runs were released (`custody.journal`)


@dataclass(frozen=True, eq=False)
class Book:
    """All accounts in one store, opened with the user's key."""

    store: Store
    header: Header
    seal: Seal
    heads: Heads | None  # None for a ledger that ends with its process

    @classmethod
    def in_memory(cls) -> Book:
        """A ledger that ends with this process, and that no key opens."""
        return cls(
            MemoryStore(),
            Header(VERSION, name=b"", salt=b"", sealed=False, check=b""),
            Seal(secrets.token_bytes(32), False),
            None,
        )

    @classmethod
    def open(cls, store: Store, *, releases_only: bool = False) -> Book:
        """The ledger in a store; a new one where there is none, and where the key file knows of none either.

        `releases_only`: for the account of releases, which is not encrypted: this needs no extra.
        """
        heads = None if isinstance(store, MemoryStore) else Heads.own()
        header = store.header()
        if header is None:
            if heads is not None:
                _refuse_missing(heads, store)
            store.make(_new_header())
            header = store.header()
            assert header is not None
        if header.version > VERSION:
            raise InputError(
                f"{store.place} was written by a later version of leakcap: use that, or a ledger of its own"
            )
        if header.version < VERSION:
            store.migrate(STEPS)
            header = replace(header, version=VERSION)
        seal = Seal(keys.derived_key(header.salt, header.sealed and not releases_only), header.sealed)
        if not hmac.compare_digest(_check(seal, header.name), header.check):
            raise InputError(
                f"the ledger {store.place} was made with another key: set LEAKCAP_KEY to that, or bring the key file "
                "back from its latest copy"
            )
        if heads is not None:
            _remember_place(heads, store, header)
        return cls(store, header, seal, heads)

    def account(self, name: str) -> Account:
        """The account of a name, whether it has entries or not."""
        return self._account(self._mark(name))

    def accounts(self) -> list[Account]:
        """All that have entries."""
        return [self._account(mark) for mark in self.store.accounts()]

    def sign(self) -> object | None:
        """The same only while what accounts hold is, with what the key file remembers; None where reading alone tells.

        It saves reading an account again. What is charged or handed out for the first time is never told by it.
        """
        signs = () if self.heads is None else (self.heads.sign(), self.store.sign())
        return None if not signs or None in signs else signs

    def _account(self, mark: bytes) -> Account:
        return Account(self, mark, replace(self.seal, encrypts=False) if mark == self._mark(RELEASES) else self.seal)

    def _mark(self, name: str) -> bytes:
        return self.seal.mark(b"account " + name.encode())


@dataclass(frozen=True, eq=False)
class Account:
    """The entries of one data set, and what lies beside them."""

    book: Book
    mark: bytes
    seal: Seal
    at_hand: AtHand = field(default_factory=dict, repr=False)

    @contextmanager
    def reading(self, *, forgotten: bool = False) -> Iterator[Open]:
        """As it is now, to look at: what it holds is remembered before. `forgotten`: also if it was closed for ever."""
        # Whoever wrote the latest entry may not have come to remember it, or may never come: then it is done here. The
        # key file is looked at first: what others store and remember after that is no sign of another copy.
        for opened in (self.book.store.reading, self.book.store.reading, self.book.store.writing):
            remembered = self._remembered()
            with opened(self.mark) as transaction:
                now = self._opened(transaction, remembered, forgotten)
                if opened == self.book.store.writing:  # nobody else writes meanwhile
                    self._remember(now, _heads_in(transaction, now))
                if not self._ahead(now):
                    yield now
                    return
            self._remember(now, self._heads_later(now))

    @contextmanager
    def writing(self) -> Iterator[Open]:
        """Alone, to write entries, which are stored and remembered when the block ends: hand out nothing before."""
        with self.book.store.writing(self.mark) as transaction:
            now = self._opened(transaction, self._remembered(), False)
            yield now
            now.settle()
        self._remember(now, self._heads_later(now))  # only now may what was written, or found, be handed out

    def remember(self) -> None:
        """Write the latest head down in the key file; an InputError if another copy of the ledger was faster."""
        with self.reading():
            pass

    @property
    def own_name(self) -> bytes:
        """By which the key file knows it: of this account in this ledger and its copies."""
        return hashlib.sha256(b"leakcap account " + self.book.header.name + self.mark).digest()

    def _remembered(self) -> Seen | None:
        return None if self.book.heads is None else self.book.heads.latest(self.own_name)

    def _opened(self, transaction: Transaction, remembered: Seen | None, forgotten: bool) -> Open:
        book = self.book
        now = Open(transaction, seal=self.seal, mark=self.mark, place=book.store.place, at_hand=self.at_hand)
        now.remembered = remembered
        refuse_older(remembered, _heads_in(transaction, now))
        if now.forgotten and not forgotten:
            raise InputError(
                "what was answered about these data was forgotten, and with it who took part: nothing more can be "
                "answered about them"
            )
        return now

    def _ahead(self, now: Open) -> bool:
        """Whether there are entries that the key file does not know of."""
        return self.book.heads is not None and now.number > (now.remembered or (0, b""))[0]

    def _remember(self, now: Open, known: Known) -> None:
        if self.book.heads is not None and self._ahead(now):
            self.book.heads.advance(self.own_name, now.seen, known, now.remembered)
            now.remembered = now.seen

    def _heads_later(self, now: Open) -> Known:
        """Those that were seen in a transaction, and after its end those that there are then."""

        def known(number: int) -> bytes | None:
            if number in now.known:
                return now.known[number]
            with self.book.store.reading(self.mark) as transaction:
                return transaction.head(number)

        return known


def _new_header() -> Header:
    name, salt, sealed = secrets.token_bytes(32), secrets.token_bytes(32), keys.can_seal()
    check = _check(Seal(keys.derived_key(salt, sealed), sealed), name)
    return Header(VERSION, name=name, salt=salt, sealed=sealed, check=check)


def _check(seal: Seal, name: bytes) -> bytes:
    return seal.mark(b"ledger " + name)


def _heads_in(transaction: Transaction, now: Open) -> Known:
    return lambda number: now.known[number] if number in now.known else transaction.head(number)


def _refuse_missing(heads: Heads, store: Store) -> None:
    """A ledger that was removed must not be begun anew: all that was spent would be forgotten."""
    if heads.latest(_name_of_place(store)) is not None and store.header() is None:  # or another process made it now
        raise InputError(
            f"the ledger {store.place} is missing: bring it back from a copy. A new one would not know what was "
            "answered; for other data, name another place"
        )


def _remember_place(heads: Heads, store: Store, header: Header) -> None:
    known, own = heads.latest(_name_of_place(store)), header.digest
    if known is None:
        heads.advance(_name_of_place(store), (1, own), lambda _: own)
    elif known[1] != own:
        raise InputError(
            f"{store.place} is not the ledger that was there before, and does not know what was answered: bring that "
            "one back from a copy, or put this one in another place"
        )


def _name_of_place(store: Store) -> bytes:
    return hashlib.sha256(b"leakcap place " + store.place.encode()).digest()
