"""Browsers that are signed in: a signed cookie, a row that ends it, and a word that forms must bring back (CSRF)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

from itsdangerous import BadSignature, TimestampSigner

from leakcap.server.database import Database
from leakcap.server.settings import ServerLimits

__all__ = ["SignedIn", "SigningIn"]


@dataclass(frozen=True)
class SignedIn:
    """A browser that is signed in."""

    account: str
    form_word: str  # what its forms bring back, so that no other site can send one


class SigningIn:
    """All browsers of a server."""

    def __init__(self, database: Database, limits: ServerLimits) -> None:
        self.database, self.limits = database, limits
        self._signer = TimestampSigner(database.key("cookies"), salt="signed in", digest_method=hashlib.sha256)
        self._words = database.key("forms")

    def begin(self, account: str) -> str:
        """A cookie for a new browser."""
        secret, now = secrets.token_urlsafe(32), time.time()
        with self.database.writing() as transaction:
            transaction.execute("DELETE FROM signed_in WHERE began < ?", (now - self.limits.signed_in,))
            transaction.execute("INSERT INTO signed_in VALUES (?, ?, ?, ?)", (_print_of(secret), account, now, now))
        return self._signer.sign(secret).decode()

    def known(self, cookie: str) -> SignedIn | None:
        """Who a cookie belongs to; None where it was altered, has ended or was signed out."""
        secret, now = self._secret(cookie), time.time()
        if secret is None:
            return None
        found = self.database.row("SELECT account, began, latest FROM signed_in WHERE print = ?", _print_of(secret))
        if found is None:
            return None
        account, began, latest = found
        if now - began > self.limits.signed_in or now - latest > self.limits.idle:
            self.end(cookie)
            return None
        if now - latest > self.limits.idle / 60:
            self.database.write("UPDATE signed_in SET latest = ? WHERE print = ?", now, _print_of(secret))
        return SignedIn(account, self._form_word(secret))

    def end(self, cookie: str) -> None:
        """Sign a browser out: its cookie is worth nothing from now on."""
        secret = self._secret(cookie)
        if secret is not None:
            self.database.write("DELETE FROM signed_in WHERE print = ?", _print_of(secret))

    def _secret(self, cookie: str) -> str | None:
        try:
            return self._signer.unsign(cookie, max_age=int(self.limits.signed_in)).decode()
        except (BadSignature, UnicodeError):
            return None

    def _form_word(self, secret: str) -> str:
        return hmac.digest(self._words, secret.encode(), "sha256").hex()


def _print_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
