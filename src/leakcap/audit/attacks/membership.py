"""From scores to a finding: who is the most exposed, where is the threshold, and how often is it right afterwards.

Person and threshold are fixed on one part of the releases and judged on another, so that the count of right guesses is
one binomial number: nothing was chosen by looking at it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leakcap.audit import statistics
from leakcap.audit.attacks.posterior import blocks
from leakcap.audit.trials import Known, Trials
from leakcap.audit.verdicts import INCONCLUSIVE, RECOGNITION, SHOWN, Finding, judged, needed_for, slack_of, verdict_of
from leakcap.ground.arrays import Floats, Ints

__all__ = ["FALSE_ALARMS", "Exposed", "Scorer", "Units", "membership"]

Truths = npt.NDArray[np.bool_]
Units = slice | Ints


class Scorer(Protocol):
    """An attack on everybody at once."""

    def __call__(self, trials: Trials, rows: slice, units: Units = ...) -> npt.NDArray[Any]:
        """`(rows, units)`: the higher, the likelier a participant."""
        ...


FINALISTS = 64  # units among which the most exposed is sought
FALSE_ALARMS = (0.01, 0.001)


@dataclass(frozen=True)
class Exposed:
    """A unit and the threshold that were fixed beforehand."""

    unit: int
    threshold: float


def membership(
    attack: str, known: Known, choose: Trials, judge: Trials, score: Scorer, alpha: float, even: float | None = None
) -> list[Finding]:
    """Success against the most exposed person named in advance, and how many are recognised at few false alarms.

    `even` is the score at which either guess is as good, where the attack knows it: scores are probabilities then, and
    the most exposed person is the one about whom it is surest.
    """
    finalists = _finalists(known, choose, score)
    scores, inside = _columns(choose, score, finalists), choose.inside(finalists)
    if even is None:
        most = _most_exposed(scores, inside, finalists)
    else:
        most = Exposed(int(finalists[np.abs(scores - even).mean(axis=0).argmax()]), even)
    strict = [(rate, _most_recognised(scores, inside, finalists, rate)) for rate in FALSE_ALARMS]
    wanted = np.array([most.unit, *(one.unit for _, one in strict)])
    later, truth = _columns(judge, score, wanted), judge.inside(wanted)
    findings = [_success(attack, known, claims=later[:, 0] > most.threshold, inside=truth[:, 0], alpha=alpha)]
    for place, (rate, one) in enumerate(strict, start=1):
        if truth[:, place].all() or not truth[:, place].any():
            continue  # the same secret again and again: there are no others to accuse
        findings.append(
            _recognised(
                attack, known, rate=rate, claims=later[:, place] > one.threshold, inside=truth[:, place], alpha=alpha
            )
        )
    return findings


def _success(attack: str, known: Known, claims: Truths, inside: Truths, alpha: float) -> Finding:
    question = "whether the most exposed person took part"
    certified = known.certificate.membership_success
    right = claims == inside
    if known.rate == 0.5:
        return judged(
            attack,
            question,
            int(right.sum()),
            trials=len(right),
            prior=0.5,
            certified=certified,
            alpha=alpha,
            named=True,
        )
    members = int(inside.sum())
    found = statistics.Balanced(int(right[inside].sum()), members, int(right[~inside].sum()), len(inside) - members)
    low, high = found.interval(SHOWN)
    p = found.p_value(certified)
    verdict = verdict_of(p, high, certified, alpha)
    return Finding(
        attack=attack,
        question=f"{question} (balanced)",
        measured=found.estimate,
        interval=(low, high),
        prior=0.5,
        certified=certified,
        p_value=p,
        verdict=verdict,
        trials=len(right),
        needed=_needed(
            verdict, found.estimate, certified, alpha, scale=len(right) / min(members, len(right) - members)
        ),
        named=True,
        slack=slack_of(certified),
    )


def _recognised(attack: str, known: Known, rate: float, claims: Truths, inside: Truths, alpha: float) -> Finding:
    found = statistics.true_positive_rate(
        found=int(claims[inside].sum()),
        members=int(inside.sum()),
        accused=int(claims[~inside].sum()),
        others=int((~inside).sum()),
        alpha=SHOWN,
    )
    bound = known.certificate.true_positive_rate
    certified, p = float(bound(found.fpr_high)), found.p_value(bound)
    verdict = verdict_of(p, found.tpr_high, certified, alpha)
    return Finding(
        attack=attack,
        question=f"recognising a participant at {rate:.1%} false alarms",
        measured=found.tpr,
        interval=(found.tpr_low, found.tpr_high),
        prior=rate,
        certified=certified,
        p_value=p,
        verdict=verdict,
        trials=len(claims),
        needed=_needed(verdict, found.tpr, certified, alpha, scale=len(claims) / max(int(inside.sum()), 1)),
        kind=RECOGNITION,
        slack=slack_of(certified),
    )


def _needed(verdict: str, share: float, certified: float, alpha: float, *, scale: float) -> int | None:
    """About how many releases would decide where one in `scale` counts."""
    count = needed_for(share, certified, alpha) if verdict == INCONCLUSIVE else None
    return None if count is None else math.ceil(scale * count)


def _columns(trials: Trials, score: Scorer, units: Ints) -> Floats:
    return np.concatenate([score(trials, rows, units) for rows in blocks(len(trials))])


def _finalists(known: Known, choose: Trials, score: Scorer) -> Ints:
    """Half of them by what the plan knows, half by how far scores of participants lie above those of the others."""
    total, within, squares = (np.zeros(known.units) for _ in range(3))
    count = np.zeros(known.units)
    for rows in blocks(len(choose)):
        found = score(choose, rows)
        inside = choose.part(rows).inside()
        total += found.sum(axis=0)
        squares += (found**2).sum(axis=0)
        within += np.where(inside, found, 0.0).sum(axis=0)
        count += inside.sum(axis=0)
    k = len(choose)
    others = np.maximum(k - count, 1)
    apart = within / np.maximum(count, 1) - (total - within) / others
    deviation = np.sqrt(np.maximum(squares / k - (total / k) ** 2, 1e-300))
    seen = np.argsort(-apart / deviation, kind="stable")[: FINALISTS // 2]
    return np.unique(np.concatenate([known.exposed[: FINALISTS // 2], seen]))


def _cuts(scores: Floats, inside: Truths) -> tuple[Floats, Floats, Floats]:
    """Thresholds between neighbours, and the shares of participants and of others above each."""
    order = np.argsort(scores, kind="stable")[::-1]
    ranked, truth = scores[order], inside[order]
    found, accused = np.cumsum(truth), np.cumsum(~truth)
    last = np.append(ranked[1:] < ranked[:-1], True)  # equal scores stand on one side of a threshold
    below = np.append(ranked[1:], ranked[-1] - 1.0)[last]
    cuts = (ranked[last] + below) / 2
    cuts = np.where(cuts < ranked[last], cuts, below)  # neighbours without a number between them
    return cuts, found[last] / max(found[-1], 1), accused[last] / max(accused[-1], 1)


def _most_exposed(scores: Floats, inside: Truths, units: Ints) -> Exposed:
    best = (-np.inf, Exposed(int(units[0]), 0.0))
    for column, unit in enumerate(units):
        cuts, found, accused = _cuts(scores[:, column], inside[:, column])
        gain = found - accused
        place = int(gain.argmax())
        if gain[place] > best[0]:
            best = (float(gain[place]), Exposed(int(unit), float(cuts[place])))
    return best[1]


def _most_recognised(scores: Floats, inside: Truths, units: Ints, rate: float) -> Exposed:
    """Most participants at no more than this share of false alarms."""
    best = (-np.inf, Exposed(int(units[0]), np.inf))
    for column, unit in enumerate(units):
        cuts, found, accused = _cuts(scores[:, column], inside[:, column])
        allowed = np.flatnonzero(accused <= rate)
        if len(allowed) and found[allowed[-1]] > best[0]:
            place = allowed[-1]
            best = (float(found[place]), Exposed(int(unit), float(cuts[place])))
    return best[1]
