"""Publish a statistic or a model of a table in five steps, without code: the command that the page shows is run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.custody.private_files import private_folder
from leakcap.errors import LeakcapError
from leakcap.server.accounts import checked_label
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm
from leakcap.server.long_work import FAILED, WorkWatch
from leakcap.server.publish_orders import (
    CHOICES,
    DISTILLED_WORDS,
    MODEL_WORDS,
    PROMISES,
    STATISTICS,
    asked_of,
    command_words,
    python_words,
    shown,
)
from leakcap.server.publish_promises import curve_of, in_words, left_out, promises_of
from leakcap.server.published import alone, attackable, folder_of
from leakcap.server.published import finished as finished_releases
from leakcap.server.refusals import Refusal, as_refusal
from leakcap.server.register_pages import held_in, remembered, remembered_of, taken_in
from leakcap.server.show import page
from leakcap.server.state import ServerState
from leakcap.server.uploads import Upload
from leakcap.server.work import command_done, done
from leakcap.server.work_pages import place_of

__all__ = ["publishing"]

publishing = APIRouter(prefix="/custody/publish", include_in_schema=False)
HTML = HTMLResponse
STEPS = ("The table", "Whose rows", "The question", "The promises", "The release")
FIGURES = {"error": ("error", "before noise", "noise")}
MEASURED = ("int", "decimal", "float")  # kinds of columns that have a range
SECONDS = 900.0
UNCOMPARED = {"what", "name", "promise", "form_word"}  # fields on which no figure of a promise hangs
FORM = {
    "fn": "mean",
    "cap": "60",
    "unit": "",
    "rows": "1",
    "name": "",
    "target": "",
    "classes": "",
    "groups": "3",
    "public": "",
    "public_share": "",
    "promise": "",
}


@publishing.get("")
def bring(request: Request, who: Browser) -> Response:
    """Step 1: a file."""
    who.custodian()
    state = of_state(request)
    most = f"{state.settings.limits.upload / 2**20:g}"
    return HTML(
        page(
            "publish.html",
            visitor=who,
            title="Publish a table or a model",
            most=most,
            finished=finished_releases(state),
            names=STEPS,
        )
    )


@publishing.post("")
def brought(request: Request, who: Browser, form: OwnForm) -> Response:
    """Take the file in."""
    custodian, state = who.custodian(), of_state(request)
    first = str(form.get("first") or "")
    if not first:
        return taken_in(state, custodian, form.get("file"), "/custody/publish/{}".format, back=request.url.path)
    back = f"/custody/publish/{state.uploads.numbered(first).number}"
    return taken_in(state, custodian, form.get("file"), f"{back}?public={{}}".format, back=back)


@publishing.get("/{upload}")
def choose(upload: str, request: Request, who: Browser, public: str = "") -> Response:
    """Steps 2 and 3, whose row it is and what is asked; and step 4, the promises side by side, once they are known."""
    who.custodian()
    given, found = remembered_of(of_state(request).uploads.numbered(upload))
    columns = given.pop("columns", [])
    if public and public != given.get("public"):  # what was found is not about these public rows
        given, found = {**given, "public": public[:24], "fn": next(iter(DISTILLED_WORDS))}, None
    return _choosing(request, who, upload, given=given, columns=columns, found=found)


@publishing.post("/{upload}")
def chosen(upload: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Find out what each promise costs; or step 5, the release."""
    custodian, state = who.custodian(), of_state(request)
    kept = state.uploads.numbered(upload)
    given = {key: str(value)[:400] for key, value in form.items()}
    columns = [str(one) for one in form.getlist("columns")]
    try:
        beside = _public_rows(state, given)
        order = _order(given, columns, kept, beside)
        if given.get("what") != "release":
            return _looked_at(request, who, kept, given, columns=columns, order=order)
        name = _free_name(state, given)
    except (LeakcapError, Refusal) as error:  # in the form, with all that was written into it
        return _choosing(
            request,
            who,
            upload,
            given=given,
            columns=columns,
            found=_still_true(kept, given, columns),
            notice=as_refusal(error).words,
        )

    def task(watch: WorkWatch) -> str:
        _release(state, name, order, watch)
        kept.remove()
        if beside is not None:
            beside.remove()
        state.audit_log.add(custodian, "published a table or a model", name)
        return f"/custody/publish/finished/{name}"

    piece = state.long_work.begin(custodian, "publishing a table or a model", name, task, back=request.url.path)
    if piece.outcome == FAILED:
        found = _still_true(kept, given, columns)
        return _choosing(request, who, upload, given=given, columns=columns, found=found, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


@publishing.get("/finished/{name}")
def finished(name: str, request: Request, who: Browser) -> Response:
    """What was published: its page, its files, and the command that made it."""
    who.custodian()
    folder = folder_of(of_state(request), name)
    command = (folder / "command.txt").read_text()
    files = sorted(one.name for one in (folder / "out" / "public").iterdir())
    made = page(
        "published.html",
        visitor=who,
        title=name,
        name=name,
        command=command,
        files=files,
        names=STEPS,
        attackable=attackable(folder),
    )
    return HTML(made)


@publishing.get("/finished/{name}/page")
def certificate(name: str, request: Request, who: Browser) -> Response:
    """The public page of a release, as everybody will see it."""
    who.custodian()
    text = (folder_of(of_state(request), name) / "out" / "public" / "certificate.html").read_text()
    return alone(text)


@publishing.get("/finished/{name}/public.zip")
def folder_file(name: str, request: Request, who: Browser) -> Response:
    """The public folder, to be passed on."""
    who.custodian()
    folder, packed = folder_of(of_state(request), name) / "out" / "public", io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for one in sorted(folder.iterdir()):
            file.write(one, f"{name}/{one.name}")
    held = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=held)


def _public_rows(state: ServerState, given: Mapping[str, Any]) -> Upload | None:
    """The file of public rows, where one was brought."""
    return state.uploads.numbered(str(given["public"])) if given.get("public") else None


def _looked_at(
    request: Request,
    who: Visitor,
    kept: Upload,
    given: Mapping[str, str],
    *,
    columns: Sequence[str],
    order: Mapping[str, Any],
) -> Response:
    place, told = request.url.path, {**given, "columns": list(columns)}
    remembered(kept, told)

    def task(watch: WorkWatch) -> str:
        remembered(kept, told, done({"do": "compare", **order}, SECONDS, watch))
        return place

    piece = of_state(request).long_work.begin(
        who.custodian(), "comparing promises", CHOICES[order["fn"]], task, back=place, look=True
    )
    if piece.outcome == FAILED:
        return _choosing(request, who, kept.number, given=given, columns=columns, notice=piece.words)
    return RedirectResponse(place_of(piece), 303)


def _still_true(kept: Upload, given: Mapping[str, str], columns: Sequence[str]) -> Mapping[str, Any] | None:
    """What was found of the promises, if nothing was changed since but the choice among them and the name."""
    asked, found = remembered_of(kept)
    now = {**given, "columns": list(columns)}
    other = {key for key in {*asked, *now} if asked.get(key) != now.get(key)}
    return found if other <= UNCOMPARED else None


def _free_name(state: ServerState, given: Mapping[str, str]) -> str:
    name = checked_label(given.get("name", "").strip(), "the name of a release")
    if (state.settings.home / "published" / name / "out" / "public").exists():
        raise Refusal(400, "Something was published under this name: take another one.")
    if name in state.datasets.names():  # the ledger counts by names: its questions would be counted with these
        raise Refusal(400, "A data set has this name: take another one.")
    return name


def _release(state: ServerState, name: str, order: dict[str, Any], watch: WorkWatch) -> None:
    folder = private_folder(state.settings.home / "published") / name
    words = command_words(order, order["file"], str(private_folder(folder) / "out"), order["public"] or "")
    command_done([*words, "--ledger", state.settings.ledger_place, "--name", name], SECONDS, watch)
    (folder / "command.txt").write_text(f"{shown(order, name)}\n\n{python_words(order)}\n")


def _choosing(
    request: Request,
    who: Visitor,
    upload: str,
    *,
    given: Mapping[str, str],
    columns: Sequence[str],
    found: Mapping[str, Any] | None = None,
    notice: str = "",
) -> Response:
    state = of_state(request)
    kept = state.uploads.numbered(upload)
    held, beside = held_in(kept), _public_rows(state, given)
    shown = page(
        "publish_choose.html",
        visitor=who,
        title="Publish a table or a model",
        upload=upload,
        rows=held["rows"],
        columns=held["columns"],
        chosen=set(columns),
        given={**FORM, **given},
        statistics=STATISTICS,
        models=MODEL_WORDS,
        distilled=DISTILLED_WORDS,
        public_rows=None if beside is None else held_in(beside)["rows"],
        measured=MEASURED,
        names_of_steps=STEPS,
        found=found,
        notice=notice,
        **({} if found is None else _compared(found, _order(given, columns, kept, beside))),
    )
    return HTML(shown, 400 if notice else 200)


def _order(given: Mapping[str, str], columns: Sequence[str], kept: Upload, beside: Upload | None) -> dict[str, Any]:
    """What a form asks of a file, with public rows beside it or without."""
    return asked_of(given, columns, held_in(kept), file=kept.path, public=None if beside is None else beside.path)


def _compared(found: Mapping[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    """What each promise costs; and the release of the one that is chosen, in other words."""
    ours, others = promises_of(found, order["success"])
    offered = [one.name for one in ours if one.offered]
    own = order["promise"] if order["promise"] in offered else found["own"]
    order["promise"] = own
    return {
        "ours": ours,
        "others": others,
        "left_out": left_out(found),
        "own": own,
        "own_words": PROMISES.get(own, own),
        "heads": FIGURES.get(found["of"], (found["of"], "without noise", "between releases")),
        "sentence": in_words(found, order["success"]),
        "curve": curve_of(found, order["success"]),
        "command": shown(order, "out"),
        "python": python_words(order),
    }
