"""The two columns of an audit: what was promised, and what the strongest attack reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leakcap.audit.report import AuditReport
from leakcap.audit.verdicts import CHECK, HOLDS, INCONCLUSIVE, REFUTED, UNBOUNDED, Finding
from leakcap.report.audit.audited import groups, is_share
from leakcap.report.audit.pictures import chip
from leakcap.report.audit.words import spaced
from leakcap.report.html import Markup, markup, shortened
from leakcap.report.numbers import UNBROKEN, at_most, bound, neat, unbroken

__all__ = ["column_facts"]

MOST_QUESTIONS = 5
WORST = (REFUTED, INCONCLUSIVE, HOLDS, UNBOUNDED)  # what a reader should hear first
Row = tuple[Markup, str, str, Markup]


def column_facts(audit: AuditReport) -> dict[str, Any]:
    """A row for each question, the plainest first: the limit, and what came nearest to it or went beyond."""
    asked = [members for _, members in groups(one for one in audit.findings if one.kind != CHECK and not one.heuristic)]
    ranked = sorted(asked, key=lambda members: (min(map(_badness, members)), not any(one.named for one in members)))
    checks = [one for one in audit.findings if one.kind == CHECK]
    rows = [_asked(members) for members in ranked[:MOST_QUESTIONS]] + ([_checked(checks)] if checks else [])
    return {
        "column_heads": ("What was guessed", "Promised, at most", "Reached by the best attack"),
        "columns": rows,
        "further": _further(ranked[MOST_QUESTIONS:]),
    }


def _further(left: Sequence[Sequence[Finding]]) -> str:
    """How many questions are left to the whole table, and whether one of them is worse than it should be."""
    if not left:
        return ""
    open_or_worse = sum(min(map(_badness, members)) <= WORST.index(INCONCLUSIVE) for members in left)
    told = f"{open_or_worse} of them refuted or undecided" if open_or_worse else "none of them refuted or undecided"
    return f"{len(left)} more under “All figures”, {told}."


def _badness(one: Finding) -> int:
    return WORST.index(one.verdict)


def _asked(members: Sequence[Finding]) -> Row:
    """The finding that is nearest to its limit, or beyond it; where there is none, the largest."""
    worst = [one for one in members if _badness(one) == min(map(_badness, members))]
    best = max(worst, key=_nearness)
    what = spaced(best.question[:1].upper() + best.question[1:])
    limit = "nothing" if best.certified is None else _figure(best, best.certified, upwards=True)
    guessing = "" if math.isnan(best.prior) or not is_share(best) else f"by guessing alone {100 * best.prior:.3g} %"
    named = markup("{} <small>{}</small>", shortened(what), unbroken(guessing)) if guessing else shortened(what)
    return named, limit, _figure(best, best.measured) + _margin(best), chip(best.verdict)


def _margin(one: Finding) -> str:
    """Of what is undecided: above the limit or not, chance explains it."""
    if one.verdict != INCONCLUSIVE or not is_share(one):
        return ""
    low, high = one.interval
    return f" (by chance {100 * low:.2f} to {100 * high:.2f})" if math.isfinite(low) and math.isfinite(high) else ""


def _nearness(one: Finding) -> float:
    over = one.measured - (0.0 if one.certified is None else one.certified)
    return over if math.isfinite(over) else -math.inf


def _figure(one: Finding, value: float, upwards: bool = False) -> str:
    if not is_share(one):
        return at_most(value) if upwards else neat(value)
    return bound(value) if upwards else f"{100 * value:.2f}{UNBROKEN}%"


def _checked(checks: Sequence[Finding]) -> Row:
    passed = sum(one.verdict == HOLDS for one in checks)
    told = min(checks, key=_badness)
    return (
        shortened("Checks of the noise and of the secret"),
        "all passed",
        f"{passed} of {len(checks)} passed",
        chip(told.verdict),
    )
