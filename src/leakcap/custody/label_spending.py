"""What was spent on the labels in a folder: remembered before anything leaves, and counted in every further run."""

from __future__ import annotations

from pathlib import Path

from leakcap.certificates.labels import LabelCertificate
from leakcap.custody.folders import Folders
from leakcap.custody.private_files import private_folder, read_private, write_private
from leakcap.errors import AlreadyReleased, InputError

__all__ = ["public_folder", "record", "spent_before"]

README = (
    "CUSTODIAN ONLY. What was spent on the labels in ../../public: a file for every run, the last one counts all.\n"
    "Removing them makes leakcap forget that epsilon was spent.\n"
)


def spent_before(out: Path, again: bool) -> list[LabelCertificate]:
    """The certificates of all earlier runs into a folder; refused unless asked for, whatever their labels were.

    It does not look at the labels: an answer that depended on them would tell whether they had changed.
    """
    certificates: list[LabelCertificate] = []
    while (path := out / "custodian" / "labels" / f"{len(certificates) + 1}.json").exists():
        try:
            certificates.append(LabelCertificate.from_json(read_private(path).decode()))
        except (InputError, UnicodeError):
            raise InputError(
                f"{path} is damaged: bring it back from a copy. A run in a new folder does not count what was spent"
            ) from None
    if again and not certificates:
        raise InputError(f"nothing is known of labels privatised in {out} before: leave --again out, or correct --out")
    if certificates and not again:
        raise AlreadyReleased(
            f"labels were privatised in {out} before: nothing was done. Keep those: whoever has two observations of a "
            "label knows more about it than either certificate says. If you must, --again makes further ones, with a "
            f"certificate that counts all of them (epsilon {certificates[-1].epsilon:g} so far). If that run was "
            "stopped and nothing left this machine, start in a new folder"
        )
    if public_folder(out, len(certificates) + 1).exists():
        raise AlreadyReleased(f"{out} holds a finished release: nothing was done. Choose another folder with --out")
    return certificates


def record(folders: Folders, runs: int, certificate: LabelCertificate) -> None:
    """Remember what is spent, before anything leaves; of two runs at once, one is refused."""
    kept = private_folder(folders.custodian / "labels")
    write_private(kept / "README.txt", README.encode())
    try:
        write_private(kept / f"{runs}.json", certificate.to_json().encode(), exclusive=True)
        return
    except FileExistsError:
        pass
    raise AlreadyReleased(f"another run privatised labels in {folders.custodian.parent} just now: keep those")


def public_folder(out: Path, runs: int) -> Path:
    """Where a run publishes: what earlier ones published has left, and stays."""
    return out / ("public" if runs == 1 else f"public-{runs}")
