"""Shares of right guesses, balanced success, and true beside false positive rates, from counts. Proof page: audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.statistics.tails import (
    at_least,
    check_part,
    checked_counts,
    first,
    high_end,
    joint,
    largest,
    low_end,
)
from leakcap.errors import InputError, NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["Balanced", "Rates", "interval", "p_value", "trials_to_decide", "true_positive_rate"]


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
    2^50, is left for `slack` 0 with the share at the bound, or as near as makes no difference. None, too, where an
    interval for so many trials cannot be computed: a forecast that fails takes no finding with it.

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

    needed = [_forecast(refuted)] if share > bound else []
    needed += [_forecast(holds)] if share < most or most >= 1 else []
    return min((n for n in needed if n is not None), default=None)


def _forecast(enough: Callable[[float], bool]) -> int | None:
    try:
        return first(enough)
    except NumericalError:
        return None


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
        check_part("right_members", self.right_members, "members", self.members)
        check_part("right_others", self.right_others, "others", self.others)

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
        checked_counts(self.found, self.members, self.accused, self.others)
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
    return Rates(found=found, members=members, accused=accused, others=others, alpha=alpha)


def _counts(wins: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[Floats, Floats]:
    k, n = np.asarray(wins), np.asarray(trials)
    if k.dtype.kind not in "iu" or n.dtype.kind not in "iu":
        raise InputError("wins and trials must be whole numbers: counts, not shares")
    if (n < 1).any():
        raise InputError("no trials were judged: make more releases, or give the judged part a larger share")
    if (k < 0).any() or (k > n).any():
        raise InputError("wins must be from 0 to trials")
    return k.astype(np.float64), n.astype(np.float64)


def _like(found: Any, *asked: npt.ArrayLike) -> Any:
    """A number for numbers, an array for arrays."""
    return np.asarray(found) if any(np.ndim(one) for one in asked) else float(found)
