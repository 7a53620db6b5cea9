"""One question from whichever door: stored answers are free, the rest is allowed, counted, charged and written down."""

from __future__ import annotations

from leakcap.server.asking import STORED_ONLY, SqlQuestion, StoredAnswer
from leakcap.server.callers import Visitor
from leakcap.server.refusals import Refusal
from leakcap.server.state import ServerState

__all__ = ["answered"]


def answered(
    state: ServerState, visitor: Visitor, dataset: str, question: SqlQuestion, *, request: str | None = None
) -> tuple[StoredAnswer, bool]:
    """The answer, and whether it was stored before. Of a refusal nothing is charged, and it stands in the audit log."""
    analyst = visitor.analyst_of(dataset)
    stored = state.asking.stored(dataset, analyst, question, request)
    if stored is not None:
        return stored, True
    if visitor.stored_only:
        raise Refusal(403, STORED_ONLY)
    state.questions.take(analyst)
    try:
        found = state.asking.answer(dataset, analyst, question, request)
    except Exception:
        state.audit_log.add(analyst, "asked a question", dataset, "refused")
        raise
    state.audit_log.add(analyst, "asked a question", dataset)
    return found, False
