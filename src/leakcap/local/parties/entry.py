"""`together`: one party's part in an answer about the rows of all parties, which none of them shows to the others."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.certificates.parties import PartiesCertificate
from leakcap.errors import InputError, PartiesError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Bounded
from leakcap.kernels.contributions import Informed
from leakcap.local.parties.certifying import certified
from leakcap.local.parties.computation import ANSWER, PartyBrings, noisy_total
from leakcap.local.parties.law import CoinNoise, calibrated
from leakcap.local.parties.meeting import Address, Meeting, addresses
from leakcap.local.parties.question import JointQuestion
from leakcap.local.parties.shares import SHARE_BYTES, Numbers, Opening, Sharing, mpyc_version
from leakcap.local.parties.wire import Hello, Message
from leakcap.modes.pool import exact_total, whole_steps
from leakcap.version import __version__

__all__ = ["JointAnswer", "Transcript", "together"]

SECONDS = 600.0
MAX_ROWS = 2**28  # whose sums are exact in 64 bits, whatever the cap
_one_at_a_time = threading.Lock()  # MPyC has one runtime for a whole process
BEFORE = "Nothing was opened"
AFTER = "It was after this party sent its share of the answer: others may have it, so count it as released"


@dataclass(frozen=True)
class Transcript:
    """What went over the wire, without what was in it.

    Attributes:
        messages: every frame of shares: in which step, with which party, sent or received, how long.
        openings: everything that was opened.
    """

    messages: tuple[Message, ...]
    openings: tuple[Opening, ...]

    @property
    def sent_bytes(self) -> int:
        """What this party sent."""
        return sum(one.size for one in self.messages if one.sent)


@dataclass(frozen=True, eq=False)
class JointAnswer:
    """An answer that parties computed together. Public side only: every party gets the same.

    Attributes:
        value: the answer: means by column, shares by column and bin, a covariance matrix, or the coefficients and
            intercept of a ridge regression.
        certificate: what holds, against whom, under which assumptions.
        transcript: what went over this party's wire.
    """

    value: Any
    certificate: PartiesCertificate
    transcript: Transcript


@dataclass(frozen=True, eq=False)
class _OwnPart:
    """What a party computes before it meets the others."""

    question: JointQuestion
    brought: PartyBrings
    sums: Bounded
    noise: CoinNoise


def together(
    rows: Any,
    question: JointQuestion,
    *,
    join: str | Sequence[str],
    party: int,
    tls: str | Path | None = None,
    plain: bool = False,
    seconds: float = SECONDS,
) -> JointAnswer:
    """Take part, as one of several parties, in one answer about the rows of all of them.

    Every party runs this at the same time, with its own rows and the same question. Nobody gets anything but the noisy
    answer; nobody draws the noise, or knows any part of it.

    Guarantee: as the certificate says, against any coalition of up to `question.threshold` parties that follow the
    protocol, each of whom knows its own rows and sees all messages to it.

    Args:
        rows: this party's rows: a table with the question's columns by name, or an array with them in order.
        question: what is asked; the same at every party.
        join: where all parties listen, in their order: "host:port,host:port,host:port", or a list.
        party: which of them this is, from 1 on.
        tls: folder with `party.crt`, `party.key` and `parties.crt` (the authority that signed them all), without which
            whoever reads the wires learns everybody's rows.
        plain: allows connections without TLS to other machines: only where the network itself is safe.
        seconds: the longest that all of it may take.

    Returns:
        The answer, its certificate, and a transcript.

    Raises:
        InputError: the rows do not fit the question, or the arguments do not fit each other.
        PartiesError: the parties do not agree, one of them vanished, or something else was received; whether anything
            was opened is said.
        MissingExtra: MPyC is not installed.
    """
    places = addresses(join)
    number = checks.count(at_least=1, party=party) - 1
    if len(places) != question.parties or number >= len(places):
        raise InputError("join has as many addresses as the question has parties, and party is one of them")
    checks.positive(seconds=seconds)
    contexts = _contexts(places, tls, plain)
    part = _part(_cells(rows, question), question)
    versions = hashlib.sha256(f"{__version__} {mpyc_version()}".encode()).digest()
    hello = Hello(number, question.parties, question.digest, versions)
    run = partial(_run, part, hello, places, contexts=contexts, seconds=float(seconds))
    if not _one_at_a_time.acquire(blocking=False):
        raise InputError("a process is one party at a time: start others in processes of their own")
    try:
        if not _loop_runs_here():
            return run()
        with ThreadPoolExecutor(1) as own:
            return own.submit(run).result()
    finally:
        _one_at_a_time.release()


def _loop_runs_here() -> bool:
    """A notebook has a loop of its own in its thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _cells(rows: Any, question: JointQuestion) -> Any:
    """The columns of the question, in its order."""
    names = getattr(rows, "columns", None)
    if names is None:
        found = np.asarray(rows)
        if found.ndim != 2 or found.shape[1] != len(question.read_columns):
            raise InputError("rows have one column for each that the question reads, in its order, the target last")
        return found
    missing = [name for name in question.read_columns if list(names).count(name) != 1]
    if missing:
        raise InputError(f"the rows have no column {missing[0]!r}, or several: the question asks about it")
    return rows[list(question.read_columns)]


def _part(cells: Any, question: JointQuestion) -> _OwnPart:
    sums = question.brought(cells)
    noise = calibrated(sums.extent, question.caps)
    return _OwnPart(question, _brought(sums, question, noise), sums, noise)


def _brought(sums: Bounded, question: JointQuestion, noise: CoinNoise) -> PartyBrings:
    numbers = len(noise.deviations)
    if len(sums.values) > MAX_ROWS:
        raise InputError(f"a party may have up to {MAX_ROWS:,} rows")
    if question.rows is None:
        total = exact_total(sums.values, noise.steps, noise.largest)
        return PartyBrings(numbers, question.parties, total=total)
    if len(sums.values) > question.rows:
        raise InputError("there are more rows than the question allows a party to have: agree on a larger number")
    rows = np.zeros((question.rows, numbers), dtype=np.int64)
    rows[: len(sums.values)] = whole_steps(sums.values, noise.steps, noise.largest)
    return PartyBrings(numbers, question.parties, rows=rows)


def _run(
    part: _OwnPart,
    hello: Hello,
    places: tuple[Address, ...],
    *,
    contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None,
    seconds: float,
    watch: Callable[[Message, bytes], None] | None = None,
) -> JointAnswer:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # what a step failed at is told by our own error, without its text
    asyncio.set_event_loop(loop)
    meeting = Meeting(loop, hello, places, _largest(part) * SHARE_BYTES, tls=contexts, watch=watch)
    try:
        return loop.run_until_complete(_met(part, meeting, seconds))
    except PartiesError as error:
        words = str(error)
    except RuntimeError:  # MPyC stops the loop where a step fails: shares were not what they should be
        words = "another party sent something else than shares"
    finally:
        meeting.close()
        _ended(loop)
    raise PartiesError(f"{words}. {AFTER if meeting.step == ANSWER else BEFORE}")


async def _met(part: _OwnPart, meeting: Meeting, seconds: float) -> JointAnswer:
    work = asyncio.ensure_future(_computed(part, meeting))
    waiting: set[asyncio.Future[Any]] = {work, meeting.failure}
    done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if work in done:
        openings, total = work.result()
        return _answer(part, total, Transcript(_in_order(meeting.messages), openings))
    work.cancel()
    if meeting.failure in done:
        meeting.failure.result()
    raise PartiesError(_late(meeting))


async def _computed(part: _OwnPart, meeting: Meeting) -> tuple[tuple[Opening, ...], Numbers]:
    await meeting.open()
    lines = [meeting.peers.get(number) for number in range(len(meeting.places))]
    sharing = Sharing(meeting.own.party, list(lines), part.question.threshold)
    with sharing.entered():
        total = await noisy_total(sharing, part.brought, part.noise.law, meeting)
    await meeting.goodbye()
    return tuple(sharing.openings), total


def _answer(part: _OwnPart, total: Numbers, transcript: Transcript) -> JointAnswer:
    """From opened sums alone, and what was declared."""
    # Half of all rows are selected where coins select them: each of them counts twice.
    twice = 1.0 if part.question.design == "pool" else 2.0
    step = part.noise.deviations * (part.noise.law.step * twice)
    sums: Floats = total.astype(np.float64) * step
    finish: Any = part.sums.finish
    if isinstance(finish, Informed):
        finish = finish.knowing(part.noise.deviations * twice)
    return JointAnswer(finish(sums), certified(part.question, part.noise), transcript)


def _in_order(messages: list[Message]) -> tuple[Message, ...]:
    """By steps, then by party: who was faster is nobody's business."""
    steps = list(dict.fromkeys(one.step for one in messages))
    return tuple(sorted(messages, key=lambda one: (steps.index(one.step), one.party, one.sent)))


def _largest(part: _OwnPart) -> int:
    """Shares in the longest message."""
    rows = part.question.rows or 0
    numbers = part.brought.numbers
    return max(numbers * part.noise.law.count, rows * numbers, rows * part.question.parties)


def _late(meeting: Meeting) -> str:
    missing = sorted(set(range(len(meeting.places))) - set(meeting.peers) - {meeting.own.party})
    if missing:
        return f"party {missing[0] + 1} did not come in time"
    return "the parties took longer than the seconds allowed"


def _contexts(
    places: tuple[Address, ...], tls: str | Path | None, plain: bool
) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
    """How connections are kept from being read by others, for listening and for calling."""
    if tls is None:
        if not plain and not all(place.stays_here for place in places):
            raise InputError(
                "shares on a plain wire tell everything to whoever reads it: give tls=FOLDER with certificates, or say "
                "plain=True where the network itself is closed to others"
            )
        return None
    folder = Path(tls)
    try:
        contexts = (
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "parties.crt")),
            ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(folder / "parties.crt")),
        )
        for context in contexts:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_cert_chain(folder / "party.crt", folder / "party.key")
    except (OSError, ssl.SSLError):
        raise InputError("tls is a folder with party.crt, party.key and parties.crt, all in PEM form") from None
    return contexts


def _ended(loop: asyncio.AbstractEventLoop) -> None:
    """Nothing of a run is left behind."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    try:
        loop.run_until_complete(asyncio.sleep(0.05))  # what was written last leaves
    finally:
        asyncio.set_event_loop(None)
        loop.close()
