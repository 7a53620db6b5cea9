"""Attack what was published or answered, by pages: each audit is the command that the page shows, with its report."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.custody.private_files import private_folder
from leakcap.errors import LeakcapError
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm
from leakcap.server.long_work import FAILED, WorkWatch
from leakcap.server.published import alone, attackable, finished, folder_of, votes_kept
from leakcap.server.refusals import NOT_THERE, Refusal, as_refusal
from leakcap.server.show import page
from leakcap.server.state import ServerState
from leakcap.server.work import command_done
from leakcap.server.work_pages import place_of
from leakcap.server.written_numbers import number_in

__all__ = ["auditing"]

auditing = APIRouter(prefix="/custody", include_in_schema=False)
HTML = HTMLResponse
REPORT, NEXT, COMMAND = "audit.html", "audit.next.html", "audit.txt"
TRIALS, VOTES_TRIALS, MOST = 2_000, 1_000, 100_000  # teachers take their time
SECONDS = 900.0
RELEASE, VOTES, SESSION = "a release", "votes", "answers"


@dataclass(frozen=True)
class _Audited:
    """Something that can be attacked, and where its report lies. Custodian side."""

    kind: str
    name: str
    folder: Path
    words: tuple[str, ...]  # of the command: what is attacked
    shown: tuple[str, ...]  # the same, by the names that the custodian's own files have
    place: str  # the address of its audits
    origin: str  # and of itself

    @property
    def done(self) -> bool:
        return (self.folder / REPORT).is_file()

    @property
    def trials(self) -> int:
        return VOTES_TRIALS if self.kind == VOTES else TRIALS

    def command(self, trials: int) -> str:
        return shlex.join(["leakcap", "audit", *self.shown, "--trials", str(trials), "--out", "audit.html"])


def _release(state: ServerState, name: str) -> _Audited:
    folder = folder_of(state, name)
    if not attackable(folder):
        raise Refusal(404, NOT_THERE)
    return _Audited(
        VOTES if votes_kept(folder) else RELEASE,
        name,
        folder,
        words=(str(folder / "out"),),
        shown=(name,),
        place=f"/custody/audit/{name}",
        origin=f"/custody/publish/finished/{name}",
    )


def _session(state: ServerState, name: str) -> _Audited:
    known = state.datasets.named(name)
    called = ("--name", name, "--ledger")
    return _Audited(
        SESSION,
        name,
        state.settings.home / "audits" / name,
        words=(str(known.catalog.path), *called, state.settings.ledger_place),
        shown=(f"{name}.duckdb", *called, "LEDGER"),  # whose address may hold a password
        place=f"/custody/data/{name}/audit",
        origin=f"/custody/data/{name}",
    )


@auditing.get("/audit")
def audits(request: Request, who: Browser) -> Response:
    """What can be attacked."""
    who.custodian()
    state = of_state(request)
    found = [_release(state, name) for name in finished(state) if attackable(folder_of(state, name))]
    asked = [_session(state, name) for name in state.datasets.names()]
    return HTML(page("audits.html", visitor=who, title="Audits", found=found, asked=asked))


@auditing.get("/audit/{name}")
def release_audit(name: str, request: Request, who: Browser) -> Response:
    """One release: its last audit, and another one."""
    who.custodian()
    return _audit(who, _release(of_state(request), name))


@auditing.post("/audit/{name}")
def release_attacked(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Attack it."""
    return _attacked(request, who, form, name, of=_release)


@auditing.get("/audit/{name}/page")
def release_report(name: str, request: Request, who: Browser) -> Response:
    """What the attackers reached, beside what was promised."""
    who.custodian()
    return _report(_release(of_state(request), name))


@auditing.get("/data/{name}/audit")
def session_audit(name: str, request: Request, who: Browser) -> Response:
    """All answers about a data set: their last audit, and another one."""
    who.custodian()
    return _audit(who, _session(of_state(request), name))


@auditing.post("/data/{name}/audit")
def session_attacked(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Ask everything again with other coins, and attack that. Nothing is charged."""
    return _attacked(request, who, form, name, of=_session)


@auditing.get("/data/{name}/audit/page")
def session_report(name: str, request: Request, who: Browser) -> Response:
    """What the attackers reached, beside what was promised."""
    who.custodian()
    return _report(_session(of_state(request), name))


def _attacked(
    request: Request, who: Visitor, form: OwnForm, name: str, *, of: Callable[[ServerState, str], _Audited]
) -> Response:
    custodian, state = who.custodian(), of_state(request)
    audited = of(state, name)
    try:
        trials = int(min(number_in(str(form.get("trials", "")), "how many releases to attack"), MOST))
    except LeakcapError as error:
        return _audit(who, audited, notice=as_refusal(error).words)

    def task(watch: WorkWatch) -> str:
        _attack(audited, trials, watch)
        state.audit_log.add(custodian, f"audited {audited.kind}", name)
        return audited.place

    piece = state.long_work.begin(custodian, f"auditing {audited.kind}", name, task, back=audited.place)
    if piece.outcome == FAILED:
        return _audit(who, audited, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


def _attack(audited: _Audited, trials: int, watch: WorkWatch) -> None:
    made = private_folder(audited.folder) / NEXT
    made.unlink(missing_ok=True)
    words = ["audit", *audited.words, "--trials", str(trials), "--out", str(made)]
    try:
        command_done(words, SECONDS, watch)
    except LeakcapError:
        if watch.stopped or not made.is_file():
            raise
        # A promise was refuted: that is what the report says.
    made.replace(audited.folder / REPORT)
    (audited.folder / COMMAND).write_text(audited.command(trials))


def _report(audited: _Audited) -> Response:
    if not audited.done:
        raise Refusal(404, NOT_THERE)
    return alone((audited.folder / REPORT).read_text())


def _audit(who: Visitor, audited: _Audited, notice: str = "") -> Response:
    command = (audited.folder / COMMAND).read_text() if audited.done else audited.command(audited.trials)
    shown = page(
        "audit.html",
        visitor=who,
        title=audited.name,
        audited=audited,
        kind=audited.kind,
        command=command,
        trials=audited.trials,
        notice=notice,
    )
    return HTML(shown, 400 if notice else 200)
