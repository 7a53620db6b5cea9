"""Long work in a process of its own: bounded in memory, in the files it writes and in time, and killed when over.

It is started as `python -m leakcap.server.work`, reads one order from its input, and writes one result. What goes
wrong inside is said in the library's own words, or not at all. It ends with whoever started it: its input stays open
for as long as somebody waits.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from leakcap.errors import InputError, LeakcapError

__all__ = ["STOPPED", "Onlooker", "command_done", "done", "main"]

MEMORY = 12 * 2**30  # bytes of address space
FILES = 8 * 2**30  # bytes of one file
TOO_LONG = "this took longer than {:g} seconds and was stopped: register a smaller file, or do it on the machine"
STOPPED = "this was stopped: nothing of it is kept, begin it again when you like"
ENDED = "the file could not be worked with: it may need too much memory or space. Register it on the machine"
COMMAND = "command"
WIDE = {"COLUMNS": "400"}  # a command breaks its sentences there: what is shown of it is its last line
SIGN = "leakcap: "  # before what a command says of an error
NUMBERS = ("int", "decimal", "float")


class Onlooker(Protocol):
    """Somebody who looks on, and may stop the work."""

    def begins(self, kill: Callable[[], None]) -> None:
        """The work has begun; `kill` ends it."""

    def says(self, words: str) -> None:
        """How far it is, in words."""

    @property
    def stopped(self) -> bool:
        """Whether it was stopped."""


def done(order: Mapping[str, Any], seconds: float, watched: Onlooker | None = None) -> dict[str, Any]:
    """The result of an order; an `InputError` where it failed, took too long or was stopped."""
    told, _ = _run(order, seconds, watched)
    try:
        found = dict(json.loads(told))
    except ValueError:
        found = {"error": ENDED}
    if "error" in found:
        raise InputError(found["error"])
    return found


def command_done(words: Sequence[str], seconds: float, watched: Onlooker | None = None) -> None:
    """Run a `leakcap` command, as it is shown to the custodian; an `InputError` with its words where it fails."""
    _, said = _run({"do": COMMAND, "words": list(words)}, seconds, watched)
    if said is not None:
        raise InputError(said)


def _run(order: Mapping[str, Any], seconds: float, watched: Onlooker | None) -> tuple[bytes, str | None]:
    """What a process writes, and what it says where it fails."""
    pipe = subprocess.PIPE
    late = threading.Event()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "leakcap.server.work"], stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | WIDE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None

        def too_long() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, too_long)
        timer.start()
        lines = list[str]()
        listener = threading.Thread(target=_listen, args=(process.stderr, lines, watched))
        listener.start()
        try:
            if watched is not None:
                watched.begins(process.kill)
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
            told = process.stdout.read()
            process.wait()
            listener.join()
        finally:
            timer.cancel()
            process.kill()
    if watched is not None and watched.stopped:
        raise InputError(STOPPED)
    if late.is_set():
        raise InputError(TOO_LONG.format(seconds))
    last = lines[-1] if lines else ""
    words = last.removeprefix(SIGN) if last.startswith(SIGN) else ENDED
    return told, words if process.returncode else None


def _listen(said: Any, lines: list[str], watched: Onlooker | None) -> None:
    for line in said:
        words = line.decode(errors="replace").strip()
        if words:
            lines[:] = [words]
            if watched is not None and not words.startswith(SIGN):
                watched.says(words[:200])


def main() -> None:
    """One order."""
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_its_input, daemon=True).start()
    warnings.simplefilter("ignore")
    if order["do"] == COMMAND:
        sys.argv = ["leakcap", *order["words"]]
        runpy.run_module("leakcap", run_name="__main__", alter_sys=True)
        return
    _bound()
    try:
        found = ORDERS[order.pop("do")](**order)
    except LeakcapError as error:
        found = {"error": str(error)}
    except Exception:
        found = {"error": ENDED}
    json.dump(found, sys.stdout, default=str)


def _bound() -> None:
    with suppress(ImportError):  # not on every system
        import resource

        for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILES)):
            resource.setrlimit(kind, (most, most))


def _end_with_its_input() -> None:
    """Nobody waits any more: the server has ended."""
    # Not through `sys.stdin`: its lock, held while Python ends, would make a failure of work that was done.
    while os.read(0, 1024):
        pass
    os._exit(1)


def _say(words: str) -> None:
    """How far the work is, for whoever looks on."""
    print(words, file=sys.stderr, flush=True)


def columns(file: str, table: str) -> dict[str, Any]:
    """What a file holds: names and kinds of columns, and how many rows."""
    import duckdb

    from leakcap.server.csv_shape import refuse_no_table
    from leakcap.sql.sources import attached, kind_of

    if file.endswith(".csv"):
        refuse_no_table(Path(file))
    with duckdb.connect(":memory:") as database:
        source = attached(database, {table: Path(file)})[table]
        try:
            counted = database.execute(f"SELECT count(*) FROM {source.view}").fetchone()
        except duckdb.Error:
            counted = None
    rows = counted[0] if counted else 0
    if not rows:
        raise InputError("the file has no rows, or one of them cannot be read: look at it, and save it once more")
    found = [{"name": name, "kind": kind_of(one.type)[0]} for name, one in source.columns.items()]
    return {"rows": rows, "columns": found}


def registering(files: dict[str, str], path: str | None, declared: dict[str, Any]) -> dict[str, Any]:
    """Register files, by the names of their tables, at a path; without one, only what that would cost is found out."""
    from leakcap.sql.register import register

    _say("Reading the file, and keeping what was declared.")
    declared["bounds"] = {name: tuple(ends) for name, ends in declared.get("bounds", {}).items()}
    sources = {table: Path(file) for table, file in files.items()}
    catalog = register(sources, path=path, **declared)
    _say("Finding out what the bounds cost.")
    losses = [] if path else _losses(sources, declared["bounds"])
    return {"report": list(catalog.report), "people": catalog.people, "losses": losses}


def comparing(**order: Any) -> dict[str, Any]:
    """What each promise would cost for a statistic or a model, and the first choice along the caps."""
    from leakcap.server.comparing import compared

    return compared(**order)


def _losses(files: Mapping[str, Path], bounds: Mapping[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
    """For each bound, how many values it cuts, and how far it moves the mean."""
    import duckdb

    from leakcap.sql.declared import one_column
    from leakcap.sql.sources import attached, kind_of

    found = []
    with duckdb.connect(":memory:") as database:
        sources = attached(database, files)
        for name, (low, high) in bounds.items():
            table, column_name = one_column(sources, name, "bounds")
            source = sources[table]
            column = source.columns[column_name]
            if kind_of(column.type)[0] not in NUMBERS:
                continue
            x = f"CAST({column.place} AS DOUBLE)"
            counted = database.execute(
                f"SELECT avg(CASE WHEN {x} < ? OR {x} > ? THEN 1.0 ELSE 0.0 END), avg({x}), "
                f"avg(least(greatest({x}, ?), ?)) FROM {source.view} WHERE isfinite({x})",
                [low, high, low, high],
            ).fetchone()
            cut, mean, after = counted or (0.0, None, None)
            found.append({"name": name, "low": low, "high": high, "cut": cut or 0.0, "mean": mean, "after": after})
    return found


ORDERS: dict[str, Callable[..., dict[str, Any]]] = {
    "columns": columns,
    "register": registering,
    "compare": comparing,
}

if __name__ == "__main__":
    main()
