"""What a page about an audit is made from, and how its findings belong together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leakcap.certificate import Certificate

__all__ = [
    "HOLDS",
    "INCONCLUSIVE",
    "REFUTED",
    "UNBOUNDED",
    "Audited",
    "Found",
    "bearing",
    "groups",
    "is_check",
    "is_recognition",
    "is_share",
    "leading",
    "releases_needed",
    "surely_won",
    "things",
]

REFUTED, HOLDS, INCONCLUSIVE, UNBOUNDED = "refuted", "holds", "inconclusive", "no promise"
NAMED = "whether the most exposed"  # how the plainest of all questions begins
RECOGNISED = "recognising a participant at"
NUMBERS = re.compile(r"\d[\d.,]*( ?%)?")


class Found(Protocol):
    """One question, one attack: what was measured, beside what was promised."""

    @property
    def attack(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def measured(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...
    @property
    def prior(self) -> float: ...
    @property
    def certified(self) -> float | None: ...
    @property
    def p_value(self) -> float: ...
    @property
    def verdict(self) -> str: ...
    @property
    def trials(self) -> int: ...
    @property
    def needed(self) -> int | None: ...


class Audited(Protocol):
    """All findings about one target."""

    @property
    def findings(self) -> Sequence[Found]: ...
    @property
    def certificate(self) -> Certificate | None: ...
    @property
    def trials(self) -> int: ...
    @property
    def alpha(self) -> float: ...
    @property
    def target(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def exposed(self) -> Sequence[int]: ...


def bearing(audit: Audited) -> str:
    """The verdict on all of it; `no promise` where there was nothing to keep."""
    verdicts = {one.verdict for one in audit.findings}
    return next((one for one in (REFUTED, INCONCLUSIVE, HOLDS) if one in verdicts), UNBOUNDED)


def is_check(one: Found) -> bool:
    """A look at the mechanism rather than a guess: there is no interval."""
    return math.isnan(one.interval[0])


def is_share(one: Found) -> bool:
    """A share of right guesses, from 0 to 1."""
    return not is_check(one) and "epsilon" not in one.question.lower() and max(one.interval) <= 1


def is_recognition(one: Found) -> bool:
    """A share of participants recognised at a share of false alarms, which is its prior."""
    return is_share(one) and one.question.startswith(RECOGNISED)


def groups(findings: Iterable[Found]) -> list[tuple[str, list[Found]]]:
    """Findings that belong on one scale, under their question: those whose questions differ in numbers alone."""
    found: dict[tuple[str, bool], list[Found]] = {}
    for one in findings:
        found.setdefault((NUMBERS.sub("…", one.question), is_share(one)), []).append(one)
    return [_together(title, members) for (title, _), members in found.items()]


def _together(title: str, members: list[Found]) -> tuple[str, list[Found]]:
    """The same question side by side, in the order in which they were first asked."""
    order = list(dict.fromkeys(one.question for one in members))
    ranked = sorted(members, key=lambda one: order.index(one.question))
    return (title if len(order) > 1 else order[0]), ranked


def leading(audit: Audited) -> Found | None:
    """What a reader should hear first.

    What is refuted; where nothing was promised, the surest win over guessing; otherwise the strongest attack on a
    person named in advance.
    """
    worst = [one for one in audit.findings if one.verdict == REFUTED] or list(audit.findings)
    counted = [one for one in worst if is_share(one)] or worst
    if bearing(audit) == UNBOUNDED:
        return max(counted, key=surely_won, default=None)
    promised = [one for one in counted if one.certified is not None] or counted
    plainest = [one for one in promised if one.question.startswith(NAMED)] or promised
    return max(plainest, key=_excess, default=None)


def surely_won(one: Found) -> float:
    """Of what guessing leaves open, the part that is won, allowing for luck: 0 is nothing, 1 everything."""
    won = (one.interval[0] - one.prior) / max(1 - one.prior, 1e-12)
    return won if math.isfinite(won) else -math.inf


def _excess(one: Found) -> float:
    over = one.measured - (one.prior if one.certified is None else one.certified)
    return over if math.isfinite(over) else -math.inf


def things(audit: Audited) -> str:
    """What was made to be attacked."""
    return "models" if audit.target == "model" else "releases"


def releases_needed(audit: Audited, one: Found) -> int | None:
    """Releases, in all, of an audit that would decide: those to learn from and to choose by included."""
    if one.needed is None or not one.trials:
        return None
    return math.ceil(one.needed * audit.trials / one.trials)
