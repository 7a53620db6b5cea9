"""Publish a statistic of a table in five steps, without code. Each release is the command that the page shows."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.custody.private_files import private_folder
from leakcap.errors import LeakcapError
from leakcap.planning.comparison import share
from leakcap.report.chart import Chart, captioned, linear
from leakcap.report.html import Markup
from leakcap.report.numbers import bound
from leakcap.server.accounts import checked_label
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm, number_in
from leakcap.server.headers import POLICY
from leakcap.server.refusals import NOT_THERE, Refusal, as_refusal
from leakcap.server.register_pages import held_in, kept_upload
from leakcap.server.show import page
from leakcap.server.state import ServerState
from leakcap.server.uploads import Upload
from leakcap.server.work import command_done, done

__all__ = ["publishing"]

publishing = APIRouter(prefix="/custody/publish", include_in_schema=False)
HTML = HTMLResponse
STATISTICS = {
    "mean": "averages",
    "sum": "sums",
    "median": "medians",
    "covariance": "variances and covariances",
    "histogram": "how many in each bin",
    "count": "how many in each category",
}
MEASURED = ("int", "decimal", "float")  # kinds of columns that have a range
SECONDS = 900.0


@publishing.get("")
def bring(request: Request, who: Browser) -> Response:
    """Step 1: a file."""
    who.custodian()
    state = of_state(request)
    most = f"{state.settings.limits.upload / 2**20:g}"
    return HTML(page("publish.html", visitor=who, title="Publish a table", most=most, finished=_finished(state)))


@publishing.post("")
def brought(request: Request, who: Browser, form: OwnForm) -> Response:
    """Take the file in."""
    custodian, state = who.custodian(), of_state(request)
    upload = kept_upload(state, form.get("file"))
    state.audit_log.add(custodian, "brought a file", upload.number)
    return RedirectResponse(f"/custody/publish/{upload.number}", 303)


@publishing.get("/{upload}")
def choose(upload: str, request: Request, who: Browser) -> Response:
    """Steps 2 and 3: whose row it is, and what is asked."""
    who.custodian()
    return _choosing(request, who, upload, given={}, columns=[])


@publishing.post("/{upload}")
def chosen(upload: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Step 4, the promises side by side; or step 5, the release."""
    custodian, state = who.custodian(), of_state(request)
    kept = state.uploads.numbered(upload)
    given = {key: str(value)[:400] for key, value in form.items()}
    columns = [str(one) for one in form.getlist("columns")]
    try:
        order = _order(given, columns, kept)
        if given.get("what") != "release":
            return _choosing(
                request, who, upload, given=given, columns=columns, found=done({"do": "compare", **order}, SECONDS)
            )
        name = _release(state, given, order)
    except LeakcapError as error:
        return _choosing(request, who, upload, given=given, columns=columns, notice=as_refusal(error).words)
    kept.remove()
    state.audit_log.add(custodian, "published a table", name)
    return RedirectResponse(f"/custody/publish/finished/{name}", 303)


@publishing.get("/finished/{name}")
def finished(name: str, request: Request, who: Browser) -> Response:
    """What was published: its page, its files, and the command that made it."""
    who.custodian()
    folder = _folder(of_state(request), name)
    command = (folder / "command.txt").read_text()
    files = sorted(one.name for one in (folder / "out" / "public").iterdir())
    made = page("published.html", visitor=who, title=name, name=name, command=command, files=files)
    return HTML(made)


@publishing.get("/finished/{name}/page")
def certificate(name: str, request: Request, who: Browser) -> Response:
    """The public page of a release, as everybody will see it."""
    who.custodian()
    text = (_folder(of_state(request), name) / "out" / "public" / "certificate.html").read_text()
    sheets = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    prints = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in sheets)
    policy = POLICY.replace("style-src 'self'", f"style-src 'self' {prints}")
    return HTML(text, headers={"Content-Security-Policy": policy})


@publishing.get("/finished/{name}/public.zip")
def folder_file(name: str, request: Request, who: Browser) -> Response:
    """The public folder, to be passed on."""
    who.custodian()
    folder, packed = _folder(of_state(request), name) / "out" / "public", io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for one in sorted(folder.iterdir()):
            file.write(one, f"{name}/{one.name}")
    held = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=held)


def command_words(order: Mapping[str, Any], file: str, out: str) -> list[str]:
    """The release as words of the command line."""
    words = ["release", file, "--fn", order["fn"], "--cap", f"membership={order['success']:g}", "--out", out]
    words += ["--columns", ",".join(order["columns"]), "--missing", "drop"]
    return words + (["--unit", order["unit"]] if order["unit"] else [])


def python_words(order: Mapping[str, Any]) -> str:
    """The same in Python."""
    columns = ", ".join(map(repr, order["columns"]))
    unit = f", unit=table[{order['unit']!r}]" if order["unit"] else ""
    return (
        'import leakcap as lc, pandas as pd\n\ntable = pd.read_csv("table.csv")  # or read_parquet\n'
        f"rows = table[[{columns}]]\n"
        f"release = lc.release(lc.stats.{order['fn']}, rows, cap=lc.membership({order['success']:g}){unit})"
    )


def _release(state: ServerState, given: Mapping[str, str], order: dict[str, Any]) -> str:
    name = checked_label(given.get("name", "").strip(), "the name of a release")
    folder = private_folder(state.settings.home / "published") / name
    if (folder / "out" / "public").exists():
        raise Refusal(400, "Something was published under this name: take another one.")
    words = command_words(order, order["file"], str(private_folder(folder) / "out"))
    command_done([*words, "--ledger", state.settings.ledger_place, "--name", name, "--quiet"], SECONDS)
    (folder / "command.txt").write_text(f"{_shown_command(order, name)}\n\n{python_words(order)}\n")
    return name


def _shown_command(order: Mapping[str, Any], out: str) -> str:
    return shlex.join(["leakcap", *command_words(order, f"table{Path(order['file']).suffix}", out)])


def _order(given: Mapping[str, str], columns: Sequence[str], kept: Upload) -> dict[str, Any]:
    held = held_in(kept)["columns"]
    known = {one["name"] for one in held}
    unit, fn = given.get("unit", ""), given.get("fn", "")
    if fn not in STATISTICS:
        raise Refusal(400, "Choose what to publish: averages, sums, medians or another of the list.")
    chosen = [one for one in columns if one in known and one != unit and "," not in one]
    if not chosen:
        raise Refusal(400, "Choose the columns that it is about.")
    success = number_in(given.get("cap", ""), "the cap, in per cent") / 100
    return {
        "file": str(kept.path),
        "fn": fn,
        "columns": chosen,
        "unit": unit if unit in known else None,
        "rows": max(1, int(number_in(given.get("rows") or "1", "the most rows of one person"))),
        "success": success,
        "bounds": _ranges(given, held, chosen),
    }


def _ranges(given: Mapping[str, str], held: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> dict[str, Any]:
    """Ranges for what differential privacy would cost; none unless every chosen column has one."""
    found = {}
    for at, one in enumerate(held):
        low, high = given.get(f"low{at}", "").strip(), given.get(f"high{at}", "").strip()
        if one["name"] in chosen and low and high:
            try:
                found[one["name"]] = (float(low), float(high))
            except ValueError:
                raise Refusal(400, f"Write two numbers for the range of {one['name']}, or none.") from None
    return found if len(found) == len(chosen) else {}


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
    kept = of_state(request).uploads.numbered(upload)
    held = held_in(kept)
    order = None if found is None else _order(given, columns, kept)
    shown = page(
        "publish_choose.html",
        visitor=who,
        title="Publish a table",
        upload=upload,
        rows=held["rows"],
        columns=held["columns"],
        chosen=set(columns),
        given={"fn": "mean", "cap": "60", "unit": "", "rows": "1", "name": "", **given},
        statistics=STATISTICS,
        measured=MEASURED,
        found=found,
        promises=_promises(found) if found else [],
        curve=_curve(found, number_in(given["cap"], "the cap") / 100) if found else "",
        command=""
        if order is None
        else shlex.join(["leakcap", *command_words(order, f"table{kept.path.suffix}", "out")]),
        python="" if order is None else python_words(order),
        notice=notice,
    )
    return HTML(shown, 400 if notice else 200)


def _promises(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            one["name"] + (" (this release)" if one["name"] == found["own"] else ""),
            share(one["total"]),
            share(one["before"]),
            share(one["noise"]),
            one["hides"],
        )
        for one in found["promises"]
    ]


def _curve(found: Mapping[str, Any], success: float) -> Markup:
    """Error of the first choice against the cap, and where the other promises lie at this cap."""
    caps, errors = zip(*found["curve"], strict=True)
    others = [(one["name"], one["total"]) for one in found["promises"] if one["name"] != found["own"]]
    top = 1.15 * max(min(max(errors), 4 * min(errors)), *(total for _, total in others if total < 4 * max(errors)), 0.0)
    chart = Chart(linear("right guesses at most, %", 50.0, 90.0), linear("error, % of the answer", 0.0, 100 * top))
    chart.line("bound", [100 * one for one in caps], [100 * min(one, top) for one in errors])
    for _, total in others:
        if total <= top:
            chart.cross("pool", 100 * success, 100 * total)
    own = dict(found["curve"]).get(success, errors[0])
    chart.diamond("person", 100 * success, 100 * min(own, top))
    words = "The line: this release at other caps. The diamond: at yours. Crosses: the other promises at yours."
    label = f"Curve of the error against the cap; at {bound(success)} it is {share(own)} of the answer."
    return captioned("What a cap costs", words, chart.svg(label))


def _folder(state: ServerState, name: str) -> Path:
    if name not in _finished(state):
        raise Refusal(404, NOT_THERE)
    return state.settings.home / "published" / name


def _finished(state: ServerState) -> list[str]:
    folder = state.settings.home / "published"
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(one.name for one in found if (one / "command.txt").is_file())
