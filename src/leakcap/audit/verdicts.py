"""What an attack has measured, beside what was promised."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from leakcap.audit.statistics import rates as statistics
from leakcap.errors import InputError

__all__ = [
    "CHECK",
    "EPSILON",
    "HOLDS",
    "INCONCLUSIVE",
    "RECOGNITION",
    "REFUTED",
    "SHARE",
    "SHOWN",
    "SLACK",
    "UNBOUNDED",
    "Finding",
    "checked",
    "judged",
    "needed_for",
    "overall",
    "slack_of",
    "verdict_of",
]

REFUTED, HOLDS, INCONCLUSIVE, UNBOUNDED = "refuted", "holds", "inconclusive", "no promise"
SHARE, RECOGNITION, EPSILON, CHECK = "share", "recognition", "epsilon", "check"
KINDS = (SHARE, RECOGNITION, EPSILON, CHECK)
SHOWN = 0.05  # error of the intervals that are shown; a refutation needs far more than to leave one
SLACK, OF_BOUND = 0.01, 0.2  # an excess, or share of a small bound, that has to be visible before "holds" is said


@dataclass(frozen=True)
class Finding:
    """One question, one attack: how often the attacker was right, in releases on which nothing had been chosen.

    Attributes:
        attack: name of the attack.
        question: what was guessed, in plain words.
        measured: share of right guesses, or the measured quantity.
        interval: ends around the measured value; 95 % for shares.
        prior: success without the release.
        certified: the promised bound; None where nothing was promised.
        p_value: probability of so many successes if the promise held.
        verdict: "refuted", "holds", "inconclusive" or "no promise".
        trials: number of releases that were judged.
        needed: number of judged releases that would decide; None where these do.
        kind: what was measured: "share", "recognition", "epsilon" or "check"; left empty, it follows from the interval.
        named: whether it is about the most exposed person, named in advance.
        reading: of a check, what the measured value says, with {} in its place.
        slack: how far beyond the promise the interval may reach where the verdict is "holds"; None where not stated.
        heuristic: whether it is a rule without proof, shown beside others; it is never compared with a promise.
    """

    attack: str
    question: str  # what was guessed, in plain words
    measured: float
    interval: tuple[float, float]
    prior: float  # success without the release
    certified: float | None  # None where nothing was promised
    p_value: float  # how likely so many successes would be if the promise held
    verdict: str
    trials: int  # that were judged
    needed: int | None = None  # judged trials that would decide, where these do not
    # What `measured` is: a share of right guesses; of participants recognised, the prior being the false alarms; an
    # epsilon; or what a check of the mechanism saw. Left empty, it is a check where there is no interval, else a share.
    kind: str = ""
    named: bool = False  # about the most exposed person, named in advance
    reading: str = ""  # of a check: what `measured` says, with {} in its place
    slack: float | None = None  # how far above the promise the interval may end where the verdict is "holds"
    heuristic: bool = False  # no theorem behind the interval

    def __post_init__(self) -> None:
        if self.kind not in ("", *KINDS):
            raise InputError(f"kind must be one of {', '.join(KINDS)}")
        if not self.kind:
            object.__setattr__(self, "kind", CHECK if math.isnan(self.interval[0]) else SHARE)

    @property
    def within_chance(self) -> bool:
        """Whether the measured figure lies above the promised one, by no more than chance explains."""
        return self.certified is not None and self.measured > self.certified and self.verdict != REFUTED


def judged(
    attack: str,
    question: str,
    wins: int,
    trials: int,
    prior: float,
    certified: float | None,
    alpha: float,
    named: bool = False,
) -> Finding:
    """A finding from a count of right guesses in independent releases; `alpha` is what a refutation may cost."""
    low, high = statistics.interval(wins, trials, SHOWN)
    share = wins / trials
    if certified is None:
        return Finding(
            attack=attack,
            question=question,
            measured=share,
            interval=(low, high),
            prior=prior,
            certified=None,
            p_value=1.0,
            verdict=UNBOUNDED,
            trials=trials,
            named=named,
        )
    p = statistics.p_value(wins, trials, certified)
    verdict = verdict_of(p, high, certified, alpha)
    return Finding(
        attack=attack,
        question=question,
        measured=share,
        interval=(low, high),
        prior=prior,
        certified=certified,
        p_value=p,
        verdict=verdict,
        trials=trials,
        needed=needed_for(share, certified, alpha) if verdict == INCONCLUSIVE else None,
        named=named,
        slack=slack_of(certified),
    )


def needed_for(share: float, certified: float, alpha: float) -> int | None:
    """About how many judged releases would decide, if this share of right guesses is the truth."""
    return statistics.trials_to_decide(share, certified, 2 * alpha, slack_of(certified), shown=SHOWN)


def checked(
    attack: str,
    question: str,
    *,
    measured: float,
    interval: tuple[float, float],
    claim: float,
    slack: float,
    p: float,
    alpha: float,
    trials: int,
    reading: str,
) -> Finding:
    """A check of the mechanism: refuted by its p-value; holds where all of its interval is within slack of the claim.

    Otherwise inconclusive. What keeps an interval wide shrinks with the root of the number of releases.
    """
    far = max(abs(end - claim) for end in interval)
    verdict = REFUTED if p < alpha else HOLDS if far <= slack else INCONCLUSIVE
    return Finding(
        attack=attack,
        question=question,
        measured=float(measured),
        interval=(float(interval[0]), float(interval[1])),
        prior=math.nan,
        certified=None,
        p_value=p,
        verdict=verdict,
        trials=trials,
        needed=math.ceil(1.2 * trials * (far / slack) ** 2) if verdict == INCONCLUSIVE else None,
        kind=CHECK,
        reading=reading,
        slack=slack,
    )


def verdict_of(p: float, high: float, certified: float, alpha: float) -> str:
    """Refuted: surely above the promise. Holds: an excess of a point would have been seen, most likely."""
    if p < alpha:
        return REFUTED
    return HOLDS if high <= certified + slack_of(certified) else INCONCLUSIVE


def overall(findings: Iterable[Finding]) -> str:
    """Of a whole audit: refuted if any attack refutes, then inconclusive, then holds; else nothing was promised."""
    verdicts = {one.verdict for one in findings}
    return next((verdict for verdict in (REFUTED, INCONCLUSIVE, HOLDS) if verdict in verdicts), UNBOUNDED)


def slack_of(certified: float) -> float:
    """What a figure may be above its bound without being noticed."""
    return min(SLACK, OF_BOUND * certified)
