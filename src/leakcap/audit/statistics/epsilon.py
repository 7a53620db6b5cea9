"""How small an epsilon an attack refutes, from counts over many releases or from one run. Proof page: audit."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from leakcap.audit.statistics.tails import Counts, at_least, checked_counts, high_end, joint, largest, low_end
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves

__all__ = ["epsilon_lower", "epsilon_p_value", "epsilon_upper", "one_run", "one_run_epsilon"]

MAX_EPSILON = 60.0


@proves("audit")
def epsilon_p_value(found: int, members: int, accused: int, others: int, epsilon: float, delta: float) -> float:
    """P-value against (epsilon, delta)-privacy from an attack whose threshold was fixed before these trials.

    Guarantee: for a mechanism that is so private it is at most `a` with probability at most `a`.
    """
    counts = checked_counts(found, members, accused, others)
    return _against_privacy(counts, checks.nonnegative(epsilon=epsilon), checks.probability(delta=delta))


@proves("audit")
def epsilon_lower(found: int, members: int, accused: int, others: int, delta: float, alpha: float) -> float:
    """The largest epsilon (to 1e-5) that the counts refute, at this delta; 0 where they refute none.

    Guarantee: for an (epsilon, delta)-private mechanism the result exceeds epsilon with probability at most `alpha`
    (one-sided). The attack and its threshold were fixed before these trials.
    """
    counts, delta = checked_counts(found, members, accused, others), checks.probability(delta=delta)
    level = checks.fraction(alpha=alpha)
    return largest(lambda epsilon: _against_privacy(counts, epsilon, delta, level) <= level, 0.0, MAX_EPSILON, 1e-5)


@proves("audit")
def epsilon_upper(found: float, members: float, accused: float, others: float, *, delta: float, alpha: float) -> float:
    """The largest epsilon that this attack, at its threshold, may show if all of its luck was bad; may be infinite.

    Guarantee: below the epsilon that the attack's true rates show, at this delta, with probability at most `alpha`
    (one-sided). Not a bound on the mechanism's epsilon: another attack may show more.
    """
    side = checks.fraction(alpha=alpha) / 2
    hit = float(high_end(np.float64(found), np.float64(members), side))
    false = float(low_end(np.float64(accused), np.float64(others), side))
    delta = checks.probability(delta=delta)
    return max(0.0, _log_ratio(hit - delta, false), _log_ratio(1 - false - delta, 1 - hit))


def _log_ratio(above: float, below: float) -> float:
    if above <= 0:
        return -math.inf
    return math.log(above / below) if below > 0 else math.inf


@proves("audit")
def one_run(
    right: int, guesses: int, epsilon: float, delta: float = 0.0, bits: int | None = None, *, candidates: int = 2
) -> float:
    """P-value against (epsilon, delta)-privacy from one run in which every unit took part by a fair coin of its own.

    The attacker sees the output and guesses the coins, abstaining where he likes: `right` of `guesses` were right.
    With more than two `candidates` the coins are fair dice with so many sides, and changing one is what is private.

    Guarantee: if coins are independent and fair, and flipping one coin changes the law of the output by (epsilon,
    delta) at most, the p-value is at most `a` with probability at most `a`. With `delta` 0 the attacker may also choose
    *how many* to guess after seeing the output; with `delta` above 0 that number is fixed before, and `bits` says how
    many coins there were, guessed or not. Not for halves of fixed size: their coins are not independent.
    """
    right, guesses = checks.count(at_least=0, right=right), checks.count(at_least=0, guesses=guesses)
    if right > guesses:
        raise InputError("right must not exceed guesses: count the right ones among those that were guessed")
    epsilon, delta = checks.nonnegative(epsilon=epsilon), checks.probability(delta=delta)
    if delta > 0 and bits is None:
        raise InputError("with delta above 0 say how many coins there were, guessed or not: bits=")
    if bits is not None and checks.count(bits=bits) < guesses:
        raise InputError("bits must be at least the number of guesses: count the coins nobody guessed as well")
    if right == 0:
        return 1.0  # nothing guessed, or nothing right
    log_odds = epsilon - math.log(checks.count(at_least=2, candidates=candidates) - 1)  # of a right guess, at most
    tail = float(at_least(right, guesses, special.expit(log_odds)))
    if delta == 0 or bits is None:
        return tail
    return tail + (1 - tail) * min(1.0, bits * delta / right * _tail_over_term(right, guesses, log_odds, tail))


@proves("audit")
def one_run_epsilon(
    right: int, guesses: int, alpha: float, delta: float = 0.0, bits: int | None = None, *, candidates: int = 2
) -> float:
    """The largest epsilon (to 1e-9) that `one_run` refutes at level `alpha`; 0 where it refutes none.

    Guarantee: exceeds the true epsilon with probability at most `alpha`, under the conditions of `one_run`.
    """
    level = checks.fraction(alpha=alpha)
    return largest(
        lambda epsilon: one_run(right, guesses, epsilon, delta, bits=bits, candidates=candidates) <= level,
        0.0,
        MAX_EPSILON,
        1e-9,
    )


def _against_privacy(counts: Counts, epsilon: float, delta: float, level: float = 0.0) -> float:
    ratio = math.exp(min(epsilon, 700.0))
    # Both inequalities of privacy bound TPR by a rising function of FPR; the smaller one is the hypothesis.
    return joint(counts, lambda fpr: np.minimum(ratio * fpr + delta, 1 - (1 - fpr - delta) / ratio), level=level)


def _tail_over_term(right: int, guesses: int, log_odds: float, tail: float) -> float:
    """P(X >= right) / P(X = right) for X binomial with odds e^log_odds."""
    log_term = (
        -special.betaln(right + 1, guesses - right + 1)
        - math.log(guesses + 1)
        - right * np.logaddexp(0.0, -log_odds)
        - (guesses - right) * np.logaddexp(0.0, log_odds)
    )
    # The terms of the tail fall at least geometrically: the way out where tail and term are too small for doubles.
    fall = (guesses - right) / (right + 1) * math.exp(min(log_odds, 700.0))
    series = 1 / (1 - fall) if fall < 1 else math.inf
    return min(series, math.exp(min(700.0, math.log(tail) - log_term)))
