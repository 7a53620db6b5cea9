"""DuckDB behind a lock and in a process of its own: read only, no files, no settings, killed at its limit.

Only SQL that we wrote gets here. The lock is for the day on which that is not enough: a database that cannot read a
file, load an extension or change a setting, in a process that can be killed. What goes wrong inside stays inside.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from leakcap.errors import LeakcapError
from leakcap.sql.processes import SpareProcesses, ended, started
from leakcap.sql.refusals import NotAnswered
from leakcap.sql.worker import NUMBERS, EngineLimits, NoSelect, locked, selected, table_in, written

__all__ = ["TOO_LONG", "EngineError", "EngineLimits", "LocalEngine", "WorkerEngine", "limited", "limits_in_force"]

LIMITS = EngineLimits()
_in_force: ContextVar[EngineLimits] = ContextVar("engine limits", default=LIMITS)
_spare: ContextVar[SpareProcesses | None] = ContextVar("processes of engines that wait", default=None)
TOO_LONG = "the question took longer than {seconds:g} seconds and was stopped: ask for less"
FAILED = "the question could not be answered (error {number}). Why is withheld: it might tell of the data"


@contextmanager
def limited(limits: EngineLimits, spare: SpareProcesses | None = None) -> Iterator[None]:
    """What one question may use, of those that are asked inside, and the processes that wait for them."""
    before, others = _in_force.set(limits), _spare.set(spare)
    try:
        yield
    finally:
        _in_force.reset(before)
        _spare.reset(others)


def limits_in_force() -> EngineLimits:
    """What one question may use here."""
    return _in_force.get()


class EngineError(LeakcapError):
    """The engine failed. It has a number, and no reason: the reason might hold a value."""


class LocalEngine:
    """In this process: where nobody asks but the custodian's own tests."""

    def __init__(
        self, path: Path | str | None, limits: EngineLimits | None = None, tables: Mapping[str, Any] | None = None
    ) -> None:
        self.file = locked(path, limits or LIMITS, tables)

    def run(self, sql: str, tables: Mapping[str, Any]) -> Any:
        try:
            return selected(self.file, sql, tables)
        except NoSelect:
            raise EngineError(FAILED.format(number=NUMBERS["NoSelect"])) from None

    def close(self) -> None:
        self.file.close()


class WorkerEngine:
    """A process for one question."""

    def __init__(
        self,
        path: Path | str | None,
        limits: EngineLimits | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        """About a file; with `path=None` about tables, which travel there."""
        limits = limits or limits_in_force()
        self.limits, self.left = limits, limits.seconds
        spare = _spare.get()
        self.process = started(path, limits) if spare is None or path is None else spare.taken(path, limits)
        if path is None:
            try:
                self._send("", tables or {})
            except BrokenPipeError:
                self.close()
                raise EngineError(FAILED.format(number=9)) from None

    def run(self, sql: str, tables: Mapping[str, Any]) -> Any:
        """Rows, as an Arrow table; a fixed sentence where it fails or takes too long."""
        began = time.monotonic()
        try:
            self._send(sql, tables)
            head = json.loads(self._receive(int.from_bytes(self._receive(8, began), "big"), began))
            if head["error"]:
                raise EngineError(FAILED.format(number=head["error"]))
            return table_in(self._receive(head["size"], began))
        except (BrokenPipeError, EOFError):
            self.close()
            raise EngineError(FAILED.format(number=9)) from None
        finally:
            self.left -= time.monotonic() - began

    def _send(self, sql: str, tables: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        parts = {name: written(table) for name, table in tables.items()}
        head = json.dumps({"sql": sql, "tables": {name: len(one) for name, one in parts.items()}}).encode()
        self.process.stdin.write(len(head).to_bytes(8, "big") + head + b"".join(parts.values()))
        self.process.stdin.flush()

    def _receive(self, size: int, began: float) -> bytes:
        assert self.process.stdout is not None
        found = bytearray()
        while len(found) < size:
            left = self.left - (time.monotonic() - began)
            if left <= 0 or not self._said(left):
                self.close()
                raise NotAnswered(TOO_LONG.format(seconds=self.limits.seconds))
            part = self.process.stdout.read1(size - len(found))  # type: ignore[attr-defined]
            if not part:
                raise EOFError
            found += part
        return bytes(found)

    def _said(self, seconds: float) -> bool:
        """Whether something comes in time. (`select` fails where this process has over 1,024 files open.)"""
        with DefaultSelector() as waiting:
            waiting.register(self.process.stdout, EVENT_READ)  # type: ignore[arg-type]
            return bool(waiting.select(seconds))

    def close(self) -> None:
        """End the process, whatever it is doing."""
        ended(self.process)
