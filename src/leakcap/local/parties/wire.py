"""Connections between parties: who they are, what they ask, and frames of bytes. Whatever else arrives ends the run.

Nothing that is received is ever taken for code or text: a frame is a kind, a label, a length and shares. What a peer
says about itself is compared, and never shown.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakcap.errors import PartiesError

__all__ = ["DONE", "HELLO_BYTES", "READY", "Hello", "Message", "Peer"]

MAGIC = b"leakcap\x02"
PROTOCOL = 1
HELLO = struct.Struct("<8sHHH32s32s")  # magic, protocol, party, parties, question, versions
HELLO_BYTES = HELLO.size
FRAME = struct.Struct("<BqI")  # kind, label, bytes that follow
SHARES, READY, DONE, STOPPED = range(1, 5)


@dataclass(frozen=True)
class Hello:
    """What a party says before anything else; all but its own number must be the same for all."""

    party: int  # from 0 on
    parties: int
    question: bytes  # its digest
    versions: bytes  # digest of the versions of leakcap and of MPyC

    def packed(self) -> bytes:
        return HELLO.pack(MAGIC, PROTOCOL, self.party, self.parties, self.question, self.versions)

    def refuse(self, given: bytes, expected: int | None) -> int:
        """The number of the party that says this; an error where it is no party to the same computation."""
        magic, protocol, party, parties, question, versions = HELLO.unpack(given)
        if magic != MAGIC:
            raise PartiesError("something that is no leakcap party answered, or called: check hosts and ports")
        if protocol != PROTOCOL or versions != self.versions:
            raise PartiesError(
                "another party has another version of leakcap or MPyC: install the same versions everywhere"
            )
        if question != self.question or parties != self.parties:
            raise PartiesError(
                "another party was given another question: every party needs the same file, byte for byte in what it "
                "says, and the same list of parties"
            )
        if party >= parties or party == self.party or expected not in (None, party):
            raise PartiesError("two parties say that they have the same number: give each its own place in the list")
        return int(party)


@dataclass(frozen=True)
class Message:
    """A frame that was sent or received: between whom, in which step, and how long. Not what was in it.

    Attributes:
        step: the step of the computation.
        party: the other one, from 1 on.
        sent: whether it was sent, and not received.
        size: in bytes, with its head.
    """

    step: str
    party: int  # the other one, from 1 on
    sent: bool
    size: int  # bytes, with its head


class Peer(asyncio.Protocol):
    """A connection with another party: first its hello, then frames."""

    def __init__(self, own: Hello, expected: int | None, events: Events) -> None:
        self._own, self.expected, self._events = own, expected, events
        self.party: int | None = None
        self.transport: Any = None
        self._bytes = bytearray()
        self._waiting: dict[int, Any] = {}  # by label: what arrived early, or a future for what is waited for
        self._said: dict[int, asyncio.Future[None]] = {}
        self.over = False  # nothing more is expected from it
        self._deaf = False  # it said something that does not fit

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._events.connected(self)
        transport.write(self._own.packed())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over and not self._deaf:
            self._events.failed(PartiesError(_gone(self.party if self.party is not None else self.expected)))
        elif not self.said(DONE).done():
            self.said(DONE).set_result(None)  # nothing more is to come

    def data_received(self, data: bytes) -> None:
        if self._events.ended or self._deaf:
            return
        self._bytes += data
        try:
            if self.party is not None or self._introduced():
                self._frames()
        except PartiesError as error:
            self._deaf = True
            (self._events.disagreed if self.party is None else self._events.failed)(error)

    def _introduced(self) -> bool:
        """Whether it has said who it is, and fits."""
        if not MAGIC.startswith(bytes(self._bytes[: len(MAGIC)])):
            raise PartiesError("something that is no leakcap party answered, or called: check hosts and ports")
        if len(self._bytes) < HELLO_BYTES:
            return False
        said = bytes(self._bytes[:HELLO_BYTES])
        del self._bytes[:HELLO_BYTES]
        self._events.met(self, self._own.refuse(said, self.expected))
        return True

    def _frames(self) -> None:
        assert self.party is not None
        while len(self._bytes) >= FRAME.size:
            kind, label, size = FRAME.unpack_from(self._bytes)
            if kind not in (SHARES, READY, DONE, STOPPED) or size > self._events.largest or (kind != SHARES and size):
                raise PartiesError(f"party {self.party + 1} sent something else than shares")
            if len(self._bytes) < FRAME.size + size:
                return
            payload = bytes(self._bytes[FRAME.size : FRAME.size + size])
            del self._bytes[: FRAME.size + size]
            self._frame(kind, label, payload)

    def _frame(self, kind: int, label: int, payload: bytes) -> None:
        assert self.party is not None
        if kind == STOPPED and self.over:
            return
        if kind == STOPPED:
            self.over = True
            raise PartiesError(f"party {self.party + 1} stopped: its own message says why")
        if kind != SHARES:
            told = self.said(kind)
            if not told.done():
                told.set_result(None)
            return
        early = self._waiting.pop(label, None)
        if early is None:
            if len(self._waiting) >= self._events.most_early:
                raise PartiesError(f"party {self.party + 1} sent something else than shares")
            self._waiting[label] = payload
        elif isinstance(early, asyncio.Future):
            self._events.message(self.party, False, FRAME.size + len(payload), payload)
            if not early.done():
                early.set_result(payload)
        else:
            raise PartiesError(f"party {self.party + 1} sent something else than shares")

    def send(self, label: int, payload: bytes) -> None:
        """Shares, for the step of the computation that the label is of."""
        assert self.party is not None
        self._events.message(self.party, True, FRAME.size + len(payload), payload)
        self.transport.write(FRAME.pack(SHARES, label, len(payload)) + payload)

    def receive(self, label: int) -> Any:
        """Shares for a label: those that are there, or a future of them. They count in the step that asks for them."""
        assert self.party is not None
        found = self._waiting.pop(label, None)
        if found is None:
            found = self._waiting[label] = self._events.future()
        else:
            self._events.message(self.party, False, FRAME.size + len(found), found)
        return found

    def say(self, kind: int) -> None:
        """A frame without shares."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(FRAME.pack(kind, 0, 0))

    def said(self, kind: int) -> asyncio.Future[None]:
        """A future that is done once the peer has said this."""
        return self._said.setdefault(kind, self._events.future())

    def broken(self) -> None:
        """What it sent does not have the length that it must have."""
        self._events.failed(PartiesError("another party sent something else than shares"))

    def heard(self, kind: int) -> None:
        """What was said counts once."""
        self._said.pop(kind, None)

    def stop(self) -> None:
        """Close; a peer that may still compute is told."""
        if not self.over:
            self.say(STOPPED)
        self.over = True
        if self.transport is not None:
            self.transport.close()


def _gone(party: int | None) -> str:
    who = "another party" if party is None else f"party {party + 1}"
    return f"the connection with {who} was lost"


@dataclass(eq=False)
class Events:
    """What connections report, and to whom."""

    connected: Callable[[Peer], None]
    met: Callable[[Peer, int], None]
    disagreed: Callable[[PartiesError], None]
    message: Callable[[int, bool, int, bytes], None]
    failed: Callable[[PartiesError], None]
    future: Callable[[], asyncio.Future[Any]]
    largest: int  # bytes of shares in a frame
    most_early: int = 64  # frames that wait to be asked for
    ended: bool = False
