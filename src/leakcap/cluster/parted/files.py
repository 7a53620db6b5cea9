"""Parquet files, here or at an fsspec address, that must be the same from the first look until the last row is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakcap.errors import InputError, MissingExtra

__all__ = ["ParquetPart", "parquet_parts"]

ENDING = ".parquet"
MAGIC = b"PAR1"
TAIL = 8  # bytes: the length of the footer, and the magic word
BATCH = 2**17  # rows
PIECE = 2**22  # bytes
CHANGED = (
    "{} was changed while it was read: nothing was made of it. Let whoever writes it finish, and open the partitions "
    "again"
)


@dataclass(frozen=True, eq=False)
class ParquetPart:
    """One file; its size, its time of change and a digest of its footer are those of the first look."""

    name: str
    path: str
    system: Any = field(repr=False)  # of fsspec; None for files of this machine
    look: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(cls, path: str, name: str, system: Any = None) -> ParquetPart:
        return cls(name, path, system, _look(path, name, system))

    def schema(self) -> Any:
        import pyarrow.parquet as pq

        with self._open() as file:
            return pq.ParquetFile(file).schema_arrow

    def rows(self) -> int:
        """How many there are, by its footer."""
        import pyarrow.parquet as pq

        with self._open() as file:
            return int(pq.ParquetFile(file).metadata.num_rows)

    def batches(self) -> Iterator[Any]:
        """Record batches of the file; an InputError where it is not the one that was looked at."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._refuse_other()
        try:
            with self._open() as file:
                yield from pq.ParquetFile(file).iter_batches(batch_size=BATCH)
        except (pa.ArrowException, OSError) as error:
            kind = type(error).__name__
        else:
            self._refuse_other()
            return
        self._refuse_other()
        raise InputError(f"{self.name} cannot be read ({kind}): is it a whole Parquet file? Write it again")

    def digest(self) -> bytes:
        """Of all its bytes."""
        found = hashlib.sha256()
        with self._open() as file:
            while piece := file.read(PIECE):
                found.update(piece)
        return found.digest()

    def _open(self) -> Any:
        return _opened(self.path, self.system)

    def _refuse_other(self) -> None:
        if _look(self.path, self.name, self.system) != self.look:
            raise InputError(CHANGED.format(self.name))


def parquet_parts(address: str, options: Mapping[str, Any] | None) -> list[ParquetPart]:
    """The file at an address, or all Parquet files below a folder, in the order of their names; hidden ones are not."""
    if "://" not in address:
        return _of_this_machine(Path(address))
    try:
        import fsspec
    except ImportError:
        raise MissingExtra("addresses such as s3://... need fsspec: pip install 'leakcap[dask]'") from None
    system, root = fsspec.core.url_to_fs(address, **dict(options or {}))
    found = sorted(system.find(root)) if system.isdir(root) else [root] if system.exists(root) else []
    return _parts({path: path.removeprefix(root).lstrip("/") or path for path in found}, system, address)


def _of_this_machine(root: Path) -> list[ParquetPart]:
    found = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    if not root.exists():
        found = []
    names = {str(path): str(path.relative_to(root)) if root.is_dir() else root.name for path in found}
    return _parts(names, None, str(root))


def _parts(names: dict[str, str], system: Any, address: str) -> list[ParquetPart]:
    seen = {path: name for path, name in names.items() if not any(one[:1] in "._" for one in name.split("/"))}
    chosen = {path: name for path, name in seen.items() if len(seen) == 1 or name.endswith(ENDING)}
    if not chosen:
        raise InputError(f"there are no Parquet files at {address}: name a folder of them, a file, or a list of files")
    return [ParquetPart.of(path, name, system) for path, name in chosen.items()]


@contextmanager
def _opened(path: str, system: Any) -> Iterator[Any]:
    with Path(path).open("rb") if system is None else system.open(path, "rb") as file:
        yield file


def _look(path: str, name: str, system: Any) -> tuple[Any, ...]:
    """Size, time and footer: every way of writing a Parquet file anew changes its footer or one of the others."""
    try:
        if system is None:
            state = os.stat(path)
            size, told = state.st_size, [str(state.st_mtime_ns), str(state.st_ino)]
        else:
            info = system.info(path)
            size = info["size"]
            told = [str(info.get(one)) for one in ("ETag", "etag", "mtime", "LastModified", "created", "md5Hash")]
        with _opened(path, system) as file:
            file.seek(max(0, size - TAIL))
            tail = file.read(TAIL)
            length = int.from_bytes(tail[:4], "little")
            whole = len(tail) == TAIL and tail[4:] == MAGIC and length + TAIL <= size
            file.seek(size - TAIL - length if whole else 0)
            footer = file.read(length) if whole else b""
    except (OSError, KeyError) as error:
        kind = type(error).__name__
    else:
        if not whole:
            raise InputError(f"{name} is no whole Parquet file: write it again, or leave it out")
        return size, hashlib.sha256(footer).digest(), *told
    raise InputError(f"{name} cannot be read ({kind}): is it still there, and yours to read?")
