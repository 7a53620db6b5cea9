"""The wire opens the answer alone: what a party sees is of one law for all rows of the others that have one answer.

Parties compute many times over with few coins, and keep everything that they send and receive. In one data set the
second party's sum is large and the third's small, in the other the other way round; all together they are the same.
Levels are fixed beforehand: 1e-6 for all features of a test together.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from leakcap.local.parties import shares
from leakcap.local.parties.computation import PartyBrings, noisy_total
from tests.parties import FEW_COINS, brought, free_places, in_forks, meeting_of, shares_of

RUNS = 120
FEWER = 60  # of faults, which show soon
LEVEL = 1e-6
FIRST, SECOND = ([5, -7], [900, 0], [-900, 3]), ([5, -7], [-900, 3], [900, 0])
PICKED = 2  # numbers of every message that are looked at


async def repeated(loop, number, places, part, runs=RUNS):
    """All that a party sees in many runs: of every message its step, its peer, its direction, its length, its bytes."""
    views = []
    meeting = await meeting_of(
        loop, number, places, watch=lambda message, payload: views[-1].append((message, payload))
    )
    sharing = shares_of(meeting, 1)
    answers = []
    with sharing.entered():
        for _ in range(runs):
            views.append([])
            answers.append((await noisy_total(sharing, part, FEW_COINS, meeting)).astype(np.int64))
    await meeting.goodbye()
    meeting.close()
    return views, np.array(answers), sharing.openings


def views_of(parts, planted=None, runs=RUNS):
    places = free_places(3)

    def part(number):
        if planted is not None:
            planted()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(repeated(loop, number, places, parts[number], runs))

    return in_forks([partial(part, number) for number in range(3)])


def order(view):
    """With each peer, in each direction: steps and lengths, in their order. Which peer is faster is chance."""
    return {
        (peer, sent): [(one.step, one.size) for one, _ in view if (one.party, one.sent) == (peer, sent)]
        for peer in (1, 2, 3)
        for sent in (False, True)
    }


def numbers(payload):
    return [int.from_bytes(payload[12 * at : 12 * at + 12], "little") for at in range(PICKED)]


def features(views):
    """Numbers of all received messages, and by how much each differs from that of the message before, in runs."""
    found = []
    for view in views:
        row = []
        for peer in (1, 2, 3):
            read = [numbers(payload) for one, payload in view if one.party == peer and not one.sent]
            row += [value for message in read for value in message]
            row += [
                later - before for one, next_one in pairwise(read) for before, later in zip(one, next_one, strict=True)
            ]
        found.append([value % shares.PRIME / shares.PRIME for value in row])
    return np.array(found)


def unlike(first, second):
    """The least p-value, times how many there are: of received numbers for uniform ones, and of two data sets alike."""
    one, other = features(first), features(second)
    tests = [kstest(column, "uniform").pvalue for column in (*one.T, *other.T)]
    tests += [ks_2samp(a, b, method="asymp").pvalue for a, b in zip(one.T, other.T, strict=True)]
    return min(tests) * len(tests)


@pytest.fixture(scope="module")
def seen():
    return [views_of([brought(total) for total in parts]) for parts in (FIRST, SECOND)]


def test_one_value_is_opened_in_a_run(seen):
    for data in seen:
        for _, _, openings in data:
            assert [one.what for one in openings] == ["the noisy answer"] * RUNS
            assert {one.numbers for one in openings} == {2}


def test_messages_have_one_order_and_one_length_whatever_the_rows(seen):
    for number in range(3):
        orders = [order(view) for data in seen for view in data[number][0]]
        assert all(one == orders[0] for one in orders)


def test_what_a_party_receives_is_uniform_and_of_one_law(seen):
    for number in range(3):
        assert unlike(seen[0][number][0], seen[1][number][0]) > LEVEL


def test_the_answer_is_the_sum_with_noise_of_the_stated_size(seen):
    for data in seen:
        answers = data[0][1]
        error = (answers - [5, -4]) / (FEW_COINS.deviation * 2**FEW_COINS.dither)
        assert np.abs(error.mean(axis=0)).max() < 5 / np.sqrt(RUNS)
        # The coins below weight 1 add a twelfth of a unit; four of five deviations of a variance's estimate.
        assert np.abs(error.var() - 1 - 1 / 12 / FEW_COINS.deviation**2).max() < 5 * np.sqrt(2 / (2 * RUNS))


def test_a_party_that_opens_more_is_caught_by_order_and_by_count():
    runs = 3

    def planted():
        async def sums_too(sharing, own, law, steps):
            parts = await sharing.shared(own.total.astype(object), [0, 1, 2])
            await sharing.opened(parts[1], "the second party's sums")
            return await real_total(sharing, own, law, steps)

        real_total = noisy_total
        globals()["noisy_total"] = sums_too

    data = views_of([brought(total) for total in FIRST], planted, runs)
    honest = views_of([brought(total) for total in FIRST], None, runs)
    assert {one.what for one in data[0][2]} != {one.what for one in honest[0][2]}
    assert order(data[0][0][0]) != order(honest[0][0][0])


def no_randomness():
    """A fault: shares are the numbers themselves."""
    shares._uniform = lambda count: np.zeros(count, dtype=object)


def little_randomness():
    """A fault: of 89 random bits, 88."""
    whole = shares._uniform
    shares._uniform = lambda count: whole(count) >> 1


def randomness_used_twice():
    """A fault: two messages of a run hide what they hold behind the same numbers."""
    whole, kept = shares._uniform, []

    def planted(count):
        kept.append(kept[-1] if len(kept) % 2 else whole(100))
        return kept[-1][:count]

    shares._uniform = planted


@pytest.mark.parametrize("planted", [no_randomness, little_randomness, randomness_used_twice])
def test_shares_that_are_not_uniform_are_caught_though_lengths_are_the_same(planted, seen):
    data = [views_of([brought(total) for total in parts], planted, FEWER) for parts in (FIRST, SECOND)]
    assert order(data[0][0][0][0]) == order(seen[0][0][0][0])
    assert unlike(data[0][0][0], data[1][0][0]) < LEVEL


def rows(total):
    return PartyBrings(2, 3, rows=np.array([total, [1, 1], [0, 0]], dtype=np.int64))


def test_with_coins_for_rows_the_wire_tells_no_more():
    data = [views_of([rows(total) for total in parts], runs=FEWER) for parts in (FIRST, SECOND)]
    for number in range(3):
        orders = [order(view) for one in data for view in one[number][0]]
        assert all(one == orders[0] for one in orders)
        assert unlike(data[0][number][0], data[1][number][0]) > LEVEL
