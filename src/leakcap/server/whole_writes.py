"""A response leaves in one piece: as a head and a body it would be two calls to the system, and wake a client twice."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Gathering", "WholeWrites"]

MOST = 64 * 1024  # bytes that wait to leave together; more go at once, so that a slow client is noticed


class WholeWrites(H11Protocol):
    """HTTP as the library speaks it, over a connection on which what is written at one time leaves together."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Gathering(transport))  # type: ignore[arg-type]


class Gathering:
    """A transport; whatever is not about writing is that of the connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._waiting = transport, bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, part: bytes) -> None:
        if part and not self._waiting:
            asyncio.get_running_loop().call_soon(self._leave)
        self._waiting += part
        if len(self._waiting) > MOST:
            self._leave()

    def close(self) -> None:
        self._leave()
        self._transport.close()

    def _leave(self) -> None:
        if self._waiting:
            gone, self._waiting = self._waiting, bytearray()
            self._transport.write(gone)
