"""A party that vanishes, lies about itself or sends something else ends the run for all: nothing opened, in time."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import struct
import time
from functools import partial

import numpy as np
import pytest

from leakcap.errors import PartiesError
from leakcap.local import together
from leakcap.local.parties import law, shares
from leakcap.local.parties.meeting import Meeting
from leakcap.local.parties.wire import FRAME, HELLO_BYTES, Hello, Peer
from leakcap.version import __version__
from tests.parties import Forks, free_places, small_question
from tests.refusals import texts_of

QUESTION = small_question()
PRIVATE = 0.123456789
ROWS = np.full((5, 2), PRIVATE)
SECONDS = 10.0


def part(places, number, question=QUESTION, before=None, seconds=SECONDS):
    law._coins = lambda numbers: 64
    if before is not None:
        before()
    began = time.monotonic()
    try:
        found = together(ROWS, question, join=places, party=number + 1, seconds=seconds)
    except PartiesError as error:
        return error, texts_of(error), time.monotonic() - began
    return found, "", time.monotonic() - began


def died(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_sharing():
    shares.Sharing.shared = died


def dies_after_a_message():
    whole, calls = shares.Sharing.shared, []

    async def planted(self, own, senders):
        calls.append(1)
        if len(calls) > 1:
            died()
        return await whole(self, own, senders)

    shares.Sharing.shared = planted


def dies_waiting():
    Meeting.all_ready = died


def refused(outcome, words):
    """It ended with our own error, in time, and says that nothing was opened, and nothing of the rows."""
    error, texts, seconds = outcome
    assert isinstance(error, PartiesError), outcome
    assert any(word in str(error) for word in words), error
    assert "Nothing was opened" in str(error)
    assert str(PRIVATE)[:6] not in texts
    assert seconds < SECONDS + 3


GONE = ("lost", "stopped")


@pytest.mark.parametrize("death", [dies_sharing, dies_after_a_message, dies_waiting])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_party_that_is_killed_ends_it_for_all(death, victim):
    places = free_places(3)
    works = [partial(part, places, number, before=death if number == victim else None) for number in range(3)]
    found = Forks(works).results()
    assert found.pop(victim) is None
    for outcome in found:
        refused(outcome, GONE)
        assert outcome[2] < SECONDS  # at once, not when time is up


def dies_opening():
    shares.Sharing.opened = died


def test_after_the_last_step_began_it_says_that_others_may_have_the_answer():
    places = free_places(3)
    found = Forks([partial(part, places, i, before=dies_opening if i == 2 else None) for i in range(3)]).results()
    # The first party's share of the last step is the third's: it has none. The second has the first's.
    error, _, _ = found[0]
    assert isinstance(error, PartiesError)
    assert "others may have it, so count it as released" in str(error)
    assert not isinstance(found[1][0], PartiesError)


def test_a_party_that_never_comes_is_waited_for_no_longer_than_said():
    places = free_places(3)
    found = Forks([partial(part, places, number, seconds=1.0) for number in range(2)]).results()
    late = "party 3 did not come in time"
    for outcome in found:
        refused(outcome, (late, *GONE))
    assert any(late in str(outcome[0]) for outcome in found)


VERSIONS = hashlib.sha256(f"{__version__} {shares.mpyc_version()}".encode()).digest()
HONEST = Hello(2, 3, QUESTION.digest, VERSIONS)


def stranger(places, said, then=b""):
    """Listens where the third party should, and says something else."""
    host, port = places[2].split(":")
    with socket.create_server((host, int(port))) as server:
        server.settimeout(SECONDS)
        lines = [server.accept()[0] for _ in range(2)]
        for line in lines:
            line.settimeout(SECONDS)
            line.sendall(said)
            while then and len(line.recv(HELLO_BYTES, socket.MSG_PEEK)) < HELLO_BYTES:
                pass
            line.sendall(then)
        for line in lines:
            try:
                while line.recv(65536):
                    pass
            except OSError:
                pass


def old_protocol():
    said = bytearray(HONEST.packed())
    said[8:10] = struct.pack("<H", 77)
    return bytes(said)


@pytest.mark.parametrize(
    ("said", "then", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"", "no leakcap party"),
        (b"\x00" * 300, b"", "no leakcap party"),
        (old_protocol(), b"", "another version"),
        (Hello(2, 3, QUESTION.digest, bytes(32)).packed(), b"", "another version"),
        (Hello(2, 3, bytes(32), VERSIONS).packed(), b"", "another question"),
        (Hello(2, 4, QUESTION.digest, VERSIONS).packed(), b"", "another question"),
        (Hello(1, 3, QUESTION.digest, VERSIONS).packed(), b"", "the same number"),
        (HONEST.packed(), b"\xff" * 64, "something else than shares"),
        (HONEST.packed(), FRAME.pack(1, 1, 2**31), "something else than shares"),
        (HONEST.packed(), FRAME.pack(1, 1, 7) + b"garbage", "something else than shares"),
    ],
    ids=range(10),
)
def test_garbage_other_versions_and_other_questions_end_it_for_all(said, then, words):
    places = free_places(3)
    works = [partial(part, places, 0), partial(part, places, 1), partial(stranger, places, said, then)]
    found = Forks(works).results()
    reasons = [str(outcome[0]) for outcome in found[:2]]
    for outcome in found[:2]:
        refused(outcome, (words, *GONE))
    assert any(words in reason for reason in reasons)


def shortens(by):
    """Products of shares that are cut off on the wire."""
    whole = Peer.send

    def planted(self, label, payload):
        whole(self, label, payload[:-by] if abs(label) > 2**32 else payload)

    Peer.send = planted


@pytest.mark.parametrize("by", [5, 12])
def test_shares_that_are_cut_off_end_it_for_all(by):
    places = free_places(3)
    found = Forks(
        [partial(part, places, i, before=partial(shortens, by) if i == 0 else None) for i in range(3)]
    ).results()
    for outcome in found[1:]:
        refused(outcome, ("something else than shares", *GONE))
    assert isinstance(found[0][0], PartiesError)


def test_a_stranger_who_calls_ends_it():
    places = free_places(3)

    def calls():
        host, port = places[1].split(":")
        for _ in range(100):
            try:
                with socket.create_connection((host, int(port))) as line:
                    line.sendall(b"hello")
                    line.settimeout(SECONDS)
                    line.recv(100)
                return
            except OSError:
                time.sleep(0.02)

    found = Forks([partial(part, places, 1), calls]).results()
    refused(found[0], ("no leakcap party",))


def test_parties_who_were_given_different_questions_all_say_so():
    places = free_places(3)
    other = small_question(cap=0.61)
    found = Forks([partial(part, places, i, question=other if i == 1 else QUESTION) for i in range(3)]).results()
    for outcome in found:
        refused(outcome, ("another question", *GONE))
    assert sum("another question" in str(outcome[0]) for outcome in found) >= 2


def test_without_a_fault_there_is_an_answer():
    places = free_places(3)
    found = Forks([partial(part, places, number) for number in range(3)]).results()
    assert all(not isinstance(outcome[0], PartiesError) for outcome in found)
