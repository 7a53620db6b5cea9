"""Noised sums, then responses in their light: every course of both for small pools, and faults that must show.

Three people have one public number each. Sums by class are normal with a mean that labels move; only their part across
classes is looked at, since their sum over classes is public. They fall into cells, and what a cell makes of each person
is the prior of that person's response. Laws are written out here: of the code, settings and certificates are read.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import exp
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, softmax

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.labels.learning.sums_first import left_for_responses, most_nats, together
from leakcap.labels.mechanisms.classes import Classes
from leakcap.labels.statistics.sums import calibrated

NUMBERS = (1.0, -1.0, 0.4)  # in lengths of the longest row
ACROSS = {2: np.array([[1, -1]]) / np.sqrt(2), 3: np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])}
CELLS = {2: 600, 3: 60}  # in each direction
FAINT, SURE = 0.05, 1.0  # how much a deviation of the sums changes the odds of a prior, in nats
POOLS = [(2, 1.0, 0.4, 1e-5), (2, 2.5, 1.0, 1e-3), (3, 1.5, 0.5, 1e-3)]  # classes, epsilon, that of sums, delta


def stated(classes: int, epsilon: float, spent: float, delta: float) -> tuple[float, LabelCertificate, float]:
    """The noise on sums, the certificate of both, and the epsilon of responses: as the code has them."""
    prior = lc.labels.Ridge(spent, delta=delta)
    mechanism = calibrated(spent, delta, Classes(classes, None), rows=3, columns=1)
    left = left_for_responses(epsilon, prior)
    responses = lc.labels.RRWithPrior(left, np.full(classes, 1 / classes)).certificate(3)
    return mechanism.sigma, together(mechanism.certificate(3), responses, most_nats(left, classes)), left


def cells_of(classes: int, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the cells, brought back to classes, `(cells, classes)`; and their ends in each direction."""
    ends = np.linspace(-8 * sigma, 8 * sigma, CELLS[classes] - 1)
    middles = np.concatenate([ends[:1], (ends[1:] + ends[:-1]) / 2, ends[-1:]])
    grid = np.array(list(product(middles, repeat=classes - 1)))
    return grid @ ACROSS[classes], np.concatenate([[-np.inf], ends, [np.inf]])


def chances_of_cells(labels: tuple[int, ...], classes: int, sigma: float, ends: np.ndarray) -> np.ndarray:
    sums = np.zeros(classes)
    for number, label in zip(NUMBERS, labels, strict=True):
        sums[label] += number
    found = np.ones(1)
    for middle in ACROSS[classes] @ sums:
        inside = np.array([ndtr(high) - ndtr(low) for low, high in pairwise((ends - middle) / sigma)])
        found = np.outer(found, inside).ravel()
    return found


def response_laws(prior: np.ndarray, epsilon: float) -> np.ndarray:
    """`(cells, label, observation)`: the response among the likeliest classes of each cell."""
    cells, classes = prior.shape
    order = np.argsort(-prior, axis=1, kind="stable")
    kept = [exp(epsilon) / (exp(epsilon) + k) for k in range(classes)]
    sizes = (np.cumsum(np.take_along_axis(prior, order, axis=1), axis=1) * kept).argmax(axis=1) + 1
    found = np.zeros((cells, classes, classes))
    for cell, (size, ranked) in enumerate(zip(sizes, order, strict=True)):
        likely = ranked[:size]
        for label in range(classes):
            if label in likely:
                found[cell, label, likely] = 1 / (exp(epsilon) + size - 1)
                found[cell, label, label] = exp(epsilon) / (exp(epsilon) + size - 1)
            else:
                found[cell, label, likely] = 1 / size
    return found


class Pool:
    """The chance of every cell and all three observations, for every list of labels."""

    def __init__(self, classes: int, sigma: float, epsilon: float, steep: float = FAINT) -> None:
        self.classes = classes
        sums, ends = cells_of(classes, sigma)
        laws = [response_laws(softmax(steep * number / sigma * sums, axis=1), epsilon) for number in NUMBERS]
        self.law = {}
        for labels in product(range(classes), repeat=3):
            told = [law[:, label] for law, label in zip(laws, labels, strict=True)]
            seen = np.einsum("si,sj,sk->sijk", *told)
            self.law[labels] = chances_of_cells(labels, classes, sigma, ends)[:, None, None, None] * seen

    def neighbours(self) -> Any:
        for labels in self.law:
            for place, other in product(range(3), range(self.classes)):
                if other != labels[place]:
                    yield labels, (*labels[:place], other, *labels[place + 1 :])

    def delta(self, epsilon: float) -> float:
        """The largest, of all pairs of pools that differ in one label."""
        return max(
            float(np.maximum(self.law[one] - exp(epsilon) * self.law[two], 0).sum()) for one, two in self.neighbours()
        )

    def about_one(self) -> tuple[float, float]:
        """Success of the best guesser who knows the others, and nats, for even classes: the largest."""
        best = (0.0, 0.0)
        for place in range(3):
            for others in product(range(self.classes), repeat=2):
                rest = list(others)
                laws = np.stack([self.law[(*rest[:place], own, *rest[place:])] for own in range(self.classes)])
                mean = laws.mean(axis=0)
                with np.errstate(divide="ignore", invalid="ignore"):
                    nats = float(np.where(laws > 0, laws * np.log(laws / mean), 0).sum()) / self.classes
                best = max(best[0], float(laws.max(axis=0).sum()) / self.classes), max(best[1], nats)
        return best


@pytest.mark.parametrize("steep", [FAINT, SURE])
@pytest.mark.parametrize("pool", POOLS)
def test_one_label_changes_the_law_of_sums_and_responses_by_epsilon_and_delta_at_most(pool: Any, steep: float) -> None:
    sigma, certificate, left = stated(*pool)
    assert certificate.epsilon == pytest.approx(pool[1], rel=1e-12) and certificate.delta == pool[3]
    found = Pool(pool[0], sigma, left, steep)
    assert found.delta(certificate.epsilon) <= certificate.delta
    if steep == FAINT:  # a prior that is sure leaves most responses out
        assert found.delta(0.9 * certificate.epsilon) > certificate.delta  # and little is wasted


@pytest.mark.parametrize("pool", POOLS)
def test_responses_that_spend_all_of_epsilon_again_exceed_it(pool: Any) -> None:
    """The twin: the second stage takes epsilon whole, as if the sums had been free."""
    sigma, certificate, _ = stated(*pool)
    assert Pool(pool[0], sigma, certificate.epsilon).delta(certificate.epsilon) > 10 * certificate.delta


@pytest.mark.parametrize("pool", POOLS)
def test_no_guesser_and_no_nats_exceed_the_certificate_of_both(pool: Any) -> None:
    """The twin: responses with all of epsilon tell more than the certificate says."""
    sigma, certificate, left = stated(*pool)
    success, nats = Pool(pool[0], sigma, left).about_one()
    assert success <= certificate.guess_success and nats <= certificate.mutual_information
    assert success > certificate.prior_success + 0.5 * (certificate.guess_success - certificate.prior_success)
    success, nats = Pool(pool[0], sigma, 1.5 * certificate.epsilon).about_one()
    assert success > certificate.guess_success and nats > certificate.mutual_information
