"""How a PostgreSQL server is reached, and what to do where it is not: one way for the ledger and for the query server.

No message holds a user, a password or what the server says of itself: that may quote data.
"""

from __future__ import annotations

from typing import Any

from leakcap.errors import InputError, MissingExtra

__all__ = ["MAKING", "PATIENCE", "POSTGRES", "driver", "in_words", "settings", "without_password"]

POSTGRES = ("postgresql://", "postgres://")
PATIENCE = 60  # seconds that a call waits for the writes of others, and for a connection
MAKING = 0x6C65616B636170  # of the lock under which tables are made: "leakcap"


def settings(schema: str) -> tuple[str, ...]:
    """What a connection is told first."""
    return (
        f"SET search_path = {schema}",
        f"SET lock_timeout = '{PATIENCE}s'",
        "SET synchronous_commit = on",  # a commit is on the server's disk before anybody sees an answer
        "SET client_min_messages = warning",
    )


def driver() -> Any:
    """psycopg."""
    try:
        import psycopg
    except ImportError:
        pass
    else:
        return psycopg
    raise MissingExtra("PostgreSQL needs psycopg: pip install 'leakcap[postgres]'")


def without_password(url: str, written: str) -> str:
    """Server, port and database, and nothing else; `written` is how the address is given, with {} in its place."""
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url) if url.startswith(POSTGRES) else None
    except psycopg.Error:
        parts = None
    if parts is None:
        raise InputError("this is no address of a database: write " + written.format("postgresql://user@host/database"))
    host, port = parts.get("host") or "local", parts.get("port") or 5432
    return f"postgresql://{host}:{port}/{parts.get('dbname') or parts.get('user') or ''}"


def in_words(error: BaseException, database: str, what: str, schema: str) -> str | None:
    """What to do about an error; None where `what`, which is kept in the database, is damaged."""
    state = str(getattr(error, "sqlstate", None) or "")
    if not state or state[:2] in ("08", "57", "28", "3D"):
        return (
            f"{database} does not answer, or does not let this user in: nothing was answered. See that it runs and "
            "that the address, the user and the password are right, and ask again"
        )
    if state[:2] == "53":
        return f"{database} has no room left: nothing was answered. Make room, and ask again"
    if state[:2] in ("55", "40"):
        return f"other programs have been holding {what} for {PATIENCE} seconds: wait for them"
    if state in ("42501", "25006"):
        return (
            f"this user may not write {what}: nothing was answered. Let the owner of the database say CREATE SCHEMA "
            f"{schema} AUTHORIZATION of this user, or write to the server that is not read-only"
        )
    if state[:2] == "23":
        return f"an entry of {what} was written twice, and the second refused: ask again"
    return None
