"""How things travel to workers and back: packed, and sealed piece by piece, so that only who has the key opens them."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any, TypeAlias

import numpy as np

from leakcap.custody.sealing import Seal
from leakcap.errors import OutputError
from leakcap.ground.arrays import Bits

__all__ = ["Sealed", "closed", "kept_open", "let_go", "opened", "size"]

Sealed: TypeAlias = list[bytes]  # pieces: first how long the others are together, then a pickle, then large arrays
PIECE = 2**26  # bytes; what is encrypted at once must be below 2^31
KEPT = 16  # things that a worker keeps open
CHANGED = "what travelled between this process and its workers was changed: nothing was released"
_open: OrderedDict[tuple[str, str], Any] = OrderedDict()  # in a worker: by token and name


def closed(seal: Seal, thing: Any, name: str, *, apart: bool = True) -> Sealed:
    """The thing under its name; under another one it does not open. Arrays that travel apart are only to be read."""
    import cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    head = cloudpickle.dumps(thing, protocol=5, buffer_callback=buffers.append if apart else None)
    parts = [memoryview(head), *(one.raw() for one in buffers)]
    pieces: list[Any] = [pickle.dumps([len(part) for part in parts])]
    pieces += [part[start : start + PIECE] for part in parts for start in range(0, len(part), PIECE)]
    return [seal.closed(piece, _bound_to(name, place, len(pieces))) for place, piece in enumerate(pieces)]


def opened(seal: Seal, sealed: Sealed, name: str) -> Any:
    """The thing; an OutputError where it is not what was closed."""
    lengths = seal.opened(sealed[0], _bound_to(name, 0, len(sealed)))
    if lengths is None:
        raise OutputError(CHANGED)
    parts, place = list[Bits](), 1
    for length in pickle.loads(lengths):
        room = np.empty(length, dtype=np.uint8)
        for start in range(0, length, PIECE):
            piece = np.frombuffer(sealed[place], dtype=np.uint8)
            if not seal.opened_into(room[start : start + PIECE], piece, _bound_to(name, place, len(sealed))):
                raise OutputError(CHANGED)
            place += 1
        room.flags.writeable = False
        parts.append(room)
    return pickle.loads(parts[0].data, buffers=parts[1:])


def kept_open(seal: Seal, sealed: Sealed, name: str, token: str) -> Any:
    """The same in a worker, opened once."""
    known = token, name
    if known not in _open:
        while len(_open) >= KEPT:
            _open.popitem(last=False)
        _open[known] = opened(seal, sealed, name)
    _open.move_to_end(known)
    return _open[known]


def let_go(token: str) -> None:
    """Nothing that came under a token is kept open any longer."""
    for known in [known for known in _open if known[0] == token]:
        del _open[known]


def size(sealed: Sealed) -> int:
    """Bytes that travel."""
    return sum(map(len, sealed))


def _bound_to(name: str, place: int, pieces: int) -> bytes:
    """What a piece is sealed for: none can be left out, or stand in for another."""
    return f"{name} {place}/{pieces}".encode()
