"""A signed list of files: what shows who issued a release, and that nothing in it was exchanged. Public side.

The list is what `sha256sum` writes, and the signature of its bytes is plain Ed25519 (RFC 8032, 64 bytes): readers need
no leakcap to check either. Equal files and an equal key give an equal signature: nothing is drawn for it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from leakcap.errors import InputError, MissingExtra

__all__ = ["LIST", "SIGNATURE", "digests_in", "fingerprint", "is_signed", "list_of_files", "public_key", "public_pem"]

LIST, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
HEAD = f"# Files of one leakcap release, signed in {SIGNATURE}\n"
LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_-][A-Za-z0-9._-]*)")
KEY_BYTES, FINGERPRINT_DIGITS = 32, 32
DER = bytes.fromhex("302a300506032b6570032100")  # what stands before an Ed25519 key in its PEM form (RFC 8410)
PEM = re.compile(r"-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----")
NO_KEY = (
    "the signer's key must be a public Ed25519 key: the file signing.pub that the issuer gives, or its 64 hex digits"
)


def list_of_files(files: Mapping[str, bytes]) -> bytes:
    """The list that is signed: a line for each file, in the order of their names."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return (HEAD + "".join(lines)).encode()


def digests_in(listed: bytes) -> dict[str, str]:
    """The SHA-256 of every file in a list; an InputError if it is no list of ours."""
    try:
        head, *lines = listed.decode("ascii").splitlines(keepends=True)
    except ValueError:  # not ASCII, or empty
        head, lines = "", []
    found = [LINE.fullmatch(line.removesuffix("\n")) for line in lines]
    digests = {line[2]: line[1] for line in found if line is not None}
    if head != HEAD or not digests or len(digests) != len(lines):
        raise InputError(f"{LIST} is no list of the files of a release: get it from the issuer again")
    return digests


def is_signed(listed: bytes, signature: bytes, key: bytes) -> bool:
    """Whether the holder of a key signed this list."""
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, listed)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key(text: str) -> bytes:
    """A public key from the text of its file, or from its hex digits."""
    if "PRIVATE KEY" in text:
        raise InputError("this is the private half of a key: keep it to yourself, and give the public one, signing.pub")
    found = PEM.search(text)
    try:
        raw = base64.b64decode("".join(found[1].split()), validate=True) if found else bytes.fromhex(text)
    except ValueError:
        raw = b""
    key = raw.removeprefix(DER) if found else raw
    if len(key) != KEY_BYTES or (found and not raw.startswith(DER)):
        raise InputError(NO_KEY)
    return key


def public_pem(key: bytes) -> str:
    """A public key as other programs read it."""
    return f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(DER + key).decode()}\n-----END PUBLIC KEY-----\n"


def fingerprint(key: bytes) -> str:
    """By which people tell keys from each other."""
    return hashlib.sha256(key).hexdigest()[:FINGERPRINT_DIGITS]


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("signatures are checked with the vault extra: pip install 'leakcap[vault]'") from None
    return ed25519
