"""A ledger that ends with its process: for sessions that nobody goes on with, and to try things out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from leakcap.custody.ledger.store import Header, StoredEntry
from leakcap.errors import InputError, LeakcapError
from leakcap.ground.processes import this_process

__all__ = ["MemoryStore"]


@dataclass
class _Kept:
    rows: list[StoredEntry] = field(default_factory=list)
    values: dict[str, bytes] = field(default_factory=dict)


class MemoryStore:
    """Accounts in memory, in the process that made them: a forked child has a copy, which nobody else sees."""

    def __init__(self) -> None:
        """Empty."""
        self._lock = threading.Lock()
        self._kept: dict[bytes, _Kept] = {}
        self._header: Header | None = None
        self._process = this_process()

    @property
    def place(self) -> str:
        return "in memory"

    def header(self) -> Header | None:
        return self._header

    def make(self, header: Header) -> None:
        self._header = self._header or header

    def migrate(self, steps: Mapping[int, tuple[str, ...]]) -> None:
        pass  # it was made by this version

    def accounts(self) -> list[bytes]:
        return [account for account, kept in self._kept.items() if kept.rows]

    @contextmanager
    def reading(self, account: bytes) -> Iterator[MemoryTransaction]:
        self._refuse_child()  # first: a thread that is not in the child may seem to hold the lock
        with self._lock:
            yield MemoryTransaction(self._kept.get(account, _Kept()))

    @contextmanager
    def writing(self, account: bytes) -> Iterator[MemoryTransaction]:
        self._refuse_child()
        with self._lock:
            kept = self._kept.get(account, _Kept())
            copy = _Kept(list(kept.rows), dict(kept.values))
            yield MemoryTransaction(copy)
            self._refuse_child()  # of a fork in between
            self._kept[account] = copy

    def sign(self) -> None:
        return None  # reading it costs nothing

    def scrub(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _refuse_child(self) -> None:
        if self._process != this_process():
            raise LeakcapError(
                "this session has no ledger, and this process has a copy of it: each copy would spend the same clocks. "
                "Ask where it was opened; or give it a ledger that processes share, as in ledger='sqlite:///answers.db'"
            )


@dataclass(frozen=True)
class MemoryTransaction:
    """One account."""

    kept: _Kept

    def last(self) -> StoredEntry | None:
        return self.kept.rows[-1] if self.kept.rows else None

    def row(self, number: int) -> StoredEntry | None:
        return self.kept.rows[number - 1] if 0 < number <= len(self.kept.rows) else None

    def head(self, number: int) -> bytes | None:
        found = self.row(number)
        return None if found is None else found.head

    def rows(self) -> Iterator[StoredEntry]:
        return iter(list(self.kept.rows))

    def asked(self, request: bytes) -> StoredEntry | None:
        return next((row for row in reversed(self.kept.rows) if row.request and row.request == request), None)

    def answered(self, question: bytes) -> StoredEntry | None:
        return next((row for row in reversed(self.kept.rows) if row.question == question), None)

    def value(self, name: str) -> bytes | None:
        return self.kept.values.get(name)

    def names(self) -> list[str]:
        return sorted(self.kept.values)

    def append(self, row: StoredEntry, values: Mapping[str, bytes | None]) -> None:
        if row.number != len(self.kept.rows) + 1 or (row.request and self.asked(row.request) is not None):
            raise InputError("an entry must follow the last one, and have a request of its own")
        self.kept.rows.append(row)
        for name, content in values.items():
            if content is None:
                self.kept.values.pop(name, None)
            else:
                self.kept.values[name] = content

    def erase(self) -> None:
        self.kept.rows[:] = [replace(row, body=None) for row in self.kept.rows]
