"""What the key file remembers beside the key: the last head of every account that was answered from.

A ledger can be copied, or brought back from a backup, so it cannot know alone that it is the latest. The key file
does: before an answer is handed out, the head of its account is written down here, and a ledger that does not hold the
head that was written down is refused. So of two copies of a ledger one goes on. Whoever brings back the key file
together with the ledger is not caught.

The key stands in the first page of the file, which is never written again. Each account has two lines further on,
written in turn: one that was cut off by a power failure leaves the other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leakcap.custody import keys
from leakcap.errors import InputError

__all__ = ["advance", "refuse_older"]

PAGE, LINE = 4096, 256  # bytes
OLDER = (
    "this ledger is not the latest: answers were given from a newer one, or from another copy of it. Bring back the "
    "latest; what was answered from it must not be forgotten"
)
Known = Callable[[int], "bytes | None"]  # the head after so many entries, in the ledger at hand


def refuse_older(account: bytes, known: Known) -> None:
    """An InputError if the key file remembers a head of this account that the ledger does not have."""
    with _locked() as handle:
        _refuse(_latest(_lines(handle), account), known)


def advance(account: bytes, number: int, head: bytes, known: Known) -> None:
    """Remember that an account has so many entries and this head, before anybody sees the last of them.

    An InputError if a head is remembered that the ledger does not have: another copy was faster.
    """
    with _locked() as handle:
        lines = list(_lines(handle))
        latest = _latest(lines, account)
        _refuse(latest, known)
        if latest is None or latest[0] < number:
            _write(handle, _place(lines, account), account, number, head)


def _refuse(latest: tuple[int, bytes] | None, known: Known) -> None:
    if latest is not None and known(latest[0]) != latest[1]:
        raise InputError(OLDER)


@contextmanager
def _locked() -> Iterator[int]:
    keys.own_key()  # makes the file, and looks whose it is
    path = keys.key_file()
    handle, reason = -1, ""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    except OSError as error:
        reason = error.strerror or "no locks"
    finally:
        if handle >= 0:
            os.close(handle)
    if reason:
        raise InputError(
            f"cannot write the key file {path} ({reason}), which must remember what was answered: make room, or set "
            "LEAKCAP_KEY to a key file of your own on a local disk"
        )


def _lines(handle: int) -> Iterator[tuple[int, bytes, int, bytes]]:
    """`(place, account, number, head)` of every whole line."""
    size = os.fstat(handle).st_size
    content = os.pread(handle, max(0, size - PAGE), PAGE)
    for start in range(0, len(content), LINE):
        fields = content[start : start + LINE].split()
        if len(fields) != 5 or fields[0] != b"head" or fields[4] != _check(fields[:4]):
            continue
        yield PAGE + start, bytes.fromhex(fields[1].decode()), int(fields[2]), bytes.fromhex(fields[3].decode())


def _latest(
    lines: Iterator[tuple[int, bytes, int, bytes]] | list[tuple[int, bytes, int, bytes]], account: bytes
) -> tuple[int, bytes] | None:
    return max(((number, head) for _, own, number, head in lines if own == account), default=None)


def _place(lines: list[tuple[int, bytes, int, bytes]], account: bytes) -> int:
    """Where the next line of an account goes: over its older one, or to the end, where there is room for two."""
    places = sorted((number, place) for place, own, number, _ in lines if own == account)
    if len(places) == 2:
        return places[0][1]
    if len(places) == 1:
        return places[0][1] ^ LINE  # its neighbour
    end = max((place for place, *_ in lines), default=PAGE - LINE)
    return (end // (2 * LINE) + 1) * (2 * LINE)


def _write(handle: int, place: int, account: bytes, number: int, head: bytes) -> None:
    fields = [b"head", account.hex().encode(), b"%d" % number, head.hex().encode()]
    line = b" ".join([*fields, _check(fields)])
    os.pwrite(handle, line.ljust(LINE - 1) + b"\n", place)
    os.fdatasync(handle) if hasattr(os, "fdatasync") else os.fsync(handle)


def _check(fields: list[bytes]) -> bytes:
    return hashlib.sha256(b" ".join(fields)).hexdigest()[:16].encode()
