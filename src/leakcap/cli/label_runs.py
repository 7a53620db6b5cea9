"""What was spent on the labels in a folder: remembered before anything leaves, and counted in every further run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from leakcap.cli.folders import Folders
from leakcap.errors import AlreadyReleased, InputError
from leakcap.label_certificate import LabelCertificate
from leakcap.proofs import proves
from leakcap.vault import private_folder, read_private, write_private

__all__ = ["public_folder", "record", "spent_before", "together"]

README = (
    "CUSTODIAN ONLY. What was spent on the labels in ../../public: a file for every run, the last one counts all.\n"
    "Whoever removes them makes leakcap forget that epsilon was spent.\n"
)


def spent_before(out: Path, again: bool) -> list[LabelCertificate]:
    """The certificates of all earlier runs into a folder; refused unless asked for, whatever their labels were.

    It does not look at the labels: an answer that depended on them would tell whether they had changed.
    """
    found: list[LabelCertificate] = []
    while (path := out / "custodian" / "labels" / f"{len(found) + 1}.json").exists():
        try:
            found.append(LabelCertificate.from_json(read_private(path).decode()))
        except (InputError, UnicodeError):
            raise InputError(f"{path} is damaged: bring it back from a copy, or start in a new folder") from None
    if again and not found:
        raise InputError(f"nothing is known of labels privatised in {out} before: leave --again out, or correct --out")
    if found and not again:
        raise AlreadyReleased(
            f"labels were privatised in {out} before: nothing was done. Keep those: whoever has two observations of a "
            "label knows more about it than either certificate says. If you must, --again makes further ones, with a "
            f"certificate that counts all of them (epsilon {found[-1].epsilon:g} so far). If that run was stopped and "
            "nothing left this machine, start in a new folder"
        )
    if public_folder(out, len(found) + 1).exists():
        raise AlreadyReleased(f"{out} holds a finished release: nothing was done. Choose another folder with --out")
    return found


@proves("label-guessing")
def together(before: list[LabelCertificate], this: LabelCertificate) -> LabelCertificate:
    """What the observations of all runs tell about one label: epsilon and delta add up."""
    if not before:
        return this
    last, runs = before[-1], len(before) + 1
    total = replace(
        this,
        epsilon=last.epsilon + this.epsilon,
        delta=min(1.0, last.delta + this.delta),
        mechanism=f"{this.mechanism}, run {runs} on labels privatised before",
        settings=(*this.settings, ("epsilon_of_this_run", this.epsilon), ("runs", float(runs))),
        assumptions=(
            *this.assumptions,
            f"These labels were privatised {runs} times. All figures are for everything observed in these runs "
            "together, and hold if there were no others.",
        ),
    )
    if all((one.classes, one.prior) == (this.classes, this.prior) for one in before):
        # Given the label, observations are independent: together they tell no more than the sum, nor than all of it.
        entropy = -math.fsum(p * math.log(p) for p in this.prior if p) * (1 + 1e-12)
        told = min(entropy, last.mutual_information + this.mutual_information)
    else:  # no prior is common to all: what holds for every one
        told = math.fsum(math.log(len(one.classes)) for one in (*before, this)) * (1 + 1e-12)
        told = told if total.delta else min(told, total.epsilon)
    return replace(total, guess_success=total.posterior(this.prior_success), mutual_information=told)


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
