"""Runs a server: on this machine alone, unless it has a certificate for encrypted connections."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakcap.errors import InputError, MissingExtra

__all__ = ["bound_socket", "flight_beside", "made_server", "refuse_open", "serve"]

LOOPBACK = "127.0.0.1"


def refuse_open(host: str, certificate: Path | None, key: Path | None) -> None:
    """Others reach the server through TLS or not at all: passwords and answers would be open to the network."""
    if (certificate is None) != (key is None):
        raise InputError("--tls-certificate and --tls-key belong together: give both files, or none")
    for file in filter(None, (certificate, key)):
        if not file.is_file():
            raise InputError(f"there is no file {file.name!r}: give the certificate and its key as PEM files")
    if certificate is None and not _is_loopback(host):
        raise InputError(
            f"without a certificate the server answers this machine alone: leave out --host {host}, or give "
            "--tls-certificate FILE and --tls-key FILE"
        )


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, before anything is printed; an `InputError` where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits 40 ms behind its headers
    try:
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        reason = error.strerror
    else:
        return made
    raise InputError(f"port {port} of {host} cannot be used ({reason}): choose another with --port")


@contextmanager
def flight_beside(state: Any, place: str, certificate: Path | None, key: Path | None) -> Iterator[str]:
    """The same server through Arrow Flight SQL, at HOST:PORT or a port; its address, until the block ends."""
    try:
        from leakcap.server.flight import address_of, flight_server
    except ImportError:
        raise MissingExtra("this pyarrow has no Flight: pip install 'leakcap[server]' pyarrow") from None
    host, port = address_of(place)
    refuse_open(host, certificate, key)
    tls = None if certificate is None or key is None else (certificate, key)
    server = flight_server(state, host, port, tls)
    try:
        yield f"grpc{'' if tls is None else '+tls'}://{host}:{server.port}"
    finally:
        server.shutdown()


def made_server(app: Any, certificate: Path | None = None, key: Path | None = None) -> Any:
    """What answers requests once it runs on a socket."""
    try:
        import uvicorn

        from leakcap.server.patience import MOST_CONNECTIONS, OfAddress
    except ImportError:
        raise MissingExtra("the server is an extra: pip install 'leakcap[server]'") from None
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it may print what a callback was given
    config = uvicorn.Config(
        app,
        http=OfAddress,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="on",
        proxy_headers=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=15,
        h11_max_incomplete_event_size=32 * 1024,
    )
    return uvicorn.Server(config)


def serve(app: Any, listening: socket.socket, certificate: Path | None = None, key: Path | None = None) -> None:
    """Answer until it is stopped."""
    made_server(app, certificate, key).run(sockets=[listening])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
