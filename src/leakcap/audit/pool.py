"""The audit of a release under a pool cap: whoever knows everybody else looks for one person in it. Custodian side."""

from __future__ import annotations

import time

from leakcap.audit.attacks.in_the_data import in_the_data
from leakcap.audit.report import AuditReport
from leakcap.audit.sessions import MIN_TRIALS
from leakcap.ground import checks
from leakcap.planning.plans import Plan

__all__ = ["pool_attacked"]


def pool_attacked(plan: Plan, trials: int, alpha: float) -> AuditReport:
    """What releases of a plan tell of whether one person is in the data, everybody else being known.

    Args:
        plan: of sums over everybody.
        trials: number of releases for each person that is looked for.
        alpha: what a false refutation may cost.
    """
    checks.count(at_least=MIN_TRIALS, trials=trials)
    began = time.perf_counter()
    return AuditReport(
        findings=tuple(in_the_data(plan, trials, alpha)),
        certificate=plan.certificate,
        trials=trials,
        alpha=alpha,
        target="plan",
        seconds=time.perf_counter() - began,
    )
