"""`mode="individual"` for any function: brute force over all parts of small pools, by code that shares nothing with it.

Integrals are exact to 1e-5. Comparisons of counts state their false-alarm rate, 1e-4; generators are fixed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import leakcap as lc
from leakcap.leakage.drawn_alike import sampling_margin
from leakcap.modes import drawn_alike
from tests.claims.leakage.oracle import Line
from tests.claims.leakage.test_swaps import best_balanced
from tests.claims.worlds import laws

RNG = np.random.default_rng(8)
ROWS = np.concatenate([RNG.standard_normal(9), [9.0]])


def largest(rows: np.ndarray) -> float:
    return float(rows.max())


def middle(rows: np.ndarray) -> float:
    return float(np.median(rows))


def line(rows: np.ndarray) -> np.ndarray:
    """Two numbers: a slope and a level."""
    apart = np.arange(len(rows)) - (len(rows) - 1) / 2
    return np.array([apart @ rows / (apart @ apart), rows.mean()])


CASES: dict[str, tuple[Callable[..., Any], int, dict[str, Any]]] = {
    "largest": (largest, 10, {}),
    "median": (middle, 10, {}),
    "line": (line, 8, {"weights": "equal"}),
    "thirds": (middle, 9, {"rate": 1 / 3, "cap": 0.85}),
    "odd strata": (largest, 9, {"strata": np.arange(9) % 2}),
}


@functools.cache
def planned(name: str) -> lc.Plan:
    fn, n, options = CASES[name]
    common = {"cap": 0.75, "mode": "individual", "worlds": 768, "seed": 1}
    return lc.plan(fn, ROWS[-n:], **common | options)


def worlds_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    _, n, options = CASES[name]
    if "strata" in options:
        return laws.table(laws.stratified_halves(options["strata"].tolist()), n)
    return laws.table(laws.thirds(n) if "rate" in options else laws.halves(n), n)


def answers_of(plan: lc.Plan, masks: np.ndarray, rows: np.ndarray, fn: Callable[..., Any]) -> np.ndarray:
    """What is noised, in noise deviations, for every part."""
    made: Any = plan.releaser
    space = made.noise.space
    raw = np.array([np.ravel(fn(rows[mask])) for mask in masks])
    found = ((raw - space.centre) * space.scale) @ space.directions.T
    return np.clip(found, made.low, made.high) / made.noise.deviations


@pytest.mark.parametrize("name", CASES)
def test_no_attacker_over_all_parts_beats_the_certificate(name: str) -> None:
    fn, n, options = CASES[name]
    plan, (masks, chances) = planned(name), worlds_of(name)
    found = best_balanced(masks, chances, answers_of(plan, masks, ROWS[-n:], fn))
    assert (found <= plan.exposure + 1e-5).all()
    assert plan.certificate.membership_success <= options.get("cap", 0.75)
    assert plan.certificate.theorems[0] == "drawn-alike"
    assert plan.certificate.only_one_person


def test_every_figure_is_that_of_the_finite_game_and_the_margin() -> None:
    """Added up anew: the best attacker who is told the measured worlds, and McDiarmid's margin for all statements."""
    plan = planned("median")
    rows, pilots = ROWS, 768 // 8
    masks = plan.run.worlds.masks()[pilots:]
    assert plan.certificate.worlds == len(masks), "pilot worlds have chosen the noise: they are not measured"
    line_of = Line(answers_of(plan, masks, rows, middle)[:, 0], 1.0, points=2**12)
    margin = math.sqrt(math.log(10 * 161 / (1e-6 / 2)) / (2 * len(masks)))
    for unit in (0, 9):
        finite = line_of.membership(masks[:, unit])
        assert plan.exposure[unit] == pytest.approx(finite + margin, abs=2e-4)
        assert plan.exposure[unit] >= finite + margin - 1e-5


def test_the_noise_is_one_of_those_fixed_beforehand() -> None:
    """Multiples of what the pilot needs, 161 of them: the union is over these."""
    wanted = np.linspace(-40, 12, 4001)
    measured = drawn_alike._Measured(space=None, worlds=None, search=None, middle=0.37)  # type: ignore[arg-type]
    chosen = {round(measured.scale(float(one)), 9) for one in wanted}
    assert len(chosen) <= 161
    assert all(measured.scale(float(one)) >= one - 1e-9 for one in wanted)
    with pytest.raises(lc.CapError, match="more worlds"):
        measured.scale(0.37 + 61 * 0.2)


@pytest.mark.usefixtures("few_draws")
def test_the_list_of_noises_does_not_depend_on_the_cap() -> None:
    """Whoever recaps has seen figures of the measured worlds: every noise must be one of a single list."""
    loose = planned.__wrapped__("line")  # with few draws, unlike the others
    tight = loose.recap(0.7)
    steps = 2 * np.log(tight.noise.deviations / loose.noise.deviations) / 0.2
    assert np.ptp(steps) < 1e-9
    assert steps[0] == pytest.approx(round(steps[0]), abs=1e-9)
    assert steps[0] > 0.5


# ---- in how many lists of worlds it fails -------------------------------------------------------------------------


def sometimes(rows: np.ndarray) -> float:
    """Tells whether the tall one is in, in a fifth of all halves: when two others both are."""
    if not (np.isin(ROWS[:2], rows).all()):
        return 0.0
    return 2.0 if (rows == 9.0).any() else 1.0


MASKS, _ = laws.table(laws.halves(10), 10)
TRUE = np.array([sometimes(ROWS[mask]) for mask in MASKS])
LISTS, WORLDS, GAMMA = 4000, 64, 0.05


def noiseless(answers: np.ndarray, inside: np.ndarray) -> float:
    """Best success against the tall one where answers are seen as they are, each world as likely as the others."""
    return sum(max(inside[answers == y].sum(), (~inside[answers == y]).sum()) for y in (0.0, 1.0, 2.0)) / len(answers)


def failures(margin: float) -> int:
    """In how many lists of worlds the finite game and a margin lie below the truth for all halves."""
    rng, truth = np.random.default_rng(5), noiseless(TRUE, MASKS[:, 9])
    some = (rng.integers(len(MASKS), size=WORLDS) for _ in range(LISTS))
    return sum(noiseless(TRUE[one], MASKS[one, 9]) + margin < truth for one in some)


def test_the_margin_fails_no_more_often_than_gamma_allows() -> None:
    assert failures(sampling_margin(WORLDS, 1, GAMMA)) <= binom.isf(1e-4, LISTS, GAMMA)


def test_a_planted_margin_of_nothing_is_caught() -> None:
    assert failures(0.0) > binom.isf(1e-4, LISTS, GAMMA)


def test_on_average_the_finite_game_is_the_better_one() -> None:
    """Two hundred lists of 64 halves: the mean of the best attacker's success over them, against all halves."""
    rng, deviation = np.random.default_rng(3), 0.2
    truth = Line(TRUE, deviation, points=2**12).membership(MASKS[:, 9])
    found = []
    for _ in range(200):
        some = rng.integers(len(MASKS), size=64)
        found.append(Line(TRUE[some], deviation, points=2**10).membership(MASKS[some, 9]))
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) > truth + 4 * error
    assert min(found) < truth, "a single list may be lucky: hence the margin"
