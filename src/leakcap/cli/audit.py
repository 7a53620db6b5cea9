"""`leakcap audit`: attack a stored release or a session, and put what was measured beside what was certified."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from json import loads
from pathlib import Path

from leakcap.audit import AuditReport
from leakcap.audit import run as attack
from leakcap.audit.run import ALPHA
from leakcap.audit.sessions import session_attacked, votes_attacked
from leakcap.audit.verdicts import REFUTED, Finding
from leakcap.certificates.text import rounded_up
from leakcap.cli.terminal import Terminal, plain, seconds_in_words
from leakcap.cli.workers import backend_of
from leakcap.custody.folders import plan_folder
from leakcap.custody.ledger import default_place, open_book
from leakcap.custody.ledger.capped import caps_now
from leakcap.custody.ledger.operations import account_named
from leakcap.errors import InputError
from leakcap.planning.entry import stored_plan
from leakcap.sessions.session import Session, desk_of
from leakcap.sql.catalog import Catalog
from leakcap.tables.kept_votes import KeptVotes

__all__ = ["SessionAt", "print_report", "refuse_existing", "run", "run_of_session", "run_of_votes", "strongest"]

SECONDS_APART = 5.0  # of lines that say how far an audit is


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


@dataclass(frozen=True)
class SessionAt:
    """A session about registered tables."""

    tables: Path
    ledger: str | None = field(default=None, repr=False)  # an address may hold a password
    name: str | None = None

    def opened(self) -> Session:
        """As the ledger knows it."""
        catalog, place = Catalog.load(self.tables), self.ledger or default_place()
        if not self.name:
            raise InputError("say what these tables are called in the ledger: --name; `leakcap ledger show` lists them")
        with account_named(open_book(place), self.name).reading() as now:  # nothing is opened that it does not know
            title, caps = now.title or {}, caps_now(now.title or {}, now.state)
            version = now.state["version"]
        if not caps:
            raise InputError(f"{self.name!r} is no session in this ledger: name one of `leakcap ledger show`")
        if desk_of(Session(catalog, cap=list(caps), seed=0)).version != version:  # that would be a change of the data
            raise InputError(
                f"what was last answered about {self.name!r} is not of these tables: name the file that is asked"
            )
        return Session(catalog, cap=list(caps), ledger=place, name=self.name, always=title.get("always", False))


def run_of_session(at: SessionAt, trials: int, out: Path | None, *, quiet: bool = False, json: bool = False) -> bool:
    """Audit a session; False if anything was refuted."""
    terminal = Terminal(quiet, json)
    refuse_existing(out)
    session = at.opened()
    terminal.note(f"asking everything again {trials:,} times, each with coins of its own; nothing is charged")
    report = session_attacked(session, trials, ALPHA, _telling(terminal))
    print_report(report, out, terminal)
    return report.verdict != REFUTED


def run_of_votes(votes: Path, trials: int, out: Path | None, *, quiet: bool = False, json: bool = False) -> bool:
    """Audit a distilled model by its votes; False if anything was refuted."""
    terminal = Terminal(quiet, json)
    refuse_existing(out)
    model, data = KeptVotes.stored(votes)
    terminal.note(f"asking the teachers again {trials:,} times, each with another coin of one person; none leaves")
    report = votes_attacked(model, data, trials, ALPHA, told=_telling(terminal))
    print_report(report, out, terminal)
    return report.verdict != REFUTED


def _telling(terminal: Terminal) -> Callable[[int, int], None]:
    """Says now and then how far an audit is, and how long it goes on: by its trials, not by what comes before them."""
    began = last = 0.0
    before = 0

    def told(done: int, of: int) -> None:
        nonlocal began, last, before
        now = time.monotonic()
        if not before:
            began, last, before = now, now, done
        elif now - last > SECONDS_APART:
            last = now
            left = seconds_in_words((now - began) / (done - before) * (of - done))
            terminal.note(f"{done:,} of {of:,}, about {left} left")

    return told


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
