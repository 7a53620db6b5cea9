"""Pages of long work: how far it is, what became of it, and a button that stops it."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.server.callers import of_state
from leakcap.server.form_fields import Browser, OwnForm
from leakcap.server.long_work import DONE, FAILED, PieceOfWork
from leakcap.server.show import page, when

__all__ = ["place_of", "working"]

working = APIRouter(prefix="/custody/work", include_in_schema=False)
LOOK_AGAIN = "3"  # seconds after which a browser looks again
OUTCOMES = {"waiting": "It waits for other work.", "running": "It is being done.", DONE: "It is done."}


@working.get("")
def all_work(request: Request, who: Browser) -> Response:
    """What is done now, and was lately."""
    who.custodian()
    found = of_state(request).long_work.all()
    rows = [(one.number, one.what, one.about, one.who, one.outcome, when(one.began)) for one in found]
    return HTMLResponse(page("all_work.html", visitor=who, title="Long work", rows=rows))


@working.get("/{number}")
def piece(number: str, request: Request, who: Browser) -> Response:
    """One piece of work. While it goes on, the browser looks again after some seconds."""
    who.custodian()
    found = of_state(request).long_work.numbered(number)
    if found.outcome == DONE:
        return RedirectResponse(found.place, 303)
    seconds = (found.ended or time.time()) - found.began
    shown = page(
        "work.html",
        visitor=who,
        title=f"{found.what[:1].upper()}{found.what[1:]}: {found.about}",
        work=found,
        outcome=OUTCOMES.get(found.outcome, ""),
        taken=f"{seconds / 60:.0f} minutes" if seconds > 120 else f"{seconds:.0f} seconds",
    )
    return HTMLResponse(shown, headers={} if found.over else {"Refresh": LOOK_AGAIN})


@working.post("/{number}/stop")
def stop(number: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Stop it: nothing of it is kept."""
    custodian, state = who.custodian(), of_state(request)
    found = state.long_work.stop(number)
    state.audit_log.add(custodian, "stopped work", found.about, found.outcome)
    return RedirectResponse(f"/custody/work/{number}", 303)


def place_of(piece: PieceOfWork) -> str:
    """Where to look next: at what was made, or at how far it is."""
    return piece.place if piece.outcome in (DONE, FAILED) else f"/custody/work/{piece.number}"
