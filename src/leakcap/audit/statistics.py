"""The statistics of an audit: from counts of right and wrong guesses to statements that are rarely false.

Everything here takes counts (or bounded values) of trials that were *judged*: independent releases on which nothing
was chosen, neither the attack nor the unit, the threshold or the number of trials. Intervals are two-sided, with total
error `alpha`; p-values are one-sided. So a claim is refuted at `alpha` (the lower end lies above it) when its p-value
is at most `alpha / 2`. Nothing rests on a normal approximation. Proof page: audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap import checks
from leakcap.audit.tails import Counts, at_least, first, high_end, joint, largest, low_end
from leakcap.errors import InputError
from leakcap.proofs import proves

__all__ = [
    "Balanced",
    "Rates",
    "epsilon_lower",
    "epsilon_p_value",
    "interval",
    "mean_interval",
    "mean_p_value",
    "one_run",
    "one_run_epsilon",
    "p_value",
    "trials_to_decide",
    "true_positive_rate",
]

Floats = npt.NDArray[np.float64]
MOST_EPSILON = 60.0


@proves("audit")
def interval(wins: npt.ArrayLike, trials: npt.ArrayLike, alpha: float) -> tuple[Any, Any]:
    """Where the chance of winning lies (Clopper and Pearson 1934). Numbers for numbers, arrays for arrays.

    Guarantee: for `trials` independent trials, fixed in number beforehand and won with chance `p` each, the interval
    misses `p` with probability at most `alpha`, on either side at most `alpha / 2`; for every `p`, 0 and 1 included.

    >>> interval(0, 100, 0.05)[0], interval(100, 100, 0.05)[1]
    (0.0, 1.0)
    """
    k, n = _counts(wins, trials)
    side = checks.fraction(alpha=alpha) / 2
    return _like(low_end(k, n, side), wins, trials), _like(high_end(k, n, side), wins, trials)


@proves("audit")
def p_value(wins: npt.ArrayLike, trials: npt.ArrayLike, bound: float) -> Any:
    """Chance of at least so many wins if each trial is won with chance `bound`; exact far into the tail.

    Guarantee: if the chance of winning is at most `bound`, the p-value is at most `a` with probability at most `a`,
    for every `a`. Chances below 2.3e-308 are rounded up to that.

    >>> p_value(1000, 1000, 0.5) == 2.0**-1000
    True
    """
    k, n = _counts(wins, trials)
    return _like(at_least(k, n, np.float64(checks.probability(bound=bound))), wins, trials)


@proves("audit")
def trials_to_decide(
    share: float, bound: float, alpha: float, slack: float = 0.01, shown: float | None = None
) -> int | None:
    """About how many judged trials, in all, would decide if the share of wins seen so far is the truth.

    They decide when the interval at `alpha` lies above `bound` (refuted), or the one at `shown` (`alpha` if None) ends
    at most `slack` above it (holds). Enough trials refute any share above `bound`, and any share below `bound + slack`
    holds after enough trials; in between both happen, and the sooner one counts. So None, which means no number up to
    2^50, is left for `slack` 0 with the share at the bound, or as near as makes no difference.

    A plan for the next audit, not a licence to go on until it pleases: the trials of a new look are judged by
    themselves, or the looks share `alpha` (`alpha/2, alpha/6, ..., alpha/(j(j+1))`).
    """
    share, bound = checks.probability(share=share), checks.probability(bound=bound)
    most = bound + checks.nonnegative(slack=slack)
    lower_side = checks.fraction(alpha=alpha) / 2
    upper_side = lower_side if shown is None else checks.fraction(shown=shown) / 2

    # Wins need not be whole here: the ends for `share * n` wins move steadily with n, those for rounded wins jump.
    def refuted(n: float) -> bool:
        return bool(low_end(share * n, n, lower_side) > bound)

    def holds(n: float) -> bool:
        return bool(high_end(share * n, n, upper_side) <= most)

    needed = [first(refuted)] if share > bound else []
    needed += [first(holds)] if share < most or most >= 1 else []
    return min((n for n in needed if n is not None), default=None)


@dataclass(frozen=True)
class Balanced:
    """Balanced success: the mean of the shares of right guesses among members and among others.

    Guessing always the same gives one half, whatever the share of members. `right_members` of the `members` and
    `right_others` of the `others` were guessed right.
    """

    right_members: int
    members: int
    right_others: int
    others: int

    def __post_init__(self) -> None:
        _pair("right_members", self.right_members, "members", self.members)
        _pair("right_others", self.right_others, "others", self.others)

    @property
    def estimate(self) -> float:
        return (self.right_members / self.members + self.right_others / self.others) / 2

    @proves("audit")
    def p_value(self, bound: float) -> float:
        """Valid against "balanced success is at most `bound`", whichever way the two shares make it up.

        Guarantee: as for `leakcap.audit.statistics.p_value`, given who was a member in which trial.
        """
        return self._p(checks.probability(bound=bound))

    @proves("audit")
    def interval(self, alpha: float) -> tuple[float, float]:
        """Where the balanced success lies: all values that the p-value, from either side, leaves at `alpha / 2`.

        Guarantee: misses the truth with probability at most `alpha`, on either side at most `alpha / 2`. Where both
        shares are uncertain it is narrower, by up to 1/sqrt(2), than the union bound over their two intervals.
        """
        side = checks.fraction(alpha=alpha) / 2
        turned = Balanced(self.members - self.right_members, self.members, self.others - self.right_others, self.others)
        return self._lower(side), 1 - turned._lower(side)

    def _lower(self, side: float) -> float:
        return largest(lambda bound: self._p(bound, side) <= side, 0.0, self.estimate, 1e-7)

    def _p(self, bound: float, level: float = 0.0) -> float:
        if bound >= 1:
            return 1.0
        # On the edge of the hypothesis TPR + TNR = 2 bound, that is TPR = FPR + 2 bound - 1; FPR from where that is 0.
        return joint(
            (self.right_members, self.members, self.others - self.right_others, self.others),
            lambda fpr: fpr + (2 * bound - 1),
            start=max(0.0, 1 - 2 * bound),
            level=level,
        )


@dataclass(frozen=True)
class Rates:
    """True and false positive rates of an attack at a threshold that was fixed before these trials.

    `found` of the `members` and `accused` of the `others` were called members. The four ends hold together with
    probability at least `1 - alpha / 2`; the other half of `alpha` goes to judging both counts jointly.
    """

    found: int
    members: int
    accused: int
    others: int
    alpha: float

    def __post_init__(self) -> None:
        _four(self.found, self.members, self.accused, self.others)
        checks.fraction(alpha=self.alpha)

    @property
    def tpr(self) -> float:
        return self.found / self.members

    @property
    def fpr(self) -> float:
        return self.accused / self.others

    @property
    def tpr_low(self) -> float:
        return float(low_end(self.found, self.members, self.alpha / 8))

    @property
    def tpr_high(self) -> float:
        return float(high_end(self.found, self.members, self.alpha / 8))

    @property
    def fpr_low(self) -> float:
        return float(low_end(self.accused, self.others, self.alpha / 8))

    @property
    def fpr_high(self) -> float:
        return float(high_end(self.accused, self.others, self.alpha / 8))

    @proves("audit")
    def refutes(self, curve: Callable[[Any], Any]) -> bool:
        """Whether "TPR is at most `curve(FPR)`" is refuted at `alpha`: always where `tpr_low > curve(fpr_high)`.

        Guarantee: refutes a true, non-decreasing curve with probability at most `alpha / 2`.
        """
        # The p-value is up to 1 % above the exact one, the printed ends are not.
        return bool(self.tpr_low > curve(self.fpr_high)) or self.p_value(curve) <= self.alpha / 2

    @proves("audit")
    def p_value(self, curve: Callable[[Any], Any]) -> float:
        """Valid against "TPR is at most `curve(FPR)`", whatever the FPR; refuted at every alpha from twice this on.

        The curve is asked for many rates at once.

        Guarantee: for a true, non-decreasing curve it is at most `a` with probability at most `a`.
        """

        def checked(fpr: Floats) -> Floats:
            order = np.argsort(fpr)
            bounds = np.broadcast_to(np.asarray(curve(fpr), dtype=np.float64), fpr.shape)
            if not np.isfinite(bounds).all() or (np.diff(bounds[order]) < -1e-9).any():
                raise InputError("curve must be a finite bound on TPR that does not fall as FPR grows")
            return bounds

        return joint((self.found, self.members, self.accused, self.others), checked)


def true_positive_rate(found: int, members: int, accused: int, others: int, alpha: float) -> Rates:
    """TPR and FPR at a threshold fixed before, with ends, to be held against a certified ROC: see `Rates`."""
    return Rates(found, members, accused, others, alpha)


@proves("audit")
def epsilon_p_value(found: int, members: int, accused: int, others: int, epsilon: float, delta: float) -> float:
    """P-value against (epsilon, delta)-privacy from an attack whose threshold was fixed before these trials.

    Guarantee: for a mechanism that is so private it is at most `a` with probability at most `a`.
    """
    counts = _four(found, members, accused, others)
    return _against_privacy(counts, checks.nonnegative(epsilon=epsilon), checks.probability(delta=delta))


@proves("audit")
def epsilon_lower(found: int, members: int, accused: int, others: int, delta: float, alpha: float) -> float:
    """The largest epsilon (to 1e-5) that the counts refute, at this delta; 0 where they refute none.

    Guarantee: for an (epsilon, delta)-private mechanism the result exceeds epsilon with probability at most `alpha`
    (one-sided). The attack and its threshold were fixed before these trials.
    """
    counts, delta = _four(found, members, accused, others), checks.probability(delta=delta)
    level = checks.fraction(alpha=alpha)
    return largest(lambda epsilon: _against_privacy(counts, epsilon, delta, level) <= level, 0.0, MOST_EPSILON, 1e-5)


@proves("audit")
def one_run(right: int, guesses: int, epsilon: float, delta: float = 0.0, bits: int | None = None) -> float:
    """P-value against (epsilon, delta)-privacy from one run in which every unit took part by a fair coin of its own.

    The attacker sees the output and guesses the coins, abstaining where he likes: `right` of `guesses` were right.

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
    tail = float(at_least(right, guesses, special.expit(epsilon)))
    if delta == 0 or bits is None:
        return tail
    return tail + (1 - tail) * min(1.0, bits * delta / right * _tail_over_term(right, guesses, epsilon, tail))


@proves("audit")
def one_run_epsilon(right: int, guesses: int, alpha: float, delta: float = 0.0, bits: int | None = None) -> float:
    """The largest epsilon (to 1e-9) that `one_run` refutes at level `alpha`; 0 where it refutes none.

    Guarantee: exceeds the true epsilon with probability at most `alpha`, under the conditions of `one_run`.
    """
    level = checks.fraction(alpha=alpha)
    return largest(lambda epsilon: one_run(right, guesses, epsilon, delta, bits) <= level, 0.0, MOST_EPSILON, 1e-9)


@proves("audit")
def mean_interval(values: npt.ArrayLike, alpha: float, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Where the mean of the expectations of independent values lies that are bounded by `low` and `high`.

    Guarantee: misses it with probability at most `alpha`, on either side at most `alpha / 2`, for any laws within the
    bounds, equal or not. One value per release: units of one release depend on each other, average over them.
    """
    side = checks.fraction(alpha=alpha) / 2
    x, span = _scaled(values, low, high), high - low
    return low + span * _mean_low(x, side), high - span * _mean_low(1 - x, side)


@proves("audit")
def mean_p_value(values: npt.ArrayLike, bound: float, low: float = 0.0, high: float = 1.0) -> float:
    """P-value against "the mean of the expectations is at most `bound`"; the same test as `mean_interval`.

    Guarantee: if that is true it is at most `a` with probability at most `a`, for any laws within the bounds.
    """
    x = _scaled(values, low, high)
    claim = (float(bound) - low) / (high - low)
    if not math.isfinite(claim):
        raise InputError("bound must be a finite number")
    if claim >= x.mean():
        return 1.0
    if claim <= 0:
        return 0.0 if claim < 0 or x.max() > 0 else 1.0
    return math.exp(-min(max(0.0, _log_wealth(x, claim) - 1e-9), 708.0))


def _scaled(values: npt.ArrayLike, low: float, high: float) -> Floats:
    given = np.asarray(values, dtype=np.float64).ravel()
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError("low must lie below high, and both be finite")
    if len(given) == 0:
        raise InputError("no values were judged: make more releases, or give the judged part a larger share")
    if not ((given >= low) & (given <= high)).all():
        raise InputError("values must lie from low to high: give the bounds that every value keeps for certain")
    return (given - low) / (high - low)


def _mean_low(x: Floats, side: float) -> float:
    """Largest mean, from 0 to 1, at which the gambler's wealth reaches 1 / side."""
    # More by 1e-9 than needed: sums of logarithms are off by less.
    return largest(lambda mean: mean == 0 or _log_wealth(x, mean) >= 1e-9 - math.log(side), 0.0, float(x.mean()), 1e-8)


def _log_wealth(x: Floats, mean: float) -> float:
    """Logarithm of what 1 has become for a gambler who bets, value by value, on a larger mean than this."""
    stakes = 0.5 ** np.arange(1 + math.ceil(math.log2(len(x)) + 1e-9))[:, None]  # fixed before: 1, 1/2, ..., 1/n
    with np.errstate(divide="ignore"):  # the whole stake is lost at a value of 0
        wealth = np.log1p(stakes * (x / mean - 1)).sum(axis=1)
    return float(special.logsumexp(wealth) - math.log(len(stakes)))


def _against_privacy(counts: Counts, epsilon: float, delta: float, level: float = 0.0) -> float:
    ratio = math.exp(min(epsilon, 700.0))
    # Both inequalities of privacy bound TPR by a rising function of FPR; the smaller one is the hypothesis.
    return joint(counts, lambda fpr: np.minimum(ratio * fpr + delta, 1 - (1 - fpr - delta) / ratio), level=level)


def _tail_over_term(right: int, guesses: int, epsilon: float, tail: float) -> float:
    """P(X >= right) / P(X = right) for X binomial with odds e^epsilon."""
    log_term = (
        -special.betaln(right + 1, guesses - right + 1)
        - math.log(guesses + 1)
        - right * np.logaddexp(0.0, -epsilon)
        - (guesses - right) * np.logaddexp(0.0, epsilon)
    )
    # The terms of the tail fall at least geometrically: the way out where tail and term are too small for doubles.
    fall = (guesses - right) / (right + 1) * math.exp(min(epsilon, 700.0))
    series = 1 / (1 - fall) if fall < 1 else math.inf
    return min(series, math.exp(min(700.0, math.log(tail) - log_term)))


def _counts(wins: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[Floats, Floats]:
    k, n = np.asarray(wins), np.asarray(trials)
    if k.dtype.kind not in "iu" or n.dtype.kind not in "iu":
        raise InputError("wins and trials must be whole numbers: counts, not shares")
    if (n < 1).any():
        raise InputError("no trials were judged: make more releases, or give the judged part a larger share")
    if (k < 0).any() or (k > n).any():
        raise InputError("wins must be from 0 to trials")
    return k.astype(np.float64), n.astype(np.float64)


def _pair(part: str, some: int, whole: str, every: int) -> None:
    if checks.count(at_least=0, **{whole: every}) == 0:
        raise InputError(f"there are no {whole} among the judged trials: judge more trials, or a unit that has both")
    if checks.count(at_least=0, **{part: some}) > every:
        raise InputError(f"{part} must not exceed {whole}")


def _four(found: int, members: int, accused: int, others: int) -> Counts:
    _pair("found", found, "members", members)
    _pair("accused", accused, "others", others)
    return found, members, accused, others


def _like(found: Any, *asked: npt.ArrayLike) -> Any:
    """A number for numbers, an array for arrays."""
    return np.asarray(found) if any(np.ndim(one) for one in asked) else float(found)
