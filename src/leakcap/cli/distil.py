"""`leakcap release --fn Distilled`: any classifier, taught in blocks of people, of which noised votes alone leave."""

from __future__ import annotations

import json as json_text
import pickle
from pathlib import Path
from typing import Any

from leakcap.cli.limits import limits
from leakcap.cli.release import ReleaseOrder, account_of, refuse_second
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.folders import Folders
from leakcap.custody.signing import own_signer
from leakcap.errors import InputError
from leakcap.report.release.saved import MODEL
from leakcap.report.sessions.page import session_page
from leakcap.tables.distilled import BOOSTED, ask_distilled
from leakcap.tables.kept_votes import KeptVotes

__all__ = ["run_distilled"]

OF_STATISTICS = ("by", "strata", "q", "bins", "levels", "grid", "drop", "bounds", "clip")
IDLE = (*OF_STATISTICS, "share", "where", "preview", "compare", "forget", "alone", "draws")
README = (
    "Open certificate.html: what anybody can learn from the model at most. model.pkl is the model, which needs\n"
    "leakcap and pickle to be read: read it if you trust whoever made it. certificate.json and answer.json are for\n"
    "programs.\n"
)


def run_distilled(order: ReleaseOrder, quiet: bool = False, json: bool = False) -> None:
    """Teach, ask the teachers, teach a student by their noised votes, and write what may be published."""
    terminal = Terminal(quiet, json)
    for name in IDLE:
        if getattr(order, name):
            raise InputError(f"--{name} has no meaning where a model is distilled: leave it out")
    if order.design not in ("auto", "bits") or (order.worlds, order.mode, order.rate) != ("auto", "exact", "1/2"):
        raise InputError(
            "a distilled model is made of sums over people: leave out --worlds, --mode and --rate, and --design or say "
            "bits"
        )
    refuse_second(order.out)
    signer = own_signer()  # before anything is spent
    terminal.tell(signer.news())
    question = ask_distilled(
        order.data,
        target=order.target,
        columns=order.columns,
        unit=order.unit,
        missing=order.missing,
        read=order.read,
        public_rows=None if order.public_rows is None else Path(order.public_rows),
        public_share=order.public_share,
        teacher=order.teacher or BOOSTED,
        settings=order.setting,
    )
    terminal.heading(question.title)
    for note in question.notes:
        terminal.note(note)
    options: dict[str, Any] = {"ledger": account_of(order)}
    if order.rows_per_unit is not None:
        options["rows_per_unit"] = order.rows_per_unit
    folders = Folders.under(order.out)
    kept = KeptVotes.of(folders.votes, question)
    with terminal.heeding():
        made = question.fitted(limits(order.cap), options=options)
    kept.add(made)
    model, certificate = made.estimator_, made.certificate_
    facts = {
        "model": question.title,
        "classes": [str(one) for one in model.classes_],
        "blocks": int(model.blocks_),
        "public_rows": len(model.asked_),
    }
    files: dict[str, str | bytes] = {
        "README.txt": README,
        "answer.json": json_text.dumps(facts, indent=1),
        "certificate.json": certificate.to_json(),
        "certificate.html": session_page(certificate, signer.fingerprint),
        MODEL: pickle.dumps(model),
    }
    folders.publish(signer.signed(files))
    terminal.say(f"{facts['blocks']:,} teachers voted on {facts['public_rows']:,} public rows; a student learnt that.")
    terminal.say(f"[bold]{plain(str(folders.public))}[/bold]: may be published.")
    terminal.note(f"{folders.custodian} is for the custodian alone: it holds the rows, by which an audit teaches again")
    terminal.result(facts | {"public": str(folders.public)})
