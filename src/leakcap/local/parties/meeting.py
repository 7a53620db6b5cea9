"""Parties that meet: they listen and call, compare what they were asked, and stay connected for as long as it takes.

A party listens at the address that the list has for it and nowhere else. Lower numbers call higher ones.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from leakcap.errors import InputError, PartiesError
from leakcap.local.parties.wire import DONE, READY, Events, Hello, Message, Peer

__all__ = ["Address", "Meeting", "addresses"]

AGAIN = 0.1  # seconds between two calls of a party that does not answer yet
LINGER = 2.0  # seconds for others to call, where one of them does not fit
FAREWELL = 10.0  # seconds to wait for others to have the answer, too
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Address:
    """Where a party listens."""

    host: str
    port: int

    @property
    def stays_here(self) -> bool:
        return self.host in LOOPBACK


def addresses(join: str | Sequence[str]) -> tuple[Address, ...]:
    """From `host:port,host:port,...`, in the order of the parties."""
    found = []
    for one in join.split(",") if isinstance(join, str) else join:
        host, colon, port = str(one).strip().rpartition(":")
        if not (colon and host.strip("[]") and port.isdecimal() and 0 < int(port) < 2**16):
            raise InputError("parties are listed as host:port with commas between, such as a.org:7001,b.org:7001")
        found.append(Address(host.strip("[]"), int(port)))
    if len(set(found)) < len(found):
        raise InputError("two parties of the list have the same address")
    return tuple(found)


@dataclass(eq=False)
class Meeting:
    """Connections with all other parties."""

    loop: asyncio.AbstractEventLoop
    own: Hello
    places: tuple[Address, ...]
    largest: int  # bytes of shares in one frame
    tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None  # for listening, for calling
    watch: Callable[[Message, bytes], None] | None = None
    peers: dict[int, Peer] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    step: str = "meeting"

    def __post_init__(self) -> None:
        self.failure: asyncio.Future[None] = self.loop.create_future()
        self._all_met: asyncio.Future[None] = self.loop.create_future()
        self._known: set[Peer] = set()
        self._disagreements: list[PartiesError] = []
        self._server: Any = None
        self._events = Events(
            connected=self._known.add,
            met=self._meet,
            disagreed=self._disagree,
            message=self._count,
            failed=self.fail,
            future=self.loop.create_future,
            largest=self.largest,
        )

    async def open(self) -> None:
        """Listen, call, and wait until every party is there and says the same."""
        if self.own.party:
            here = self.places[self.own.party]
            try:
                self._server = await self.loop.create_server(
                    lambda: Peer(self.own, None, self._events), here.host, here.port, ssl=self.tls and self.tls[0]
                )
            except OSError:
                raise PartiesError("this party cannot listen at its own address: is the port in use?") from None
        calls = [self._call(number) for number in range(self.own.party + 1, len(self.places))]
        await asyncio.gather(*calls)
        await self._all_met
        if self._server is not None:
            self._server.close()

    async def _call(self, number: int) -> None:
        place = self.places[number]
        while not self.failure.done():
            try:
                await self.loop.create_connection(
                    lambda: Peer(self.own, number, self._events),
                    place.host,
                    place.port,
                    ssl=self.tls and self.tls[1],
                    server_hostname=place.host if self.tls else None,
                )
                return
            except ssl.SSLError:
                raise PartiesError(f"party {number + 1} showed no certificate that fits: check the TLS files") from None
            except OSError:
                await asyncio.sleep(AGAIN)

    def _meet(self, peer: Peer, number: int) -> None:
        if number in self.peers:
            raise PartiesError("two parties say that they have the same number: give each its own place in the list")
        peer.party = number
        self.peers[number] = peer
        self._heard()

    def _disagree(self, error: PartiesError) -> None:
        """It fails once everybody has called, so that all of them hear of it; not much later in any case."""
        self._disagreements.append(error)
        self.loop.call_later(LINGER, self.fail, error)
        self._heard()

    def _heard(self) -> None:
        if len(self.peers) + len(self._disagreements) < len(self.places) - 1:
            return
        if self._disagreements:
            self.fail(self._disagreements[0])
        elif not self._all_met.done():
            self._all_met.set_result(None)

    def _count(self, party: int, sent: bool, size: int, payload: bytes) -> None:
        message = Message(self.step, party + 1, sent, size)
        self.messages.append(message)
        if self.watch is not None:
            self.watch(message, payload)

    def fail(self, error: PartiesError) -> None:
        """The first failure ends it all."""
        if not self.failure.done():
            self.failure.set_exception(error)

    async def all_ready(self) -> None:
        """Wait until every party holds its share of the answer: nothing is opened before."""
        await self._round(READY)

    async def goodbye(self) -> None:
        """Wait, not for long, until every party has the answer."""
        for peer in self.peers.values():
            peer.over = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._round(DONE), FAREWELL)

    async def _round(self, kind: int) -> None:
        for peer in self.peers.values():
            peer.say(kind)
        for peer in self.peers.values():
            await peer.said(kind)
            peer.heard(kind)

    def close(self) -> None:
        """End every connection; peers that still compute are told."""
        self._events.ended = True
        if self._server is not None:
            self._server.close()
        for peer in self._known:
            peer.stop()
