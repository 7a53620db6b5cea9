"""The file that registration makes: in a folder of our own until it is whole, then in its place, or gone."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.private_files import drop_folder, passing_folder
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
    """A file to write; kept only where `whole` is set. Without a path it goes with this process, even a killed one."""
    place = None if path is None else _free(path)
    try:
        folder = passing_folder() if place is None else Path(tempfile.mkdtemp(prefix=".leakcap-", dir=place.parent))
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
        if place is not None:
            shutil.rmtree(folder, ignore_errors=True)
        elif not made.whole:
            drop_folder(folder)


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
