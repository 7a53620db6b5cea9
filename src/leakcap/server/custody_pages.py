"""Pages for custodians: data sets and their ledger, policies, analysts, what was released, and the audit log."""

from __future__ import annotations

import csv
import io
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from leakcap.report.ledger.page import ledger_facts, ledger_page
from leakcap.report.ledger.spending import bar
from leakcap.report.ledger.words import taken
from leakcap.report.numbers import unbroken
from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.callers import Visitor, of_state
from leakcap.server.form_fields import Browser, OwnForm
from leakcap.server.passwords import made_password
from leakcap.server.policies import Policy, set_policy
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.server.released import released_so_far
from leakcap.server.show import page, when
from leakcap.server.written_numbers import share_in
from leakcap.sessions.overview import overview

__all__ = ["custody"]

custody = APIRouter(prefix="/custody", include_in_schema=False)
HTML = HTMLResponse


@custody.get("")
def data_sets(request: Request, who: Browser) -> Response:
    """Every data set with what was taken, and whether the ledger is whole."""
    who.custodian()
    state = of_state(request)
    record = overview(state.settings.ledger_place)
    by_name = {one.standing.name: one for one in record.accounts}
    shown = []
    for known in map(state.datasets.named, state.datasets.names()):
        account = by_name.get(known.name)
        spent = 0.0 if account is None else max(account.by_group.values(), default=0.0)
        whole = 1.0 if account is None else account.whole or 1.0
        shown.append(
            {
                "name": known.name,
                "about": known.about,
                "cap": unbroken(known.cap.describe()),
                "answers": 0 if account is None else len(account.answers),
                "taken": taken(min(1.0, spent / whole)),
                "bar": bar(spent, whole, max(spent, whole)),
            }
        )
    facts = ledger_facts(record)
    return HTML(
        page("custody.html", visitor=who, title="Data sets", sets=shown, whole=facts["whole"], findings=record.findings)
    )


@custody.get("/data/{name}")
def data_set(name: str, request: Request, who: Browser) -> Response:
    """One data set: what was asked and what it took, what registering changed, and its policies."""
    who.custodian()
    return _data_set(request, who, name)


@custody.get("/data/{name}/ledger")
def ledger_file(name: str, request: Request, who: Browser) -> Response:
    """Its page of the ledger, as a file that stands alone."""
    who.custodian()
    state = of_state(request)
    state.datasets.named(name)
    held = {"Content-Disposition": f'attachment; filename="ledger-{name}.html"'}
    text = ledger_page(overview(state.settings.ledger_place, name))
    return Response(text, media_type="text/html; charset=utf-8", headers=held)


@custody.post("/data/{name}/policies")
def change_policies(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Set what an analyst or a day may use, or make a group with a clock of its own."""
    custodian, state = who.custodian(), of_state(request)
    state.datasets.named(name)
    account = state.datasets.account(name)
    analyst, group = str(form.get("analyst", "")).strip(), str(form.get("group", "")).strip()
    groups: dict[str, list[str]] | None = None
    if group:
        members = [one for one in str(form.get("members", "")).replace(",", " ").split() if one]
        groups = {known: list(who) for known, who in Policy.of(account).groups.items()}
        groups[group] = sorted({*groups.get(group, []), *members})
    set_policy(
        account,
        who=custodian,
        why=str(form.get("why", "")).strip(),
        analysts={analyst: share_in(str(form.get("share", "")), "what the analyst may use")} if analyst else None,
        day=share_in(str(form.get("day", "")), "what a day may use"),
        groups=groups,
    )
    state.datasets.close_sessions(name)
    state.audit_log.add(custodian, "changed the policies", name)
    return RedirectResponse(f"/custody/data/{name}#policies", 303)


@custody.get("/released")
def released(request: Request, who: Browser) -> Response:
    """Everything that was released so far."""
    who.custodian()
    state = of_state(request)
    found = released_so_far(state.datasets)
    caps = [
        (one.name, unbroken(one.cap.describe()), *_taken([line.share for line in found if line.dataset == one.name]))
        for one in map(state.datasets.named, state.datasets.names())
    ]
    record = overview(state.settings.ledger_place)
    others = sorted({one.dataset for one in found} - {one[0] for one in caps})
    allows = {one.standing.name: unbroken(one.words) for one in record.accounts}
    rows = [
        (
            one.question,
            one.dataset,
            one.who or "custodian",
            one.at[:16].replace("T", " "),
            unbroken(f"{100 * one.share:.3g} %"),
        )
        for one in found
    ]
    return HTML(
        page(
            "released.html",
            visitor=who,
            title="Everything released so far",
            rows=rows,
            caps=caps,
            others=[(name, allows[name]) for name in others],
            whole=ledger_facts(record)["whole"],
            findings=record.findings,
            made=when(time.time()),
        )
    )


@custody.get("/released.csv")
def released_file(request: Request, who: Browser) -> Response:
    """The same as a file."""
    who.custodian()
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("data set", "number", "when (UTC)", "asked by", "share of the clock", "numbers", "question"))
    for one in released_so_far(of_state(request).datasets):
        writer.writerow((one.dataset, one.number, one.at, one.who, one.share, one.numbers, f" {one.question}"))
    held = {"Content-Disposition": 'attachment; filename="released.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=held)


@custody.get("/analysts")
def analysts(request: Request, who: Browser) -> Response:
    """Accounts, and what each may ask."""
    who.custodian()
    return _analysts(request, who)


@custody.post("/analysts")
def add_analyst(request: Request, who: Browser, form: OwnForm) -> Response:
    """Open an account; its password is shown once."""
    custodian, state = who.custodian(), of_state(request)
    name, password = str(form.get("name", "")).strip(), made_password()
    role = CUSTODIAN if form.get("role") == CUSTODIAN else ANALYST
    chosen = frozenset(str(one) for one in form.getlist("dataset"))
    if not chosen <= set(state.datasets.names()):
        raise Refusal(404, NOT_THERE)
    state.accounts.add(name, role, password)
    state.accounts.allow(name, chosen if role == ANALYST else frozenset())
    state.audit_log.add(custodian, "opened an account", name)
    return _analysts(request, who, made=(name, password))


@custody.post("/analysts/{name}")
def change_analyst(name: str, request: Request, who: Browser, form: OwnForm) -> Response:
    """Say what an analyst may ask, give a new password, or close the account."""
    custodian, state = who.custodian(), of_state(request)
    account, what = state.accounts.named(name), str(form.get("what", ""))
    if account is None or account.closed:
        raise Refusal(404, NOT_THERE)
    if what == "close":
        if name == custodian:
            raise Refusal(400, "This is your own account: another custodian can close it.")
        state.accounts.close(name)
        state.audit_log.add(custodian, "closed an account", name)
    elif what == "password":
        password = made_password()
        state.accounts.renew(name, password)
        state.audit_log.add(custodian, "gave a new password", name)
        return _analysts(request, who, made=(name, password))
    elif what == "allow" and account.role == ANALYST:
        state.accounts.allow(name, frozenset(str(one) for one in form.getlist("dataset")))
        state.audit_log.add(custodian, "changed what may be asked", name)
    else:
        raise Refusal(400, "Choose what to change: the data sets, the password, or that the account is closed.")
    return RedirectResponse("/custody/analysts", 303)


@custody.get("/events")
def events(request: Request, who: Browser, before: int | None = None) -> Response:
    """The audit log."""
    who.custodian()
    found = of_state(request).audit_log.latest(None if before is None else min(max(before, 0), 2**62))
    rows = [(one.what, one.who or "nobody signed in", one.about, one.outcome, when(one.at)) for one in found]
    earlier = found[-1].number if found and found[-1].number > 1 else None
    return HTML(page("events.html", visitor=who, title="Audit log", rows=rows, earlier=earlier))


def _data_set(request: Request, who: Visitor, name: str) -> Response:
    state = of_state(request)
    known = state.datasets.named(name)
    facts: dict[str, Any] = ledger_facts(overview(state.settings.ledger_place, name))
    policy = Policy.of(state.datasets.account(name))
    shown = page(
        "custody_data.html",
        **(facts | {"title": name, "visitor": who}),
        sub="h2",
        one=facts["accounts"][0],
        about=known.about,
        report=known.catalog.report,
        policy=policy,
        asking=[one.name for one in state.accounts.all() if name in one.datasets and not one.closed],
    )
    return HTML(shown)


def _taken(shares: list[float]) -> tuple[str, str]:
    many = f"{len(shares)} answer{'' if len(shares) == 1 else 's'}"
    return many, unbroken(f"{100 * sum(shares):.3g} %")


def _analysts(request: Request, who: Visitor, made: tuple[str, str] | None = None) -> Response:
    state = of_state(request)
    shown = page(
        "analysts.html",
        visitor=who,
        title="Analysts",
        accounts=state.accounts.all(),
        sets=state.datasets.names(),
        made=made,
    )
    return HTML(shown)
