"""Files of the custodian's own: their owner's alone, and written whole or not at all."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from leakcap.errors import InputError

__all__ = [
    "PART",
    "drop_folder",
    "passing_folder",
    "private_folder",
    "read_private",
    "refuse_strangers",
    "sweep_parts",
    "write_private",
]

PART = ".part"  # ends the name of a file that is being written


def private_folder(path: Path) -> Path:
    """A folder of ours that only its owner may enter; made, or closed to others, if need be."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        for folder in missing:  # or a power cut takes the folder away, and with it what was stored in it for good
            with suppress(PermissionError):  # a folder above that may be written and not read
                _settle(folder.parent)
    except OSError as error:
        reason = error.strerror
    else:
        return path
    raise InputError(f"cannot make the custodian's folder {path} ({reason}): choose another place")


def passing_folder(where: str | None = None) -> Path:
    """A new folder that only its owner may enter, and that goes with this process, also when that is killed."""
    from joblib.externals.loky.backend import resource_tracker

    folder = tempfile.mkdtemp(prefix="leakcap-", dir=where)
    resource_tracker.register(folder, "folder")  # a process of its own: it cleans up also after a kill
    atexit.register(_drop_own, folder, os.getpid())
    return Path(folder)


def drop_folder(folder: Path | str) -> None:
    """It goes now, and nobody waits for its process any more."""
    from joblib.externals.loky.backend import resource_tracker

    if os.path.isdir(folder):
        shutil.rmtree(folder, ignore_errors=True)
        resource_tracker.unregister(str(folder), "folder")


def _drop_own(folder: str, maker: int) -> None:
    if os.getpid() == maker:  # not in a child that ends before
        drop_folder(folder)


def write_private(path: Path, content: bytes, exclusive: bool = False) -> None:
    """Put a file of mode 0600 in place, whole, even if the machine stops; FileExistsError if `exclusive` and there."""
    written = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{PART}")
    try:
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if exclusive:
            os.link(written, path)  # unlike a rename, it never replaces
        else:
            os.replace(written, path)
        _settle(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        reason = error.strerror
    else:
        return
    finally:
        with suppress(OSError):
            os.unlink(written)
    raise InputError(f"cannot write {path} ({reason}): make room, or choose a folder on a local disk of your own")


def read_private(path: Path) -> bytes:
    """A file that nobody but its owner, who reads it now, could have written."""
    with path.open("rb") as file:
        refuse_strangers(path, os.fstat(file.fileno()))
        return file.read()


def refuse_strangers(path: Path, state: os.stat_result) -> None:
    """An InputError if somebody else could have written a file in this state."""
    if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o022:
        raise InputError(f"{path} may have been written by somebody else: it must be yours, with mode 0600")


def sweep_parts(folder: Path) -> None:
    """Remove what processes that were killed left half-written."""
    for path in folder.glob(f".*{PART}"):
        if not _is_alive(path.name.split(".")[-3:-2]):
            path.unlink(missing_ok=True)


def _settle(folder: Path) -> None:
    """Make sure that a folder's entries survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_alive(process: list[str]) -> bool:
    """Whether a process of this machine runs; its number is in the name of the file it writes."""
    try:
        os.kill(int(process[0]), 0)
    except (ValueError, IndexError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
