"""DuckDB behind a lock and in a process of its own: read only, no files, no settings, killed at its limit.

Only SQL that we wrote gets here. The lock is for the day on which that is not enough: a database that cannot read a
file, load an extension or change a setting, in a process that can be killed. What goes wrong inside stays inside.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import Any

from leakcap.errors import LeakcapError
from leakcap.sql.refusals import NotAnswered

__all__ = ["EngineError", "EngineLimits", "LocalEngine", "WorkerEngine"]

# External access goes last: what is set before still needs none, and after it nothing can be switched on again.
SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "''",
    "enable_external_access": "false",
}
TOO_LONG = "the question took longer than {seconds:g} seconds and was stopped: ask for less, or raise the limit"
FAILED = "the question could not be answered (error {number}). Why is withheld: it might tell of the data"
ROWS = 2**24  # of what comes back


class EngineError(LeakcapError):
    """The engine failed. It has a number, and no reason: the reason might hold a value."""


@dataclass(frozen=True)
class EngineLimits:
    """What one question may use."""

    seconds: float = 60.0
    memory: str = "4GB"
    threads: int = 2


def locked(path: Path | str, limits: EngineLimits) -> Any:
    """A connection that can read this file and nothing else."""
    import duckdb
    import pyarrow

    file = duckdb.connect(str(path), read_only=True)
    settings = {"threads": str(limits.threads), "memory_limit": f"'{limits.memory}'", **SETTINGS}
    for name, value in settings.items():
        file.execute(f"SET {name} = {value}")
    if hasattr(pyarrow, "decimal64"):  # decimals as wide as they are kept
        file.execute("SET SESSION arrow_output_version = '1.5'")
    file.execute("SET lock_configuration = true")
    return file


class LocalEngine:
    """In this process. Inside the worker, and where nobody asks but the custodian's own tests."""

    def __init__(self, path: Path | str, limits: EngineLimits = EngineLimits()) -> None:
        self.file = locked(path, limits)

    def run(self, sql: str, tables: Mapping[str, Any]) -> Any:
        import duckdb

        if [one.type for one in self.file.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
            raise EngineError(FAILED.format(number=6))  # the lock lets pass temporary tables, and what comes second
        for name, table in tables.items():
            self.file.register(name, table)
        try:
            return self.file.sql(sql).to_arrow_table()
        finally:
            for name in tables:
                self.file.unregister(name)

    def close(self) -> None:
        self.file.close()


class WorkerEngine:
    """A process for one question."""

    def __init__(self, path: Path | str, limits: EngineLimits = EngineLimits()) -> None:
        self.limits, self.left = limits, limits.seconds
        told = json.dumps({"path": str(path), "memory": limits.memory, "threads": limits.threads})
        self.process = subprocess.Popen(
            [sys.executable, "-m", "leakcap.sql.worker", told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(self, sql: str, tables: Mapping[str, Any]) -> Any:
        """Rows, as an Arrow table; a fixed sentence where it fails or takes too long."""
        began = time.monotonic()
        try:
            self._send(sql, tables)
            head = json.loads(self._receive(int.from_bytes(self._receive(8, began), "big"), began))
            if head["error"]:
                raise EngineError(FAILED.format(number=head["error"]))
            return _table(self._receive(head["size"], began))
        except (BrokenPipeError, EOFError):
            self.close()
            raise EngineError(FAILED.format(number=9)) from None
        finally:
            self.left -= time.monotonic() - began

    def _send(self, sql: str, tables: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        parts = {name: _bytes(table) for name, table in tables.items()}
        head = json.dumps({"sql": sql, "tables": {name: len(one) for name, one in parts.items()}}).encode()
        self.process.stdin.write(len(head).to_bytes(8, "big") + head + b"".join(parts.values()))
        self.process.stdin.flush()

    def _receive(self, size: int, began: float) -> bytes:
        assert self.process.stdout is not None
        found = bytearray()
        while len(found) < size:
            left = self.left - (time.monotonic() - began)
            if left <= 0 or not select([self.process.stdout], [], [], left)[0]:
                self.close()
                raise NotAnswered(TOO_LONG.format(seconds=self.limits.seconds))
            part = self.process.stdout.read1(size - len(found))  # type: ignore[attr-defined]
            if not part:
                raise EOFError
            found += part
        return bytes(found)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def _bytes(table: Any) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _table(content: bytes) -> Any:
    import pyarrow

    return pyarrow.ipc.open_stream(content).read_all()
