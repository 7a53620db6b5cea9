"""Pages for analysts: signing in, the console, answers so far, certificates and tokens."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.errors import LeakcapError
from leakcap.report.ledger.spending import bar
from leakcap.report.sessions.page import session_facts, session_page
from leakcap.server.answer_tables import answer_tables, plain_table
from leakcap.server.answering import answered
from leakcap.server.asking import SqlQuestion, StoredAnswer
from leakcap.server.callers import Visitor, address, cookie_name, of_state
from leakcap.server.datasets import schema_of
from leakcap.server.form_fields import Browser, OwnForm, form_of, own_address
from leakcap.server.form_questions import COMPARED, FILTERS, KINDS, MEASURES, as_sql, choices_of
from leakcap.server.price_words import ANSWERED, Gauge, price_words
from leakcap.server.refusals import Refusal, as_refusal
from leakcap.server.released import asked_words
from leakcap.server.show import page, when
from leakcap.server.state import ServerState
from leakcap.server.tour import DOOR
from leakcap.server.written_numbers import number_in

__all__ = ["pages"]

pages = APIRouter(include_in_schema=False)
WRONG = "This name and password do not belong together: try again, or ask the custodian for a new password."
DEFAULT_SHARE = 0.05
EMPTY_FORM: dict[str, Any] = {
    "way": "form",
    "sql": "",
    "share": f"{100 * DEFAULT_SHARE:g}",
    "table": "",
    "measure": "count",
    "column": "",
    "group1": "",
    "group2": "",
    **{
        f"{part}{at}": ("=" if part == "how" else "") for at in range(1, FILTERS + 1) for part in ("if", "how", "value")
    },
}
HTML = HTMLResponse


@pages.get("/")
def start(request: Request, who: Browser) -> Response:
    """Where somebody begins who is signed in."""
    return RedirectResponse("/custody" if who.is_custodian else "/data", 303)


@pages.get("/login")
def login_page(request: Request, then: str = "/") -> Response:
    """The form to sign in."""
    return _login(request, then, "")


@pages.post("/login")
def login(request: Request, form: Annotated[Any, Depends(form_of)]) -> Response:
    """Sign in."""
    return _sign_in(request, form)


@pages.post("/logout")
def logout(request: Request, who: Browser, form: OwnForm) -> Response:
    """Sign out: the cookie is worth nothing afterwards."""
    state = of_state(request)
    state.signing_in.end(request.cookies.get(cookie_name(state), ""))
    state.audit_log.add(who.name, "signed out")
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(cookie_name(state), path="/")
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'
    return answer


@pages.get("/data")
def data_sets(request: Request, who: Browser) -> Response:
    """The data sets of an analyst, with what is left of each."""
    _analysts_only(who)
    state = of_state(request)
    found = [state.datasets.named(name) for name in sorted(who.may_ask())]
    shown = [{"name": one.name, "about": one.about, "gauge": _gauge(state, one.name, who.name)} for one in found]
    return HTML(page("data.html", visitor=who, title="Your data", sets=shown))


@pages.get("/data/{name}")
def console(name: str, request: Request, who: Browser) -> Response:
    """Where questions are asked."""
    who.analyst_of(name)
    return _console(request, who, name, EMPTY_FORM)


@pages.post("/data/{name}/preview")
def preview(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """The price of a question, before it is paid."""
    who.analyst_of(name)
    return _preview(request, who, name, form)


@pages.post("/data/{name}/ask")
def ask(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Ask and pay; the answer is on a page of its own."""
    who.analyst_of(name)
    return _ask(request, who, name, form)


@pages.get("/data/{name}/answers")
def answers(name: str, request: Request, who: Browser) -> Response:
    """Everything answered so far to those who share a clock."""
    state, analyst = of_state(request), who.analyst_of(name)
    found = list(enumerate(state.asking.answers(name, analyst), start=1))
    past = [
        (
            number,
            asked_words(one.question),
            one.analyst,
            f"{100 * one.share:.3g} %",
            one.at[:16].replace("T", " "),
            id,
        )
        for number, (one, id) in reversed(found)
    ]
    return HTML(page("answers.html", visitor=who, title=f"Answers about {name}", name=name, past=past))


@pages.get("/data/{name}/answers/{answer}")
def answer(name: str, answer: str, request: Request, who: Browser) -> Response:
    """One answer, as tables and bars."""
    state, analyst = of_state(request), who.analyst_of(name)
    found = state.asking.with_id(name, analyst, answer)
    return HTML(_answer_page(state, who, name, found))


@pages.get("/data/{name}/answers/{answer}/table.csv")
def answer_file(name: str, answer: str, request: Request, who: Browser) -> Response:
    """The same as a file."""
    facts = of_state(request).asking.with_id(name, who.analyst_of(name), answer).facts
    text = io.StringIO(newline="")
    csv.writer(text).writerows([[_harmless(one) for one in row] for row in (facts["columns"], *facts["rows"])])
    held = {"Content-Disposition": 'attachment; filename="answer.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=held)


@pages.get("/data/{name}/certificate")
def certificate(name: str, request: Request, who: Browser) -> Response:
    """What all answers together allow."""
    found = of_state(request).asking.certificate(name, who.analyst_of(name))
    return HTML(
        page("certificate.html", visitor=who, name=name, **(session_facts(found) | {"title": f"Certificate of {name}"}))
    )


@pages.get("/data/{name}/certificate/file")
def certificate_file(name: str, request: Request, who: Browser) -> Response:
    """The same as a page that stands alone, to be passed on."""
    found = of_state(request).asking.certificate(name, who.analyst_of(name))
    held = {"Content-Disposition": 'attachment; filename="certificate.html"'}
    return Response(session_page(found), media_type="text/html; charset=utf-8", headers=held)


@pages.get("/tokens")
def tokens(request: Request, who: Browser) -> Response:
    """Tokens for programs."""
    return _tokens(request, who)


@pages.post("/tokens")
def make_token(request: Request, who: Browser, form: OwnForm) -> Response:
    """A new token: it is shown once."""
    state = of_state(request)
    chosen = [str(one) for one in form.getlist("dataset")]
    if who.is_custodian and (chosen or form.get("stored")):
        raise Refusal(
            400, "A custodian's token is for everything: make one for single data sets with an analyst's account."
        )
    if not set(chosen) <= who.may_ask():
        raise Refusal(400, "Choose data sets of your list.")
    text = state.tokens.make(
        who.name,
        str(form.get("label", "")).strip(),
        days=number_in(str(form.get("days", "")), "how many days the token lasts"),
        datasets=chosen or None,
        stored_only=bool(form.get("stored")),
    )
    state.audit_log.add(who.name, "made a token", outcome="stored answers only" if form.get("stored") else "done")
    return _tokens(request, who, text)


@pages.post("/tokens/revoke")
def revoke_token(request: Request, who: Browser, form: OwnForm) -> Response:
    """End a token at once."""
    state = of_state(request)
    number = str(form.get("number", ""))
    if not (number.isascii() and number.isdigit()) or not state.tokens.revoke(who.name, int(number[:15])):
        raise Refusal(404, "You have no such token: look at your list.")
    state.audit_log.add(who.name, "revoked a token", number[:15])
    return RedirectResponse("/tokens", 303)


def _analysts_only(who: Visitor) -> None:
    if who.is_custodian:
        raise Refusal(403, "Questions are asked with an analyst's account: open one on the page of analysts.")


def _login(request: Request, then: str, notice: str, status: int = 200) -> Response:
    door = DOOR if of_state(request).settings.demo else None
    return HTML(page("login.html", title="Sign in", then=own_address(then), notice=notice, door=door), status)


def _sign_in(request: Request, form: Any) -> Response:
    state, name, where = of_state(request), str(form.get("name", "")).strip().lower()[:80], address(request)
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none"):
        raise Refusal(403, "Sign in on the page of this server.")
    state.by_address.take(where)
    state.failures_of_address.refuse(where)
    state.failures.count(name)
    state.failures_of_address.count(where)
    account = state.accounts.with_password(name, str(form.get("password", "")))
    if account is None:
        known = name if state.accounts.named(name) else "(unknown)"  # people type passwords into the wrong field
        state.audit_log.add("", "tried to sign in", known, "refused")
        return _login(request, str(form.get("then", "/")), WRONG, 401)
    state.failures.forget(name)
    state.failures_of_address.take_back(where)
    state.audit_log.add(name, "signed in")
    answer = RedirectResponse(own_address(str(form.get("then", "/"))), 303)
    answer.set_cookie(
        cookie_name(state),
        state.signing_in.begin(name),
        max_age=int(state.settings.limits.signed_in),
        path="/",
        secure=state.settings.encrypted,
        httponly=True,
        samesite="strict",
    )
    return answer


def _console(request: Request, who: Visitor, name: str, form: Mapping[str, Any], **more: Any) -> Response:
    state = of_state(request)
    known = state.datasets.named(name)
    schema = schema_of(known.catalog)
    filled = EMPTY_FORM | {key: str(form.get(key, value)) for key, value in EMPTY_FORM.items()}
    shown = page(
        "console.html",
        **({"price": None, "asked": None, "notice": ""} | more),
        visitor=who,
        title=name,
        name=name,
        about=known.about,
        gauge=_gauge(state, name, who.name),
        form=filled,
        request_key=secrets.token_urlsafe(16),
        schema=schema,
        choices=choices_of(known.catalog),
        measures=MEASURES,
        compared=COMPARED,
        kinds=KINDS,
        filters=range(1, FILTERS + 1),
    )
    return HTML(shown, 400 if more.get("notice") else 200)


def _gauge(state: ServerState, name: str, analyst: str) -> Gauge:
    spent, left = state.asking.standing(name, analyst)
    whole = spent.share + left.share
    return Gauge(left.share, whole, left.success, bar(left.share, whole, whole or 1.0))


def _question(request: Request, name: str, form: Any) -> SqlQuestion:
    share = number_in(str(form.get("share", "")), "the share that the question may take, in per cent") / 100
    if form.get("way") == "sql":
        return SqlQuestion(str(form.get("sql", "")), share)
    chosen = {
        "table": form.get("table"),
        "measure": form.get("measure"),
        "column": form.get("column"),
        "groups": [form.get("group1"), form.get("group2")],
        "filters": [
            tuple(str(form.get(f"{part}{at}", "")) for part in ("if", "how", "value")) for at in range(1, FILTERS + 1)
        ],
    }
    return SqlQuestion(as_sql(of_state(request).datasets.named(name).catalog, chosen), share)


def _preview(request: Request, who: Visitor, name: str, form: Any) -> Response:
    state = of_state(request)
    try:
        question = _question(request, name, form)
        if state.asking.stored(name, who.name, question):
            return _console(request, who, name, form, price=ANSWERED, asked=question)
        state.questions.take(who.name)
        found = state.asking.preview(name, who.name, question)
    except LeakcapError as error:
        return _console(request, who, name, form, notice=as_refusal(error).words)
    state.audit_log.add(who.name, "previewed a question", name)
    price = price_words(found, _gauge(state, name, who.name))
    return _console(request, who, name, form, price=price, asked=question)


def _ask(request: Request, who: Visitor, name: str, form: Any) -> Response:
    state = of_state(request)
    try:
        question = _question(request, name, form)
        stored, _ = answered(state, who, name, question, request=str(form.get("request", "")) or None)
    except LeakcapError as error:
        return _console(request, who, name, form, notice=as_refusal(error).words)
    return RedirectResponse(f"/data/{name}/answers/{stored.id}", 303)


def _answer_page(state: ServerState, who: Visitor, name: str, found: StoredAnswer) -> str:
    facts = found.facts
    asked = next((asked_words(one.question) for one, id in state.asking.answers(name, who.name) if id == found.id), "")
    heads, rows = plain_table(facts)
    return page(
        "answer.html",
        visitor=who,
        title=f"An answer about {name}",
        name=name,
        id=found.id,
        asked=asked,
        at=when(found.at),
        share=f"{100 * facts['share']:.3g} %",
        whole=facts["whole"],
        halves=state.datasets.named(name).design != "pool",
        tables=answer_tables(facts),
        heads=heads,
        rows=rows,
        numbers=facts["numbers"],
        gauge=_gauge(state, name, who.name),
    )


def _tokens(request: Request, who: Visitor, made: str = "") -> Response:
    state = of_state(request)
    own = [
        (
            one.number,
            one.label,
            sorted(one.datasets) if one.datasets is not None else None,
            one.stored_only,
            when(one.until),
        )
        for one in state.tokens.of(who.name)
    ]
    shown = page(
        "tokens.html",
        visitor=who,
        title="Your tokens",
        own=own,
        made=made,
        sets=sorted(who.may_ask()),
        most_days=state.settings.limits.token_days,
        here=str(request.base_url).rstrip("/"),
    )
    return HTML(shown)


def _harmless(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets a quotation mark before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" else value
