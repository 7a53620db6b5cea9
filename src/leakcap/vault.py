"""Custodian files: their owner's alone, written whole or not at all, sealed where the `vault` extra is installed.

Sealing needs a key that does not lie beside the files: a key file in the user's own configuration folder, or the one
that the variable LEAKCAP_KEY names. Each folder seals with a key of its own, derived from that one and from a salt in
the folder; whoever deletes the salt has deleted everything (`Vault.forget`).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from leakcap.errors import InputError, MissingExtra

__all__ = ["Vault", "private_folder", "read_private", "write_private"]

HEADER = "vault.json"
NOTE = "CUSTODIAN ONLY. What lies here tells who may have taken part: do not publish, share or log it."
PART = ".part"  # ends the name of a file that is being written
PLAIN, SEALED = b"leakcap plain 1\n", b"leakcap sealed 1"


def private_folder(path: Path) -> Path:
    """A folder of ours that only its owner may enter; made, or closed to others, if need be."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        reason = error.strerror
    else:
        return path
    raise InputError(f"cannot make the custodian's folder {path} ({reason}): choose another place")


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
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise InputError(f"{path} may have been written by somebody else: it must be yours, with mode 0600")
        return file.read()


def _settle(folder: Path) -> None:
    """Make sure that a folder's entries survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Vault:
    """The files of one custodian folder, by name. Sealed files are bound to their name and cannot be exchanged."""

    folder: Path
    key: bytes | None = field(repr=False)  # None: not sealed, guarded against damage only

    @classmethod
    def open(cls, folder: Path) -> Vault:
        """The vault in a folder, a new one if the folder is new or empty."""
        if os.name != "posix":
            raise InputError("custodian files need an owner and a mode: use Linux, macOS, or WSL on Windows")
        header = folder / HEADER
        if not header.exists():
            others = folder.is_dir() and any(not path.name.endswith(PART) for path in folder.iterdir())
            if others and not header.exists():  # looked up again: another process may have made the vault meanwhile
                raise InputError(f"{folder} holds other files: choose a new or an empty folder")
            private_folder(folder)
            salt = secrets.token_hex(32) if _can_seal() else None
            text = json.dumps({"note": NOTE, "format": 1, "salt": salt}, indent=1)
            with suppress(FileExistsError):  # another process was first: its header counts
                write_private(header, text.encode(), exclusive=True)
        return cls.existing(folder)

    @classmethod
    def existing(cls, folder: Path) -> Vault:
        """The vault in a folder that has one; nothing is changed."""
        header = folder / HEADER
        try:
            stored = read_private(header)
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{folder} holds no checkpoint") from None
        try:
            salt = json.loads(stored)["salt"]
            drawn = None if salt is None else bytes.fromhex(salt)
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{header} is damaged: bring it back from a copy, or start again elsewhere") from None
        return cls(folder, None if drawn is None else _derived_key(drawn))

    def write(self, name: str, content: bytes, exclusive: bool = False) -> None:
        write_private(self.folder / name, self._closed(name, content), exclusive)

    def read(self, name: str) -> bytes | None:
        """What was written under a name, or None. Damage raises: half a file is never taken for a whole one."""
        path = self.folder / name
        try:
            stored = read_private(path)
        except FileNotFoundError:
            return None
        return self._opened(name, stored, path)

    def names(self, start: str = "") -> list[str]:
        """Names of the files that begin with `start`, in order."""
        return sorted(path.name for path in self.folder.glob(f"{start}*") if path.name != HEADER)

    def sweep(self) -> None:
        """Remove what processes that were killed left half-written."""
        for path in self.folder.glob(f".*{PART}"):
            if not _is_alive(path.name.split(".")[-3:-2]):
                path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove all that leakcap has put here, the salt first: without it sealed files cannot be opened any more."""
        with suppress(FileNotFoundError):
            (self.folder / HEADER).unlink()
        for path in self.folder.glob("*"):
            if _is_ours(path):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's files stay, and so does the folder
            self.folder.rmdir()

    def _closed(self, name: str, content: bytes) -> bytes:
        if self.key is None:
            return PLAIN + hashlib.sha256(name.encode() + b"\0" + content).digest() + content
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(12)
        return SEALED + nonce + AESGCM(self.key).encrypt(nonce, content, name.encode())

    def _opened(self, name: str, stored: bytes, path: Path) -> bytes:
        if self.key is None:
            digest, content = stored[len(PLAIN) :][:32], stored[len(PLAIN) + 32 :]
            if stored[: len(PLAIN)] != PLAIN or hashlib.sha256(name.encode() + b"\0" + content).digest() != digest:
                raise InputError(f"{path} is damaged or no file of leakcap: remove it and start again")
            return content
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        start = len(SEALED)
        try:
            if stored[:start] != SEALED or len(stored) < start + 12 + 16:
                raise InvalidTag
            return AESGCM(self.key).decrypt(stored[start:][:12], stored[start + 12 :], name.encode())
        except InvalidTag:
            pass
        raise InputError(f"{path} does not open with this key: it was damaged, exchanged, or sealed with another key")


def _is_ours(path: Path) -> bool:
    if path.name in ("lock", HEADER) or path.name.endswith(PART):
        return True
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(len(PLAIN)) in (PLAIN, SEALED)


def _is_alive(process: list[str]) -> bool:
    """Whether a process of this machine runs; its number is in the name of the file it writes."""
    try:
        os.kill(int(process[0]), 0)
    except (ValueError, IndexError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _can_seal() -> bool:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


def _derived_key(salt: bytes) -> bytes:
    """This folder's own key."""
    if not _can_seal():
        raise MissingExtra("these files are sealed: pip install 'leakcap[vault]' to read them")
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length=32, salt=salt, info=b"leakcap custodian folder").derive(_own_key())


def _own_key() -> bytes:
    """The user's key, made on first use."""
    path = _key_file()
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                write_private(path, secrets.token_hex(32).encode(), exclusive=True)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError(f"others may read the key {path}: chmod 600 it, or make a new one and start again")
        key = bytes.fromhex(read_private(path).decode())
    except InputError:
        raise
    except (OSError, ValueError):
        key = b""
    if len(key) != 32:
        raise InputError(f"no key could be read from or written to {path}: set LEAKCAP_KEY to a key file of your own")
    return key


def _key_file() -> Path:
    given = os.environ.get("LEAKCAP_KEY")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "leakcap" / "vault.key"
