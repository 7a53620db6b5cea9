"""The audit of what is made of answers: they are asked for again with other coins, and attacked. Custodian side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from leakcap.audit.attacks.answers import answers
from leakcap.audit.attacks.votes import votes
from leakcap.audit.report import AuditReport
from leakcap.errors import InputError
from leakcap.estimators.distilled import Distilled
from leakcap.ground import checks
from leakcap.sessions.desk import Desk
from leakcap.sessions.session import Session, desk_of

__all__ = ["MIN_TRIALS", "session_attacked", "votes_attacked"]

MIN_TRIALS = 200
Told = Callable[[int, int], None]


def told_nobody(done: int, of: int) -> None:
    """Nobody looks on."""


def session_attacked(session: Session, trials: int, alpha: float, told: Told = told_nobody) -> AuditReport:
    """What whoever knows everybody else can tell of one person from all answers of a session.

    Nothing is charged to the session's account, its ledger is read alone, and its coins are not looked at.

    Args:
        session: the custodian's.
        trials: how often everything is asked again.
        alpha: what a false refutation may cost.
        told: is told how many trials are done, of how many.
    """
    checks.count(at_least=MIN_TRIALS, trials=trials)
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


def votes_attacked(
    model: Distilled, data: tuple[Any, ...], trials: int, alpha: float, told: Told = told_nobody
) -> AuditReport:
    """What whoever knows everybody else can tell of one person from the votes that a distilled model released.

    No ledger is opened, and the coins of the release are not looked at.

    Args:
        model: fitted.
        data: the rows and classes it was fitted to, and whose rows they are if it was told.
        trials: how often the teachers are asked again.
        alpha: what a false refutation may cost.
        told: is told how many trials are done, of how many.
    """
    checks.count(at_least=MIN_TRIALS, trials=trials)
    began = time.perf_counter()
    found = votes(model, data, trials, alpha, told=told)
    return AuditReport(
        findings=(found,),
        certificate=model.certificate_,
        trials=trials,
        alpha=alpha,
        target=type(model).__name__,
        seconds=time.perf_counter() - began,
    )
