"""The key that opens checkpoints, sealed or not. It never lies beside them.

It is a file in the user's own configuration folder, or the one that the variable LEAKCAP_KEY names.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
import warnings
from contextlib import suppress
from pathlib import Path

from leakcap.custody.private_files import read_private, write_private
from leakcap.errors import InputError, KeyMadeWarning, MissingExtra
from leakcap.ground.callers import frames_of_ours

__all__ = ["PAGE", "can_seal", "derived_key", "key_file", "key_in", "own_key", "refuse_other_readers"]

KEY_BYTES = 32
PAGE = 4096  # bytes that are the key's alone
NO_KEY = "no key could be read from or written to {}: set LEAKCAP_KEY to a key file of your own"


def can_seal() -> bool:
    """Whether the `vault` extra is installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


def derived_key(salt: bytes, sealed: bool) -> bytes:
    """The key of one checkpoint, from the user's key and the salt in the checkpoint; for one that is sealed or not."""
    if sealed and not can_seal():
        raise MissingExtra("these files are sealed: pip install 'leakcap[vault]' to read them")
    # HKDF (RFC 5869) with SHA-256, one block.
    return hmac.digest(hmac.digest(salt, own_key(), "sha256"), b"leakcap custodian folder\x01", "sha256")


def key_file() -> Path:
    """Where the user's key lies."""
    given = os.environ.get("LEAKCAP_KEY")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "leakcap" / "vault.key"


def own_key() -> bytes:
    """The user's key, made on first use."""
    path = key_file()
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                write_private(path, secrets.token_hex(32).encode(), exclusive=True)
                warnings.warn(
                    f"a key was made: {path}, yours alone. It opens checkpoints and ledgers; keep a copy, nothing "
                    "opens them without it. LEAKCAP_KEY names another place",
                    KeyMadeWarning,
                    stacklevel=1 + frames_of_ours(),
                )
        refuse_other_readers()
        return key_in(read_private(path))
    except OSError:
        pass
    raise InputError(NO_KEY.format(path))


def refuse_other_readers() -> None:
    """An InputError if others may read the key."""
    path = key_file()
    with suppress(OSError):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError(
                f"others may read the key {path}: chmod 600 it. A new key opens none of the runs that were begun"
            )


def key_in(content: bytes) -> bytes:
    """The key in the content of a key file: all that its first page holds; what follows is `heads`."""
    try:
        key = bytes.fromhex(content[:PAGE].strip(b"\0 \t\r\n").decode())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InputError(NO_KEY.format(key_file()))
    return key
