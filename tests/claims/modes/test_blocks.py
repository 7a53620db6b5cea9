"""Averages over blocks: who is in which block, what each block answers and how well one person shows are computed here
from the rows, by code that noise and certificate do not share."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, norm

import leakcap as lc
from leakcap.kernels.blocks import Blocks
from leakcap.kernels.bounded import Extent
from leakcap.worlds import Units
from tests.claims.modes.coins import Watched

CAP, POOL_CAP = lc.membership(0.6), lc.pool_membership(0.6)
FINE = 2.0**-32
VALUES = np.array([3.0, 1e9, 12.0, -40.0, 55.0, 70.0, 8.0, 99.0, 21.0])
NAMES = np.array([f"person {i}" for i in range(9)])


def hidden(rows: np.ndarray) -> float:
    """One for the person of the largest value, nothing otherwise: as telling as a function can be."""
    return float((rows == 1e9).any())


def failing(rows: np.ndarray) -> float:
    if (rows == 1e9).any():
        raise ValueError("somebody is here")
    return 1.0


def of_another_shape(rows: np.ndarray) -> Any:
    return rows if (rows == 1e9).any() else 1.0


def odd(rows: np.ndarray) -> float:
    """Whether the sum is odd: everybody decides."""
    return float(rows[rows < 1e8].sum() % 2)


def two_numbers(rows: np.ndarray) -> np.ndarray:
    return np.array([np.median(rows), len(rows)])


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "median": (np.median, (0, 100)),
    "largest": (np.max, (-10, 90)),
    "hidden": (hidden, (0, 1)),
    "odd": (odd, (0, 1)),
    "failing": (failing, (0, 1)),
    "another shape": (of_another_shape, (-1, 1)),
    "not a number": (lambda rows: np.nan if (rows == 1e9).any() else 1.0, (0, 1)),
    "two numbers": (two_numbers, ([0, 0], [100, 4])),
}
ATTAINED = {"hidden", "odd"}  # the person moves a block from one end of the bounds to the other


def planned(name: str, who: Any = slice(None), blocks: int = 3, **options: Any) -> lc.Plan:
    fn, bounds = FUNCTIONS[name]
    made = lc.blocks(fn, blocks=blocks, bounds=bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leakcap.kernels.blocks._warn", lambda text: None)  # such small blocks are too small
        return lc.plan(made, VALUES[who], unit=NAMES[who], seed=1, **{"cap": POOL_CAP} | options)


def moved(name: str, person: int) -> np.ndarray:
    """How far the sums over blocks move without a person, in noise deviations."""
    others = np.delete(np.arange(9), person)
    return (planned(name).releaser.total - planned(name, others).releaser.total) * FINE


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nobody_shows_by_more_than_the_cap_in_blocks(name: str) -> None:
    certified = planned(name).certificate.membership_success
    found = [float(norm.cdf(np.linalg.norm(moved(name, person)) / 2)) for person in range(9)]
    assert max(found) <= certified <= POOL_CAP.success
    assert certified > POOL_CAP.success - 1e-6, "no more noise than the cap needs"
    if name in ATTAINED:
        assert max(found) == pytest.approx(certified, abs=1e-6)


@pytest.mark.parametrize("name", ["median", "two numbers"])
def test_noise_and_certificate_are_the_same_without_the_person_in_blocks(name: str) -> None:
    whole, other = planned(name), planned(name, np.delete(np.arange(9), 1))
    assert np.array_equal(whole.noise.covariance(), other.noise.covariance())
    assert whole.certificate.to_json() == other.certificate.to_json()


def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: limits for half of the way from end to end, as if a block moved from its middle."""

    def half(self: Blocks) -> Extent:
        width = (self.high - self.low).ravel() / 2
        return Extent.together(width, width**-2.0)

    monkeypatch.setattr(Blocks, "extent", property(half))


def test_planted_limits_from_the_middle_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch)
    shown = float(norm.cdf(np.linalg.norm(moved("hidden", 1)) / 2))
    assert shown > planned("hidden").certificate.membership_success + 0.05


def test_blocks_that_depend_on_others_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a person's place among all others decides, which moves when somebody leaves."""
    dealt = lambda self, units, key=b"": np.arange(units.count)[units.of_row] % self.blocks  # noqa: E731
    monkeypatch.setattr(Blocks, "of_rows", dealt)
    shown = max(np.linalg.norm(moved("odd", person)) for person in range(9))
    assert norm.cdf(shown / 2) > planned("odd").certificate.membership_success + 0.02


# Keyed blocks, by an implementation of SipHash-2-4 of our own.


def turned(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & (2**64 - 1)


def siphash(key: bytes, text: bytes) -> int:
    k = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    v = [one ^ k[i % 2] for i, one in enumerate(start)]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) % 2**64
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) % 2**64
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) % 2**64
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) % 2**64
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for place in range(0, len(padded), 8):
        word = int.from_bytes(padded[place : place + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def block_of(name: str, key: bytes, blocks: int) -> int:
    x = siphash(key, name.encode())
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64  # pandas mixes once more, one to one
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return ((x ^ (x >> 31)) >> 32) * blocks >> 32


def test_our_siphash_is_the_published_one() -> None:
    assert siphash(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5


# A coin for everybody.


class Game:
    """All coins of a small pool: the sums over blocks for each, made of the rows by the code above."""

    def __init__(self, plan: lc.Plan, name: str, blocks: int = 3) -> None:
        fn, bounds = FUNCTIONS[name]
        self.block = plan.run.brings.of_row
        self.coins = np.array(list(product([False, True], repeat=9)))
        self.sums = np.array([self.total(fn, bounds, coins, blocks) for coins in self.coins])
        self.deviation = plan.noise.deviations

    def total(self, fn: Any, bounds: Any, coins: np.ndarray, blocks: int) -> np.ndarray:
        low, high = (np.atleast_1d(np.asarray(end, dtype=float)) for end in bounds)
        total = np.zeros(len(low))
        for block in range(blocks):
            inside = VALUES[coins & (self.block == block)]
            try:
                with np.errstate(all="ignore"):
                    answer = np.atleast_1d(np.asarray(fn(inside), dtype=float))
                usable = answer.shape == low.shape and bool(np.isfinite(answer).all())
            except (ValueError, IndexError, RuntimeWarning):
                usable = False
            total += np.clip(answer, low, high) - (low + high) / 2 if usable else 0.0
        return total


def coin_games(name: str) -> tuple[lc.Plan, Game]:
    plan = planned(name, cap=CAP, design="bits")
    return plan, Game(plan, name)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_attacker_beats_the_bound_in_blocks_whoever_else_is_known(name: str) -> None:
    plan, game = coin_games(name)
    certified = plan.certificate.membership_success
    worst = 0.0
    for person in range(9):
        without = game.sums[~game.coins[:, person]]  # in the same order: all coins but this one agree
        apart = (game.sums[game.coins[:, person]] - without) / game.deviation
        worst = max(worst, float(norm.cdf(np.linalg.norm(apart, axis=1).max() / 2)))  # also of the worst other coins
    assert worst <= certified <= CAP.success
    if name in ATTAINED:
        assert worst == pytest.approx(CAP.success, abs=1e-6)


@pytest.mark.parametrize("name", ["median", "hidden", "largest"])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_the_information_about_all_coins_in_blocks_equals_an_integration_at_most(name: str) -> None:
    plan, game = coin_games(name)
    means, deviation = game.sums[:, 0], float(game.deviation[0])

    def surprise(y: float) -> float:
        density = float(norm.pdf(y, means, deviation).mean())
        return -density * np.log(density) if density > 0 else 0.0

    ends = means.min() - 10 * deviation, means.max() + 10 * deviation
    information = quad(surprise, *ends, limit=500)[0] - 0.5 * np.log(2 * np.pi * np.e * deviation**2)
    assert 0 < information <= plan.certificate.mutual_information


TRIALS = 1500


def attacked(plan: lc.Plan, person: int) -> int:
    """How often the likelihood ratio guesses a person's coin, of values from the release path, all others known."""
    game, source, right = Game(plan, "hidden"), Watched(7), 0
    for _ in range(TRIALS):
        value = plan.releaser.vector(source)
        coins = source.coins[:9].astype(bool)
        truth = bool(coins[person])
        ends = []
        for side in (False, True):
            coins[person] = side
            ends.append(game.sums[int(coins @ (256 >> np.arange(9)))])  # in the order of `game.coins`
        right += ((value - np.mean(ends, axis=0)) @ (ends[1] - ends[0]) > 0) == truth
    return right


def test_attacks_on_released_averages_stay_below_the_certificate_and_reach_it() -> None:
    plan = planned("hidden", cap=CAP, design="bits")
    right = attacked(plan, person=1)
    assert binomtest(right, TRIALS, plan.certificate.membership_success).pvalue > 1e-6
    assert right / TRIALS == pytest.approx(CAP.success, abs=0.05)


def test_attacks_catch_planted_limits_from_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch)
    plan = planned("hidden", cap=CAP, design="bits")
    right = attacked(plan, person=1)
    assert binomtest(right, TRIALS, plan.certificate.membership_success, alternative="greater").pvalue < 1e-6


def test_everybody_is_in_the_block_that_their_name_and_the_key_say() -> None:
    made = lc.blocks(np.median, blocks=5, bounds=(0, 1))
    key = bytes(range(100, 116))
    found = made.cut((VALUES,), Units.of(9, NAMES), key).of_row
    assert found.tolist() == [block_of(name, key, 5) for name in NAMES]
