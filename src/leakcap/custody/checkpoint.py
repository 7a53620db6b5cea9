"""A run that survives being killed: what was done lies in a custodian folder, and is never done again.

All of it is one sealed file (`vault`). Worlds are drawn from a stored seed, so they come back; every finished batch of
answers is stored whole by the worker that made it; the released value is stored, and written down in the journal,
before anybody sees it, so a resumed run hands out that value and no other, and so does every copy of the folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.journal import Journal
from leakcap.custody.vault import LOCK, Vault
from leakcap.errors import AlreadyReleased, InputError
from leakcap.ground.arrays import Floats

__all__ = ["Checkpoint"]

ANOTHER = (
    "this run was released already, and this checkpoint does not hold that value: it is an older copy, or the value "
    "was removed from it. Keep the value that was released, or resume the checkpoint that holds it"
)
PARCEL = 2**26  # bytes of answers that are stored together at most


class Checkpoint:
    """What has been done of one plan."""

    def __init__(self, vault: Vault, entropy: int = -1, journal: str | None = "") -> None:
        """`journal` is the name of the one that the run was begun with; None for simulations, which no one counts."""
        self._vault = vault
        self.entropy = entropy
        self._journal = journal

    @classmethod
    def open(cls, folder: Path) -> Checkpoint:
        """The checkpoint in a folder, or a new one."""
        return cls(Vault.open(folder))

    def begin(self, identity: Mapping[str, str], entropy: int | None = None) -> None:
        """Take up the run in this folder, or begin one; an InputError if it holds a run of something else.

        Called while nobody else is at work here. `identity` maps what a run depends on, in words, to a fingerprint.
        `entropy` seeds a simulation; without it the operating system does.
        """
        vault, folder = self._vault, self._vault.folder
        stored = vault.read("start")
        start = json.loads(stored) if stored else None
        if start is not None:
            other = sorted(what for what, mark in start["identity"].items() if identity.get(what) != mark)
            if not other:
                self.entropy, self._journal = start["entropy"], start.get("journal", "")
                self._refuse_spent(vault.read("release"))
                return
            if vault.read("release") is not None:
                raise InputError(
                    f"{folder} holds another release: {', '.join(other)} differ. Keep it, and use another folder"
                )
            if vault.read("form") is not None:
                raise InputError(
                    f"{folder} holds a run that has begun otherwise: {', '.join(other)} differ. Go on as it was begun, "
                    "use another folder, or remove this one: no release is stored in it"
                )
        # A new run; or one that ended before anything was learnt from it, and is begun again otherwise.
        if vault.read("warm start") is not None:
            self.keep("warm start", None)  # that of another function, or of other data
        self.entropy = secrets.randbits(128) if entropy is None else entropy
        self._journal = Journal.open().name.hex() if entropy is None else None
        self._refuse_spent(None)
        start = {"entropy": self.entropy, "identity": dict(identity), "journal": self._journal}
        vault.write("start", json.dumps(start).encode())

    @classmethod
    def stored(cls, folder: Path) -> Checkpoint:
        """The run in a folder, whatever it is of."""
        vault = Vault.existing(folder)
        start = vault.read("start")
        if start is None:
            raise InputError(f"{folder} holds no checkpoint")
        begun = json.loads(start)
        return cls(vault, begun["entropy"], begun.get("journal", ""))

    @contextmanager
    def alone(self, patience: float = 0.0) -> Iterator[None]:
        """Keeps other processes out; the lock falls with the process that holds it, however it ends."""
        import fcntl

        lock = self._lock_file()
        end = time.monotonic() + patience
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waited, reason = time.monotonic() > end, ""
                except OSError as error:  # some network file systems have no locks
                    waited, reason = False, error.strerror or "no locks"
                if waited:
                    raise InputError("another process is working on this checkpoint: wait for it")
                if reason:
                    raise InputError(f"cannot lock {self._vault.folder} ({reason}): choose a folder on a local disk")
                time.sleep(0.02)
            self._vault.sweep()
            yield
        finally:
            os.close(lock)

    def _lock_file(self) -> int:
        path = self._vault.folder / LOCK
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            reason = error.strerror
        raise InputError(f"cannot write {path} ({reason}): make room, or choose a folder on a local disk of your own")

    def place(self, question: str) -> int:
        """The number of a list of caps among all that were ever asked of this simulation."""
        asked: list[str] = json.loads(self._vault.read("caps") or b"[]")
        if question not in asked:
            asked.append(question)
            self._vault.write("caps", json.dumps(asked).encode())
        return asked.index(question)

    def keep(self, name: str, thing: Any) -> None:
        """Store what every world shares: the form of the answer, the answer on the whole pool."""
        try:
            content = pickle.dumps(thing)
        except Exception as error:
            kind = type(error).__name__
        else:
            self._vault.write(name, content)
            return
        raise InputError(
            f"the form of the answer cannot be stored ({kind}): define its classes and functions in a module, or "
            "leave checkpoint out"
        )

    def kept(self, name: str) -> Any:
        """What `keep` stored, or None. Pickles are read from a file that only its owner could have written."""
        content = self._vault.read(name)
        if content is None:
            return None
        try:
            return pickle.loads(content)
        except Exception as error:  # classes that have moved or changed
            kind = type(error).__name__
        raise InputError(
            f"{name} in {self._vault.folder} cannot be read by this version of leakcap ({kind}): use the version that "
            "began the run"
        )

    def keep_rows(self, worlds: npt.NDArray[np.intp], rows: Floats) -> None:
        """Store the answers of some worlds; called where they were computed."""
        count = max(1, PARCEL // max(1, rows[:1].nbytes))
        for start in range(0, len(worlds), count):
            parcel = slice(start, start + count)
            content = _arrays(worlds=worlds[parcel], rows=rows[parcel])
            self._vault.write(f"worlds-{int(worlds[start]):07d}", content)

    def rows(self, worlds: range | None = None) -> Iterator[tuple[npt.NDArray[np.intp], Floats]]:
        """All answers there are, or those in some worlds, which were stored together."""
        parcels = self._vault.names("worlds-")
        asked = [name for name in parcels if worlds is None or int(name.removeprefix("worlds-")) in worlds]
        for content in self._vault.contents(asked):
            parcel = _unpacked(content)
            yield parcel["worlds"], parcel["rows"]

    def commit(self, **released: Any) -> dict[str, Any]:
        """Store what is about to be released, unless something was: then that is what is released."""
        with suppress(FileExistsError):
            self._vault.write("release", _arrays(**released), exclusive=True)
        stored = self.released()
        assert stored is not None
        return stored

    def released(self) -> dict[str, Any] | None:
        """What may be shown: it is stored here and written down in the journal; None if nothing was released so far.

        AlreadyReleased if the journal knows another release of this run, made from a copy of this checkpoint, or one
        that this checkpoint has lost. Stored first, written down after: a run that is killed in between goes on to the
        same value, unless a copy was faster.
        """
        content = self._vault.read("release")
        if content is None:
            self._refuse_spent(None)
            return None
        journal = self._open_journal()
        if journal is not None and journal.enter(self._vault.run, _digest(content)) != _digest(content):
            raise AlreadyReleased(ANOTHER)
        return _unpacked(content)

    def _refuse_spent(self, content: bytes | None) -> None:
        """AlreadyReleased if the journal knows of a release, and this is not it."""
        journal = self._open_journal()
        known = None if journal is None else journal.entry(self._vault.run)
        if known is not None and (content is None or _digest(content) != known):
            raise AlreadyReleased(ANOTHER)

    def _open_journal(self) -> Journal | None:
        if self._journal is None:
            return None
        # A run that was begun before there were journals remembers none.
        return Journal.named(bytes.fromhex(self._journal)) if self._journal else Journal.open()

    def committed(self) -> dict[str, Any] | None:
        """What this checkpoint holds as released, or None: to look at, not to be shown to anybody."""
        content = self._vault.read("release")
        return None if content is None else _unpacked(content)

    def forget(self) -> None:
        """Remove the folder and all that is in it."""
        self._vault.forget()


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _arrays(**arrays: Any) -> bytes:
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _unpacked(content: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}
