"""Accounts: a name, a role, and a password of which only a hash is kept."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from leakcap.errors import InputError
from leakcap.server.database import Database
from leakcap.server.dialects import Speaking

__all__ = ["ANALYST", "CUSTODIAN", "Accounts", "ServerAccount", "checked_label"]

CUSTODIAN, ANALYST = "custodian", "analyst"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
SHORTEST, LONGEST = 12, 200  # characters of a password
HASHES_AT_ONCE = 2  # each takes 64 MB
NOBODY = "nobody, whose password nobody knows"


@dataclass(frozen=True)
class ServerAccount:
    """Somebody who may sign in."""

    name: str
    role: str
    datasets: frozenset[str]  # which an analyst may ask
    closed: bool


class Accounts:
    """All accounts of a server."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._room = threading.BoundedSemaphore(HASHES_AT_ONCE)

    def add(self, name: str, role: str, password: str) -> None:
        """Open an account."""
        checked_label(name, "the name of an account")
        if role not in (CUSTODIAN, ANALYST):
            raise InputError("a role is 'custodian' or 'analyst'")
        if self.database.row("SELECT 1 FROM accounts WHERE name = ?", name):
            raise InputError(f"there is an account {name!r} already: choose another name")
        hashed = self._hashed(password)
        self.database.write("INSERT INTO accounts VALUES (?, ?, ?, ?, NULL)", name, role, hashed, time.time())

    def renew(self, name: str, password: str) -> None:
        """Give an account another password; whoever had the old one is signed out, and their tokens end."""
        hashed = self._hashed(password)
        with self.database.writing() as now:
            now.execute("UPDATE accounts SET hash = ? WHERE name = ?", (hashed, name))
            _end_all(now, name)

    def close(self, name: str) -> None:
        """Close an account: its tokens and whatever is signed in with it end at once. Its name stays taken."""
        with self.database.writing() as now:
            now.execute("UPDATE accounts SET closed = ? WHERE name = ?", (time.time(), name))
            _end_all(now, name)

    def allow(self, name: str, datasets: frozenset[str]) -> None:
        """Say which data sets an analyst may ask; all others are closed to them."""
        known = {row[0] for row in self.database.rows("SELECT name FROM datasets")}
        if datasets - known:
            raise InputError("one of these data sets is not registered: see their names in the list")
        with self.database.writing() as now:
            now.execute("DELETE FROM may_ask WHERE account = ?", (name,))
            for one in sorted(datasets):
                now.execute("INSERT INTO may_ask VALUES (?, ?)", (name, one))

    def named(self, name: str) -> ServerAccount | None:
        """The account of a name, open or closed."""
        found = self.database.rows(
            "SELECT role, closed IS NOT NULL, dataset FROM accounts LEFT JOIN may_ask ON account = name WHERE name = ?",
            name,
        )
        if not found:
            return None
        role, closed, _ = found[0]
        return ServerAccount(name, role, frozenset(row[2] for row in found if row[2] is not None), bool(closed))

    def all(self) -> list[ServerAccount]:
        """Every account, by name."""
        names = [row[0] for row in self.database.rows("SELECT name FROM accounts ORDER BY name")]
        return [one for one in map(self.named, names) if one is not None]

    def with_password(self, name: str, password: str) -> ServerAccount | None:
        """The open account of this name and password. A name that is not there takes as long as one that is."""
        found = self.database.row("SELECT hash FROM accounts WHERE name = ? AND closed IS NULL", name)
        with self._room:
            right = _matches(found[0] if found else _nobodys_hash(), password[: LONGEST + 1])
        if not found or not right:
            return None
        if _hasher().check_needs_rehash(found[0]):
            self.database.write("UPDATE accounts SET hash = ? WHERE name = ?", self._hashed(password), name)
        return self.named(name)

    def _hashed(self, password: str) -> str:
        if not SHORTEST <= len(password) <= LONGEST:
            raise InputError(
                f"a password has {SHORTEST} to {LONGEST} characters: choose a longer one, such as five words"
            )
        with self._room:
            return str(_hasher().hash(password))


def _end_all(now: Speaking, name: str) -> None:
    for table in ("signed_in", "tokens"):
        now.execute(f"DELETE FROM {table} WHERE account = ?", (name,))


def checked_label(text: str, what: str) -> str:
    """A name that can stand in an address and in a log: lower-case letters, digits, and . _ - between them."""
    if not isinstance(text, str) or not NAME.fullmatch(text) or ".." in text:
        raise InputError(
            f"{what} has 1 to 40 lower-case letters, digits, dots, lines and underscores, such as 'ward-7'"
        )
    return text


@cache
def _hasher() -> Any:
    from argon2 import PasswordHasher

    return PasswordHasher()  # Argon2id with 64 MB, three passes and four lanes: RFC 9106, second choice


@cache
def _nobodys_hash() -> str:
    return str(_hasher().hash(NOBODY))


def _matches(hashed: str, password: str) -> bool:
    from argon2.exceptions import VerificationError

    try:
        return bool(_hasher().verify(hashed, password))
    except VerificationError:
        return False
