"""`leakcap labels`: a file with its label column privatised one by one, the certificate, and a page.

Every run spends epsilon. What was spent is remembered in the custodian's folder, before anything is published; a
further run into the same folder is refused unless it is asked for, and then its certificate counts all of them.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from leakcap.certificates.compose import compose_label_runs
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.text import percent
from leakcap.cli.endings import as_options
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.folders import Folders
from leakcap.custody.label_spending import public_folder, record, spent_before
from leakcap.custody.signing import own_signer
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.mechanisms.recipe import LabelRecipe, LabelRequest
from leakcap.report.labels.page import Labelled, attacks, label_page
from leakcap.tables.label_column import LabelColumn
from leakcap.tables.label_files import open_labels
from leakcap.tables.private_labels import observed_cells, reading_code, refuse_unfit, secret_labels

__all__ = ["LabelsOrder", "class_names", "facts_of", "print_labels", "run"]

METHODS = ("responses", "statistics", "pate")
# Options that not all methods have.
OPTIONS = {
    "mechanism": ("responses",),
    "prior": ("responses",),
    "low": ("responses",),
    "high": ("responses",),
    "model": ("statistics",),
    "teachers": ("pate",),
    "features": ("statistics", "pate"),
}


@dataclass(frozen=True, kw_only=True)
class LabelsOrder:
    """What is asked on the command line."""

    data: Path
    column: str
    out: Path
    epsilon: float
    method: str = "responses"
    classes: str | None = None
    mechanism: str = "auto"
    delta: float | None = None
    prior: str | None = None
    low: float | None = None
    high: float | None = None
    missing_as: str | None = None
    model: str | None = None
    teachers: int | None = None
    features: tuple[str, ...] | None = None
    read: tuple[str, ...] = ()
    title: str = ""
    issuer: str = ""
    again: bool = False

    @property
    def heading(self) -> str:
        return self.title or f"Private labels: {self.column}"

    def refuse_idle(self) -> None:
        """Options of another method: they would change nothing."""
        checks.choice(METHODS, method=self.method)
        for option, methods in OPTIONS.items():
            if self.method not in methods and getattr(self, option) not in (None, "auto", ()):
                raise InputError(
                    f"--{option} is for --method {' and '.join(methods)}, and does nothing for {self.method}: leave "
                    "it out, or take another method"
                )

    def recipe(self) -> LabelRecipe:
        """How the labels are privatised; made before the file is opened."""
        request = LabelRequest(
            epsilon=self.epsilon,
            classes=None if self.classes is None else class_names(self.classes),
            mechanism=self.mechanism,
            delta=self.delta,
            prior=None if self.prior is None else _shares(self.prior),
            low=self.low,
            high=self.high,
            missing_as=self.missing_as,
        )
        try:
            return LabelRecipe.of(request)
        except InputError as error:
            refusal = as_options(str(error))
        raise InputError(refusal)


def run(order: LabelsOrder, quiet: bool = False, json: bool = False) -> None:
    """Privatise, record, publish."""
    terminal = Terminal(quiet, json)
    recipe = order.recipe()
    signer = own_signer()  # before anything is spent
    terminal.tell(signer.news())
    before = spent_before(order.out, order.again)
    column = open_labels(order.data, order.column, tuple(order.read or ()))
    refuse_unfit(recipe, column)
    observed = recipe.mechanism.privatize(secret_labels(recipe, column))
    cells = observed_cells(recipe, column, observed)
    certificate = compose_label_runs(before, recipe.certificate(column.rows))
    files = public_files(order, recipe, column, cells=cells, certificate=certificate, signed_with=signer.fingerprint)
    folders = Folders.under(order.out)
    folders.sweep()
    runs = len(before) + 1
    record(folders, runs, certificate)
    folders = replace(folders, public=public_folder(order.out, runs))
    folders.publish(signer.signed(files))
    print_labels(order, certificate, folders, terminal)
    terminal.result(facts_of(certificate, folders, tuple(cells), runs))


def public_files(
    order: LabelsOrder,
    recipe: LabelRecipe,
    column: LabelColumn,
    *,
    cells: dict[str, Any],
    certificate: LabelCertificate,
    signed_with: str = "",
) -> dict[str, str | bytes]:
    """What may be published: features as they are, observations, and facts of the certificate."""
    name = f"labels{column.ending}"
    labelled = Labelled(
        title=order.heading,
        file=name,
        columns=tuple(cells),
        holds=recipe.holds,
        code=reading_code(recipe, column, name),
        issuer=order.issuer,
    )
    return {
        name: column.written(cells),
        "certificate.json": certificate.to_json(),
        "certificate.txt": f"{certificate}\n",
        "page.html": label_page(certificate, labelled, signed_with),
    }


def print_labels(
    order: LabelsOrder, certificate: LabelCertificate, folders: Folders, terminal: Terminal, *, learnt: str = ""
) -> None:
    """What was done to the labels, what an attacker can learn of one, and what was written where."""
    terminal.heading(order.heading)
    terminal.say(plain(f"{certificate.labels:,} labels by {certificate.mechanism}: {certificate.loss} for each."))
    if learnt:
        terminal.say(plain(learnt))
    terminal.heading("What the best attacker can learn about one of them")
    terminal.table(
        ("", "before", "after, at most"),
        [
            (what, f"{math.floor(before * 1e4 + 1e-9) / 100:g} %", percent(after))
            for what, before, after in attacks(certificate)
        ],
    )
    terminal.heading("Privatised and written")
    published = ", ".join(sorted(path.name for path in folders.public.iterdir()))
    terminal.say(f"[bold]{escape(str(folders.public))}[/bold]: may be published. {published}")
    terminal.say(f"[bold]{escape(str(folders.custodian))}[/bold]: for you alone. What was spent; keep it")


def facts_of(certificate: LabelCertificate, folders: Folders, columns: tuple[str, ...], runs: int) -> dict[str, Any]:
    """The same for programs."""
    return {
        "public": str(folders.public),
        "custodian": str(folders.custodian),
        "kind": certificate.kind,
        "mechanism": certificate.mechanism,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "prior_success": certificate.prior_success,
        "guess_success_at_most": certificate.guess_success,
        "labels": certificate.labels,
        "classes": list(certificate.classes),
        "columns": list(columns),
        "runs": runs,
    }


def class_names(text: str) -> tuple[str, ...]:
    """Names of classes with commas between."""
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or not all(names):
        raise InputError("--classes are names with commas between, such as --classes no,yes")
    return names


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(share) for share in text.split(","))
    except ValueError:
        raise InputError("--prior must be probabilities with commas between, such as --prior 0.76,0.24") from None
