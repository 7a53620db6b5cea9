"""Sealing of single values: AES-256-GCM where there is a key, otherwise a digest that guards against damage only."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["PLAIN", "SEALED", "Seal"]

PLAIN, SEALED = b"leakcap plain 1\n", b"leakcap sealed 1"
NONCE, TAG, DIGEST = 12, 16, 32  # bytes


@dataclass(frozen=True)
class Seal:
    """Closes and opens values. Each is bound to a text, such as its name: under another one it does not open."""

    key: bytes | None = field(repr=False)  # None: not sealed
    salt: bytes = b""  # of the file: without a key, only this tells its values from those of another file

    def closed(self, content: bytes, bound_to: bytes) -> bytes:
        if self.key is None:
            return PLAIN + self._digest(content, bound_to) + content
        nonce = os.urandom(NONCE)
        return SEALED + nonce + _cipher(self.key).encrypt(nonce, content, bound_to)

    def opened(self, stored: object, bound_to: bytes) -> bytes | None:
        """The content, or None if this is not what was closed."""
        if not isinstance(stored, bytes):
            return None
        return self._checked(stored, bound_to) if self.key is None else self._decrypted(self.key, stored, bound_to)

    def mark(self, text: bytes) -> bytes:
        """A digest of 32 bytes which nobody without the key can compute or recognise."""
        if self.key is None:
            return hashlib.sha256(text).digest()
        return hmac.digest(_marking_key(self.key), text, "sha256")

    def _checked(self, stored: bytes, bound_to: bytes) -> bytes | None:
        digest, content = stored[len(PLAIN) :][:DIGEST], stored[len(PLAIN) + DIGEST :]
        return content if stored.startswith(PLAIN) and self._digest(content, bound_to) == digest else None

    @staticmethod
    def _decrypted(key: bytes, stored: bytes, bound_to: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        start = len(SEALED)
        if not stored.startswith(SEALED) or len(stored) < start + NONCE + TAG:
            return None
        try:
            return _cipher(key).decrypt(stored[start:][:NONCE], stored[start + NONCE :], bound_to)
        except InvalidTag:
            return None

    def _digest(self, content: bytes, bound_to: bytes) -> bytes:
        return hashlib.sha256(self.salt + bound_to + b"\0" + content).digest()


# Every title of a vault is opened and marked in a pass over it: what depends on the key alone is made once.


@lru_cache(maxsize=4)
def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


@lru_cache(maxsize=4)
def _marking_key(key: bytes) -> bytes:
    return hmac.digest(key, b"leakcap marks", "sha256")
