"""The process in which one question runs: reads SQL and tables from its input, writes rows, and says no reason."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["main"]

NUMBERS = {
    "OutOfMemoryException": 1,
    "InterruptException": 2,
    "BinderException": 3,
    "CatalogException": 4,
    "IOException": 5,
}
ROOM = 2**30  # bytes that are no table: answers on their way, and threads


def main() -> None:
    """Answer one request after the other until the input ends."""
    from leakcap.sql.engine import ROWS, EngineLimits, LocalEngine

    told = json.loads(sys.argv[1])
    source, out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but answers goes to the pipe
    engine = LocalEngine(told["path"], EngineLimits(memory=told["memory"], threads=told["threads"]))
    _keep_within(told["memory"])
    while (request := _request(source)) is not None:
        error, content = 0, b""
        try:
            found = engine.run(*request)
            error, content = (8, b"") if found.num_rows > ROWS else (0, _written(found))
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
    import pyarrow

    size = source.read(8)
    if len(size) < 8:
        return None
    head = json.loads(source.read(int.from_bytes(size, "big")))
    tables = {}
    for name, length in head["tables"].items():
        tables[name] = pyarrow.ipc.open_stream(source.read(length)).read_all()
    return head["sql"], tables


def _written(table: Any) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


if __name__ == "__main__":
    main()
