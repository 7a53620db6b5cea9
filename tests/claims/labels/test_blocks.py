"""Tables of chances that benchmarks compare with ours: each keeps its epsilon, and ours keeps as many labels as any."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.label_blocks import best, blocks, kept, loss, nats, randomised, with_prior

from leakcap import labels
from tests.claims.labels.laws import channel

RNG = np.random.default_rng(0)
PRIORS = [np.array([0.76, 0.24]), np.array([0.54, 0.35, 0.11]), *(RNG.dirichlet([0.7] * C) for C in (3, 4, 7))]
EPSILONS = (0.3, 1.0, 3.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", PRIORS, ids=len)
def test_every_table_has_rows_of_chances_and_keeps_epsilon(prior: np.ndarray, epsilon: float) -> None:
    made = [randomised(epsilon, prior), with_prior(epsilon, prior), best(epsilon, prior)]
    made += [blocks(epsilon, prior, sigma, alike) for sigma in (0.3, 1.0, 5.0) for alike in (0, 1, 2)]
    for table in made:
        assert table.min() >= -1e-12 and table.sum(axis=1) == pytest.approx(1)
        assert loss(np.maximum(table, 0)) <= epsilon + 1e-6


@pytest.mark.parametrize("prior", PRIORS, ids=len)
def test_blocks_normalised_in_the_wrong_block_exceed_epsilon(prior: np.ndarray) -> None:
    """The twin: rows of minor classes scaled to twice their chance of staying, and to a sum of 1 again."""
    table = blocks(1.0, prior, 0.1)
    planted = table + np.diag(np.diag(table))
    assert loss(planted / planted.sum(axis=1, keepdims=True)) > 1.05


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", PRIORS, ids=len)
def test_no_table_keeps_more_labels_than_a_response_with_a_prior(prior: np.ndarray, epsilon: float) -> None:
    most = kept(best(epsilon, prior), prior)
    assert kept(with_prior(epsilon, prior), prior) == pytest.approx(most, abs=1e-6)
    for sigma in (0.3, 1.0, 5.0):
        assert kept(blocks(epsilon, prior, sigma), prior) <= most + 1e-6


def test_tables_are_those_of_the_mechanisms() -> None:
    prior = PRIORS[3]
    for made, mechanism in (
        (with_prior(1.0, prior), labels.RRWithPrior(1.0, prior)),
        (randomised(1.0, prior), labels.KRR(1.0, 4)),
    ):
        chances, observed = channel(mechanism)
        assert made[:, observed] == pytest.approx(chances)
        assert nats(made, prior) == pytest.approx(mechanism.mutual_information(prior), rel=1e-6)


def test_blocks_of_even_classes_are_randomised_response() -> None:
    even = np.full(5, 0.2)
    assert blocks(1.0, even) == pytest.approx(randomised(1.0, even))
