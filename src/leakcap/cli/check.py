"""`leakcap check`: say whether a certificate holds, by the plan that the custodian keeps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from leakcap.audit.recheck import findings
from leakcap.certificates.release import Certificate
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.folders import plan_folder
from leakcap.errors import InputError
from leakcap.planning.entry import stored_plan

__all__ = ["run"]


def run(path: Path, custodian: Path, quiet: bool = False, json: bool = False) -> bool:
    """Print what was checked and the verdict; False if the certificate does not hold."""
    terminal = Terminal(quiet, json)
    certificate = _read(path)
    with terminal.watching() as watch:
        plan = stored_plan(plan_folder(custodian), watch)
    claims = list(findings(certificate, plan))
    holds = all(claim.holds for claim in claims)
    for claim in claims:
        terminal.say(f"{'[green]yes[/green]' if claim.holds else '[bold red]NO[/bold red] '} {plain(claim.words)}")
    terminal.say(f"[bold]{_verdict(certificate, holds)}[/bold]")
    terminal.result(
        {"holds": holds, "guarantee": certificate.is_guarantee, "findings": [asdict(claim) for claim in claims]}
    )
    return holds


def _verdict(certificate: Certificate, holds: bool) -> str:
    if not holds:
        return "The certificate does not hold. Do not rely on it, and do not publish it."
    if not certificate.is_guarantee:
        return f"The figures hold, but a certificate of kind {certificate.kind} is no guarantee."
    return "The certificate holds."


def _read(path: Path) -> Certificate:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = None
    if text is None:
        raise InputError(f"{path} cannot be read: give the certificate.json of a release")
    return Certificate.from_json(text)
