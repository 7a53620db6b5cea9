"""Who asks through Arrow Flight: a token, sent as such or in place of a password, looked at before anything else."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyarrow import flight

from leakcap.server.callers import Visitor, known_program
from leakcap.server.refusals import as_refusal
from leakcap.server.state import ServerState

__all__ = ["CALLER", "FlightCallers", "NoHandshake", "refused"]

CALLER = "caller"  # by which a call finds who asks
STRANGERS = "arrow flight"  # they are counted together: nothing tells their addresses before they are let in
MOST_WORDS = 1000  # letters of a refusal: it travels in a header
KINDS: Mapping[int, Any] = {
    401: flight.FlightUnauthenticatedError,
    403: flight.FlightUnauthorizedError,
    429: flight.FlightUnavailableError,
    500: flight.FlightInternalError,
}


def refused(error: BaseException) -> Any:
    """An error as Flight sends it, of its own kinds: of any other it would send the place where it arose."""
    found = as_refusal(error)
    return KINDS.get(found.status, flight.FlightServerError)(
        found.words.rstrip(".")[:MOST_WORDS]
    )  # Flight ends it with a dot


class NoHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """A handshake says nothing but its headers, which `FlightCallers` reads."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        pass

    def is_valid(self, token: Any) -> str:
        return ""


class FlightCaller(flight.ServerMiddleware):  # type: ignore[misc]
    """Somebody known, and the headers of their call."""

    def __init__(self, visitor: Visitor, headers: Mapping[str, str], bearer: str | None) -> None:
        self.visitor, self.headers, self._bearer = visitor, headers, bearer

    def sending_headers(self) -> dict[str, str]:
        return {} if self._bearer is None else {"authorization": self._bearer}


class FlightCallers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets in who has a token, and nobody else, whatever is called."""

    def __init__(self, state: ServerState, threads: ThreadPoolExecutor) -> None:
        self.state, self.threads = state, threads

    def start_call(self, info: Any, headers: Mapping[str, Any]) -> FlightCaller:
        given = {name.lower(): values[0] for name, values in headers.items() if values and isinstance(values[0], str)}
        sent = given.get("authorization", "")
        bearer = _bearer_of(sent)
        try:
            visitor: Visitor = self.threads.submit(known_program, self.state, bearer, STRANGERS).result()
        except Exception as error:
            found = refused(error)
        else:
            return FlightCaller(visitor, given, None if bearer == sent else bearer)
        raise found


def _bearer_of(sent: str) -> str:
    """What was sent as an authorization; of a name and a password the password, which is a token."""
    scheme, _, text = sent.partition(" ")
    if scheme.lower() != "basic":
        return sent
    given = text.strip().rstrip("=")
    padded = given + "=" * (-len(given) % 4)  # drivers in Go leave the padding out
    try:
        _, _, password = base64.b64decode(padded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return f"Bearer {password}"
