"""What a server is started with: where its files lie, how much anybody may ask, and how it is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from leakcap.ground.cores import threads
from leakcap.sql.engine import EngineLimits

__all__ = ["ServerLimits", "ServerSettings"]

MEGABYTE = 2**20


@dataclass(frozen=True)
class ServerLimits:
    """How much anybody may do. Times are in seconds, sizes in bytes."""

    body: int = 64 * 1024  # of a request that is no upload
    upload: int = 64 * MEGABYTE
    question: int = 16 * 1024  # characters of SQL
    requests_per_minute: int = 600  # of one account, or of one address that has not signed in
    questions_per_minute: int = 60  # of one account: those that are computed, not those that are stored
    at_once: int = field(default_factory=lambda: max(8, threads()))  # questions that are computed at a time
    waiting: int = 4  # of one account
    ahead: int = 2  # processes that are started for the next questions about a data set
    failures: int = 5  # to sign in under one name, before it has to wait
    failures_of_address: int = 20
    wait: float = 60.0  # after so many failures; twice as long after each further one
    signed_in: float = 8 * 3600.0  # how long a browser stays signed in
    idle: float = 3600.0  # and without a request
    token_days: int = 90  # at most
    engine: EngineLimits = field(default_factory=EngineLimits)


@dataclass(frozen=True)
class ServerSettings:
    """One server. Custodian side.

    Attributes:
        home: its folder, which only its owner may enter.
        ledger: place of the ledger, as for `leakcap.Session`; None for the one in the folder, or beside accounts and
            answers.
        database: a PostgreSQL database for accounts, answers and the audit log; None for a file in the folder.
        encrypted: whether it is reached through TLS, so that cookies are for such connections alone.
        hosts: names under which it answers; others are refused, so that no foreign name can be pointed at it.
        limits: how much anybody may do.
        demo: whether it is one to try, whose pages lead through a tour.
    """

    home: Path
    ledger: str | None = field(default=None, repr=False)  # an address may hold a password
    database: str | None = field(default=None, repr=False)
    encrypted: bool = False
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    limits: ServerLimits = field(default_factory=ServerLimits)
    demo: bool = False

    @property
    def ledger_place(self) -> str:
        own = self.home / "ledger.db"  # it stays there where the rest was moved into a database
        return self.ledger or (f"sqlite:///{own}" if self.database is None or own.exists() else self.database)
