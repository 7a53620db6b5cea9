"""`leakcap labels`: a file with its label column privatised, the certificate, and a page.

Every run spends epsilon. What was spent is remembered in the custodian's folder, before anything is published; a
further run into the same folder is refused unless it is asked for, and then its certificate counts all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from leakcap.cli.folders import Folders
from leakcap.cli.label_column import LabelColumn, open_labels
from leakcap.cli.label_recipe import Recipe, Wanted
from leakcap.cli.label_runs import public_folder, record, spent_before, together
from leakcap.cli.terminal import Terminal, plain
from leakcap.label_certificate import LabelCertificate
from leakcap.report.label_page import Labelled, attacks, label_page
from leakcap.wording import percent

__all__ = ["Order", "run"]


@dataclass(frozen=True, kw_only=True)
class Order(Wanted):
    """What is asked on the command line."""

    data: Path
    column: str
    out: Path
    title: str = ""
    issuer: str = ""
    again: bool = False


def run(order: Order, quiet: bool = False, json: bool = False) -> None:
    """Privatise, record, publish."""
    terminal = Terminal(quiet, json)
    recipe = Recipe.of(order)
    before = spent_before(order.out, order.again)
    column = open_labels(order.data, order.column)
    recipe.refuse_unfit(column)
    observed = recipe.mechanism.privatize(recipe.labels_of(column))
    cells = recipe.cells(column, observed)
    certificate = together(before, recipe.certificate(column.rows))
    files = public_files(order, recipe, column, cells, certificate)
    folders = Folders.under(order.out)
    folders.sweep()
    runs = len(before) + 1
    record(folders, runs, certificate)
    folders = replace(folders, public=public_folder(order.out, runs))
    folders.publish(files)
    _tell(order, certificate, folders, terminal, tuple(cells), runs)


def public_files(
    order: Order, recipe: Recipe, column: LabelColumn, cells: dict[str, Any], certificate: LabelCertificate
) -> dict[str, str | bytes]:
    """What may be published: features as they are, observations, and facts of the certificate."""
    name = f"labels{column.ending}"
    labelled = Labelled(
        title=order.title or f"Private labels: {column.name}",
        file=name,
        columns=tuple(cells),
        holds=recipe.holds,
        code=recipe.code(name, column),
        issuer=order.issuer,
    )
    return {
        name: column.written(cells),
        "certificate.json": certificate.to_json(),
        "certificate.txt": f"{certificate}\n",
        "page.html": label_page(certificate, labelled),
    }


def _tell(
    order: Order,
    certificate: LabelCertificate,
    folders: Folders,
    terminal: Terminal,
    columns: tuple[str, ...],
    runs: int,
) -> None:
    terminal.heading(order.title or f"Private labels: {order.column}")
    terminal.say(plain(f"{certificate.labels:,} labels by {certificate.mechanism}: {certificate.loss} for each."))
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
    terminal.result(
        {
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
    )
