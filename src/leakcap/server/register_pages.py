"""Register a data set by pages: bring a file, say whose row it is and what is public, see the loss, and keep it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.custody.private_files import write_private
from leakcap.errors import LeakcapError
from leakcap.report.numbers import neat
from leakcap.server.accounts import checked_label
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm, number_in
from leakcap.server.form_questions import KINDS
from leakcap.server.long_work import FAILED, WorkWatch
from leakcap.server.refusals import Refusal, as_refusal
from leakcap.server.show import page
from leakcap.server.state import ServerState
from leakcap.server.uploads import Upload
from leakcap.server.work import done
from leakcap.server.work_pages import place_of

__all__ = ["held_in", "kept_upload", "registering"]

registering = APIRouter(prefix="/custody/register", include_in_schema=False)
HTML = HTMLResponse
TABLE = "data"
SECONDS = 300.0
MEASURED = ("int", "decimal", "float")
MOST_VALUES = 500


@registering.get("")
def bring(request: Request, who: Browser) -> Response:
    """The first step: a file."""
    who.custodian()
    most = of_state(request).settings.limits.upload / 2**20
    return HTML(page("register.html", visitor=who, title="Register a data set", most=f"{most:g}"))


@registering.post("")
def brought(request: Request, who: Browser, form: OwnForm) -> Response:
    """Take the file in."""
    custodian, state = who.custodian(), of_state(request)
    upload = kept_upload(state, form.get("file"))
    state.audit_log.add(custodian, "brought a file", upload.number)
    return RedirectResponse(f"/custody/register/{upload.number}", 303)


@registering.get("/{upload}")
def declare(upload: str, request: Request, who: Browser) -> Response:
    """The second step: what everybody may know of it."""
    who.custodian()
    return _declaring(request, who, upload, {})


@registering.post("/{upload}")
def declared(upload: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """See what the declarations cost, or keep the data set."""
    custodian, state = who.custodian(), of_state(request)
    kept = state.uploads.numbered(upload)
    given = {key: str(value)[:20_000] for key, value in form.items()}
    try:
        facts = _facts(given, held_in(kept)["columns"])
        if given.get("what") != "register":
            found = done(
                {"do": "register", "file": str(kept.path), "table": TABLE, "path": None, "declared": facts}, SECONDS
            )
            return _declaring(request, who, upload, given, found=found)
        name = checked_label(given.get("name", ""), "the name of a data set")
    except LeakcapError as error:
        return _declaring(request, who, upload, given, notice=as_refusal(error).words)

    def task(watch: WorkWatch) -> str:
        _register(state, kept.path, given, facts, watch=watch)
        kept.remove()
        state.audit_log.add(custodian, "registered a data set", name)
        return f"/custody/data/{name}"

    piece = state.long_work.begin(custodian, "registering a data set", name, task, back=request.url.path)
    if piece.outcome == FAILED:
        return _declaring(request, who, upload, given, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


def kept_upload(state: ServerState, file: Any) -> Upload:
    """A file of a form, taken in and looked through once."""
    if file is None or isinstance(file, str):
        raise Refusal(400, "Choose a file: CSV or Parquet.")
    upload = state.uploads.keep(file.filename, file.file)
    try:
        held = done({"do": "columns", "file": str(upload.path), "table": TABLE}, SECONDS)
    except LeakcapError:
        upload.remove()
        raise
    write_private(upload.beside, json.dumps(held).encode())
    return upload


def _register(
    state: ServerState, file: Any, given: Mapping[str, str], facts: Mapping[str, Any], *, watch: WorkWatch
) -> None:
    table = given.get("table") or TABLE

    def make(path: str) -> None:
        order = {"do": "register", "file": str(file), "table": table, "path": path, "declared": dict(facts)}
        done(order, SECONDS, watch)

    cap = number_in(given.get("cap", ""), "the cap, in per cent")
    if cap > 100:
        raise Refusal(400, "Write at most 100 % for the cap.")
    state.datasets.adopt(
        given.get("name", ""),
        make,
        success=cap / 100,
        design=given.get("design", "bits"),
        about=given.get("about", "")[:400],
    )


def held_in(kept: Upload) -> dict[str, Any]:
    """Names and kinds of a file's columns, and how many rows it has."""
    return dict(json.loads(kept.beside.read_bytes()))


def _facts(given: Mapping[str, str], columns: list[dict[str, Any]]) -> dict[str, Any]:
    """What was declared in the form, as `leakcap.sql.register` takes it."""
    names = [one["name"] for one in columns]
    unit = given.get("unit", "")
    if unit not in names:
        raise Refusal(400, "Choose the column that says whose row it is.")
    bounds, keys = {}, {}
    for at, one in enumerate(columns):
        low, high = given.get(f"low{at}", "").strip(), given.get(f"high{at}", "").strip()
        if low or high:
            bounds[one["name"]] = [_end(low, one), _end(high, one)]
        values = [part.strip() for part in given.get(f"values{at}", "").split(",") if part.strip()]
        if values:
            keys[one["name"]] = [_end(value, one) for value in values[:MOST_VALUES]]
    rows = number_in(given.get("rows", ""), "the most rows of one person")
    return {"unit": unit, "rows_per_unit": max(1, int(rows)), "bounds": bounds, "keys": keys}


def _end(text: str, column: Mapping[str, Any]) -> Any:
    if column["kind"] not in MEASURED:
        return text
    try:
        return int(text) if column["kind"] == "int" else float(text)
    except ValueError:
        raise Refusal(400, f"Write two numbers for the range of {column['name']}, or leave both out.") from None


def _declaring(
    request: Request,
    who: Visitor,
    upload: str,
    given: Mapping[str, str],
    *,
    found: Mapping[str, Any] | None = None,
    notice: str = "",
) -> Response:
    state = of_state(request)
    kept = state.uploads.numbered(upload)
    held = held_in(kept)
    losses = [
        (
            one["name"],
            f"{neat(one['low'])} to {neat(one['high'])}",
            f"{100 * one['cut']:.3g} %",
            "" if one["mean"] is None else f"{neat(one['mean'])} → {neat(one['after'])}",
        )
        for one in (found or {}).get("losses", ())
    ]
    shown = page(
        "declare.html",
        visitor=who,
        title="Register a data set",
        upload=upload,
        rows=held["rows"],
        columns=held["columns"],
        kinds=KINDS,
        given={"design": "bits", "cap": "60", "rows": "1", **given},
        found=found,
        losses=losses,
        notice=notice,
    )
    return HTML(shown, 400 if notice else 200)
