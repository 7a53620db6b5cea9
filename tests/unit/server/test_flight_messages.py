"""Messages of Flight SQL: written here, read here, and read by nobody's mercy where they are garbage."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("pyarrow.flight", reason="this pyarrow has no Flight")

from leakcap.server.flight_messages import LONGEST, FlightMessage, packed, unpacked
from leakcap.server.flight_questions import FlightQuestion, FlightTickets
from leakcap.server.refusals import Refusal


def test_bytes_are_those_of_the_definition() -> None:
    """CommandStatementQuery{query: "select 1"} within Any, as protoc's encoding rules lay it out by hand."""
    url = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"
    expected = b"\x0a" + bytes([len(url)]) + url + b"\x12\x0a" + b"\x0a\x08select 1"
    assert packed("CommandStatementQuery", {1: b"select 1"}) == expected
    assert unpacked(expected).text(1) == "select 1"


def test_packed_and_single_numbers_are_the_same() -> None:
    head = packed("CommandGetSqlInfo", {})[:-1]
    assert unpacked(head + b"\x05\x0a\x03\x01\xac\x02").numbers(1) == (1, 300)
    assert unpacked(head + b"\x05\x08\x01\x08\xac\x02").numbers(1) == (1, 300)


@given(st.dictionaries(st.integers(1, 2**20), st.binary(max_size=300), max_size=6), st.text("Cmdx", max_size=9))
def test_what_is_written_is_read(fields: dict[int, bytes], name: str) -> None:
    found = unpacked(packed(name, fields))
    assert found == FlightMessage(name, {number: (value,) for number, value in fields.items()})


@given(st.binary(max_size=400))
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\x80" * 11)
@example(b"\x0b\x0c")
def test_no_bytes_do_harm(data: bytes) -> None:
    for sent in (data, packed("CommandGetTables", {})[:-2] + b"\x12" + bytes([len(data) & 127]) + data):
        found = or_refused(lambda sent=sent: unpacked(sent))
        if found is not None:
            for number in range(1, 6):
                for read in (found.text, found.texts, found.numbers, found.flag, found.bytes):
                    or_refused(lambda read=read, number=number: read(number))


def or_refused(work: Any) -> Any:
    """What is found, or None where it is refused; nothing else may happen."""
    try:
        return work()
    except Refusal:
        return None


@pytest.mark.parametrize("data", [b"\x08\x00" * (LONGEST // 2), b"\x0a\x00" * (LONGEST // 2), b"\x80" * LONGEST])
def test_the_longest_message_takes_no_time(data: bytes) -> None:
    began = time.process_time()
    with pytest.raises(Refusal):
        unpacked(data)
    assert time.process_time() - began < 5
    with pytest.raises(Refusal) as found:
        unpacked(data + b"x")
    assert found.value.status == 413


@given(st.binary(max_size=200), st.text(max_size=20), st.integers(0, 10**6))
def test_tickets_are_of_one_account_and_one_server(garbage: bytes, other: str, at: int) -> None:
    tickets = FlightTickets(b"a key")
    question = FlightQuestion("clinic", "select count(*) from people", share=0.1, rows=3)
    made = tickets.made("ann", question)
    assert tickets.read("ann", made) == question
    flipped = bytearray(made)
    flipped[at % len(made)] ^= 1 << at % 8
    strangers = [("ann", garbage), ("ann", bytes(flipped)), ("ann", made + b" "), ("ann", made[:-1])]
    if other != "ann":
        strangers.append((other, made))
    for account, ticket in strangers:
        with pytest.raises(Refusal):
            tickets.read(account, ticket)
    with pytest.raises(Refusal):
        FlightTickets(b"another key").read("ann", made)
