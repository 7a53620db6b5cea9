"""What a page about an audit is made from, and how its findings belong together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from leakcap.audit.memorisation import MemorisationReport
from leakcap.audit.report import AuditReport
from leakcap.audit.verdicts import RECOGNITION, REFUTED, SHARE, UNBOUNDED, Finding

__all__ = ["NUMBERS", "groups", "is_share", "leading", "releases_needed", "surely_won", "things"]

NUMBERS = re.compile(r"\d[\d.,]*( ?%)?")


def is_share(one: Finding) -> bool:
    """A share of right guesses or of participants, from 0 to 1."""
    return one.kind in (SHARE, RECOGNITION)


def groups(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings that belong on one scale, under their question: those whose questions differ in numbers alone."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        found.setdefault((NUMBERS.sub("…", one.question), one.kind), []).append(one)
    return [_together(title, members) for (title, _), members in found.items()]


def _together(title: str, members: list[Finding]) -> tuple[str, list[Finding]]:
    """The same question side by side, in the order in which they were first asked."""
    order = list(dict.fromkeys(one.question for one in members))
    ranked = sorted(members, key=lambda one: order.index(one.question))
    return (title if len(order) > 1 else order[0]), ranked


def leading(audit: AuditReport) -> Finding | None:
    """What a reader should hear first.

    What is refuted; where nothing was promised, the surest win over guessing; otherwise the strongest attack on a
    person named in advance.
    """
    proved = [one for one in audit.findings if not one.heuristic]
    worst = [one for one in proved if one.verdict == REFUTED] or proved
    counted = [one for one in worst if is_share(one)] or worst
    if audit.verdict == UNBOUNDED:
        return max(counted, key=surely_won, default=None)
    promised = [one for one in counted if one.certified is not None] or counted
    plainest = [one for one in promised if one.named] or promised
    return max(plainest, key=_excess, default=None)


def surely_won(one: Finding) -> float:
    """Of what guessing leaves open, the part that is won, allowing for luck: 0 is nothing, 1 everything."""
    won = (one.interval[0] - one.prior) / max(1 - one.prior, 1e-12)
    return won if math.isfinite(won) else -math.inf


def _excess(one: Finding) -> float:
    over = one.measured - (one.prior if one.certified is None else one.certified)
    return over if math.isfinite(over) else -math.inf


def things(audit: AuditReport) -> str:
    """What was made to be attacked."""
    if isinstance(audit, MemorisationReport):
        return "canaries"
    return "models" if audit.target == "model" else "releases"


def releases_needed(audit: AuditReport, one: Finding) -> int | None:
    """Releases, in all, of an audit that would decide: those to learn from and to choose by included."""
    return audit.trials_needed(one)
