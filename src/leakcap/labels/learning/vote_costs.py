"""What answers by noised votes cost: exact for normal noise, or by Rényi's divergences as others count.

One label moves one teacher, and so two of the vote counts by 1 each, at most. A question asked costs a look at the
largest count, an answer a look at all of them; both are charged for as many as may be, whatever happens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, ndtr, ndtri

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.gaussian import least_sigma

__all__ = ["CONVERSIONS", "VoteCosts", "apart_for", "success_of_votes"]

CONVERSIONS = ("exact", "newer", "classical")
_LARGEST = 1e5  # epsilon beyond which nothing is told


@dataclass(frozen=True)
class VoteCosts:
    """So many questions and answers at most, and the noise on either.

    Args:
        questions: rows that teachers are asked about, at most.
        answers: of these, that are answered, at most.
        sigma1: deviation of the noise on the largest count of a question; None where every question is answered.
        sigma2: deviation of the noise on each count of an answer.
        before: how many deviations apart a label moves a normal law that tells as much as what left before: that of a
            prior which teachers learn from.
    """

    questions: int
    answers: int
    sigma1: float | None
    sigma2: float
    before: float = 0.0

    def __post_init__(self) -> None:
        checks.count(questions=self.questions)
        checks.count(answers=self.answers)
        checks.positive(sigma2=self.sigma2)
        checks.nonnegative(before=self.before)
        if self.sigma1 is not None:
            checks.positive(sigma1=self.sigma1)
        if self.answers > self.questions:
            raise InputError("there cannot be more answers than questions")

    @property
    @proves("label-votes")
    def apart(self) -> float:
        """How many deviations apart one label moves a normal law that tells as much as all votes together.

        Guarantee: whatever is asked in the light of answers before, all that leaves is made, at random and without the
        labels, of one normal variable whose mean a label moves by this many deviations.
        """
        asked = 0.0 if self.sigma1 is None else math.sqrt(self.questions) / self.sigma1
        return math.hypot(self.before, asked, math.sqrt(2 * self.answers) / self.sigma2) * (1 + 1e-12)

    def epsilon(self, delta: float, conversion: str = "exact") -> float:
        """The least epsilon for this delta.

        Args:
            delta: probability with which epsilon may fail.
            conversion: "exact" by the law itself; "newer" (Canonne, Kamath, Steinke) or "classical" by its Rényi
                divergences, which are larger and valid too.
        """
        delta = checks.fraction(delta=delta)
        checks.choice(CONVERSIONS, conversion=conversion)
        if conversion == "exact":
            return _exact(self.apart, delta)
        return _by_renyi(self.apart**2 / 2, delta, newer=conversion == "newer")


def _exact(apart: float, delta: float) -> float:
    def excess(epsilon: float) -> float:
        lost = epsilon / apart
        return float(ndtr(apart / 2 - lost) - np.exp(epsilon + log_ndtr(-apart / 2 - lost))) - delta

    if excess(0.0) <= 0:
        return 0.0
    if excess(_LARGEST) > 0:
        raise InputError("so little noise hides no label: choose larger sigmas, or fewer questions")
    return float(brentq(excess, 0.0, _LARGEST, xtol=1e-12, rtol=1e-12)) * (1 + 1e-9)


def _by_renyi(rate: float, delta: float, *, newer: bool) -> float:
    """The least over all orders of what divergences `order * rate` say."""

    def said(log_above: float) -> float:
        above = math.exp(log_above)
        order = 1 + above
        more = math.log(above / order) - math.log(order) / above if newer else 0.0
        return order * rate - math.log(delta) / above + more

    found = minimize_scalar(said, bounds=(-25.0, 25.0), method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(found.fun) * (1 + 1e-9))


def apart_for(epsilon: float, delta: float) -> float:
    """The most deviations that a label may move a normal law, for this epsilon and delta."""
    return math.sqrt(2) / least_sigma(epsilon, delta)


@proves("label-votes")
def success_of_votes(apart: float, classes: int) -> float:
    """How often the best attacker names one of so many even classes, at most.

    Guarantee: any two labels are told apart no better than two normal laws so many deviations apart: what is accepted
    for a class with chance `b` under other labels is accepted with chance `Phi(quantile(b) + apart)` at most under its
    own. That is concave in `b`, and the mean of all `b` is `(1 - success) / (classes - 1)`.
    """
    low, high = 1 / classes, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        most = float(ndtr(ndtri((1 - middle) / (classes - 1)) + apart))
        low, high = (middle, high) if most >= middle else (low, middle)
    return min(1.0, high * (1 + 1e-9))
