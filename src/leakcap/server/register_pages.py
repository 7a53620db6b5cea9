"""Register a data set by pages: bring a file, say whose row it is and what is public, see the loss, and keep it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.custody.private_files import write_private
from leakcap.errors import LeakcapError
from leakcap.report.numbers import neat
from leakcap.server.accounts import checked_label
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm
from leakcap.server.form_questions import KINDS
from leakcap.server.long_work import FAILED, WorkWatch
from leakcap.server.published import finished
from leakcap.server.refusals import NOT_THERE, Refusal, as_refusal
from leakcap.server.register_forms import facts_of, tables_of
from leakcap.server.show import page
from leakcap.server.state import ServerState
from leakcap.server.uploads import Upload
from leakcap.server.work import done
from leakcap.server.work_pages import place_of
from leakcap.server.written_numbers import number_in

__all__ = ["held_in", "registering", "remembered", "remembered_of", "taken_in"]

registering = APIRouter(prefix="/custody/register", include_in_schema=False)
HTML = HTMLResponse
TABLE = "data"
SECONDS = 300.0
MOST_TABLES = 8
STEPS = ("The tables", "What everybody may know", "Registered")


@registering.get("")
def bring(request: Request, who: Browser) -> Response:
    """The first step: a file."""
    who.custodian()
    most = of_state(request).settings.limits.upload / 2**20
    return HTML(page("register.html", visitor=who, title="Register a data set", most=f"{most:g}", names=STEPS))


@registering.post("")
def brought(request: Request, who: Browser, form: OwnForm) -> Response:
    """Take the file in."""
    custodian, state = who.custodian(), of_state(request)
    before = [str(form.get("first") or ""), *str(form.get("also") or "").split(",")]
    known = [state.uploads.numbered(one).number for one in before if one]
    if len(known) >= MOST_TABLES:
        raise Refusal(400, f"Register at most {MOST_TABLES} tables by pages; more of them with leakcap.sql.register.")

    back = _place(known) if known else request.url.path
    return taken_in(state, custodian, form.get("file"), lambda number: _place([*known, number]), back=back)


@registering.get("/{upload}")
def declare(upload: str, request: Request, who: Browser, also: str = "") -> Response:
    """The second step: what everybody may know of it, as it was filled in last."""
    who.custodian()
    given, found = remembered_of(of_state(request).uploads.numbered(upload))
    if also and also != given.get("also", ""):  # another table was added: what was found is about fewer
        given, found = {"also": also[:200]}, None
    return _declaring(request, who, upload, given, found=found)


@registering.post("/{upload}")
def declared(upload: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """See what the declarations cost, or keep the data set."""
    custodian, state = who.custodian(), of_state(request)
    given = {key: str(value)[:20_000] for key, value in form.items()}
    kept = _kept(state, upload, given)
    try:
        tables = tables_of(given, [(one.number, held_in(one)) for one in kept])
        files = {table.name: str(one.path) for table, one in zip(tables, kept, strict=True)}
        facts = facts_of(given, tables)
        if given.get("what") != "register":
            order = {"files": files, "path": None, "declared": facts}
            return _looked_at(request, who, kept, given, order=order)
        name = checked_label(given.get("name", ""), "the name of a data set")
        if name in finished(state):  # the ledger counts by names
            raise Refusal(400, "Something was published under this name: take another one.")
    except (LeakcapError, Refusal) as error:  # in the form, with all that was written into it
        return _declaring(request, who, upload, given, notice=as_refusal(error).words)

    def task(watch: WorkWatch) -> str:
        _register(state, files, given, facts, watch=watch)
        for one in kept:
            one.remove()
        state.audit_log.add(custodian, "registered a data set", name)
        return f"/custody/data/{name}"

    piece = state.long_work.begin(custodian, "registering a data set", name, task, back=request.url.path)
    if piece.outcome == FAILED:
        return _declaring(request, who, upload, given, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


def _looked_at(
    request: Request, who: Visitor, kept: list[Upload], given: Mapping[str, str], *, order: Mapping[str, Any]
) -> Response:
    """What declarations cost, before anything is kept."""
    first, place = kept[0], request.url.path
    remembered(first, given)

    def task(watch: WorkWatch) -> str:
        remembered(first, given, done({"do": "register", **order}, SECONDS, watch))
        return place

    about = given.get("name", "")[:40] or "a table"
    piece = of_state(request).long_work.begin(
        who.custodian(), "seeing what declarations cost", about, task, back=place, look=True
    )
    if piece.outcome == FAILED:
        return _declaring(request, who, first.number, given, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


def _place(numbers: list[str]) -> str:
    """The form about these files."""
    first, *also = numbers
    return f"/custody/register/{first}" + (f"?also={','.join(also)}" if also else "")


def taken_in(state: ServerState, custodian: str, file: Any, place: Callable[[str], str], *, back: str) -> Response:
    """Take in a file of a form, and look it through once; then on to the `place` of its number."""
    if file is None or isinstance(file, str):
        raise Refusal(400, "Choose a file: CSV or Parquet.")
    upload = state.uploads.keep(file.filename, file.file)

    def task(watch: WorkWatch) -> str:
        try:
            held = done({"do": "columns", "file": str(upload.path), "table": TABLE}, SECONDS, watch)
        except LeakcapError:
            upload.remove()
            raise
        write_private(upload.beside, json.dumps(held).encode())
        state.audit_log.add(custodian, "brought a file", upload.number)
        return place(upload.number)

    piece = state.long_work.begin(
        custodian, "looking a file through", upload.path.suffix[1:], task, back=back, look=True
    )
    if piece.outcome == FAILED:
        raise Refusal(400, piece.words)
    return RedirectResponse(place_of(piece), 303)


def remembered(kept: Upload, given: Mapping[str, Any], found: Mapping[str, Any] | None = None) -> None:
    """Keep what a form said of a file, and what that was found to cost: for the custodian's pages alone."""
    told = {name: one for name, one in given.items() if name != "form_word"}  # that is the browser's
    write_private(kept.form, json.dumps({"given": told, "found": found}).encode())


def remembered_of(kept: Upload) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What was said of a file last, and what that was found to cost."""
    if not kept.form.is_file():
        return {}, None
    told = json.loads(kept.form.read_bytes())
    return told["given"], told["found"]


def _kept(state: ServerState, upload: str, given: Mapping[str, str]) -> list[Upload]:
    """The files of a form, the first one first."""
    also = [one for one in given.get("also", "").split(",") if one]
    return [state.uploads.numbered(one) for one in dict.fromkeys([upload, *also[: MOST_TABLES - 1]])]


def _register(
    state: ServerState,
    files: Mapping[str, str],
    given: Mapping[str, str],
    facts: Mapping[str, Any],
    *,
    watch: WorkWatch,
) -> None:
    def make(path: str) -> None:
        order = {"do": "register", "files": dict(files), "path": path, "declared": dict(facts)}
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
    if not kept.beside.is_file():  # it is being looked through
        raise Refusal(404, NOT_THERE)
    return dict(json.loads(kept.beside.read_bytes()))


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
    kept = _kept(state, upload, given)
    held = [(one.number, held_in(one)) for one in kept]
    try:
        tables = tables_of(given, held)
    except Refusal:  # two of one name: they get names of ours, and the notice says what to do
        tables = tables_of({}, held)
    alone = len(tables) == 1
    names = {one.name: [one.column(column["name"], alone) for column in one.columns] for one in tables}
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
        also=",".join(one.number for one in kept[1:]),
        tables=tables,
        column_names=[name for listed in names.values() for name in listed],
        elsewhere={
            one.name: [name for other, listed in names.items() if other != one.name for name in listed]
            for one in tables
        },
        names_of_steps=STEPS,
        kinds=KINDS,
        given={"design": "bits", "cap": "60", **given},
        found=found,
        losses=losses,
        notice=notice,
    )
    return HTML(shown, 400 if notice else 200)
