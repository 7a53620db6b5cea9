"""Secret sharing and sums under it: the one place where MPyC is imported, and a runtime of it that counts its openings.

MPyC brings Shamir's shares, products of shared numbers and their opening. Its own connections are not used: it would
read what arrives with pickle, which lets whoever sends it run code; and it reads the command's own arguments, sets up
logging and keeps a runtime for the whole process, all of which is held back here.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leakcap.errors import MissingExtra, PartiesError

__all__ = ["PRIME", "SHARE_BYTES", "Line", "Numbers", "Opening", "Sharing", "mpyc_version"]

PRIME = 2**89 - 1  # sums of 2^50 rows in the finest steps of the noise are far below half of it
SHARE_BYTES = 12
OWN_OPTIONS = ("--no-log", "--no-prss", "--no-uvloop", "--mix32-64bit")  # the last one: bytes on the wire, no pickle

Numbers = npt.NDArray[np.object_]  # whole numbers of any size


class Line(Protocol):
    """A connection with another party, as MPyC uses one."""

    def send(self, pc: int, payload: bytes) -> None: ...

    def receive(self, pc: int) -> Any: ...

    def broken(self) -> None: ...


@dataclass(frozen=True)
class Opening:
    """A value that was opened: what it is, and how many numbers.

    Attributes:
        what: the value, in words.
        numbers: how many there are in it.
    """

    what: str
    numbers: int


@cache
def _mpyc() -> Any:
    """MPyC's runtime module, imported without letting it look around or speak."""
    root, told, variables = logging.getLogger(), sys.argv, dict(os.environ)
    handlers, level = list(root.handlers), root.level
    sys.argv = [told[0] if told else "leakcap", *OWN_OPTIONS]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a name that numpy moved, and about there being no event loop
            from mpyc import runtime

            return runtime
    except ImportError:
        pass
    finally:
        sys.argv = told
        root.handlers[:] = handlers
        root.setLevel(level)
        os.environ.clear()
        os.environ.update(variables)
    raise MissingExtra("computing together needs MPyC: pip install 'leakcap[mpc]'")


def mpyc_version() -> str:
    """Of the library that shares; parties must have the same."""
    return str(_mpyc().Runtime.version)


class Sharing:
    """One party's side of numbers that all parties hold shares of. Use it inside `with`; there is one at a time."""

    def __init__(self, index: int, lines: list[Line | None], threshold: int) -> None:
        runtime = _mpyc()
        options = argparse.Namespace(
            threshold=threshold,
            no_log=True,
            no_prss=True,
            no_async=False,
            no_barrier=True,
            mix32_64bit=True,
            sec_param=40,
            bit_length=32,
            ssl=False,
        )
        parties = [runtime.Party(number) for number in range(len(lines))]
        loop = asyncio.get_running_loop()
        handler = loop.get_exception_handler()
        self.runtime = runtime.Runtime(index, parties, options)
        loop.set_exception_handler(handler)  # MPyC's own prints what it was about
        for party, line in zip(parties, lines, strict=True):
            party.protocol = None if line is None else _CheckedLine(line, self)
        self.index = index
        self.threshold = threshold
        self.expected = 0  # numbers in the next messages of MPyC's own
        self._lines = lines
        self._label = 0
        self.array = self.runtime.SecFld(modulus=PRIME).array
        self.openings: list[Opening] = []

    @contextmanager
    def entered(self) -> Iterator[Sharing]:
        """MPyC keeps its runtime in its modules: this one, for as long as it is used."""
        from mpyc import asyncoro, mpctools, random, secgroups, seclists, secpols, sectypes, statistics

        modules = (asyncoro, mpctools, random, seclists, secgroups, secpols, sectypes, statistics)
        before = [module.runtime for module in modules]
        for module in modules:
            module.runtime = self.runtime
        try:
            yield self
        finally:
            for module, runtime in zip(modules, before, strict=True):
                module.runtime = runtime

    async def shared(self, own: Numbers, senders: list[int]) -> list[Any]:
        """Shares of what each of the senders brings, all of one shape; what the others give here is not used."""
        self._label += 1  # below those of MPyC's own messages, which are digests
        kept: dict[int, Any] = {}
        if self.index in senders:
            for party, share in enumerate(_split(own.ravel(), self.threshold, len(self._lines))):
                line = self._lines[party]
                if line is None:
                    kept[self.index] = share
                else:
                    line.send(self._label, b"".join(one.to_bytes(SHARE_BYTES, "little") for one in share))
        found = []
        for sender in senders:
            line = self._lines[sender]
            if line is not None:
                payload = line.receive(self._label)
                kept[sender] = _numbers(payload if isinstance(payload, bytes) else await payload, own.size)
            found.append(self.array(self.array.sectype.field.array(kept.pop(sender)).reshape(own.shape)))
        return found

    async def product(self, one: Any, other: Any, *, size: int, matrices: bool = False) -> Any:
        """Shares of products, of so many numbers: of each with each, or of matrices."""
        self.expected = size
        return await self.settled(one @ other if matrices else one * other)

    async def settled(self, shared: Any) -> Any:
        """The same, once this party's share of it is there."""
        await self.runtime.gather(shared)
        return shared

    async def opened(self, shared: Any, what: str) -> Numbers:
        """The numbers themselves, for every party: whole numbers, as many below 0 as above."""
        self.openings.append(Opening(what, shared.size))
        self.expected = shared.size
        found = np.asarray((await self.runtime.output(shared, raw=True)).value, dtype=object)
        return np.where(found > PRIME // 2, found - PRIME, found)


@dataclass(frozen=True, eq=False)
class _CheckedLine:
    """A line of MPyC's, which would take a message of any length."""

    line: Line
    sharing: Sharing

    def send(self, pc: int, payload: bytes) -> None:
        self.line.send(pc, payload)

    def receive(self, pc: int) -> Any:
        """What arrives, if it is as long as it must be; nothing otherwise, for ever, and the run is told to end."""
        size = SHARE_BYTES * self.sharing.expected
        arriving = self.line.receive(pc)
        future = asyncio.get_running_loop().create_future()

        def measured(payload: bytes) -> None:
            if len(payload) != size:
                self.line.broken()
            elif not future.done():
                future.set_result(payload)

        if isinstance(arriving, bytes):
            measured(arriving)
        else:
            arriving.add_done_callback(lambda found: None if found.cancelled() else measured(found.result()))
        return future


def _split(values: Numbers, threshold: int, parties: int) -> Iterator[Numbers]:
    """Shamir's shares of each number, for one party after the other: a random polynomial at the party's place."""
    coefficients = [_uniform(len(values)) for _ in range(threshold)]
    for place in range(1, parties + 1):
        share: Any = 0
        for one in coefficients:
            share = (share + one) * place
        yield (share + values) % PRIME


def _uniform(count: int) -> Numbers:
    """Uniform numbers below the prime, from the operating system."""
    raw = os.urandom(SHARE_BYTES * count)
    found = _numbers(raw, count) & PRIME  # the prime is a mask: all but itself are as likely as any other
    for place in np.flatnonzero(found == PRIME):
        found[place] = secrets.randbelow(PRIME)
    return found


def _numbers(payload: bytes, count: int) -> Numbers:
    """The numbers of a message, which must be so many."""
    if len(payload) != SHARE_BYTES * count:
        raise PartiesError("another party sent something else than shares")
    whole = int.from_bytes
    parts = (whole(payload[at : at + SHARE_BYTES], "little") for at in range(0, len(payload), SHARE_BYTES))
    return np.fromiter(parts, dtype=object, count=count)
