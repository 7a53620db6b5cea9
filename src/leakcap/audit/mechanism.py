"""Audit any mechanism at all, ours or somebody else's: are two secrets distinguishable more often than it claims?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leakcap.audit import statistics
from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA, MIN_TRIALS, PARTS
from leakcap.audit.trials import numbers_in
from leakcap.audit.verdicts import EPSILON, HOLDS, INCONCLUSIVE, REFUTED, SHOWN, Finding, judged
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["check_mechanism"]

OF_ONE, OF_EPSILON = 0.05, 0.15  # an excess of epsilon that has to be visible before "holds" is said


def check_mechanism(
    release: Callable[[Any], Any],
    secrets: Sequence[Any],
    *,
    success: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    see: Callable[[Any], Any] = numbers_in,
    trials: int = 10_000,
    alpha: float = ALPHA,
) -> AuditReport:
    """Call `release(secret)` with one of the secrets at random, again and again, and try to recognise which it was.

    Args:
        release: a function of a secret that draws its own randomness. Numbers in its result are read at any depth.
        secrets: two or more, each as likely as the others.
        success: highest probability of a right guess of the secret that is claimed.
        epsilon: differential privacy that is claimed between any two of the secrets, with `delta`.
        delta: probability with which epsilon may fail.
        see: function from a released value to the numbers that the attacker looks at, where all are too many to keep.
        trials: number of calls, at least 200.
        alpha: probability that the report says "refuted" of claims that hold.

    Returns:
        A report with a finding for each claim.

    Raises:
        InputError: there are fewer than two secrets, or nothing is claimed.

    Examples:
        >>> from leakcap.testing import check_mechanism
        >>> def coin(secret):
        ...     return secret if np.random.default_rng().random() < 0.9 else 1 - secret
        >>> check_mechanism(coin, [0, 1], success=0.6, trials=1000).verdict
        'refuted'
    """
    if len(secrets) < 2:
        raise InputError("check_mechanism needs at least two secrets to distinguish")
    if success is None and epsilon is None:
        raise InputError("say what is claimed: success=, epsilon=, or both")
    checks.count(at_least=MIN_TRIALS, trials=trials)
    began = time.perf_counter()
    rng = np.random.default_rng()
    which = rng.integers(len(secrets), size=trials)
    seen = np.array([np.atleast_1d(np.asarray(see(release(secrets[one])), dtype=np.float64)) for one in which])
    learn, choose, judge = np.split(np.arange(trials), np.rint(np.cumsum(PARTS[:2]) * trials).astype(int))
    guess = _guesser(seen, which, learn=learn, choose=choose, count=len(secrets))
    found: list[Finding] = []
    share = alpha / ((success is not None) + (epsilon is not None))
    claims, truth = guess(seen[judge]), which[judge]
    if success is not None:
        question = f"which of {len(secrets)} secrets it was"
        wins = int((claims == truth).sum())
        found.append(
            judged(
                "told apart",
                question,
                wins=wins,
                trials=len(judge),
                prior=1 / len(secrets),
                certified=success,
                alpha=share,
            )
        )
    if epsilon is not None:
        found.append(_epsilon(claims, truth, epsilon=epsilon, delta=delta, alpha=share))
    return AuditReport(
        findings=tuple(found),
        certificate=None,
        trials=trials,
        alpha=alpha,
        target="mechanism",
        seconds=time.perf_counter() - began,
    )


def _epsilon(claims: Any, truth: Any, epsilon: float, delta: float, alpha: float) -> Finding:
    """A lower bound on the differential privacy between the first two secrets."""
    some = truth < 2
    accused, inside = claims[some] == 0, truth[some] == 0
    counts = (
        int(accused[inside].sum()),
        int(inside.sum()),
        int(accused[~inside].sum()),
        int((~inside).sum()),
    )
    low = statistics.epsilon_lower(*counts, delta, alpha)
    high = statistics.epsilon_upper(*counts, delta=delta, alpha=SHOWN)
    p = statistics.epsilon_p_value(*counts, epsilon, delta)
    slack = OF_ONE + OF_EPSILON * epsilon
    verdict = REFUTED if p < alpha else HOLDS if high <= epsilon + slack else INCONCLUSIVE
    return Finding(
        attack="told apart",
        question="epsilon, at least",
        measured=low,
        interval=(low, high),
        prior=0.0,
        certified=epsilon,
        p_value=p,
        verdict=verdict,
        trials=int(some.sum()),
        needed=_needed(counts, epsilon, delta, slack) if verdict == INCONCLUSIVE else None,
        kind=EPSILON,
        slack=slack,
    )


def _needed(counts: tuple[int, int, int, int], epsilon: float, delta: float, slack: float) -> int | None:
    """About how many judged calls would decide, if the attack's rates are those seen, or what is claimed at most."""
    found, members, accused, others = counts
    hit = found / members
    false = max(accused / others, (hit - delta) * math.exp(-epsilon), 0.5 / others)
    for factor in 2.0 ** np.arange(0.5, 30, 0.5):
        n, k = factor * members, factor * others
        if statistics.epsilon_upper(hit * n, n, false * k, k, delta=delta, alpha=SHOWN) <= epsilon + slack:
            return math.ceil(n + k)
    return None


def _guesser(seen: Floats, which: Any, learn: Any, choose: Any, count: int) -> Callable[[Floats], Any]:
    """The best of several guessers on the releases to choose by."""
    makers = (_by_distance, _by_spread, _by_neighbours)
    guessers = [make(seen[learn], which[learn], count) for make in makers]
    return max(guessers, key=lambda guess: float((guess(seen[choose]) == which[choose]).mean()))


def _by_distance(seen: Floats, which: Any, count: int) -> Callable[[Floats], Any]:
    """Guess the secret with the nearest mean, in units of the spread around means."""
    means = np.stack([seen[which == one].mean(axis=0) for one in range(count)])
    off = seen - means[which]
    scale = np.maximum(off.std(axis=0), 1e-12 * np.maximum(np.abs(seen).max(axis=0), 1e-300))
    size, turn = np.linalg.eigh(np.atleast_2d(np.cov((off / scale).T, bias=True)))
    whiten = turn / np.sqrt(np.maximum(size, 1e-9 * max(size.max(), 1e-300))) / scale[:, None]
    points = means @ whiten

    def guess(some: Floats) -> Any:
        return (some @ whiten @ points.T - 0.5 * (points**2).sum(axis=1)).argmax(axis=1)

    return guess


def _by_spread(seen: Floats, which: Any, count: int) -> Callable[[Floats], Any]:
    """The same guess with squares beside the numbers, for secrets that differ in how much they scatter."""
    centre, scale = seen.mean(axis=0), np.maximum(seen.std(axis=0), 1e-300)

    def wide(some: Floats) -> Floats:
        table = np.clip((some - centre) / scale, -10, 10)
        return np.column_stack([table, table**2])

    guess = _by_distance(wide(seen), which, count)
    return lambda some: guess(wide(some))


def _by_neighbours(seen: Floats, which: Any, count: int) -> Callable[[Floats], Any]:
    """Guess the likeliest secret among past releases with the same first number; otherwise any."""
    values, place = np.unique(seen[:, 0], return_inverse=True)
    votes = np.zeros((len(values), count))
    np.add.at(votes, (place, which), 1)
    best = votes.argmax(axis=1)

    def guess(some: Floats) -> Any:
        spot = np.clip(np.searchsorted(values, some[:, 0]), 0, len(values) - 1)
        return best[spot]

    return guess
