"""The journal of releases: which runs were released, and as what. Once spent, always spent.

A checkpoint can be copied, or brought back from a backup, so it cannot know alone whether its run was released. The
journal does: a release is written down here before anybody sees it, under the salt that all copies of a checkpoint
share, together with a digest of what is released. Whichever copy comes first is the release; another gives nothing, or
the same value again. A run remembers the journal it was begun with, so that one which was removed is missed.

It is an account of the ledger beside the key, and as safe as that: whoever brings back an earlier ledger is refused. It
is no secret, as it holds digests of random salts and of released values, so it opens without the `vault` extra too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.ledger import Account, Book, Open, default_file
from leakcap.custody.ledger.book import RELEASES
from leakcap.custody.ledger.sqlite import SqliteStore
from leakcap.custody.old_journal import OLDER, OldJournal, old_journal_file
from leakcap.errors import InputError

__all__ = ["Journal", "journal_file"]

DIGEST = 32  # bytes
SPENT, NAMES = "spent", "names"  # values: runs with their releases, and names of journals that were taken over


def journal_file() -> Path:
    """Where the journal lies."""
    return default_file()


@dataclass(frozen=True)
class Journal:
    """What was released with one key."""

    account: Account
    names: tuple[bytes, ...]  # drawn when it was made, and those of journals of earlier versions

    @property
    def name(self) -> bytes:
        """By which runs know it."""
        return self.names[0]

    @classmethod
    def open(cls) -> Journal:
        """The journal beside the key, a new one if there is none."""
        _refuse_no_folder()
        account = Book.open(SqliteStore(journal_file()), releases_only=True).account(RELEASES)
        old = OldJournal.found()
        if old is not None:
            _take_over(account, old)
            OldJournal.put_aside()
        with account.reading() as now:
            return cls(account, (account.book.header.name, *_split(now.value(NAMES), DIGEST)))

    @classmethod
    def named(cls, name: bytes) -> Journal:
        """The journal that a run was begun with; an InputError where it is not there."""
        path = journal_file()
        if not os.path.lexists(path) and not os.path.lexists(old_journal_file()):
            raise InputError(
                f"the ledger {path}, the journal of releases, is missing: only it knows whether this run was released. "
                f"Bring it back from a copy, or set LEAKCAP_KEY to the key that this run was begun with. {OLDER}"
            )
        found = cls.open()
        if name not in found.names:
            raise InputError(
                f"{path} is not the journal that this run was begun with, and does not know whether it was released: "
                f"set LEAKCAP_KEY to the key of that time, or bring that ledger back from a copy. {OLDER}"
            )
        return found

    def entry(self, run: bytes) -> bytes | None:
        """The digest of what a run was released as, or None if it was not."""
        with self.account.reading() as now:
            return _spent(now).get(run)

    def enter(self, run: bytes, release: bytes) -> bytes:
        """Write down for good what a run is released as, unless something was; what is written down."""
        if len(run) != DIGEST or len(release) != DIGEST:
            raise InputError("a run and its release are known by digests of 32 bytes")
        with self.account.writing() as now:
            spent = _spent(now)
            if run not in spent:
                spent[run] = release
                _write(now, spent, "release")
        return spent[run]


def _take_over(account: Account, old: OldJournal) -> None:
    """All that an earlier version wrote down; what is there already stays, so that doing it twice does no harm."""
    with account.writing() as now:
        spent, names = _spent(now), _split(now.value(NAMES), DIGEST)
        both = {**old.spent, **spent}
        if both != spent or old.name not in names:
            now.put(NAMES, b"".join(dict.fromkeys((*names, old.name))))
            _write(now, both, "taken over")


def _write(now: Open, spent: dict[bytes, bytes], kind: str) -> None:
    now.put(SPENT, b"".join(run + release for run, release in spent.items()))
    now.title = now.title or {"name": "releases"}
    now.append(kind, {})


def _spent(now: Open) -> dict[bytes, bytes]:
    """All of them, in one value: one that was damaged or lost is missed."""
    entries = _split(now.value(SPENT, fresh=True), 2 * DIGEST)
    return {entry[:DIGEST]: entry[DIGEST:] for entry in entries}


def _split(content: bytes | None, size: int) -> list[bytes]:
    whole = content or b""
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _refuse_no_folder() -> None:
    folder = journal_file().parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    except OSError as error:
        reason = error.strerror
    raise InputError(
        f"cannot make the folder {folder} of the key and the ledger ({reason}): name a key file in a folder of your "
        "own that stays, with LEAKCAP_KEY"
    )
