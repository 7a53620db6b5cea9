"""`leakcap audit`: attack a stored release, and put what was measured beside what was certified."""

from __future__ import annotations

import os
from collections.abc import Iterable
from json import loads
from pathlib import Path

from leakcap.audit import run as attack
from leakcap.audit.findings import REFUTED, Finding
from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError
from leakcap.planning import stored_plan

__all__ = ["run", "strongest"]


def run(custodian: Path, trials: int, out: Path | None, quiet: bool = False, json: bool = False) -> bool:
    """Audit a stored plan; False if anything was refuted."""
    terminal = Terminal(quiet, json)
    folder = next((one for one in (custodian / "custodian" / "plan", custodian / "plan") if one.is_dir()), custodian)
    if out is not None and out.exists():
        raise InputError(f"{out} exists already: name another file with --out, or remove it")
    with terminal.watching() as watch:
        plan = stored_plan(folder, watch)
    terminal.note(f"making and attacking {trials:,} releases; each has a secret of its own, and none leaves")
    report = attack(plan, trials=trials)
    style = "bold red" if report.verdict == REFUTED else "bold"
    terminal.say(f"[{style}]{plain(report.sentence)}[/{style}]")
    terminal.table(
        ("what the attacker guessed", "measured", "certified", "verdict"),
        [
            (one.question, _figure(one.measured), "" if one.certified is None else _figure(one.certified), one.verdict)
            for one in strongest(report.findings)
        ],
    )
    if out is not None:
        written = report.to_html() if out.suffix in (".html", ".htm") else report.to_json()
        # Figures of an audit tell about the people it attacked: for the custodian's eyes.
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(written)
        terminal.note(f"written for the custodian: {out}")
    terminal.result(loads(report.to_json()))
    return report.verdict != REFUTED


def strongest(findings: Iterable[Finding]) -> list[Finding]:
    """One for each question: what speaks most against the promise; a terminal has no room for every attack."""
    best: dict[str, Finding] = {}
    for one in findings:
        known = best.get(one.question)
        if known is None or (one.verdict == REFUTED, one.measured) > (known.verdict == REFUTED, known.measured):
            best[one.question] = one
    return sorted(best.values(), key=lambda one: one.verdict != REFUTED)


def _figure(value: float) -> str:
    return f"{value:.2%}"
