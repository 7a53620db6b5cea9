"""Sums of cut gradients: exact, charged by their length, and for every row the same whoever else is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.caps import as_caps
from leakcap.sessions.brought import Length
from leakcap.sessions.clock import TICKS, Clock
from leakcap.sessions.networks.sums import GradientSums, Pairs, cut
from leakcap.sessions.products import BITS
from leakcap.sessions.questions import SessionQuestion
from leakcap.sessions.seats import FEWEST, Seats
from leakcap.worlds import Units

CLOCK = Clock.of(as_caps(0.6))
SHAPES = ((3, 2), (1, 4))
GRAIN = 2.0 ** (-2 * BITS)
ROWS = np.random.default_rng(0).standard_normal((70, 3))
TARGETS = np.arange(70) % 3.0


def products(rows: np.ndarray, targets: np.ndarray) -> Pairs:
    """A product for three inputs and two outputs, and four numbers beside it."""
    ones = np.ones((len(rows), 1))
    return [(rows, np.stack([targets, 1 - targets], axis=1)), (ones, np.hstack([rows**2, targets[:, None]]))]


def gradients(rows: np.ndarray, targets: np.ndarray, clip: float) -> np.ndarray:
    """The same written out and cut, in units of clip."""
    (first, second), (_, rest) = products(rows, targets)
    whole = np.hstack([(first[:, :, None] * second[:, None]).reshape(len(rows), -1), rest])
    return whole / np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), clip)


def sums_of(rows: np.ndarray, targets: np.ndarray, units: Units | None = None, **how: Any) -> GradientSums:
    seats = Seats.of(rows, targets, 10)
    asked: dict[str, Any] = {"gradients": products, "clip": 0.8, "most_rows": 1, "finish": np.asarray, **how}
    return GradientSums(seats, shapes=SHAPES, units=units or Units.of(len(rows), None), **asked)


def total(sums: GradientSums, takes_part: np.ndarray) -> np.ndarray:
    everybody = np.ones(len(takes_part), dtype=bool)
    return np.asarray(sums.totals(np.full(10, 5.0), everybody, takes_part, everybody=True)[0])


def test_sums_are_those_of_cut_gradients_to_the_grid() -> None:
    takes_part = np.random.default_rng(1).random(70) < 0.5
    wanted = gradients(ROWS, TARGETS, 0.8)[takes_part].sum(axis=0)
    # A factor of length 1 loses 2^-18 in each of its numbers.
    assert np.allclose(
        total(sums_of(ROWS, TARGETS), takes_part) * GRAIN, wanted, atol=3 * takes_part.sum() * 2.0**-BITS
    )


def test_sums_of_many_equal_rows_are_exact() -> None:
    many = np.repeat(np.arange(5), [1, 255, 256, 70_000, 3])
    one = [total(sums_of(ROWS[:5], TARGETS[:5]), np.arange(5) == place) for place in range(5)]
    wanted = sum(int(number) * own for number, own in zip(np.bincount(many), one, strict=True))
    sums = sums_of(ROWS[many], TARGETS[many])
    assert len(sums.seats.rows) == 5, "equal rows are computed once"
    assert np.array_equal(total(sums, np.ones(len(many), dtype=bool)), wanted)


@pytest.mark.parametrize("held", [0, 2**25], ids=["made twice", "held"])
def test_everybody_is_charged_for_what_they_bring(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr("leakcap.sessions.networks.sums.MAX_HELD", held)
    units = Units.of(70, np.arange(70) // 3)
    sums = sums_of(ROWS, TARGETS, units, most_rows=3)
    deviations = sums.rounded(2 * sums.limits.least(CLOCK.share(0.5)), everybody=False)
    paid = sums.charges(deviations, CLOCK, everybody=False) / TICKS * CLOCK.square
    for person in range(units.count):
        brings = total(sums, np.arange(units.count) == person) * GRAIN
        assert paid[person] >= (2 * np.linalg.norm(brings) / deviations[0]) ** 2
    assert paid.max() <= 0.5 * CLOCK.square
    assert paid.min() < 0.7 * paid.max(), "not everybody pays alike"


def by_seat(rows: np.ndarray, targets: np.ndarray) -> Pairs:
    """What a row makes hangs on its place and on how many there are, as the last digits of matrix products do."""
    place = 1 + np.arange(len(rows))[:, None] / len(rows)
    return [(first * place, second) for first, second in products(rows, targets)]


def contributions(people: np.ndarray, gradients: Any) -> list[np.ndarray]:
    """Of the first four people, when others are in the pool."""
    sums = sums_of(ROWS[people], TARGETS[people], gradients=gradients)
    return [total(sums, people == person) for person in range(4)]


def test_what_somebody_brings_is_the_same_whoever_else_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    crowds = [np.arange(70), np.arange(4), np.r_[0, 1, 2, 3, 40:70], np.r_[69:20:-1, 3, 2, 1, 0]]
    found = [contributions(people, by_seat) for people in crowds]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    # The twin: rows that sit in the order in which they come.
    monkeypatch.setattr("leakcap.sessions.seats._seat", lambda held, seats: np.arange(len(held)) % seats)
    moved = [contributions(people, by_seat) for people in crowds]
    assert not all(np.array_equal(moved[0], other) for other in moved[1:])


def test_blocks_have_one_size_and_every_row_sits_once() -> None:
    for people in (1, 17, 70):
        seats = Seats.of(ROWS[:people], TARGETS[:people], 2**20)
        assert seats.blocks.shape[1] == FEWEST
        assert np.array_equal(np.sort(seats.blocks[seats.blocks >= 0]), np.arange(people))
        assert np.array_equal(seats.rows[seats.which], ROWS[:people])
    assert Seats.of(ROWS[:0], TARGETS[:0], 10).blocks.shape[0] == 0
    assert not total(sums_of(ROWS[:0], TARGETS[:0]), np.zeros(0, dtype=bool)).any()


def test_what_is_not_finite_counts_as_nothing() -> None:
    rows = ROWS.copy()
    rows[3], rows[5, 1], rows[7] = np.nan, np.inf, 1e200
    sums = sums_of(rows, TARGETS)
    for place in (3, 5, 7):
        assert not total(sums, np.arange(70) == place).any() and sums.lengths[sums.seats.which[place]] == 0
    fine = np.isfinite(rows).all(axis=1) & (rows[:, 0] < 1e100)
    assert np.array_equal(total(sums, np.ones(70, dtype=bool)), total(sums, fine))
    found, length = cut([(np.full((1, 2), 1e-170), np.full((1, 2), 1e170))], 1.0)
    assert length[0] <= 1 and np.abs(found[0][0].whole).max() <= 2**BITS


def test_a_row_whose_gradient_fails_takes_nobody_with_it() -> None:
    def fails(rows: np.ndarray, targets: np.ndarray) -> Pairs:
        if (rows[:, 0] == ROWS[9, 0]).any():
            raise IndexError("index 9 is out of range")
        return by_seat(rows, targets)

    everybody, others = np.ones(70, dtype=bool), np.arange(70) != 9
    whole, failing = sums_of(ROWS, TARGETS, gradients=by_seat), sums_of(ROWS, TARGETS, gradients=fails)
    assert np.array_equal(total(failing, everybody), total(whole, others))


def test_nobody_brings_more_than_was_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakcap.sessions.networks.sums.MAX_HELD", 0)
    called = []

    def grows(rows: np.ndarray, targets: np.ndarray) -> Pairs:
        called.append(len(rows))
        return [(first * 1e-3 * len(called), second) for first, second in products(rows, targets)]

    sums = sums_of(ROWS, TARGETS, gradients=grows)
    assert sums.lengths.max() > 0
    assert not total(sums, np.ones(70, dtype=bool)).any()
    assert len(called) == 2 * len(sums.seats.blocks), "everybody's gradients are made, whatever coins say"


SESSIONS, PERSON, CAP = 300, 11, 0.7


def guessed() -> float:
    """How often the best guess at one person is right, by whoever knows everybody else's coin and all gradients."""
    sums, right = sums_of(ROWS, TARGETS, clip=0.1), 0
    own = total(sums, np.arange(70) == PERSON) * GRAIN
    for seed in range(SESSIONS):
        session = lc.Session(ROWS, cap=CAP, seed=seed)
        answer, _ = session._desk.noised(SessionQuestion({"kind": "step"}, lambda _: sums, lambda _: True), 1.0)
        coins = session._desk.coins
        others = 2 * total(sums, coins & (np.arange(70) != PERSON)) * GRAIN
        taken = (answer.value - others - own) @ own > 0
        right += taken == coins[PERSON]
    return right / SESSIONS


def test_the_best_guess_at_one_person_succeeds_as_often_as_the_cap_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    # All gradients are longer than the clip, so that one step with a whole clock tells as much as it may. The standard
    # error is .027: three of them on either side.
    assert abs(guessed() - CAP) < 3 * 0.027
    # The twin: half of the noise, for a quarter of the price.
    monkeypatch.setattr(GradientSums, "limits", property(lambda self: Length(self.most_rows / 2, self.numbers)))
    honest = GradientSums.charges
    monkeypatch.setattr(GradientSums, "charges", lambda self, *how: honest(self, *how) // 4)
    assert guessed() > CAP + 3 * 0.027
