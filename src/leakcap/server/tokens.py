"""Tokens for programs: of one account, for some data sets, until a day; of each only a print is kept."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass

from leakcap.errors import InputError
from leakcap.server.database import Database

__all__ = ["PREFIX", "AccessToken", "Tokens"]

PREFIX = "leakcap_"  # by which a token that lies about is found
DAY = 86_400.0
LONGEST_LABEL = 60
MOST = 50  # of one account


@dataclass(frozen=True)
class AccessToken:
    """What a token allows. The token itself was shown once, and is nowhere.

    Attributes:
        number: by which it is called and revoked.
        account: in whose name it asks.
        label: what it is for, in its owner's words.
        datasets: which it may ask; None for all that its account may.
        stored_only: whether it gets stored answers alone, so that nothing it does is ever charged.
        until: when it ends, in seconds since 1970.
    """

    number: int
    account: str
    label: str
    datasets: frozenset[str] | None
    stored_only: bool
    until: float


class Tokens:
    """All tokens of a server."""

    def __init__(self, database: Database, most_days: int) -> None:
        self.database, self.most_days = database, most_days

    def make(
        self,
        account: str,
        label: str,
        *,
        days: float,
        datasets: Collection[str] | None = None,
        stored_only: bool = False,
    ) -> str:
        """A new token, as text: whoever has it may do what it allows."""
        if not 0 < days <= self.most_days:
            raise InputError(f"a token lasts for more than 0 and at most {self.most_days} days")
        if not label.isprintable() or not 0 < len(label) <= LONGEST_LABEL:
            raise InputError(f"say in 1 to {LONGEST_LABEL} characters what the token is for")
        text, now = PREFIX + secrets.token_urlsafe(32), time.time()
        listed = None if datasets is None else json.dumps(sorted(datasets))
        with self.database.writing() as transaction:
            transaction.execute("DELETE FROM tokens WHERE until < ?", (now - DAY,))
            (count,) = transaction.execute("SELECT count(*) FROM tokens WHERE account = ?", (account,)).fetchone()
            if count >= MOST:
                raise InputError(f"an account has {MOST} tokens at most: revoke one that is not needed any more")
            transaction.execute(
                "INSERT INTO tokens (print, account, label, datasets, stored_only, made, until) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (_print_of(text), account, label, listed, int(stored_only), now, now + days * DAY),
            )
        return text

    def of(self, account: str) -> list[AccessToken]:
        """Those of an account that have not ended."""
        found = self.database.rows(
            "SELECT number, account, label, datasets, stored_only, until FROM tokens WHERE account = ? AND until > ? "
            "ORDER BY number",
            account,
            time.time(),
        )
        return [_token(row) for row in found]

    def known(self, text: str) -> AccessToken | None:
        """What a token allows now; None where it is unknown, revoked or has ended."""
        found = self.database.row(
            "SELECT number, account, label, datasets, stored_only, until FROM tokens WHERE print = ? AND until > ?",
            _print_of(text),
            time.time(),
        )
        return None if found is None else _token(found)

    def revoke(self, account: str, number: int) -> bool:
        """End a token at once; False where the account has none of this number."""
        return self.database.write("DELETE FROM tokens WHERE account = ? AND number = ?", account, number) > 0


def _print_of(text: str) -> bytes:
    """A token has 256 random bits: a plain hash keeps it, and looking for the hash tells nothing by its time."""
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _token(row: tuple[int, str, str, str | None, int, float]) -> AccessToken:
    number, account, label, datasets, stored_only, until = row
    listed = None if datasets is None else frozenset(json.loads(datasets))
    return AccessToken(number, account, label, datasets=listed, stored_only=bool(stored_only), until=until)
