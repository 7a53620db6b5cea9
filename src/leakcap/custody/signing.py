"""The key that signs what is released: a file of its own, beside the custodian's key, and its public half beside it.

It opens nothing: whoever signs need not be able to read checkpoints. LEAKCAP_SIGNING_KEY names another file. Where the
`vault` extra is not installed nothing is signed, and the pages say so.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from leakcap.certificates import signatures
from leakcap.custody import keys
from leakcap.custody.private_files import read_private, write_private
from leakcap.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["Signer", "own_signer", "public_half", "signing_key_file"]


@dataclass(frozen=True)
class Signer:
    """Signs lists of files, or nothing where there is no key. The key itself never leaves."""

    key: Ed25519PrivateKey | None = field(default=None, repr=False)
    made: bool = False  # just now, on its first use

    @property
    def public(self) -> bytes:
        """The public half; empty where there is none."""
        return b"" if self.key is None else self.key.public_key().public_bytes_raw()

    @property
    def fingerprint(self) -> str:
        """Of the key; empty where there is none, and nothing is signed."""
        return signatures.fingerprint(self.public) if self.key else ""

    def signed(self, files: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
        """The files, the list of them, and its signature."""
        if self.key is None:
            return dict(files)
        contents = {name: one.encode() if isinstance(one, str) else one for name, one in files.items()}
        listed = signatures.list_of_files(contents)
        return {**files, signatures.LIST: listed, signatures.SIGNATURE: self.key.sign(listed)}

    def news(self) -> str:
        """What to do with a key that was just made; empty afterwards."""
        if not self.made:
            return ""
        return (
            f"a signing key was made: {signing_key_file()}, yours alone. Keep a copy, and give readers its public "
            f"half, {public_half()}, by another way than the release. Fingerprint: {self.fingerprint}"
        )


def signing_key_file() -> Path:
    """Where the signing key lies."""
    given = os.environ.get("LEAKCAP_SIGNING_KEY")
    return Path(given) if given else keys.key_file().with_name("signing.key")


def public_half() -> Path:
    """Where its public half lies."""
    return signing_key_file().with_suffix(".pub")


def own_signer() -> Signer:
    """The user's signer, its key made on first use; one that signs nothing where the `vault` extra is not installed."""
    if not keys.can_seal():
        return Signer()
    path = signing_key_file()
    made = _make(path) if not path.exists() else False
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError(f"others may read the signing key {path}: chmod 600 it, or make another and tell readers")
        content = read_private(path)
    except OSError:
        content = b""
    signer = Signer(_key_in(content, path), made)
    _publish_half(signer)
    return signer


def _make(path: Path) -> bool:
    """A new key; False if another process was first."""
    if public_half().exists() and not path.exists():  # in this order: the key is written first
        raise InputError(
            f"the signing key {path} is gone, and {public_half()} is still there: bring the key back from its copy. "
            "For a new one, remove that file too, and tell your readers"
        )
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    text = Ed25519PrivateKey.generate().private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        write_private(path, text, exclusive=True)
    except FileExistsError:
        return False
    return True


def _key_in(content: bytes, path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError):  # no key, or one with a password
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{path} holds no Ed25519 key without a password: bring it back from its copy, or set LEAKCAP_SIGNING_KEY"
        )
    return key


def _publish_half(signer: Signer) -> None:
    """Write the public half, unless it is there; another's beside the key is refused."""
    path, text = public_half(), signatures.public_pem(signer.public)
    with suppress(FileExistsError):
        write_private(path, text.encode(), exclusive=True)
        path.chmod(0o644)
    try:
        same = signatures.public_key(path.read_text(encoding="ascii")) == signer.public
    except (OSError, ValueError):
        same = False
    if not same:
        raise InputError(f"{path} is not the public half of {signing_key_file()}: remove the one that is not yours")
