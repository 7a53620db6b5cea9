"""What the tour of the demo needs beside its strip: a table to bring, and a way to end it. No other server has it."""

from __future__ import annotations

import io

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from leakcap.server.callers import of_state
from leakcap.server.demo import SAMPLES, sample
from leakcap.server.form_fields import Browser, OwnForm, own_address
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.server.register_pages import taken_in
from leakcap.server.tour import ENDED

__all__ = ["touring"]

touring = APIRouter(prefix="/tour", include_in_schema=False)
STEPS_OF = dict(zip(SAMPLES, ("publish", "register"), strict=True))


@touring.post("")
def end(request: Request, who: Browser, form: OwnForm) -> Response:
    """End the tour in this browser, or show it again."""
    answer = RedirectResponse(own_address(str(form.get("back", "/"))), 303)
    if form.get("ended"):
        encrypted = of_state(request).settings.encrypted
        answer.set_cookie(ENDED, "ended", path="/", secure=encrypted, httponly=True, samesite="strict")
    else:
        answer.delete_cookie(ENDED, path="/")
    return answer


@touring.post("/bring")
def bring(request: Request, who: Browser, form: OwnForm) -> Response:
    """Take in a made-up table, as if the custodian had chosen its file."""
    custodian, state, name = who.custodian(), of_state(request), str(form.get("sample", ""))
    if name not in SAMPLES:
        raise Refusal(404, NOT_THERE)
    file, steps = UploadFile(io.BytesIO(sample(name)), filename=f"{name}.csv"), f"/custody/{STEPS_OF[name]}"
    return taken_in(state, custodian, file, lambda number: f"{steps}/{number}", back=steps)
