"""`leakcap party`: one party's part in an answer about the rows of several, which none of them shows."""

from __future__ import annotations

import json as json_text
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError
from leakcap.local import JointAnswer, JointQuestion, together
from leakcap.tables.files import open_table
from leakcap.tables.reading import Reading

__all__ = ["PartyOrder", "run"]


@dataclass(frozen=True, kw_only=True)
class PartyOrder:
    """What is asked on the command line."""

    data: Path
    question: Path
    join: str
    party: int
    out: Path | None = None
    tls: Path | None = None
    plain: bool = False
    seconds: float = 600.0
    read: tuple[str, ...] = ()


def run(order: PartyOrder, quiet: bool = False, json: bool = False) -> None:
    """Read the rows, compute with the others, print and write what all parties get."""
    terminal = Terminal(quiet, json)
    question = JointQuestion.read(order.question)
    _refuse_filled(order.out)  # before there is an answer that would be lost
    file = open_table(order.data, Reading.of(order.read))
    rows = file.read([file.column(name) for name in question.read_columns])
    terminal.note("waiting for the other parties, then computing with them")
    found = together(
        rows,
        question,
        join=order.join,
        party=order.party,
        tls=order.tls,
        plain=order.plain,
        seconds=order.seconds,
    )
    facts = _facts(found, question)
    if order.out is not None:
        order.out.mkdir(parents=True, exist_ok=True)
        (order.out / "answer.json").write_text(json_text.dumps(facts, indent=1) + "\n")
        (order.out / "certificate.json").write_text(found.certificate.to_json() + "\n")
        (order.out / "transcript.json").write_text(json_text.dumps(asdict(found.transcript), indent=1) + "\n")
        (order.out / "certificate.txt").write_text(f"{found.certificate}\n")
    terminal.heading(f"The {question.ask} over the rows of {question.parties} parties")
    terminal.say(plain(json_text.dumps(facts["answer"])))
    terminal.heading("What it promises")
    terminal.say(plain(f"Against {found.certificate.attacker[0].lower()}{found.certificate.attacker[1:]}"))
    terminal.table(("", "before", "after, at most"), found.certificate.attempts())
    where = "--out FOLDER keeps it" if order.out is None else str(order.out / "certificate.txt")
    terminal.say(plain(f"The certificate says what is assumed, and what is not promised: {where}."))
    terminal.result(facts)


def _facts(found: JointAnswer, question: JointQuestion) -> dict[str, Any]:
    transcript = found.transcript
    return {
        "answer": _plain_numbers(found.value),
        "ask": question.ask,
        "columns": list(question.columns),
        "success_at_most": found.certificate.membership_success,
        "opened": [asdict(one) for one in transcript.openings],
        "messages": len(transcript.messages),
        "sent_bytes": transcript.sent_bytes,
    }


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain_numbers(one) for name, one in value.items()}
    return np.asarray(value).tolist()


def _refuse_filled(out: Path | None) -> None:
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("--out is a folder for this answer alone: name one that is empty, or not there yet")
