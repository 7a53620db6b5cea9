"""The process in which one question runs: reads SQL and tables from its input, writes rows, and says no reason.

It is started as a file, and imports DuckDB and Arrow alone: every question starts one, so what it loads is paid for by
every question, and what it does not load cannot be reached from inside.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["NUMBERS", "ROWS", "EngineLimits", "NoSelect", "locked", "main", "selected", "table_in", "written"]

# External access goes last: what is set before still needs none, and after it nothing can be switched on again.
SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "''",
    "enable_external_access": "false",
    # It rewrites questions by the least and largest values that the tables hold, which are people's; a fault of it made
    # a question fail or not by whether anybody had a small value.
    "disabled_optimizers": "'statistics_propagation'",
}
NUMBERS = {
    "OutOfMemoryException": 1,
    "InterruptException": 2,
    "BinderException": 3,
    "CatalogException": 4,
    "IOException": 5,
    "NoSelect": 6,
}
ROWS = 2**24  # of what goes back
ROOM = 2**30  # bytes that are no table: answers on their way, and threads


class NoSelect(Exception):
    """Something else than one SELECT."""


@dataclass(frozen=True)
class EngineLimits:
    """What one question may use."""

    seconds: float = 60.0
    memory: str = "4GB"
    threads: int = 2


def locked(path: Path | str | None, limits: EngineLimits, tables: Mapping[str, Any] | None = None) -> Any:
    """A connection that can read this file and nothing else; without a file, these tables, which no disk ever sees."""
    import duckdb
    import pyarrow

    file = _holding(tables or {}) if path is None else duckdb.connect(str(path), read_only=True)
    settings = {"threads": str(limits.threads), "memory_limit": f"'{limits.memory}'", **SETTINGS}
    for name, value in settings.items():
        file.execute(f"SET {name} = {value}")
    if hasattr(pyarrow, "decimal64"):  # decimals as wide as they are kept
        file.execute("SET SESSION arrow_output_version = '1.5'")
    file.execute("SET lock_configuration = true")
    return file


def _holding(tables: Mapping[str, Any]) -> Any:
    import duckdb

    file = duckdb.connect(":memory:", config={"temp_directory": ""})
    for name, table in tables.items():
        file.register("given", table)
        file.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        file.unregister("given")
    return file


def selected(file: Any, sql: str, tables: Mapping[str, Any]) -> Any:
    """The rows of one SELECT, as an Arrow table; NoSelect for anything else."""
    import duckdb

    if [one.type for one in file.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise NoSelect  # the lock lets pass temporary tables, and what comes second
    for name, table in tables.items():
        file.register(name, table)
    try:
        return file.sql(sql).to_arrow_table()
    finally:
        for name in tables:
            file.unregister(name)


def main() -> None:
    """Answer one request after the other until the input ends."""
    told = json.loads(sys.argv[1])
    source, out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but answers goes to the pipe
    given = _request(source) if told["path"] is None else None
    limits = EngineLimits(memory=told["memory"], threads=told["threads"])
    file = locked(told["path"], limits, given and given[1])
    _keep_within(told["memory"])
    while (request := _request(source)) is not None:
        error, content = 0, b""
        try:
            found = selected(file, *request)
            error, content = (8, b"") if found.num_rows > ROWS else (0, written(found))
        except Exception as failed:
            error = NUMBERS.get(type(failed).__name__, 7)
        head = json.dumps({"error": error, "size": len(content)}).encode()
        out.write(len(head).to_bytes(8, "big") + head + content)
        out.flush()


def _keep_within(memory: str) -> None:
    """No more than so much, however it is asked for: the engine's own limit leaves out the text that it makes."""
    size = re.fullmatch(r"(\d+)\s*([KMGT])i?B", memory.strip(), re.IGNORECASE)
    place = Path("/proc/self/statm")
    if size is None or not place.exists():
        return
    import resource

    now = int(place.read_text().split()[0]) * resource.getpagesize()
    most = now + ROOM + int(size[1]) * 1024 ** ("KMGT".index(size[2].upper()) + 1)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _request(source: BinaryIO) -> tuple[str, dict[str, Any]] | None:
    size = source.read(8)
    if len(size) < 8:
        return None
    head = json.loads(source.read(int.from_bytes(size, "big")))
    tables = {name: table_in(source.read(length)) for name, length in head["tables"].items()}
    return head["sql"], tables


def table_in(content: bytes) -> Any:
    """A table, from bytes that `written` made."""
    import pyarrow

    return pyarrow.ipc.open_stream(content).read_all()


def written(table: Any) -> bytes:
    """A table as bytes."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


if __name__ == "__main__":
    sys.modules["numpy"] = None  # type: ignore[assignment]  # DuckDB and Arrow can do without: a third less to load
    main()
