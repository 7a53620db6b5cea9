"""Parties draw noise of the stated law, which none of them knows; and with every coin of a row, none knows that.

Numbers are drawn with few coins, many at a time. False alarms: each test below 1e-6, fixed beforehand.
"""

from __future__ import annotations

import asyncio
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from leakcap.local.parties import computation
from tests.parties import FEW_COINS, free_places, in_forks, meeting_of, shares_of

NUMBERS = 1000
LEVEL = 1e-6


async def drawn(loop, number, places, threshold):
    """Noise in many numbers, opened for the test, and this party's own coins."""
    meeting = await meeting_of(loop, number, places)
    sharing = shares_of(meeting, threshold)
    own = []
    tossed = computation.tossed

    def remembered(shape):
        own.append(tossed(shape))
        return own[-1]

    computation.tossed = remembered
    with sharing.entered():
        noise = await computation._noise(sharing, NUMBERS, FEW_COINS, list(range(threshold + 1)))
        found = await sharing.opened(noise, "noise")
    await meeting.goodbye()
    meeting.close()
    return found.astype(np.int64), own[0] if number <= threshold else None


def noise_of(parties=3, threshold=1, changed=None):
    places = free_places(parties)

    def part(number):
        if changed is not None:
            changed(number)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(drawn(loop, number, places, threshold))

    return in_forks([partial(part, number) for number in range(parties)])


def misfit(noise):
    """How unlikely the numbers are under the stated law: the p-value of a chi-square test."""
    cells = 1 << FEW_COINS.dither
    masses = np.repeat(FEW_COINS.masses(), cells) / cells
    expected = masses * len(noise)
    at = noise + FEW_COINS.middle
    if at.min() < 0 or at.max() >= len(masses):
        return 0.0
    seen = np.bincount(at, minlength=len(masses))
    edges, enough = [0], 0.0
    for place, mass in enumerate(expected):
        enough += mass
        if enough >= 10:
            edges.append(place + 1)
            enough = 0.0
    edges[-1] = len(masses)  # the rest counts with the last
    seen, expected = np.add.reduceat(seen, edges[:-1]), np.add.reduceat(expected, edges[:-1])
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))


def known_beforehand(noise, own):
    """Correlation of the noise with the noise that a party's own coins would make alone."""
    guess = (own * FEW_COINS.weights()).sum(axis=1)
    return abs(float(np.corrcoef(noise, guess)[0, 1]))


@pytest.mark.parametrize(("parties", "threshold"), [(3, 1), (5, 2)])
def test_noise_has_the_stated_law_and_nobody_knows_any_of_it(parties, threshold):
    found = noise_of(parties, threshold)
    noise = found[0][0]
    assert all(np.array_equal(one, noise) for one, _ in found)
    assert misfit(noise) > LEVEL
    limit = 5 / np.sqrt(NUMBERS)  # a correlation of nothing exceeds it once in two million
    for _, own in found[: threshold + 1]:
        assert known_beforehand(noise, own) < limit
    # A coalition of `threshold` knows the exclusive or of its coins: no more than one of them does.
    together = np.bitwise_xor.reduce([own for _, own in found[:threshold]])
    assert known_beforehand(noise, together) < limit


def or_for_xor(number):
    """A fault: coins show heads where any party's does."""

    async def planted(sharing, numbers, law, tossing):
        coins = await sharing.shared(computation.tossed((numbers, law.count)).astype(object), tossing)
        either = coins[0] + coins[1] - await sharing.product(coins[0], coins[1], size=numbers * law.count)
        return (either * law.weights().astype(object)[None, :]) @ np.ones(law.count, dtype=object) - law.middle

    computation._noise = planted


def one_party_tosses(number):
    """A fault: the first party's coins are all there is."""

    async def planted(sharing, numbers, law, tossing):
        coins = await sharing.shared(computation.tossed((numbers, law.count)).astype(object), tossing[:1])
        return (coins[0] * law.weights().astype(object)[None, :]) @ np.ones(law.count, dtype=object) - law.middle

    computation._noise = planted


def test_a_planted_law_and_a_planted_knower_are_caught():
    assert misfit(noise_of(changed=or_for_xor)[0][0]) < LEVEL
    known = noise_of(changed=one_party_tosses)
    assert misfit(known[0][0]) > LEVEL  # the law is right
    assert known_beforehand(known[0][0], known[0][1]) > 0.99  # but somebody knows it


async def picked(loop, number, places):
    meeting = await meeting_of(loop, number, places)
    sharing = shares_of(meeting, 1)
    with sharing.entered():
        own = computation.tossed((3, 700))
        coins = await computation._xor(sharing, own, [0, 1])
        found = await sharing.opened(coins, "coins")
    await meeting.goodbye()
    meeting.close()
    return found.astype(np.int64), own


def test_coins_of_rows_are_fair_and_nobody_knows_them():
    places = free_places(3)

    def part(number):
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(picked(loop, number, places))

    found = in_forks([partial(part, number) for number in range(3)])
    coins = found[0][0]
    assert set(np.unique(coins)) == {0, 1}
    limit = 5 / np.sqrt(coins.size)
    assert abs(2 * coins.mean() - 1) < limit
    for _, own in found[:2]:
        assert abs(np.corrcoef(coins.ravel(), own.ravel())[0, 1]) < limit
    agreed = found[0][1] ^ found[1][1]
    assert np.array_equal(coins, agreed)  # and what both know together, they are
