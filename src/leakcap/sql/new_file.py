"""The file that registration makes: in a folder of our own until it is whole, then in its place, or gone."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leakcap.errors import InputError

__all__ = ["NewFile", "new_file"]


@dataclass
class NewFile:
    """Where to write, and where it will be."""

    written: Path  # in a folder that nobody else may open: what the engine puts beside it is no one else's either
    place: Path
    whole: bool = False


@contextmanager
def new_file(path: str | Path | None) -> Iterator[NewFile]:
    """A file to write; kept only where `whole` is set. Without a path it lives as long as this process."""
    place = None if path is None else _free(path)
    try:
        folder = Path(
            tempfile.mkdtemp(prefix=".leakcap-" if place else "leakcap-", dir=place.parent if place else None)
        )
    except OSError:
        where = "the temporary folder" if place is None else f"folder {str(place.parent)!r}"
        raise InputError(f"nothing can be written in {where}: give another path=, or make room") from None
    made = NewFile(folder / "tables.duckdb", folder / "tables.duckdb" if place is None else place)
    try:
        yield made
        if made.whole:
            made.written.chmod(0o600)
            if place is not None:
                _put(made.written, place)
    finally:
        if place is not None or not made.whole:
            shutil.rmtree(folder, ignore_errors=True)
    if place is None:
        atexit.register(_discard, folder, os.getpid())


def _free(path: str | Path) -> Path:
    try:
        place = Path(path)
        taken, has_folder = os.path.lexists(place), place.parent.is_dir()
        if "\0" in place.name:
            raise ValueError
    except (TypeError, ValueError, OSError):
        raise InputError("path must be where a file can be made, such as 'tables.duckdb'") from None
    if taken:
        raise InputError(f"{place.name!r} exists: choose another path, or open it with leakcap.sql.Catalog.load")
    if not has_folder:
        raise InputError(f"there is no folder {str(place.parent)!r}: make it first")
    if len(os.fsencode(place.name)) > 255:
        raise InputError("the name in path is too long for a file: choose a shorter one")
    return place


def _put(written: Path, place: Path) -> None:
    """In its place, whole, and never over another file."""
    try:
        os.link(written, place)
    except FileExistsError:
        raise InputError(f"{place.name!r} exists by now: choose another path") from None
    except OSError:  # a disk without hard links
        if os.path.lexists(place):
            raise InputError(f"{place.name!r} exists by now: choose another path") from None
        try:
            written.rename(place)
        except OSError:
            raise InputError("the file of the tables could not be put in its place: give another path=") from None


def _discard(folder: Path, maker: int) -> None:
    if os.getpid() == maker:  # not in a child that ends before
        shutil.rmtree(folder, ignore_errors=True)
