"""A release of Python code in a folder, like one of the command line: a public part and the custodian's."""

from __future__ import annotations

import warnings
from datetime import date
from pathlib import Path

from leakcap.custody.folders import Folders
from leakcap.custody.signing import own_signer
from leakcap.errors import AlreadyReleased, KeyMadeWarning
from leakcap.ground.callers import frames_of_ours
from leakcap.planning.released import Release, plan_of
from leakcap.report.release.files import custodian_files, public_files, table_of

__all__ = ["keep"]


def keep(release: Release, folder: Path, *, title: str, issuer: str, data_set: str) -> None:
    """Write both parts; the custodian's only where this process has the plan."""
    if (folder / "public").exists():
        raise AlreadyReleased(f"{folder} holds a release: save this one in another folder")
    signer = own_signer()
    if signer.made:
        warnings.warn(signer.news(), KeyMadeWarning, stacklevel=1 + frames_of_ours())
    answer = table_of(release, title, None, issuer=issuer, data_set=data_set, date=date.today().isoformat())
    folders, plan = Folders.under(folder), plan_of(release)
    folders.sweep()
    if plan is not None:
        for name, text in custodian_files(plan, answer, list(plan.caps), None).items():
            folders.keep(name, text)
    folders.publish(signer.signed(public_files(release, answer, signer.fingerprint)))
