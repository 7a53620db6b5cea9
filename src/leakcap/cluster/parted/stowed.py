"""Where dealt rows lie: in memory as long as there is room, otherwise in files that nobody else can read.

Files are encrypted with a key that never leaves this process, column by column, and taken away at its end or as soon
as nobody needs them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.private_files import private_folder
from leakcap.custody.sealing import BEYOND, Seal
from leakcap.errors import InputError, MissingExtra
from leakcap.ground.arrays import Bits, Ints

__all__ = ["Stowed"]

PIECE = 2**18  # bytes that are sealed together: they stay in the second cache
TOO_LARGE = (
    "the rows of some people take {:,} bytes, and {:,} are allowed: give more with memory=, or rows_per_unit= if a "
    "person may bring few"
)


def fresh(size: int) -> Bits:
    return np.empty(size, dtype=np.uint8)


class Stowed:
    """Rows by shard and column; custodian side."""

    def __init__(self, room: int, folder: str | None) -> None:
        self.columns: list[str] = []
        self._own: set[str] = set()
        self._room, self._wanted = room, folder
        self._folder: Path | None = None
        self._seal: Seal | None = None
        self._held: dict[int, list[Any]] = defaultdict(list)  # by shard: tables
        self._size = 0  # of what is held
        self._written: dict[int, int] = defaultdict(int)  # by shard: tables that are in files
        self._ordered: dict[tuple[int, str], Any] = {}  # columns in order; None where they are in a file
        self._last: tuple[int, Any] | None = None  # the rows of one shard, which are asked for column by column
        self._spaces: list[Bits] = []  # memory that columns were in, and that nobody holds
        self._process = os.getpid()

    def known(self, schema: Any, unit: str | None) -> None:
        """The columns, before any row."""
        self.columns = self.columns or [name for name in schema.names if name != unit]

    def add(
        self, batch: Any, own: Mapping[str, npt.NDArray[Any]], shard: npt.NDArray[np.intp], unit: str | None
    ) -> None:
        """Rows with columns of ours, each to its shard."""
        import pyarrow as pa

        self.known(batch.schema, unit)
        self._own |= set(own)
        columns = {name: batch.column(name) for name in self.columns} | {
            name: pa.array(one) for name, one in own.items()
        }
        table = pa.table(columns).take(pa.array(np.argsort(shard, kind="stable")))
        ends = np.cumsum(np.bincount(shard))
        for place, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > first:
                self._held[place].append(table.slice(first, end - first))
        self._size += table.nbytes
        if self._size > self._room:
            self._spill()

    def has(self, name: str) -> bool:
        """Whether rows came with this column of ours."""
        return name in self._own

    def places(self) -> list[int]:
        """The shards that hold somebody."""
        return sorted({*self._held, *self._written})

    def column(self, place: int, name: str) -> Any:
        """A column of a shard."""
        if (place, name) in self._ordered:
            kept = self._ordered[place, name]
            file = f"{place}-{self._number(name)}"
            return _whole(self._read(file, self._lent).column(0)) if kept is None else kept
        if self._last is None or self._last[0] != place:
            self._last = place, self._gathered(place)
        return _whole(self._last[1].column(name))

    def put_in_order(self, place: int, order: Ints, own: Mapping[str, npt.NDArray[Any]], drop: Sequence[str]) -> None:
        """Keep a shard's rows in an order, some columns of ours anew and the others of ours no more."""
        import pyarrow as pa

        assert self._last is not None and self._last[0] == place
        rows, spilled = self._last[1], self._folder is not None
        keep = {name: rows.column(name).take(pa.array(order)).combine_chunks() for name in self.columns}
        for name, column in (keep | {name: pa.array(one) for name, one in own.items()}).items():
            if spilled:
                self._write(f"{place}-{self._number(name)}", pa.table([column], names=["c"]))
            self._ordered[place, name] = None if spilled else column
        assert set(own) <= set(drop)
        self._last = None
        self._held.pop(place, None)
        for number in range(self._written.pop(place, 0)):
            self._path(f"{place}.{number}").unlink()

    def _number(self, name: str) -> int:
        """Names of columns are no names of files."""
        return self.columns.index(name) if name in self.columns else len(self.columns)

    def _gathered(self, place: int) -> Any:
        import pyarrow as pa

        parts = [self._read(f"{place}.{number}") for number in range(self._written.get(place, 0))]
        rows = pa.concat_tables([*parts, *self._held.get(place, [])])
        if rows.nbytes > 2 * self._room:
            raise InputError(TOO_LARGE.format(rows.nbytes, 2 * self._room))
        return rows

    def _spill(self) -> None:
        """Everything that is held, into one more file for each shard."""
        import pyarrow as pa

        for place, tables in self._held.items():
            self._write(f"{place}.{self._written[place]}", pa.concat_tables(tables))
            self._written[place] += 1
        self._held.clear()
        self._size = 0

    def _write(self, name: str, table: Any) -> None:
        import pyarrow as pa

        self._begin()
        assert self._seal is not None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        try:
            with os.fdopen(os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                content = memoryview(sink.getvalue())
                pieces = -(-len(content) // PIECE)
                for place in range(pieces):
                    piece = bytes(content[place * PIECE : (place + 1) * PIECE])
                    file.write(self._seal.closed(piece, _bound_to(name, place, pieces)))
            return
        except OSError as error:
            reason = error.strerror
        raise InputError(f"rows that memory has no room for cannot be written ({reason}): give folder= or more memory=")

    def _read(self, name: str, memory: Callable[[int], Bits] = fresh) -> Any:
        import pyarrow as pa

        try:
            content = self._opened(name, memory)
        except OSError:
            content = None
        if content is None:
            raise InputError("rows that were put aside are gone or were changed: open the partitions again")
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()

    def _lent(self, size: int) -> Bits:
        """Memory for so many bytes, which is lent anew once nothing is left of what was made in it.

        Fresh memory costs more than what is put into it. Nobody may cut the array: what holds it is all that counts.
        """
        whole = self._spaces.pop() if self._spaces else fresh(0)
        if len(whole) < size:
            whole = fresh(size + size // 8)  # another shard may be somewhat larger
        lent = whole[:size]
        weakref.finalize(lent, self._spaces.append, whole).atexit = False
        return lent

    def _opened(self, name: str, memory: Callable[[int], Bits]) -> Bits | None:
        """What a file holds, piece by piece; None where it is not what was written."""
        assert self._seal is not None
        with open(self._path(name), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            pieces = -(-size // (PIECE + BEYOND))
            if size <= pieces * BEYOND:
                return None
            content, sealed = memory(size - pieces * BEYOND), fresh(PIECE + BEYOND)
            for place in range(pieces):
                room = content[place * PIECE : (place + 1) * PIECE]
                count = file.readinto(sealed.data)
                if not self._seal.opened_into(room, sealed[:count], _bound_to(name, place, pieces)):
                    return None
        return content

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / name

    def _begin(self) -> None:
        if self._folder is not None:
            return
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise MissingExtra(
                "rows that memory has no room for are put aside encrypted: pip install 'leakcap[vault]', or give more "
                "memory="
            ) from None
        self._seal = Seal(secrets.token_bytes(32))
        if self._wanted is not None:
            private_folder(Path(self._wanted))
        self._folder = Path(tempfile.mkdtemp(prefix="leakcap-", dir=self._wanted))
        weakref.finalize(self, _removed, self._folder, os.getpid())


def _whole(column: Any) -> Any:
    """Of one chunk it is that chunk, and not a copy."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _bound_to(name: str, place: int, pieces: int) -> bytes:
    """What a piece of a file is sealed for: none can be left out, or stand in for another."""
    return f"{name} {place}/{pieces}".encode()


def _removed(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child does not take away what its parent reads
        shutil.rmtree(folder, ignore_errors=True)
