"""Attack what was published, by pages: each audit is the command that the page shows, and leaves a report."""

from __future__ import annotations

import shlex
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.errors import LeakcapError
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm
from leakcap.server.long_work import FAILED, WorkWatch
from leakcap.server.published import alone, finished, folder_of
from leakcap.server.refusals import NOT_THERE, Refusal, as_refusal
from leakcap.server.show import page
from leakcap.server.work import command_done
from leakcap.server.work_pages import place_of
from leakcap.server.written_numbers import number_in

__all__ = ["auditing"]

auditing = APIRouter(prefix="/custody/audit", include_in_schema=False)
HTML = HTMLResponse
REPORT, NEXT = "audit.html", "audit.next.html"
TRIALS, MOST = 2_000, 100_000
SECONDS = 900.0


@auditing.get("")
def audits(request: Request, who: Browser) -> Response:
    """What can be attacked."""
    who.custodian()
    state = of_state(request)
    found = [(name, (folder_of(state, name) / REPORT).is_file()) for name in finished(state)]
    return HTML(page("audits.html", visitor=who, title="Audits", found=found))


@auditing.get("/{name}")
def audit(name: str, request: Request, who: Browser) -> Response:
    """One release: its last audit, and another one."""
    who.custodian()
    return _audit(request, who, name)


@auditing.post("/{name}")
def attacked(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Attack it."""
    custodian, state = who.custodian(), of_state(request)
    folder = folder_of(state, name)
    try:
        trials = int(min(number_in(str(form.get("trials", "")), "how many releases to attack"), MOST))
    except LeakcapError as error:
        return _audit(request, who, name, notice=as_refusal(error).words)

    def task(watch: WorkWatch) -> str:
        _attack(folder, trials, watch)
        (folder / "audit.txt").write_text(_words(name, trials))
        state.audit_log.add(custodian, "audited a release", name)
        return f"/custody/audit/{name}"

    piece = state.long_work.begin(custodian, "auditing a release", name, task, back=request.url.path)
    if piece.outcome == FAILED:
        return _audit(request, who, name, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


@auditing.get("/{name}/page")
def report(name: str, request: Request, who: Browser) -> Response:
    """What the attackers reached, beside what was promised."""
    who.custodian()
    file = folder_of(of_state(request), name) / REPORT
    if not file.is_file():
        raise Refusal(404, NOT_THERE)
    return alone(file.read_text())


def _attack(folder: Path, trials: int, watch: WorkWatch) -> None:
    made = folder / NEXT
    made.unlink(missing_ok=True)
    words = ["audit", str(folder / "out"), "--trials", str(trials), "--out", str(made)]
    try:
        command_done(words, SECONDS, watch)
    except LeakcapError:
        if watch.stopped or not made.is_file():
            raise
        # A promise was refuted: that is what the report says.
    made.replace(folder / REPORT)


def _words(name: str, trials: int) -> str:
    return shlex.join(["leakcap", "audit", name, "--trials", str(trials), "--out", "audit.html"])


def _audit(request: Request, who: Visitor, name: str, notice: str = "") -> Response:
    folder = folder_of(of_state(request), name)
    done = (folder / REPORT).is_file()
    command = (folder / "audit.txt").read_text() if done else _words(name, TRIALS)
    shown = page(
        "audit.html", visitor=who, title=name, name=name, done=done, command=command, trials=TRIALS, notice=notice
    )
    return HTML(shown, 400 if notice else 200)
