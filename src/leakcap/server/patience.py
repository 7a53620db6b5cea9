"""Nobody keeps others out by connections that say nothing, little, or are many.

How many there are at a time is bounded. Who has not sent a whole request after some seconds is cut off, however many
bytes of it come meanwhile, and one address has no more than half of the room.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11

from leakcap.server.headers import UPLOADS
from leakcap.server.whole_writes import WholeWrites

__all__ = ["MOST_CONNECTIONS", "OfAddress"]

MOST_CONNECTIONS, OF_ADDRESS = 400, 200
HEAD, BODY, UPLOAD = 20.0, 60.0, 900.0  # seconds in which each has to come


class OfAddress(WholeWrites):
    """A connection that is cut off where it keeps the server waiting."""

    _watched: Any = None  # what is waited for
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if sum(_address(one) == _address(self) for one in self.connections) > OF_ADDRESS:
            self.transport.abort()
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch(self.conn.their_state)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch(None)
        if not self.transport.is_closing():
            self._watch()

    def _watch(self, awaited: Any = h11.IDLE) -> None:
        if awaited is self._watched:  # it goes on coming: that gives no more time
            return
        if self._late is not None:
            self._late.cancel()
        self._watched, self._late = awaited, None
        if awaited is h11.IDLE:
            seconds = HEAD
        elif awaited is h11.SEND_BODY:
            seconds = UPLOAD if self.scope["path"] in UPLOADS else BODY
        else:
            return
        self._late = self.loop.call_later(seconds, self.transport.abort)


def _address(connection: Any) -> str:
    return connection.client[0] if connection.client else ""
