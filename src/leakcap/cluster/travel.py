"""How things travel to workers: packed, so that nothing but a task of ours ever opens them, and opened once in each."""

from __future__ import annotations

import pickle
import secrets
from collections import OrderedDict
from typing import Any, TypeAlias

__all__ = ["Packed", "opened", "packed", "size", "unpacked"]

Packed: TypeAlias = tuple[str, bytes, list[bytes]]  # a name, and what pickle makes of the thing
KEPT = 8  # things that a worker keeps open
_open: OrderedDict[str, Any] = OrderedDict()  # in a worker


def packed(thing: Any) -> Packed:
    """The thing as bytes; large arrays as they lie in memory."""
    import cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    head = cloudpickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    return secrets.token_hex(8), head, [bytes(buffer.raw()) for buffer in buffers]


def opened(sent: Packed) -> Any:
    """The thing; its arrays cannot be written to, and are where the bytes are."""
    name, _, _ = sent
    if name in _open:
        _open.move_to_end(name)
        return _open[name]
    while len(_open) >= KEPT:
        _open.popitem(last=False)
    _open[name] = unpacked(sent)
    return _open[name]


def unpacked(sent: Packed) -> Any:
    """The thing, opened anew and kept nowhere."""
    _, head, buffers = sent
    return pickle.loads(head, buffers=buffers)


def size(sent: Packed) -> int:
    """Bytes that travel."""
    _, head, buffers = sent
    return len(head) + sum(map(len, buffers))
