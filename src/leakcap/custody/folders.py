"""Where the files of a release go: what anybody may see, and what only the custodian may.

The public folder appears in one step when everything in it is written: it is complete, or it is not there.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.private_files import private_folder, write_private
from leakcap.errors import AlreadyReleased, InputError

__all__ = ["PLAN", "Folders", "plan_folder", "votes_folder"]

PLAN, VOTES = "plan", "votes"  # in the custodian's folder


@dataclass(frozen=True)
class Folders:
    """`public` and `custodian` under one folder."""

    public: Path
    custodian: Path

    @classmethod
    def under(cls, out: Path) -> Folders:
        """The two folders of a release in `out`, the custodian's made if need be."""
        folders = cls(out / "public", out / "custodian")
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror
        else:
            private_folder(folders.custodian)
            return folders
        raise InputError(f"cannot make the folder {out} ({reason}): choose another --out")

    @property
    def plan(self) -> Path:
        """Where the plan and its checkpoint are kept."""
        return self.custodian / PLAN

    @property
    def votes(self) -> Path:
        """Where a distilled model and its rows are kept."""
        return self.custodian / VOTES

    def keep(self, name: str, content: str | bytes) -> Path:
        """Write a file that is never open to anybody but its owner, not even while it is written."""
        path = self.custodian / name
        write_private(path, content.encode() if isinstance(content, str) else content)
        return path

    def publish(self, files: dict[str, str | bytes]) -> None:
        """Make the public folder appear with all its files."""
        beside = self.public.with_name(f".public.{os.getpid()}.part")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o755)
        for name, content in files.items():
            with os.fdopen(os.open(beside / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        try:
            os.rename(beside, self.public)
            return
        except OSError:  # it is there, and not empty
            shutil.rmtree(beside, ignore_errors=True)
        raise AlreadyReleased(f"{self.public} was written by another run just now: keep what it holds")

    def sweep(self) -> None:
        """Remove what a run that was killed left half-written."""
        for path in self.public.parent.glob(".public.*.part"):
            shutil.rmtree(path, ignore_errors=True)
        for path in self.custodian.glob(".*.part"):
            path.unlink(missing_ok=True)


def plan_folder(named: Path) -> Path:
    """The folder of a stored plan, from itself, the custodian's folder or the folder of the whole release."""
    return _within(named, PLAN) or named


def votes_folder(named: Path) -> Path | None:
    """The folder of a distilled model's votes, found in the same way; None where there is none."""
    return named if named.name == VOTES and named.is_dir() else _within(named, VOTES)


def _within(named: Path, kept: str) -> Path | None:
    above = (named / "custodian" / kept, named / kept)
    return next((folder for folder in above if folder.is_dir()), None)
