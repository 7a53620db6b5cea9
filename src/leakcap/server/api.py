"""The JSON interface, for programs with a token: what a session offers, one route for each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from leakcap.custody.ledger.operations import verify
from leakcap.server.accounts import ANALYST
from leakcap.server.answering import answered
from leakcap.server.asking import SqlQuestion, StoredAnswer
from leakcap.server.callers import Visitor, of_state, program
from leakcap.server.datasets import schema_of
from leakcap.server.long_work import PieceOfWork
from leakcap.server.policies import Policy, set_policy
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.server.released import released_so_far

__all__ = ["REFUSED", "api"]

WORDS = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}
REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"description": "The question cannot be answered; why, and what to do.", "content": WORDS},
    401: {"description": "No token, or one that has ended.", "content": WORDS},
    403: {"description": "Not for this role, or not with this token.", "content": WORDS},
    404: {"description": "Nothing of this name that the token's account may see.", "content": WORDS},
    409: {"description": "Too little is left of a budget, or a key was used for another question.", "content": WORDS},
    413: {"description": "The request is too large.", "content": WORDS},
    422: {"description": "The request is not as described.", "content": WORDS},
    429: {"description": "Too many requests; when to try again.", "content": WORDS},
}
Program = Annotated[Visitor, Depends(program)]
api = APIRouter(prefix="/api", responses=REFUSED, tags=["api"])


class QuestionBody(BaseModel):
    """A question in SQL, and how it is paid for: by a share of the clock, or by the noise of its answer."""

    model_config = ConfigDict(extra="forbid", strict=True)
    sql: str = Field(min_length=1, max_length=100_000, examples=["select count(*) as n from patients"])
    share: float | None = Field(default=None, gt=0, le=1, description="of everybody's clock; 0.01 if left out")
    noise: float | None = Field(default=None, gt=0, description="deviation of the answer's noise, in place of share")
    rows: int | None = Field(default=None, ge=1, le=2**31, description="rows of one person that are enough")
    request: str | None = Field(
        default=None, min_length=1, max_length=200, description="a key of yours: asking again with it is free"
    )

    @property
    def question(self) -> SqlQuestion:
        return SqlQuestion(self.sql, self.share, self.noise, self.rows)


class AnalystBody(BaseModel):
    """An analyst, and the data sets that they may ask."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str = Field(min_length=1, max_length=40)
    password: str = Field(min_length=1, max_length=400)
    datasets: list[str] = Field(default_factory=list, max_length=1000)


class PolicyBody(BaseModel):
    """Limits inside the cap; amounts are shares of the clock with which a data set was opened."""

    model_config = ConfigDict(extra="forbid", strict=True)
    why: str = Field(min_length=1, max_length=400)
    analysts: dict[str, float | None] = Field(default_factory=dict, max_length=100)
    day: float | None = Field(default=None, ge=0, le=1)
    groups: dict[str, list[str]] | None = Field(default=None, max_length=100)


@api.get("/datasets")
def datasets(request: Request, visitor: Program) -> Any:
    """The data sets that may be asked; for a custodian, all of them."""
    state = of_state(request)
    names = state.datasets.names()
    if visitor.is_custodian:
        visitor.custodian()
    else:
        names = sorted(visitor.may_ask() & set(names))
    found = [state.datasets.named(name) for name in names]
    return {
        "datasets": [
            {"name": one.name, "about": one.about, "cap": one.cap.describe(), "design": one.design} for one in found
        ]
    }


@api.get("/datasets/{name}/schema")
def schema(name: str, request: Request, visitor: Program) -> Any:
    """Tables and columns, with the ranges and values that were declared."""
    visitor.analyst_of(name)
    return schema_of(of_state(request).datasets.named(name).catalog)


@api.get("/datasets/{name}/budget")
def budget(name: str, request: Request, visitor: Program) -> Any:
    """What is spent and what is left of the clock, by what was declared, and what the cap allows in the end."""
    spent, left = of_state(request).asking.standing(name, visitor.analyst_of(name))
    return {
        "spent": {"success": spent.success, "share": spent.share},
        "remaining": {"success": left.success, "share": left.share},
    }


@api.post("/datasets/{name}/preview")
def preview(name: str, body: QuestionBody, request: Request, visitor: Program) -> Any:
    """What a question would cost. Nothing is spent, and nothing of the data is in the answer."""
    state, analyst = of_state(request), visitor.analyst_of(name)
    visitor.paying()
    state.questions.take(analyst)
    found = state.asking.preview(name, analyst, body.question)
    state.audit_log.add(analyst, "previewed a question", name)
    if found is None:
        return {"free": True, "share": 0.0, "noise": [], "fits": True}
    return {"free": False, "share": found.share, "noise": found.noise.tolist(), "fits": bool(found.fits)}


@api.post("/datasets/{name}/ask")
def ask(name: str, body: QuestionBody, request: Request, visitor: Program) -> Response:
    """The answer to a question: charged once, and the same bytes whenever it is asked again."""
    found, again = answered(of_state(request), visitor, name, body.question, request=body.request)
    return _handed_out(name, found, again=again)


@api.get("/datasets/{name}/answers")
def answers(name: str, request: Request, visitor: Program) -> Any:
    """What was answered to those who share this account's clock."""
    past = of_state(request).asking.answers(name, visitor.analyst_of(name))
    return {
        "answers": [
            {
                "number": one.number,
                "question": one.question,
                "analyst": one.analyst,
                "share": one.share,
                "at": one.at,
                "numbers": list(one.numbers),
                "id": stored,
            }
            for one, stored in past
        ]
    }


@api.get("/datasets/{name}/answers/{answer}")
def answer(name: str, answer: str, request: Request, visitor: Program) -> Response:
    """A stored answer by its id."""
    found = of_state(request).asking.with_id(name, visitor.analyst_of(name), answer)
    return _handed_out(name, found, again=True)


@api.get("/datasets/{name}/certificate")
def certificate(name: str, request: Request, visitor: Program) -> Response:
    """What all answers together allow, those that are still to come included."""
    found = of_state(request).asking.certificate(name, visitor.analyst_of(name))
    return Response(found.to_json(), media_type="application/json")


@api.get("/ledger")
def ledger(request: Request, visitor: Program) -> Any:
    """Custodian: whether the ledger is whole, and what was found wrong."""
    visitor.custodian()
    found = verify(of_state(request).datasets.book)
    return {"whole": found.whole, "accounts": found.accounts, "entries": found.entries, "faults": list(found.faults)}


@api.get("/releases")
def releases(request: Request, visitor: Program) -> Any:
    """Custodian: everything that was released so far, of every data set, in order."""
    visitor.custodian()
    return {"releases": [_as_json(one) for one in released_so_far(of_state(request).datasets)]}


@api.get("/analysts")
def analysts(request: Request, visitor: Program) -> Any:
    """Custodian: all accounts."""
    visitor.custodian()
    return {
        "analysts": [
            {"name": one.name, "role": one.role, "datasets": sorted(one.datasets), "closed": one.closed}
            for one in of_state(request).accounts.all()
        ]
    }


@api.post("/analysts", status_code=201)
def add_analyst(body: AnalystBody, request: Request, visitor: Program) -> Any:
    """Custodian: open an account for an analyst."""
    who, state = visitor.custodian(), of_state(request)
    if not set(body.datasets) <= set(state.datasets.names()):
        raise Refusal(404, NOT_THERE)
    state.accounts.add(body.name, ANALYST, body.password)
    state.accounts.allow(body.name, frozenset(body.datasets))
    state.audit_log.add(who, "opened an account", body.name)
    return {"name": body.name, "datasets": sorted(body.datasets)}


@api.get("/datasets/{name}/policies")
def policies(name: str, request: Request, visitor: Program) -> Any:
    """Custodian: budgets of analysts and days, and groups that share a clock."""
    visitor.custodian()
    state = of_state(request)
    state.datasets.named(name)
    return _as_json(Policy.of(state.datasets.account(name)))


@api.post("/datasets/{name}/policies")
def change_policies(name: str, body: PolicyBody, request: Request, visitor: Program) -> Any:
    """Custodian: set budgets and groups; who and why are written down in the ledger."""
    who, state = visitor.custodian(), of_state(request)
    state.datasets.named(name)
    account = state.datasets.account(name)
    set_policy(account, who=who, why=body.why, analysts=body.analysts, day=body.day, groups=body.groups)
    state.datasets.close_sessions(name)
    state.audit_log.add(who, "changed the policies", name)
    return _as_json(Policy.of(account))


@api.get("/events")
def events(request: Request, visitor: Program, before: int | None = None) -> Any:
    """Custodian: the audit log, newest first."""
    visitor.custodian()
    found = of_state(request).audit_log.latest(None if before is None else min(max(before, 0), 2**62))
    return {"events": [_as_json(one) | {"at": datetime.fromtimestamp(one.at, UTC).isoformat()} for one in found]}


@api.get("/work")
def work(request: Request, visitor: Program) -> Any:
    """Custodian: long work, such as registering and publishing, that is done now or was lately; newest first."""
    visitor.custodian()
    return {"work": [_work_as_json(one) for one in of_state(request).long_work.all()]}


@api.get("/work/{number}")
def piece_of_work(number: str, request: Request, visitor: Program) -> Any:
    """Custodian: how far a piece of work is, or what became of it."""
    visitor.custodian()
    return _work_as_json(of_state(request).long_work.numbered(number))


@api.post("/work/{number}/stop")
def stop_work(number: str, request: Request, visitor: Program) -> Any:
    """Custodian: stop a piece of work; nothing of it is kept. One that is over stays as it is."""
    who, state = visitor.custodian(), of_state(request)
    found = state.long_work.stop(number)
    state.audit_log.add(who, "stopped work", found.about, found.outcome)
    return _work_as_json(found)


def _work_as_json(one: PieceOfWork) -> dict[str, Any]:
    ended = None if one.ended is None else datetime.fromtimestamp(one.ended, UTC).isoformat()
    return _as_json(one) | {"began": datetime.fromtimestamp(one.began, UTC).isoformat(), "ended": ended}


def _handed_out(name: str, found: StoredAnswer, *, again: bool) -> Response:
    where = {"Location": f"/api/datasets/{name}/answers/{found.id}", "Leakcap-Stored": "yes" if again else "no"}
    return Response(found.body, media_type="application/json", headers=where)


def _as_json(record: Any) -> dict[str, Any]:
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in ((name, getattr(record, name)) for name in record.__dataclass_fields__)
    }
