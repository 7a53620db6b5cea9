"""P-values of laws are valid in finite samples, and small where the law is another one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from leakcap.audit.attacks.noise import magnitudes, row_scores, within_cells
from leakcap.audit.statistics import epsilon_upper, laws

REPEATS, NUMBERS = 2_000, 60
LEVELS = (0.5, 0.1, 0.01)
ALARM = 1e-6  # chance that a valid p-value fails here


def often(p_values: list[float]) -> bool:
    """Whether p-values lie below a level more often than they may, by more than chance."""
    found = np.array(p_values)
    return any(special.bdtrc((found <= level).sum() - 1, len(found), level) < ALARM / len(LEVELS) for level in LEVELS)


TESTS = {
    "scores": lambda z: laws.scores_p_value(z[:5]),
    "energies": lambda z: laws.energies_p_value([(z[:30] ** 2).sum(), (z[30:] ** 2).sum()], 30),
    "distances": lambda z: laws.distances_p_value(laws.distances(special.ndtr(z[:, None])), len(z)),
    "counts": lambda z: laws.count_p_value((z > 1).sum(), len(z), float(special.ndtr(-1.0))),
    "extremes": lambda z: laws.extremes_p_value(float(np.abs(z).max()), len(z)),
    "magnitudes": lambda z: laws.scores_p_value(magnitudes(z)[:5]),
    "lengths": lambda z: laws.scores_p_value(row_scores(z.reshape(-1, 3))[:5]),
    "products": lambda z: laws.scores_p_value(magnitudes(z[:30]) @ z[30:] / np.linalg.norm(magnitudes(z[:30]))),
}


@pytest.mark.parametrize("name", TESTS)
def test_p_values_of_laws_are_valid(name: str) -> None:
    normals = np.random.default_rng().standard_normal((REPEATS, NUMBERS))
    assert not often([TESTS[name](row) for row in normals])


@pytest.mark.parametrize("name", TESTS)
def test_wrong_laws_are_caught(name: str) -> None:
    """The twin: the same on numbers of another size, and for products on numbers that know each other."""
    normals = 1.6 * np.random.default_rng().standard_normal((400, NUMBERS))
    if name == "products":
        normals[:, 30:] = np.abs(normals[:, :30]) - 1
    assert often([TESTS[name](row) for row in normals])


def test_splits_of_uniform_counts_are_normal() -> None:
    rng = np.random.default_rng()

    def p_value(chances: np.ndarray) -> float:
        scores = [
            laws.split_scores(rng.multinomial(trials, chances), rng) for trials in (3, 20, 400) for _ in range(60)
        ]
        flat = np.concatenate(scores)
        assert len(flat) == 180 * 12
        return laws.distances_p_value(laws.distances(special.ndtr(flat[:, None])), len(flat))

    assert p_value(np.full(13, 1 / 13)) > ALARM
    assert p_value(np.array([0.3, *np.full(12, 0.7 / 12)])) < ALARM


@pytest.mark.parametrize("step", [2.0**-10, 0.5, 3.0])
def test_rounded_noise_is_normal_again(step: float) -> None:
    rng = np.random.default_rng()
    worlds, normals = rng.normal(size=20_000), rng.standard_normal(20_000)
    cell = step * np.rint((worlds + normals) / step) - worlds
    again = within_cells(cell, step, rng)
    distance = lambda numbers: laws.distances_p_value(  # noqa: E731
        laws.distances(special.ndtr(numbers[:, None])), len(numbers)
    )
    assert distance(again) > ALARM
    assert laws.scores_p_value(worlds @ again / np.linalg.norm(worlds)) > ALARM
    if step > 1:  # the twin: cells taken for the noise itself
        assert distance(cell) < ALARM


def test_the_upper_epsilon_is_seldom_too_small() -> None:
    """Randomised response at epsilon 1: below the truth in at most 5 of 100 cases, and most often not far above."""
    rng, rate = np.random.default_rng(), float(special.expit(1.0))
    found, accused = rng.binomial(300, rate, size=1_000), rng.binomial(300, 1 - rate, size=1_000)
    ends = np.array(
        [epsilon_upper(int(a), 300, int(b), 300, delta=0.0, alpha=0.05) for a, b in zip(found, accused, strict=True)]
    )
    assert special.bdtrc((ends < 1).sum() - 1, 1_000, 0.05) > ALARM
    assert np.median(ends) < 1.5
    seen = np.log(found / accused)  # the twin: the ratio of what was seen
    assert special.bdtrc((seen < 1).sum() - 1, 1_000, 0.05) < ALARM
    assert epsilon_upper(300, 300, 0, 300, delta=0.0, alpha=0.05) == np.inf
