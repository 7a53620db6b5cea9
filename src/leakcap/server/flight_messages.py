"""The few messages of Arrow Flight SQL that a server needs, read and written by hand.

They are protocol buffers of a handful of fields, so sixty lines read them, and nothing has to be installed for it. What
comes in is anybody's bytes: whatever they are, a message is found or a refusal is raised, after one pass over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leakcap.server.refusals import Refusal

__all__ = ["LONGEST", "FlightMessage", "packed", "unpacked"]

LONGEST = 64 * 1024  # bytes of a message
KIND = "type.googleapis.com/arrow.flight.protocol.sql."
NOT_READABLE = "This request of Flight SQL cannot be read: see which driver sends it, and take its latest version."
TOO_LARGE = f"A request of Flight SQL has {LONGEST:,} bytes at most: ask for less at a time."
VARINT, EIGHT, COUNTED, FOUR = 0, 1, 2, 5  # how the value of a field is laid out
LONGEST_NUMBER = 10  # bytes
Value = int | bytes


@dataclass(frozen=True)
class FlightMessage:
    """A message: its name, and the values of its fields by number, in the order in which they came.

    Attributes:
        name: as in the definition of Flight SQL, such as "CommandStatementQuery".
        fields: numbers, or bytes of texts and of messages inside.
    """

    name: str
    fields: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)

    def bytes(self, number: int) -> bytes | None:
        """The last value of a field; None where it was left out."""
        found = self.fields.get(number, ())
        if not found:
            return None
        if isinstance(found[-1], int):
            raise Refusal(400, NOT_READABLE)
        return found[-1]

    def text(self, number: int) -> str | None:
        """The same as text."""
        found = self.bytes(number)
        return None if found is None else _text(found)

    def texts(self, number: int) -> tuple[str, ...]:
        """All values of a repeated field."""
        return tuple(_text(one) for one in self.fields.get(number, ()))

    def flag(self, number: int) -> bool:
        """Whether a field is set."""
        found = self.fields.get(number, (0,))[-1]
        return bool(found) if isinstance(found, int) else False

    def numbers(self, number: int) -> tuple[int, ...]:
        """All numbers of a repeated field, one by one or packed together."""
        found: list[int] = []
        for one in self.fields.get(number, ()):
            if isinstance(one, int):
                found.append(one)
                continue
            at = 0
            while at < len(one):
                value, at = _number(one, at)
                found.append(value)
        return tuple(found)


def unpacked(data: bytes) -> FlightMessage:
    """The message that bytes hold; a `Refusal` where they hold none."""
    if len(data) > LONGEST:
        raise Refusal(413, TOO_LARGE)
    outside = FlightMessage("Any", _fields(data))
    kind = outside.text(1) or ""
    if not kind.startswith(KIND):
        raise Refusal(400, NOT_READABLE)
    return FlightMessage(kind.removeprefix(KIND), _fields(outside.bytes(2) or b""))


def packed(name: str, fields: Mapping[int, bytes]) -> bytes:
    """The bytes of a message of counted fields, within its name."""
    return _written({1: (KIND + name).encode(), 2: _written(fields)})


def _written(fields: Mapping[int, bytes]) -> bytes:
    return b"".join(
        _varint(number << 3 | COUNTED) + _varint(len(value)) + value for number, value in sorted(fields.items())
    )


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _fields(data: bytes) -> dict[int, tuple[Value, ...]]:
    found: dict[int, list[Value]] = {}
    at = 0
    while at < len(data):
        head, at = _number(data, at)
        value, at = _value(data, at, head & 7)
        found.setdefault(head >> 3, []).append(value)
    return {number: tuple(values) for number, values in found.items()}


def _value(data: bytes, at: int, layout: int) -> tuple[Value, int]:
    if layout == VARINT:
        return _number(data, at)
    if layout == COUNTED:
        size, at = _number(data, at)
    elif layout in (EIGHT, FOUR):
        size = 8 if layout == EIGHT else 4
    else:
        raise Refusal(400, NOT_READABLE)
    if size > len(data) - at:
        raise Refusal(400, NOT_READABLE)
    return data[at : at + size], at + size


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + LONGEST_NUMBER]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise Refusal(400, NOT_READABLE)


def _text(value: Value) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        pass
    raise Refusal(400, NOT_READABLE)
