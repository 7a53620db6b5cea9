"""Connections that say nothing, little, or are many: they are cut off, and others are answered."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from leakcap.server import patience
from leakcap.server.serving import bound_socket, made_server

HEAD = b"POST /login HTTP/1.1\r\nHost: localhost\r\n"
OPEN = b"Content-Length: 1000\r\n\r\n"
NEVER_WHOLE = {
    "nothing": (b"", b""),
    "a head that never ends": (HEAD, b"a: b\r\n"),
    "a body that never ends": (HEAD + OPEN, b"x"),
    "a body in chunks without end": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "a second request without end": (HEAD + b"Content-Length: 0\r\n\r\n" + HEAD, b"a: b\r\n"),
    "a body that is answered before it ends": (HEAD.replace(b"login", b"early") + OPEN, b"x"),
}


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Reads what comes, but for one address, and answers."""
    more = scope["path"] != "/early"
    while more:
        message = await receive()
        more = message.get("more_body", False)
        if message["type"] == "http.disconnect":
            return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[str, int]]:
    listening = bound_socket("127.0.0.1", 0)
    server = made_server(answering)
    server.config.lifespan = "off"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield ("127.0.0.1", listening.getsockname()[1])
    server.should_exit = True
    thread.join(20)


def ends(place: tuple[str, int], begun: bytes, more: bytes, seconds: float) -> bool:
    """Whether a connection on which little comes, again and again, is ended meanwhile."""
    with socket.create_connection(place) as made:
        made.sendall(begun)
        made.settimeout(0.05)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if made.recv(1000) == b"":
                    return True
                made.sendall(more)
            except TimeoutError:
                try:
                    made.sendall(more)
                except OSError:
                    return True
            except OSError:
                return True
    return False


@pytest.mark.parametrize("name", NEVER_WHOLE)
def test_a_request_that_never_comes_whole_is_cut_off(
    place: tuple[str, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("HEAD", "BODY"):
        monkeypatch.setattr(patience, limit, 0.3)
    assert ends(place, *NEVER_WHOLE[name], seconds=5.0)


def test_files_have_more_time(place: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BODY", 0.1)
    upload = HEAD.replace(b"/login", b"/custody/register") + OPEN
    assert not ends(place, upload, b"x", seconds=0.6)


def test_an_answer_that_takes_longer_is_waited_for(place: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("HEAD", "BODY"):
        monkeypatch.setattr(patience, limit, 0.2)
    with closing(http.client.HTTPConnection(*place, timeout=20)) as connection:
        for _ in range(3):
            connection.request("POST", "/login", b"x" * 10)
            assert connection.getresponse().read() == b"ok"


def test_one_address_does_not_take_all_the_room(place: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "OF_ADDRESS", 5)
    with ExitStack() as all_of_them:
        for _ in range(5):
            all_of_them.enter_context(socket.create_connection(place))
        time.sleep(0.2)
        assert ends(place, b"", b"", seconds=5.0), "one more is ended at once"
    time.sleep(0.2)
    assert not ends(place, b"", b"", seconds=0.3)


def test_the_limits_leave_room_for_others() -> None:
    assert 2 * patience.OF_ADDRESS <= patience.MOST_CONNECTIONS
    assert 0 < patience.HEAD <= patience.BODY <= patience.UPLOAD <= 900
