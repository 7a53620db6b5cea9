"""Parties compute what one holder of all rows would: the same statistic, the same noise but for its law."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from leakcap import stats
from leakcap.local import JointQuestion, together
from leakcap.local.parties import computation, entry, law
from tests.parties import free_places, in_forks, small_question

RNG = np.random.default_rng(20)
ROWS = [np.column_stack([RNG.random(n), RNG.random(n) * 10]) for n in (40, 7, 25)]
EDGES = (0.0, 0.3, 0.6, 10.0)


async def no_noise(sharing, numbers, law, tossing):
    return sharing.array(np.zeros(numbers, dtype=object))


def without_noise(rows, question, places, number):
    """A party's part, for these tests alone: nothing in the package takes such an order."""
    computation._noise = no_noise
    return together(rows, question, join=places, party=number + 1, seconds=30)


def answers(rows, question):
    places = free_places(len(rows))
    return in_forks([partial(without_noise, own, question, places, i) for i, own in enumerate(rows)])


@pytest.mark.parametrize("ask", ["mean", "histogram", "covariance"])
def test_without_noise_the_answer_is_the_statistic_of_all_rows(ask):
    question = small_question(ask=ask, edges=EDGES if ask == "histogram" else None)
    found = answers(ROWS, question)
    union = np.vstack(ROWS)
    plain = {
        "mean": stats.mean,
        "histogram": partial(stats.histogram, edges=EDGES),
        "covariance": stats.covariance,
    }[ask](union)
    for one in found:
        np.testing.assert_allclose(one.value, plain, rtol=1e-6, atol=1e-7)


def test_without_noise_ridge_is_that_of_all_rows():
    from sklearn.linear_model import Ridge

    question = JointQuestion("ridge", ("a",), {"a": (0, 1), "b": (0, 10)}, target="b", alpha=2.0, cap=0.9)
    rows = [np.column_stack([x := RNG.random(n), 3 * x + RNG.random(n)]) for n in (300, 200, 400)]
    found = answers(rows, question)
    union = np.vstack(rows)
    plain = Ridge(alpha=2.0).fit(union[:, :1], union[:, 1])
    # Beside noise of the stated size, which is not there now, a small variance would be held back: this one is not.
    np.testing.assert_allclose(found[0].value["coefficients"][0], plain.coef_, rtol=1e-3)
    np.testing.assert_allclose(found[0].value["intercept"], plain.intercept_, rtol=1e-2)


@pytest.mark.parametrize(("parties", "threshold"), [(4, 1), (5, 2)])
def test_more_parties_and_a_larger_threshold_find_the_same(parties, threshold):
    rows = [RNG.random((3 + i, 2)) * (1, 10) for i in range(parties)]
    found = answers(rows, small_question(parties=parties, threshold=threshold))
    for one in found:
        np.testing.assert_allclose(one.value, np.vstack(rows).mean(axis=0), rtol=1e-6)


def test_rows_outside_the_bounds_are_cut_to_them():
    rows = [np.array([[5.0, -3.0]]), np.array([[0.5, 5.0]]), np.array([[-1.0, 10.0]])]
    found = answers(rows, small_question())
    np.testing.assert_allclose(found[0].value, [(1 + 0.5 + 0) / 3, (0 + 5 + 10) / 3], atol=1e-6)


def picked_counts(rows, question, places, number):
    computation._noise = no_noise
    return together(rows, question, join=places, party=number + 1, seconds=30).value


def test_with_coins_some_of_the_rows_are_in_it():
    # Bins tell whose row it is: each is there twice or not at all, on the scale of all rows.
    rows = [np.array([[0.05 + 0.1 * place] for place in range(start, start + 3)]) for start in (0, 3, 6)]
    edges = tuple(np.linspace(0, 1, 11))
    question = JointQuestion("histogram", ("a",), {}, edges=edges, design="bits", rows=4, cap=0.6)
    seen = set()
    for _ in range(3):
        places = free_places(3)
        found = in_forks([partial(picked_counts, own, question, places, i) for i, own in enumerate(rows)])
        assert all(np.array_equal(one, found[0]) for one in found)
        shares = np.asarray(found[0][0])
        heights = shares[shares > 1e-9]
        assert np.allclose(heights, heights[0] if len(heights) else 0)
        assert shares[9] == 0
        seen.add(tuple(shares > 1e-9))
    assert len(seen) > 1  # 9 coins, three times: all alike once in 2^18


def noise_in_deviations(question, places, number, halved=False):
    """What is opened where nobody has any rows, in deviations of the noise that is certified."""
    law._coins = lambda numbers: 256
    if halved:
        whole = law.CoinLaw.weights
        law.CoinLaw.weights = lambda self: whole(self) // 2
    seen, real = [], entry._answer

    def kept(part, total, transcript):
        seen.append(total.astype(float) * part.noise.law.step)
        return real(part, total, transcript)

    entry._answer = kept
    together(np.empty((0, 5)), question, join=places, party=number + 1, seconds=30)
    return seen[0]


@pytest.mark.parametrize(("halved", "expected"), [(False, 1.0), (True, 0.25)])
def test_the_noise_of_an_answer_has_the_size_that_is_certified(halved, expected):
    columns = tuple("abcde")
    question = JointQuestion("histogram", columns, {}, edges=tuple(range(41)), cap=0.9)
    places = free_places(3)
    works = [partial(noise_in_deviations, question, places, number, halved) for number in range(3)]
    noise = in_forks(works)[0]
    # Five deviations of the estimate of a variance from 200 numbers; the planted half is far outside.
    assert abs(noise.var() / expected - 1) < 5 * np.sqrt(2 / len(noise))
    assert (abs(noise.var() - 1) < 5 * np.sqrt(2 / len(noise))) == (not halved)


def test_every_party_gets_the_same_answer_and_certificate():
    places = free_places(3)
    question = small_question()
    found = in_forks([partial(together, rows, question, join=places, party=i + 1) for i, rows in enumerate(ROWS)])
    assert all(np.array_equal(one.value, found[0].value) for one in found)
    assert {str(one.certificate) for one in found} == {str(found[0].certificate)}
    assert {one.transcript.openings for one in found} == {found[0].transcript.openings}
    assert [(one.what, one.numbers) for one in found[0].transcript.openings] == [("the noisy answer", 3)]
