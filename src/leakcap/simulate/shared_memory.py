"""How data reach worker processes: once, as one file that every worker maps into its memory.

A task names its parcels; a worker opens each at its first task and keeps it. Large arrays, of tables and sparse
matrices too, are never copied: they stay in the file, read-only, and a world's rows are copied out of them. What has
no arrays (lists, text) is read once. Parcels lie in a folder that nobody else can enter and go with the run; the
folder goes with the process, also when that is killed.
"""

from __future__ import annotations

import functools
import mmap
import os
import pickle
import secrets
import struct
import tempfile
from contextlib import suppress
from typing import Any

from leakcap.custody.private_files import passing_folder

__all__ = ["Parcel", "Parcels", "drop_stale", "pickled"]

LARGE = 2**20  # bytes from which an array is mapped; smaller ones are copied, and may be written to
ALIGNED = 64
SHARED = "/dev/shm"  # needs no disk
_opened: dict[str, Any] = {}  # in a worker: parcels that it has opened


class Parcel:
    """Stands for an object on the way to a worker; there, it is the object."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return contents, (self.path,)


class Parcels:
    """The parcels of one run."""

    def __init__(self) -> None:
        self._sent: dict[int, tuple[Any, Parcel]] = {}  # the object too: its number must not be given to another

    def of(self, thing: Any) -> Parcel:
        """The parcel with this very object in it; written when it is first asked for."""
        if id(thing) not in self._sent:
            self._sent[id(thing)] = thing, Parcel(_write(thing))
        return self._sent[id(thing)][1]

    def remove(self) -> None:
        """Take the files away. Workers forget what was in them as soon as they notice."""
        for _, parcel in self._sent.values():
            with suppress(FileNotFoundError):
                os.unlink(parcel.path)
        self._sent.clear()


def pickled(thing: Any, **options: Any) -> bytes:
    """As bytes, functions and classes of a script or a notebook included."""
    from joblib.externals.loky.cloudpickle_wrapper import dumps  # cloudpickle, wherever joblib has it

    return bytes(dumps(thing, protocol=5, **options))


def contents(path: str) -> Any:
    """In a worker: what is in a parcel."""
    if path not in _opened:
        drop_stale()
        _opened[path] = _read(path)
    return _opened[path]


def drop_stale() -> None:
    """In a worker: forget the parcels of runs that have ended."""
    for path in list(_opened):
        if not os.path.exists(path):
            _opened.pop(path, None)


def _write(thing: Any) -> str:
    """One file: how many parts, their sizes, and the parts: the pickle, then the large arrays it leaves out."""
    large: list[memoryview] = []

    def inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= LARGE:
            large.append(raw)
        return raw.nbytes < LARGE

    parts = [memoryview(pickled(thing, buffer_callback=inside)), *large]
    sizes = [part.nbytes for part in parts]
    path = os.path.join(_closed_folder(_place(sum(sizes))), secrets.token_hex(8))
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes))
            for part in parts:
                file.write(bytes(-file.tell() % ALIGNED))
                file.write(part)
    except BaseException:
        os.unlink(path)
        raise
    return path


def _read(path: str) -> Any:
    with open(path, "rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    (count,) = struct.unpack_from("<Q", mapped)
    parts, at = [], 8 * (1 + count)
    for size in struct.unpack_from(f"<{count}Q", mapped, 8):
        at += -at % ALIGNED
        parts.append(mapped[at : at + size])
        at += size
    return pickle.loads(parts[0], buffers=parts[1:])


def _place(size: int) -> str:
    """Shared memory if it has room for so many bytes; containers often have little."""
    if os.access(SHARED, os.W_OK):
        there = os.statvfs(SHARED)
        if there.f_bavail * there.f_frsize > size + 2**24:
            return SHARED
    return tempfile.gettempdir()


@functools.cache
def _closed_folder(place: str) -> str:
    """A folder that only its owner may enter, one for the whole process; it goes when the process ends."""
    return str(passing_folder(place))
