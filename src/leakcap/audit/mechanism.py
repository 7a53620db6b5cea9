"""Any mechanism at all, ours or somebody else's: can two secrets be told apart more often than it claims?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import checks
from leakcap.audit import statistics
from leakcap.audit.findings import HOLDS, REFUTED, Finding, judged
from leakcap.audit.report import AuditReport
from leakcap.audit.runs import ALPHA, FEWEST, PARTS
from leakcap.audit.trials import numbers_in
from leakcap.errors import InputError

__all__ = ["check_mechanism"]

Floats = npt.NDArray[np.float64]


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
    """Call `release(secret)` with one of the secrets at random, again and again, and try to tell which it was.

    Args:
        release: draws its own randomness; what it returns is read at any depth.
        secrets: two or more, each as likely as the others.
        success: the highest success at guessing the secret that is claimed.
        epsilon: the differential privacy that is claimed between any two of them, with `delta`.
        see: what the attacker looks at in a released value, where it is too large to keep whole: numbers.
    """
    if len(secrets) < 2:
        raise InputError("check_mechanism needs at least two secrets to be told apart")
    if success is None and epsilon is None:
        raise InputError("say what is claimed: success=, epsilon=, or both")
    checks.count(at_least=FEWEST, trials=trials)
    began = time.perf_counter()
    rng = np.random.default_rng()
    which = rng.integers(len(secrets), size=trials)
    seen = np.array([np.atleast_1d(np.asarray(see(release(secrets[one])), dtype=np.float64)) for one in which])
    learn, choose, judge = np.split(np.arange(trials), np.rint(np.cumsum(PARTS[:2]) * trials).astype(int))
    guess = _guesser(seen, which, learn, choose, len(secrets))
    found: list[Finding] = []
    share = alpha / ((success is not None) + (epsilon is not None))
    claims, truth = guess(seen[judge]), which[judge]
    if success is not None:
        question = f"which of {len(secrets)} secrets it was"
        wins = int((claims == truth).sum())
        found.append(judged("told apart", question, wins, len(judge), 1 / len(secrets), success, share))
    if epsilon is not None:
        found.append(_epsilon(claims, truth, epsilon, delta, share))
    return AuditReport(tuple(found), None, trials, alpha, "mechanism", time.perf_counter() - began)


def _epsilon(claims: Any, truth: Any, epsilon: float, delta: float, alpha: float) -> Finding:
    """The differential privacy of the first two secrets, from below."""
    some = truth < 2
    accused, inside = claims[some] == 0, truth[some] == 0
    counts = (
        int(accused[inside].sum()),
        int(inside.sum()),
        int(accused[~inside].sum()),
        int((~inside).sum()),
    )
    low = statistics.epsilon_lower(*counts, delta, alpha)
    p = statistics.epsilon_p_value(*counts, epsilon, delta)
    verdict = REFUTED if p < alpha else HOLDS
    return Finding("told apart", "epsilon, at least", low, (low, np.inf), 0.0, epsilon, p, verdict, int(some.sum()))


def _guesser(seen: Floats, which: Any, learn: Any, choose: Any, count: int) -> Callable[[Floats], Any]:
    """The best of several guessers on the releases to choose by."""
    makers = (_by_distance, _by_spread, _by_neighbours)
    guessers = [make(seen[learn], which[learn], count) for make in makers]
    return max(guessers, key=lambda guess: float((guess(seen[choose]) == which[choose]).mean()))


def _by_distance(seen: Floats, which: Any, count: int) -> Callable[[Floats], Any]:
    """The nearest mean, in units of the spread around means."""
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
    """The same with squares beside the numbers: secrets that differ in how much they scatter."""
    centre, scale = seen.mean(axis=0), np.maximum(seen.std(axis=0), 1e-300)

    def wide(some: Floats) -> Floats:
        table = np.clip((some - centre) / scale, -10, 10)
        return np.column_stack([table, table**2])

    guess = _by_distance(wide(seen), which, count)
    return lambda some: guess(wide(some))


def _by_neighbours(seen: Floats, which: Any, count: int) -> Callable[[Floats], Any]:
    """By the likeliest secret among past releases with the very same first number; otherwise any."""
    values, place = np.unique(seen[:, 0], return_inverse=True)
    votes = np.zeros((len(values), count))
    np.add.at(votes, (place, which), 1)
    best = votes.argmax(axis=1)

    def guess(some: Floats) -> Any:
        spot = np.clip(np.searchsorted(values, some[:, 0]), 0, len(values) - 1)
        return best[spot]

    return guess
