"""The epsilon that looks at votes: right as a figure, by brute force over all neighbours, and never a guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr

from leakcap.errors import InputError
from leakcap.labels.learning.data_dependent import (
    DataDependentEpsilon,
    answer_divergences,
    data_dependent,
    selection_divergences,
)
from leakcap.labels.learning.vote_costs import VoteCosts
from tests.claims.labels.test_votes import answer_chances

ORDERS = np.array([1.5, 2.0, 4.0, 8.0])


def neighbours(counts: list[int]) -> Any:
    """All counts that one teacher who changes its mind, or fails, may make."""
    for giver in [place for place, count in enumerate(counts) if count]:
        for taker in range(len(counts)):
            if taker != giver:
                other = list(counts)
                other[giver] -= 1
                other[taker] += 1
                yield other


def renyi(p: Any, r: Any, order: float) -> float:
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(r)) / (order - 1))


def worst(counts: list[int], sigma: float) -> Any:
    here = answer_chances(counts, sigma)
    laws = [answer_chances(other, sigma) for other in neighbours(counts)]
    return np.array([max(renyi(here, one, a) for one in laws) for a in ORDERS])


@pytest.mark.parametrize("sigma", [1.0, 2.0])
@pytest.mark.parametrize("counts", [[8, 0], [9, 2, 1], [9, 8], [12, 5, 5], [7, 0, 0]])
def test_no_neighbour_is_further_away_than_the_figure_says(counts: list[int], sigma: float) -> None:
    said = answer_divergences(np.array([counts], dtype=float), sigma, ORDERS)[0]
    assert (worst(counts, sigma) <= said + 1e-9).all()


def test_the_other_way_round_it_is_exceeded() -> None:
    """Why it is no guarantee: an attacker who saw a neighbour's answers is not bound by it."""
    counts, sigma = [12, 0, 0], 2.0
    here = answer_chances(counts, sigma)
    back = max(renyi(answer_chances(other, sigma), here, 2.0) for other in neighbours(counts))
    assert back > 2 * answer_divergences(np.array([counts], dtype=float), sigma, np.array([2.0]))[0, 0]


def test_a_figure_of_half_the_chance_is_too_small() -> None:
    """The twin: where teachers agree, a much smaller figure would be exceeded."""
    counts, sigma = [9, 8], 1.0
    said = answer_divergences(np.array([counts], dtype=float), sigma, ORDERS)[0]
    assert (worst(counts, sigma) > said / 8).any()


def test_agreement_makes_it_smaller_and_doubt_leaves_it() -> None:
    sure, unsure = (answer_divergences(np.array([one]), 2.0, ORDERS)[0] for one in ([60.0, 0.0], [10.0, 9.0]))
    assert (sure < 1e-3 * unsure).all() and unsure == pytest.approx(ORDERS / 4)


def test_selection_is_that_of_the_bit() -> None:
    largest, sigma, threshold = np.array([7.0]), 1.5, 6.0
    chance = [ndtr((count - threshold) / sigma) for count in (7.0, 6.0, 8.0)]
    laws = [np.array([one, 1 - one]) for one in chance]
    for place, order in enumerate(ORDERS):
        exact = max(max(renyi(laws[0], other, order), renyi(other, laws[0], order)) for other in laws[1:])
        assert selection_divergences(largest, threshold, sigma, ORDERS)[0, place] == pytest.approx(exact)


def test_it_is_smaller_than_what_is_charged_and_refuses_to_be_a_certificate() -> None:
    costs = VoteCosts(50, 50, 20.0, 10.0)
    said = data_dependent(np.tile([300, 3, 1], (50, 1)), costs, threshold=200)
    assert 0 < said.epsilon < said.charged == costs.epsilon(1e-5, "newer")
    assert not said.is_guarantee and "No guarantee" in str(said)
    with pytest.raises(InputError, match="guarantees nothing"):
        _ = said.certificate
    with pytest.raises(InputError, match="row for each question"):
        data_dependent([[1, 2]], costs)
    assert isinstance(said, DataDependentEpsilon)
