"""The server through Arrow Flight SQL, for pandas, ADBC and JDBC: the same tokens, answers and refusals.

A question is planned by its words and the declarations alone, which costs nothing. It is charged when its ticket is
brought, once: the answer is stored, and every further ticket of the same question gets the same bytes.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from leakcap.errors import InputError
from leakcap.server.answering import answered
from leakcap.server.callers import Visitor
from leakcap.server.flight_answers import columns_of, table_of
from leakcap.server.flight_callers import CALLER, FlightCallers, NoHandshake, refused
from leakcap.server.flight_catalog import answers_about, is_about, layout_of
from leakcap.server.flight_messages import FlightMessage, packed, unpacked
from leakcap.server.flight_questions import FlightQuestion, FlightTickets, asked_about, settings_of
from leakcap.server.refusals import Refusal, as_refusal, defect_in_words
from leakcap.server.state import ServerState

__all__ = ["FlightAsking", "address_of", "flight_server"]

LOG = logging.getLogger("leakcap.server")
THREADS_OF_CALLERS, THREADS_OF_ANSWERS = 4, 40
NOT_OFFERED = "This is not offered: ask in SQL, with one SELECT."
NO_PARAMETERS = "Questions have no parameters: write values into the SQL."
READ_ONLY = "Nothing is written here: ask with one SELECT."
PREPARE, CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"


class FlightAsking:
    """What a program may say through Flight SQL, and what it is told."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.tickets = FlightTickets(state.database.key("flight tickets"))

    def planned(self, caller: Any, command: bytes) -> tuple[Any, bytes]:
        """The columns of what a command gets, and the ticket for it. Nothing is asked of the data."""
        message = unpacked(command)
        if is_about(message):
            return layout_of(message), command
        question = self._question(caller, message)
        ticket = packed("TicketStatementQuery", {1: self.tickets.made(caller.visitor.name, question)})
        return self._columns(question), ticket

    def answered(self, caller: Any, ticket: bytes) -> Any:
        """The table that a ticket stands for: a stored answer, or one that is charged for."""
        message = unpacked(ticket)
        if is_about(message):
            known = self.state.datasets
            return answers_about(message, [known.named(name) for name in _allowed(caller.visitor, known.names())])
        if message.name != "TicketStatementQuery":
            raise Refusal(400, NOT_OFFERED)
        question = self.tickets.read(caller.visitor.name, message.bytes(1) or b"")
        caller.visitor.analyst_of(question.dataset)  # refuses, also of a ticket that was made before it was closed
        columns = self._columns(question)
        found, _ = answered(self.state, caller.visitor, question.dataset, question.asked)
        return table_of(columns, found.facts)

    def prepared(self, caller: Any, body: bytes) -> bytes:
        """A handle for a question, and its columns. Nothing is charged: the handle is a ticket."""
        message = unpacked(body)
        if message.name != "ActionCreatePreparedStatementRequest":
            raise Refusal(400, NOT_OFFERED)
        question = self._asked(caller, message.text(1) or "")
        columns, handle = self._columns(question), self.tickets.made(caller.visitor.name, question)
        none = pa.schema([]).serialize().to_pybytes()
        return packed("ActionCreatePreparedStatementResult", {1: handle, 2: columns.serialize().to_pybytes(), 3: none})

    def _question(self, caller: Any, message: FlightMessage) -> FlightQuestion:
        if message.name == "CommandStatementQuery":
            return self._asked(caller, message.text(1) or "")
        if message.name == "CommandPreparedStatementQuery":
            question = self.tickets.read(caller.visitor.name, message.bytes(1) or b"")
            caller.visitor.analyst_of(question.dataset)
            return question
        raise Refusal(400, NOT_OFFERED)

    def _asked(self, caller: Any, text: str) -> FlightQuestion:
        visitor = caller.visitor
        if visitor.is_custodian:
            visitor.analyst_of("")
        if len(text) > (most := self.state.settings.limits.question):
            raise InputError(f"a question has {most:,} characters at most: ask for less at a time")
        return asked_about(text, visitor.may_ask(), settings_of(caller.headers))

    def _columns(self, question: FlightQuestion) -> Any:
        return columns_of(self.state.datasets.named(question.dataset), question.sql)


def _allowed(visitor: Visitor, names: list[str]) -> list[str]:
    """The data sets that are shown: those that may be asked. A custodian asks no questions, and sees none here."""
    return [] if visitor.is_custodian else sorted(visitor.may_ask() & set(names))


def address_of(text: str) -> tuple[str, int]:
    """Where to listen: HOST:PORT, or a port of this machine alone."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > 65535:
        raise InputError("--flight takes a port, or HOST:PORT, such as --flight 8018 or --flight 127.0.0.1:8018")
    return host, int(port)


def flight_server(state: ServerState, host: str, port: int, tls: tuple[Path, Path] | None = None) -> Any:
    """A server that answers from now on, until its `shutdown`; it is reached as `port` says.

    Args:
        state: of the server whose questions these are.
        host: to listen at.
        port: to listen at; 0 for any that is free.
        tls: files with a certificate and its key.

    Raises:
        InputError: the port is taken.
    """
    place = f"[{host}]" if _is_ipv6(host) else host
    pairs = None if tls is None else [(tls[0].read_bytes(), tls[1].read_bytes())]
    try:
        return _FlightServer(state, f"grpc{'' if tls is None else '+tls'}://{place}:{port}", pairs)
    except (pa.ArrowException, OSError):
        pass
    raise InputError(
        f"port {port} of {host} cannot be used for Flight: it may be taken, or the certificate or its key is no PEM "
        "file. Choose another port with --flight, or look at both files"
    )


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


class _FlightServer(flight.FlightServerBase):  # type: ignore[misc]
    """Calls of Flight, each done by a thread of ours: threads of gRPC come and go, and with them their connections."""

    def __init__(self, state: ServerState, location: str, pairs: Any) -> None:
        self._callers = ThreadPoolExecutor(THREADS_OF_CALLERS, "flight-callers")
        self._answers = ThreadPoolExecutor(THREADS_OF_ANSWERS, "flight-answers")
        self._asking = FlightAsking(state)
        super().__init__(
            location,
            auth_handler=NoHandshake(),
            tls_certificates=pairs,
            middleware={CALLER: FlightCallers(state, self._callers)},
        )

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        columns, ticket = self._done(self._asking.planned, context, descriptor.command)
        return flight.FlightInfo(columns, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        return flight.SchemaResult(self._done(self._asking.planned, context, descriptor.command)[0])

    def do_get(self, context: Any, ticket: Any) -> Any:
        return flight.RecordBatchStream(self._done(self._asking.answered, context, ticket.ticket))

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        if action.type == CLOSE:
            return iter(())
        if action.type != PREPARE:
            raise refused(Refusal(400, NOT_OFFERED))
        body = action.body.to_pybytes() if action.body is not None else b""
        return iter((flight.Result(self._done(self._asking.prepared, context, body)),))

    def list_actions(self, context: Any) -> list[Any]:
        return [
            flight.ActionType(PREPARE, "Plans a question: nothing is charged."),
            flight.ActionType(CLOSE, "Forgets a planned question."),
        ]

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        about_parameters = b"CommandPreparedStatementQuery" in (descriptor.command or b"")
        raise refused(Refusal(400, NO_PARAMETERS if about_parameters else READ_ONLY))

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        raise refused(Refusal(400, NOT_OFFERED))

    def list_flights(self, context: Any, criteria: Any) -> Iterator[Any]:
        raise refused(Refusal(400, NOT_OFFERED))

    def shutdown(self) -> None:
        """Stop, when what is being answered is answered."""
        super().shutdown()
        for pool in (self._callers, self._answers):
            pool.shutdown()

    def _done(self, work: Callable[[Any, bytes], Any], context: Any, given: bytes | None) -> Any:
        """What is answered, or a refusal: no other error gets out."""
        caller = context.get_middleware(CALLER)
        try:
            return self._answers.submit(work, caller, given or b"").result()
        except Exception as error:
            if as_refusal(error).status >= 500:
                LOG.error("a request of Flight failed: %s", defect_in_words(error))
            found = refused(error)
        raise found
