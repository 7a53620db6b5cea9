"""Parties as processes of their own, on this machine: forks, which need not import anything again."""

from __future__ import annotations

import os
import pickle
import random
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leakcap.local import JointQuestion
from leakcap.local.parties import shares
from leakcap.local.parties.computation import PartyBrings
from leakcap.local.parties.law import CoinLaw
from leakcap.local.parties.meeting import Meeting, addresses
from leakcap.local.parties.wire import Hello

__all__ = ["QUESTION", "Forks", "free_places", "in_forks", "meeting_of", "small_question"]

SECONDS = 40.0  # after which a test gives up
QUESTION = JointQuestion("mean", ("a", "b"), {"a": (0, 1), "b": (0, 10)}, cap=0.6)


def small_question(**changed: Any) -> JointQuestion:
    return JointQuestion(
        **({"ask": "mean", "columns": ("a", "b"), "bounds": {"a": (0, 1), "b": (0, 10)}, "cap": 0.6} | changed)
    )


def free_places(count: int) -> list[str]:
    """Addresses on this machine at which nobody listens."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return found


class Forks:
    """Children that each do some work; what it returns, or the error that it raises, comes back."""

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        shares._mpyc()  # once, for all children
        self.children = [self._forked(work) for work in works]

    def _forked(self, work: Callable[[], Any]) -> tuple[int, int]:
        told, tells = os.pipe()
        seed = list(os.urandom(16))  # tests draw from a stream, of which every fork would have the same copy
        child = os.fork()
        if child:
            os.close(tells)
            return child, told
        os.urandom = random._urandom = np.random.default_rng(seed).bytes
        try:
            try:
                found = work()
            except BaseException as error:
                found = error
            with os.fdopen(tells, "wb") as pipe:
                pipe.write(pickle.dumps(found))
        finally:
            os._exit(0)

    def kill(self, number: int) -> None:
        os.kill(self.children[number][0], signal.SIGKILL)

    def results(self) -> list[Any]:
        """Of each child; None of one that was killed."""
        end = time.monotonic() + SECONDS
        found = []
        for child, told in self.children:
            parts = []
            while said(told, max(0.0, end - time.monotonic())):
                part = os.read(told, 2**20)
                if not part:
                    break
                parts.append(part)
            else:
                os.kill(child, signal.SIGKILL)
            os.close(told)
            os.waitpid(child, 0)
            whole = b"".join(parts)
            found.append(pickle.loads(whole) if whole else None)
        return found


def said(told: int, seconds: float) -> bool:
    """Whether something comes in time."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(told, selectors.EVENT_READ)
        return bool(waiting.select(seconds))


def in_forks(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each work returns or raises, all at once."""
    return Forks(works).results()


async def meeting_of(
    loop: Any, number: int, places: list[str], watch: Any = None, digest: bytes = bytes(32)
) -> Meeting:
    """A meeting of parties that ask nothing yet."""
    hello = Hello(number, len(places), digest, bytes(32))
    meeting = Meeting(loop, hello, addresses(places), 2**26, watch=watch)
    await meeting.open()
    return meeting


def shares_of(meeting: Meeting, threshold: int) -> shares.Sharing:
    lines = [meeting.peers.get(number) for number in range(len(meeting.places))]
    return shares.Sharing(meeting.own.party, lines, threshold)


def brought(total: Sequence[int], parties: int = 3) -> PartyBrings:
    return PartyBrings(len(total), parties, total=np.array(total, dtype=np.int64))


FEW_COINS = CoinLaw(4, 4, 2)
