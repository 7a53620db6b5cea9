"""Files that custodians bring: CSV or Parquet, of limited size, known by a number of ours and never by their names."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leakcap.custody.private_files import private_folder
from leakcap.errors import InputError
from leakcap.server.refusals import NOT_THERE, Refusal

__all__ = ["Upload", "Uploads"]

KINDS = (".csv", ".parquet")
PARQUET = b"PAR1"  # begins and ends such a file
PART = 2**20
KEPT = 86_400.0  # seconds that a file waits to be registered
NUMBER = re.compile(r"[0-9a-f]{24}")
TOO_LARGE = (
    "This file is too large: at most {:,.0f} MB are taken. Register it with leakcap.sql.register on the machine."
)


@dataclass(frozen=True)
class Upload:
    """A file that waits."""

    number: str
    path: Path

    @property
    def beside(self) -> Path:
        """Where it is kept what the file holds, so that it is looked through once."""
        return self.path.with_suffix(".json")

    @property
    def form(self) -> Path:
        """Where it is kept what was declared of it last, and what that was found to cost."""
        return self.path.with_suffix(".form.json")

    def remove(self) -> None:
        for path in (self.path, self.beside, self.form):
            path.unlink(missing_ok=True)


class Uploads:
    """The files that wait, in a folder that only the server's owner may enter."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder, most

    def keep(self, name: str | None, content: BinaryIO) -> Upload:
        """Take a file in; an `InputError` where it is not what it says."""
        self.sweep()
        kind = _kind_of(name)
        number = secrets.token_hex(12)
        path = private_folder(self.folder) / f"{number}{kind}"
        try:
            self._write(path, content)
            (_refuse_other_than_parquet if kind == ".parquet" else _refuse_other_than_text)(path, self.most)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Upload(number, path)

    def numbered(self, number: str) -> Upload:
        """A file that waits; a `Refusal` where there is none of this number."""
        if NUMBER.fullmatch(number):
            for path in (self.folder / f"{number}{kind}" for kind in KINDS):
                if path.is_file():
                    return Upload(number, path)
        raise Refusal(404, NOT_THERE)

    def sweep(self) -> None:
        """Remove what nobody came back for."""
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            if time.time() - path.stat().st_mtime > KEPT:
                path.unlink(missing_ok=True)

    def _write(self, path: Path, content: BinaryIO) -> None:
        written = 0
        try:
            with path.open("xb") as file:
                path.chmod(0o600)
                while part := content.read(PART):
                    written += len(part)
                    if written > self.most:
                        raise Refusal(413, TOO_LARGE.format(self.most / 2**20))
                    file.write(part)
        except OSError as error:
            reason = error.strerror
        else:
            if not written:
                raise InputError("the file is empty: choose one with rows")
            return
        raise InputError(f"the file cannot be kept ({reason}): make room in the server's folder")


def _kind_of(name: str | None) -> str:
    """Of a file's name the ending alone counts, and what looks like a path is refused."""
    if not name or not name.isprintable() or re.search(r"[/\\]|^\.|\.\.", name):
        raise InputError("the file's name looks like a path: rename it, such as visits.csv")
    found = next((kind for kind in KINDS if name.lower().endswith(kind)), None)
    if found is None:
        raise InputError("a file must be CSV or Parquet, and its name end with .csv or .parquet")
    return found


def _refuse_other_than_text(path: Path, most: int) -> None:
    with path.open("rb") as file:
        rest = b""
        while part := file.read(PART):
            held = rest + part
            text = held.decode("utf-8", errors="ignore")
            if b"\0" in held or len(held) - len(text.encode()) > 3:
                raise InputError("this is no CSV file of text in UTF-8: save it as CSV once more, or as Parquet")
            rest = b""
            if len(text.encode()) < len(held):
                rest = held[len(text.encode()) :]


def _refuse_other_than_parquet(path: Path, most: int) -> None:
    import pyarrow
    from pyarrow import parquet

    with path.open("rb") as file:
        head = file.read(4)
    if head == PARQUET:
        try:
            found = parquet.ParquetFile(path).metadata
            unpacked = sum(found.row_group(at).total_byte_size for at in range(found.num_row_groups))
        except (pyarrow.ArrowException, OSError, ValueError):
            found = None
        if found is not None:
            if unpacked > 16 * most:
                raise InputError(
                    "this file holds far more than its size says: unpacked it would be too large. Register it with "
                    "leakcap.sql.register on the machine"
                )
            return
    raise InputError("this is no Parquet file, or it is damaged: save it once more")
