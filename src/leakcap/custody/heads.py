"""What the key file remembers beside the key: the last head of every account that was answered from.

A ledger can be copied, or brought back from a backup, so it cannot know alone that it is the latest. The key file
does: before an answer is handed out, the head of its account is written down here, and a ledger that does not hold the
head that was written down is refused. So of two copies of a ledger one goes on. Whoever brings back the key file
together with the ledger is not caught.

The key stands in the first page of the file, which is never written again. Each account has two lines further on,
written in turn: one that was cut off by a power failure leaves the other.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from leakcap.custody import keys
from leakcap.custody.keys import PAGE
from leakcap.custody.locks import held
from leakcap.errors import InputError

__all__ = ["Heads", "Known", "Seen", "refuse_older"]

LINE = 256  # bytes
OLDER = (
    "this ledger is not the latest: answers were given from a newer one, or from another copy of it. Bring back the "
    "latest; what was answered from it must not be forgotten"
)
Seen = tuple[int, bytes]  # how many entries an account has, and its head after them
Known = Callable[[int], "bytes | None"]  # the head after so many entries, in the ledger at hand


@dataclass(frozen=True)
class Heads:
    """The heads in the key file, for a ledger that was opened with the key in it."""

    key: bytes = field(repr=False)  # digest

    @classmethod
    def own(cls) -> Heads:
        """Those of the user's key, which is made on first use."""
        return cls(hashlib.sha256(keys.own_key()).digest())

    def latest(self, account: bytes) -> Seen | None:
        """What is remembered of an account.

        Without a lock: a line that is being written does not count yet, and nobody has seen the answer it is about.
        """
        with self._opened(os.O_RDONLY) as content:
            return _latest(content, account)

    def sign(self) -> object | None:
        """The same only while nothing was written to the key file, as far as its times tell; None without one."""
        try:
            state = os.stat(keys.key_file())
        except OSError:
            return None
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def advance(self, account: bytes, new: Seen, known: Known, seen: Seen | None = None) -> None:
        """Remember how many entries an account has and its head, before anybody sees the last of them.

        An InputError if a head is remembered that the ledger does not have: another copy was faster. `seen` is what
        the ledger was compared with before.
        """
        while True:
            # The ledger is asked while nothing is locked here: whoever reads it may be waiting for this lock.
            with self._opened(os.O_RDWR) as content:
                latest = _latest(content, account)
                if latest == seen:
                    if latest is None or latest[0] < new[0]:
                        _write(content, account, new)
                    return
            refuse_older(latest, known)
            seen = latest

    @contextmanager
    def _opened(self, how: int) -> Iterator[_Content]:
        """The key file, alone if it is to be written."""
        keys.refuse_other_readers()
        path = keys.key_file()
        try:
            with held(path, how) as handle:
                if how != os.O_RDONLY:
                    fcntl.flock(handle, fcntl.LOCK_EX)
                yield self._read(handle)
            return
        except OSError as error:
            reason = error.strerror or "no locks"
        raise InputError(
            f"cannot {'read' if how == os.O_RDONLY else 'write'} the key file {path} ({reason}), which must remember "
            "what was answered: make room, and see that you may write it and that it lies on a local disk"
        )

    def _read(self, handle: int) -> _Content:
        whole = os.pread(handle, os.fstat(handle).st_size, 0)
        if hashlib.sha256(keys.key_in(whole)).digest() != self.key:
            raise InputError(
                f"{keys.key_file()} holds another key than the one that this ledger was opened with: bring that key "
                "back, or set LEAKCAP_KEY to it"
            )
        return _Content(handle, whole)


@dataclass(frozen=True)
class _Content:
    handle: int
    whole: bytes = field(repr=False)

    def line(self, place: int) -> bytes:
        return self.whole[place : place + LINE]


def refuse_older(latest: Seen | None, known: Known) -> None:
    """An InputError if a ledger does not have the head that is remembered."""
    if latest is not None and known(latest[0]) != latest[1]:
        raise InputError(OLDER)


def _latest(content: _Content, account: bytes) -> Seen | None:
    return max(_places(content, account).values(), default=None)


def _places(content: _Content, account: bytes) -> dict[int, Seen]:
    """Where the whole lines of an account are, and what they say."""
    found: dict[int, Seen] = {}
    name, place = b"head " + account.hex().encode() + b" ", PAGE
    while (place := content.whole.find(name, place)) >= 0:
        said, other = _said(content.line(place)), content.line(place ^ LINE)
        if said is not None:
            found[place] = said
        elif other.strip(b"\0 \n") and _said(other) is None:  # a power failure breaks one of the two at most
            raise InputError(
                f"the key file {keys.key_file()} is damaged, and must remember what was answered: bring it back from "
                "its latest copy"
            )
        place += LINE
    return found


def _said(line: bytes) -> Seen | None:
    """What a line says, if it is whole."""
    fields = line.split()
    if len(fields) != 5 or fields[4] != _check(fields[:4]):
        return None
    return int(fields[2]), bytes.fromhex(fields[3].decode())


def _write(content: _Content, account: bytes, new: Seen) -> None:
    """Over the older line of an account, or where there is room for two."""
    places = _places(content, account)
    if len(places) == 2:
        place = min(places, key=places.__getitem__)
    elif places:
        place = next(iter(places)) ^ LINE  # its neighbour
    else:
        place = max(PAGE, -(-len(content.whole) // (2 * LINE)) * 2 * LINE)
    fields = [b"head", account.hex().encode(), b"%d" % new[0], new[1].hex().encode()]
    line = b" ".join([*fields, _check(fields)]).ljust(LINE - 1) + b"\n"
    if os.pwrite(content.handle, line, place) != LINE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fdatasync(content.handle) if hasattr(os, "fdatasync") else os.fsync(content.handle)


def _check(fields: list[bytes]) -> bytes:
    return hashlib.sha256(b" ".join(fields)).hexdigest()[:16].encode()
