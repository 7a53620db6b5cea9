"""Sealing of single values: AES-256-GCM, or an HMAC where that is not installed, which guards values and shows them.

Either way nobody without the key can write a value that opens.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from leakcap.ground.arrays import Bits

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["BEYOND", "PLAIN", "PLAIN_BEFORE", "SEALED", "Seal", "let_go_of_keys"]

PLAIN, SEALED = b"leakcap plain 2\n", b"leakcap sealed 1"
PLAIN_BEFORE = b"leakcap plain 1\n"  # bound to no key: anybody could have written it
NONCE, TAG, DIGEST = 12, 16, 32  # bytes
BEYOND = len(SEALED) + NONCE + TAG  # bytes by which an encrypted value is longer than its content


@dataclass(frozen=True)
class Seal:
    """Closes and opens values. Each is bound to a text, such as its name: under another one it does not open."""

    key: bytes = field(repr=False)
    encrypts: bool = True

    def closed(self, content: bytes, bound_to: bytes) -> bytes:
        if not self.encrypts:
            return b"".join((PLAIN, self._digest(content, bound_to), content))
        nonce = os.urandom(NONCE)
        return SEALED + nonce + _cipher(self.key).encrypt(nonce, content, bound_to)

    def opened(self, stored: object, bound_to: bytes) -> bytes | None:
        """The content, or None if this is not what was closed."""
        if not isinstance(stored, bytes):
            return None
        return self._decrypted(self.key, stored, bound_to) if self.encrypts else self._checked(stored, bound_to)

    def opened_into(self, room: Bits, stored: Bits, bound_to: bytes) -> bool:
        """The same, into an array that is there: fresh memory costs more than opening. Whether it could be opened."""
        start = len(SEALED) + NONCE
        decrypt: Any = getattr(_cipher(self.key), "decrypt_into", None) if self.encrypts else None
        if decrypt is None:  # it came with later versions of the library
            content = self.opened(stored.tobytes(), bound_to)
            if content is None or len(content) != len(room):
                return False
            room[:] = np.frombuffer(content, dtype=np.uint8)
            return True
        from cryptography.exceptions import InvalidTag

        if len(stored) != len(room) + BEYOND or stored[: len(SEALED)].tobytes() != SEALED:
            return False
        try:
            decrypt(stored[len(SEALED) : start].tobytes(), stored[start:], bound_to, room)
        except InvalidTag:
            return False
        return True

    def tag(self, stored: bytes) -> bytes:
        """By which a closed value that opens is known among all others: nobody without the key finds two with one."""
        start = len(SEALED)
        return (
            stored[start : start + NONCE] + stored[-TAG:] if self.encrypts else stored[len(PLAIN) : len(PLAIN) + DIGEST]
        )

    def mark(self, text: bytes) -> bytes:
        """A digest of 32 bytes which nobody without the key can compute or recognise."""
        return hmac.digest(_subkey(self.key, b"leakcap marks"), text, "sha256")

    def _checked(self, stored: bytes, bound_to: bytes) -> bytes | None:
        digest, content = self.tag(stored), stored[len(PLAIN) + DIGEST :]
        known = stored.startswith(PLAIN) and hmac.compare_digest(self._digest(content, bound_to), digest)
        return content if known else None

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
        made = hmac.new(_subkey(self.key, b"leakcap plain"), len(bound_to).to_bytes(8, "big") + bound_to, "sha256")
        made.update(content)  # which may be long: it is not copied
        return made.digest()


# Every title of a vault is opened and marked in a pass over it: what depends on the key alone is made once.


@lru_cache(maxsize=4)
def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


@lru_cache(maxsize=8)
def _subkey(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, purpose, "sha256")


def let_go_of_keys() -> None:
    """Nothing that was made of keys is kept any longer: for processes that go on when a key has done its work."""
    _cipher.cache_clear()
    _subkey.cache_clear()
