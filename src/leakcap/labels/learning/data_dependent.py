"""An epsilon that looks at the votes themselves: smaller where teachers agree, and no guarantee. For comparison alone.

It is a function of the labels that are to be hidden, so that whoever sees it learns of them; papers print it beside
what is certified. Nothing here leaves through a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy.special import erfc, log_ndtr, logsumexp

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.labels.learning.vote_costs import VoteCosts

__all__ = ["DataDependentEpsilon", "answer_divergences", "data_dependent", "selection_divergences"]

ORDERS = np.concatenate([np.arange(1.1, 10, 0.1), np.arange(10, 64, 1.0), np.geomspace(64, 4096, 60)])
_LEAST = 1e-300


@dataclass(frozen=True)
class DataDependentEpsilon:
    """What papers print as the epsilon of votes: custodian side, never to be published.

    Args:
        epsilon: by the votes themselves.
        delta: of it.
        charged: the epsilon that is certified, whatever the votes are.
    """

    epsilon: float
    delta: float
    charged: float

    @property
    def is_guarantee(self) -> bool:
        return False

    @property
    def certificate(self) -> NoReturn:
        """There is none."""
        raise InputError(
            "an epsilon that was computed from the votes tells about the labels itself, and guarantees nothing: "
            "publish the certificate of PATE, whose epsilon is the same whatever the labels are"
        )

    def __str__(self) -> str:
        return (
            f"No guarantee: epsilon {self.epsilon:.4g} (delta {self.delta:g}) by the votes themselves, which are "
            f"secret; certified whatever they are: {self.charged:.4g}"
        )


@proves("label-votes")
def data_dependent(
    votes: npt.ArrayLike, costs: VoteCosts, *, threshold: float = 0.0, delta: float = 1e-5
) -> DataDependentEpsilon:
    """Rényi divergences of the election that took place, added up over questions and the answers expected.

    Args:
        votes: `(questions, classes)` counts; secret.
        costs: what was asked, and the noise.
        threshold: of the selection.
        delta: probability with which epsilon may fail.

    Returns:
        The figure, which refuses to be a certificate.
    """
    counts = np.asarray(votes, dtype=np.float64)
    if counts.ndim != 2 or len(counts) != costs.questions:
        raise InputError("votes must be a table with a row for each question and a column for each class")
    delta = checks.fraction(delta=delta)
    total, picked = np.zeros_like(ORDERS), np.ones(len(counts))
    if costs.sigma1 is not None:
        total += selection_divergences(counts.max(axis=1), threshold, costs.sigma1, ORDERS).sum(axis=0)
        picked = np.exp(log_ndtr((counts.max(axis=1) - threshold) / costs.sigma1))
    answered = answer_divergences(counts, costs.sigma2, ORDERS)
    total += (picked[:, None] * answered).sum(axis=0) * min(1.0, costs.answers / max(1e-12, picked.sum()))
    above = ORDERS - 1
    said = total + np.log(above / ORDERS) - (np.log(delta) + np.log(ORDERS)) / above
    return DataDependentEpsilon(max(0.0, float(said.min())), delta, costs.epsilon(delta, "newer"))


@proves("label-votes")
def answer_divergences(counts: Floats, sigma: float, orders: Floats) -> Floats:
    """`(questions, orders)`: divergence, at most, of the answers of these votes from those of any neighbour's.

    The other way round it says nothing: a neighbour's votes have an epsilon of their own.

    Where another class than the largest is named with a chance of `q` at most, the divergence is small (Theorem 6 of
    Papernot et al., 2018); where `q` is too large for that, `order / sigma^2`.
    """
    top = counts.max(axis=1)
    own = counts.argmax(axis=1)
    rest = erfc((top[:, None] - counts) / (2 * sigma)) / 2
    rest[np.arange(len(counts)), own] = 0.0
    chance = np.clip(rest.sum(axis=1), _LEAST, 1.0)
    return np.minimum(orders / sigma**2, _sure(chance[:, None], sigma, orders))


def _sure(q: Floats, sigma: float, orders: Floats) -> Floats:
    second = sigma * np.sqrt(np.maximum(-np.log(q), 0.0))
    first = second + 1
    with np.errstate(all="ignore"):
        one, two = first / sigma**2, second / sigma**2
        log_q = np.log(q)
        room = (second - 1) * two - second * np.log(first / (first - 1) * second / (second - 1))
        log_a = np.log1p(-q) - np.log1p(-np.exp((log_q + two) * (second - 1) / second))
        log_b = one - log_q / (first - 1)
        above = orders - 1
        said = logsumexp([np.log1p(-q) + above * log_a, log_q + above * log_b], axis=0) / above
    fits = (q < 1) & (second > 1) & (orders <= first) & (log_q <= room) & (log_q + two < 0) & np.isfinite(said)
    return np.where(fits, np.maximum(said, 0.0), np.inf)


@proves("label-votes")
def selection_divergences(largest: Floats, threshold: float, sigma: float, orders: Floats) -> Floats:
    """`(questions, orders)`: divergence between the bit of these largest counts and those of 1 more or less."""
    found = np.zeros((len(largest), len(orders)))
    here = [log_ndtr(sign * (largest - threshold) / sigma)[:, None] for sign in (1, -1)]
    for move in (-1.0, 1.0):
        there = [log_ndtr(sign * (largest + move - threshold) / sigma)[:, None] for sign in (1, -1)]
        for first, second in ((here, there), (there, here)):
            terms: Any = [orders * p - (orders - 1) * r for p, r in zip(first, second, strict=True)]
            found = np.maximum(found, logsumexp(terms, axis=0) / (orders - 1))
    return np.minimum(found, orders / (2 * sigma**2))
