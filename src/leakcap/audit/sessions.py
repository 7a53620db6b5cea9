"""The audit of a session: its answered questions are asked again with other coins, and attacked. Custodian side."""

from __future__ import annotations

import time
from collections.abc import Callable

from leakcap.audit.attacks.answers import answers
from leakcap.audit.report import AuditReport
from leakcap.errors import InputError
from leakcap.sessions.desk import Desk
from leakcap.sessions.session import Session, desk_of

__all__ = ["session_attacked"]


def session_attacked(
    session: Session, trials: int, alpha: float, told: Callable[[int, int], None] = lambda done, of: None
) -> AuditReport:
    """What whoever knows everybody else can tell of one person from all answers of a session.

    Nothing is charged to the session's account, its ledger is read alone, and its coins are not looked at.

    Args:
        session: the custodian's.
        trials: how often everything is asked again.
        alpha: what a false refutation may cost.
        told: is told how many trials are done, of how many.
    """
    desk = desk_of(session)
    if isinstance(desk, Desk) and desk.analyst:
        raise InputError("an audit is for the custodian: open the session without analyst=")
    began = time.perf_counter()
    return AuditReport(
        findings=tuple(answers(session, trials, alpha, told)),
        certificate=session.certificate,
        trials=trials,
        alpha=alpha,
        target="session",
        seconds=time.perf_counter() - began,
    )
