"""Long work in a process of its own: bounded in memory, in the files it writes and in time, and killed when over.

It is started as `python -m leakcap.server.work`, reads one order from its input, and writes one result. What goes
wrong inside is said in the library's own words, or not at all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from leakcap.errors import InputError, LeakcapError

__all__ = ["command_done", "done", "main"]

MEMORY = 12 * 2**30  # bytes of address space
FILES = 8 * 2**30  # bytes of one file
TOO_LONG = "this took longer than {:g} seconds and was stopped: register a smaller file, or do it on the machine"
ENDED = "the file could not be worked with: it may need too much memory or space. Register it on the machine"
NUMBERS = ("int", "decimal", "float")


def done(order: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The result of an order; an `InputError` where it failed or took too long."""
    told, _ = _run([sys.executable, "-P", "-m", "leakcap.server.work"], json.dumps(order).encode(), seconds)
    try:
        found = dict(json.loads(told))
    except ValueError:
        found = {"error": ENDED}
    if "error" in found:
        raise InputError(found["error"])
    return found


def command_done(words: Sequence[str], seconds: float) -> None:
    """Run a `leakcap` command, as it is shown to the custodian; an `InputError` with its words where it fails."""
    _, said = _run([sys.executable, "-P", "-m", "leakcap", *words], b"", seconds)
    if said is not None:
        raise InputError(said)


def _run(command: list[str], given: bytes, seconds: float) -> tuple[bytes, str | None]:
    """What a process writes, and what it says where it fails."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            told, said = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            told = None
    if told is None:
        raise InputError(TOO_LONG.format(seconds))
    last = said.decode(errors="replace").strip().rsplit("\n", 1)[-1]
    words = last.removeprefix("leakcap: ") if last.startswith("leakcap: ") else ENDED
    return told, words if process.returncode else None


def main() -> None:
    """One order."""
    with suppress(ImportError):  # not on every system
        import resource

        for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILES)):
            resource.setrlimit(kind, (most, most))
    order = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    try:
        found = ORDERS[order.pop("do")](**order)
    except LeakcapError as error:
        found = {"error": str(error)}
    except Exception:
        found = {"error": ENDED}
    json.dump(found, sys.stdout, default=str)


def columns(file: str, table: str) -> dict[str, Any]:
    """What a file holds: names and kinds of columns, and how many rows."""
    import duckdb

    from leakcap.sql.sources import attached, kind_of

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


def registering(file: str, table: str, path: str | None, declared: dict[str, Any]) -> dict[str, Any]:
    """Register a file at a path; without one, only what that would cost is found out."""
    from leakcap.sql.register import register

    declared["bounds"] = {name: tuple(ends) for name, ends in declared.get("bounds", {}).items()}
    catalog = register({table: Path(file)}, path=path, **declared)
    losses = [] if path else _losses(Path(file), table, declared["bounds"])
    return {"report": list(catalog.report), "people": catalog.people, "losses": losses}


def comparing(**order: Any) -> dict[str, Any]:
    """What each promise would cost for a statistic or a model, and the first choice along the caps."""
    from leakcap.server.comparing import compared

    return compared(**order)


def _losses(file: Path, table: str, bounds: Mapping[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
    """For each bound, how many values it cuts, and how far it moves the mean."""
    import duckdb

    from leakcap.sql.sources import attached, kind_of

    found = []
    with duckdb.connect(":memory:") as database:
        source = attached(database, {table: file})[table]
        for name, (low, high) in bounds.items():
            column = source.columns[name]
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
