"""Where the files of a release go: what anybody may see, and what only the custodian may.

The public folder appears in one step when everything in it is written: it is complete, or it is not there.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from leakcap.errors import AlreadyReleased, InputError
from leakcap.vault import private_folder, write_private

__all__ = ["Folders"]


@dataclass(frozen=True)
class Folders:
    """`public` and `custodian` under one folder."""

    public: Path
    custodian: Path

    @classmethod
    def under(cls, out: Path) -> Folders:
        made = cls(out / "public", out / "custodian")
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror
        else:
            private_folder(made.custodian)
            return made
        raise InputError(f"cannot make the folder {out} ({reason}): choose another --out")

    @property
    def plan(self) -> Path:
        """Where the plan and its checkpoint are kept."""
        return self.custodian / "plan"

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
