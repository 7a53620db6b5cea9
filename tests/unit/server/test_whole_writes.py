"""What is written at one time leaves together, in its order, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import http.client
import threading
from contextlib import closing
from typing import Any

import pytest

from leakcap.server.serving import bound_socket, made_server
from leakcap.server.whole_writes import MOST, Gathering


class Noted:
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[bytes | str] = []

    def write(self, part: bytes) -> None:
        self.told.append(bytes(part))

    def close(self) -> None:
        self.told.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.told


def told(parts: list[list[bytes]], *, closed: bool = False) -> list[bytes | str]:
    """What a connection hears of parts that are written at one time, and of others later."""

    async def write() -> list[bytes | str]:
        noted = Noted()
        gathering = Gathering(noted)  # type: ignore[arg-type]
        for together in parts:
            for part in together:
                gathering.write(part)
            if closed:
                gathering.close()
                assert gathering.is_closing()
            await asyncio.sleep(0)
        return noted.told

    return asyncio.run(write())


def test_what_is_written_at_one_time_leaves_together() -> None:
    assert told([[b"head ", b"", b"body"], [b"more"], []]) == [b"head body", b"more"]


def test_a_connection_that_is_closed_has_said_all_before() -> None:
    assert told([[b"head ", b"body"]], closed=True) == [b"head body", "closed"]


def test_much_does_not_wait() -> None:
    large = bytes(MOST)
    assert told([[b"head", large, b"rest"]]) == [b"head" + large, b"rest"]


@pytest.mark.parametrize("size", [0, 5, 3 * MOST])
def test_a_response_comes_whole(size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [(b"content-length", b"%d" % size)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for start in range(0, size, 1000):
                part = content[start : min(start + 1000, size)]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    listening = bound_socket("127.0.0.1", 0)
    server = made_server(app)
    server.config.lifespan = "off"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        place = "127.0.0.1", listening.getsockname()[1]
        with closing(http.client.HTTPConnection(*place, timeout=20)) as connection:
            for _ in range(3):  # over one connection
                connection.request("GET", "/")
                assert connection.getresponse().read() == content[:size]
    finally:
        server.should_exit = True
        thread.join(20)
