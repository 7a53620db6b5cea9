"""Sealed values open as they were closed, and not otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakcap.custody import sealing
from leakcap.custody.sealing import SEALED, Seal

CONTENT = bytes(range(256)) * 5


class Older:
    """A cipher of a library that writes into no array."""

    def __init__(self, cipher: Any) -> None:
        self.encrypt, self.decrypt = cipher.encrypt, cipher.decrypt


@pytest.mark.parametrize("encrypts", [True, False])
@pytest.mark.parametrize("older", [True, False])
def test_arrays_open_as_values_do(encrypts: bool, older: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seal = Seal(bytes(32), encrypts)
    if older:
        cipher = sealing._cipher
        monkeypatch.setattr(sealing, "_cipher", lambda key: Older(cipher(key)))
    stored = np.frombuffer(seal.closed(CONTENT, b"name"), dtype=np.uint8)
    room = np.zeros(len(CONTENT), dtype=np.uint8)
    assert seal.opened_into(room, stored, b"name") and room.tobytes() == CONTENT
    wrong = [stored[:-1], stored[:20], stored[:0], np.append(stored, stored[:1])]
    for place in (0, len(SEALED) - 1, len(SEALED), len(SEALED) + 13, len(stored) - 1):
        changed = stored.copy()
        changed[place] ^= 1
        wrong.append(changed)
    assert not any(seal.opened_into(room, one, b"name") for one in wrong)
    assert not seal.opened_into(room, stored, b"another")
    assert not any(seal.opened_into(np.zeros(len(CONTENT) + more, dtype=np.uint8), stored, b"name") for more in (-1, 1))
