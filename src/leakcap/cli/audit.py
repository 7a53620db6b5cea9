"""`leakcap audit`: attack a stored release, and put what was measured beside what was certified."""

from __future__ import annotations

import os
from collections.abc import Iterable
from json import loads
from pathlib import Path

from leakcap.audit import AuditReport
from leakcap.audit import run as attack
from leakcap.audit.verdicts import REFUTED, Finding
from leakcap.certificates.text import rounded_up
from leakcap.cli.terminal import Terminal, plain
from leakcap.cli.workers import backend_of
from leakcap.custody.folders import plan_folder
from leakcap.errors import InputError
from leakcap.planning.entry import stored_plan

__all__ = ["print_report", "refuse_existing", "run", "strongest"]


def run(
    custodian: Path,
    trials: int,
    out: Path | None,
    *,
    backend: str | None = None,
    insecure: bool = False,
    quiet: bool = False,
    json: bool = False,
) -> bool:
    """Audit a stored plan; False if anything was refuted."""
    terminal = Terminal(quiet, json)
    refuse_existing(out)
    with terminal.watching() as watch:
        plan = stored_plan(plan_folder(custodian), watch, recompute=False)
    terminal.note(f"making and attacking {trials:,} releases; each has a secret of its own, and none leaves")
    with backend_of(backend, None, insecure) as there:
        report = attack(plan, trials=trials, backend=there)
    print_report(report, out, terminal)
    return report.verdict != REFUTED


def refuse_existing(out: Path | None) -> None:
    """An error where a report would be written over a file."""
    if out is not None and out.exists():
        raise InputError(f"{out} exists already: name another place with --out, or remove it")


def print_report(report: AuditReport, out: Path | None, terminal: Terminal) -> None:
    """The verdict and what speaks most against the promise; all of it in a file where one is named."""
    style = "bold red" if report.verdict == REFUTED else "bold"
    terminal.say(f"[{style}]{plain(report.sentence)}[/{style}]")
    terminal.table(
        ("what the attacker guessed", "measured", "certified", "verdict"),
        [_row(finding) for finding in strongest(report.findings) if not finding.heuristic],
    )
    if out is not None:
        _write_private(out, report.to_html() if out.suffix in (".html", ".htm") else report.to_json())
        terminal.note(f"written for the custodian: {out}")
    terminal.result(loads(report.to_json()))


def strongest(findings: Iterable[Finding]) -> list[Finding]:
    """One for each question: what speaks most against the promise; a terminal has no room for every attack."""
    best: dict[str, Finding] = {}
    for finding in findings:
        known = best.get(finding.question)
        if known is None or _weight(finding) > _weight(known):
            best[finding.question] = finding
    return sorted(best.values(), key=lambda finding: finding.verdict != REFUTED)


def _weight(finding: Finding) -> tuple[bool, float]:
    return finding.verdict == REFUTED, finding.measured


def _row(finding: Finding) -> tuple[str, str, str, str]:
    share = finding.kind in ("share", "recognition")  # what a check measures is no share: deviations, a distance
    certified = ""
    if finding.certified is not None:
        limit = finding.certified
        certified = f"{rounded_up(100 * limit, 2):.2f}%" if share else f"{rounded_up(limit, 4):g}"
    measured = f"{finding.measured:.2%}" if share else f"{finding.measured:.4g}"
    return finding.question, measured, certified, finding.verdict


def _write_private(out: Path, text: str) -> None:
    # Figures of an audit tell about the people it attacked: for the custodian's eyes.
    with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
