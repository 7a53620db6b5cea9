"""What an attack has measured, beside what was promised."""

from __future__ import annotations

from dataclasses import dataclass

from leakcap.audit import statistics

__all__ = ["HOLDS", "INCONCLUSIVE", "REFUTED", "SHOWN", "SLACK", "UNBOUNDED", "Finding", "judged", "verdict_of"]

REFUTED, HOLDS, INCONCLUSIVE, UNBOUNDED = "refuted", "holds", "inconclusive", "no promise"
SHOWN = 0.05  # error of the intervals that are shown; a refutation needs far more than to leave one
SLACK, OF_BOUND = 0.01, 0.2  # an excess, or share of a small bound, that has to be visible before "holds" is said


@dataclass(frozen=True)
class Finding:
    """One question, one attack: how often the attacker was right, in releases on which nothing had been chosen."""

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


def judged(
    attack: str, question: str, wins: int, trials: int, prior: float, certified: float | None, alpha: float
) -> Finding:
    """A finding from a count of right guesses in independent releases; `alpha` is what a refutation may cost."""
    low, high = statistics.interval(wins, trials, SHOWN)
    share = wins / trials
    if certified is None:
        return Finding(attack, question, share, (low, high), prior, None, 1.0, UNBOUNDED, trials)
    p = statistics.p_value(wins, trials, certified)
    verdict = verdict_of(p, high, certified, alpha)
    undecided = verdict == INCONCLUSIVE
    needed = (
        statistics.trials_to_decide(share, certified, 2 * alpha, slack_of(certified), shown=SHOWN)
        if undecided
        else None
    )
    return Finding(attack, question, share, (low, high), prior, certified, p, verdict, trials, needed)


def verdict_of(p: float, high: float, certified: float, alpha: float) -> str:
    """Refuted: surely above the promise. Holds: an excess of a point would have been seen, most likely."""
    if p < alpha:
        return REFUTED
    return HOLDS if high <= certified + slack_of(certified) else INCONCLUSIVE


def slack_of(certified: float) -> float:
    """What a figure may be above its bound without being noticed."""
    return min(SLACK, OF_BOUND * certified)
