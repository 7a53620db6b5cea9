"""The shape of noise that looks at people, against the least noise there is: also where many people bring the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from leakcap.noise import leverage

SIZES = np.array([9000, 6000, 3000, 1000, 600, 250, 100, 30, 12, 5, 2, 1])  # of groups: 20,000 people in 12 of them
GROUP = np.repeat(np.arange(12), SIZES)
SCALES = np.linspace(1, 4, 12)


def total_noise(moves: np.ndarray, shape: np.ndarray) -> float:
    """Of the multiple of a shape under which nobody's `a' S^-1 a` is above 1."""
    return float(np.trace(shape) * np.einsum("ni,ij,nj->n", moves, np.linalg.inv(shape), moves).max())


def least_noise(kinds: np.ndarray) -> float:
    """The least trace is, by duality, the largest `(tr M^(1/2))^2`, `M` a weighted mean of `a a'`: by an optimiser.

    Every such value is below the least trace, so that an optimiser that stops early only makes the test harder to pass.
    """

    def negative(logs: np.ndarray) -> float:
        weight = np.exp(logs - logs.max())
        values = np.linalg.eigvalsh((kinds * (weight / weight.sum())[:, None]).T @ kinds)
        return -float(np.sqrt(np.maximum(values, 0)).sum())

    return minimize(negative, np.zeros(len(kinds)), method="L-BFGS-B", options={"maxiter": 2000}).fun ** 2


def disjoint() -> tuple[np.ndarray, float]:
    """Everybody moves one number: the least variance of each is what its people move it by, squared."""
    return np.diag(SCALES)[GROUP], float((SCALES**2).sum())


def overlapping() -> tuple[np.ndarray, float]:
    """Two one-hot columns and a count, about their means: people of a group still bring the same."""
    kinds = np.hstack([np.eye(12), np.eye(4)[np.arange(12) % 4], np.ones((12, 1))])
    kinds = np.linalg.qr((kinds - SIZES @ kinds / SIZES.sum()).T)[1].T[:, :11]  # without directions that nobody moves
    return kinds[GROUP], least_noise(kinds)


@pytest.mark.parametrize("case", [disjoint, overlapping])
def test_people_who_bring_the_same_get_the_least_noise(case: Any) -> None:
    moves, least = case()
    shape = leverage.leverage_shape(moves)
    assert shape is not None
    assert least * (1 - 1e-6) <= total_noise(moves, shape) <= 1.01 * least


def test_the_optimiser_agrees_with_the_closed_form() -> None:
    assert least_noise(np.diag(SCALES)) == pytest.approx((SCALES**2).sum(), rel=1e-4)


@pytest.mark.parametrize("case", [disjoint, overlapping])
def test_a_planted_look_at_the_3000_heaviest_alone_is_caught(case: Any, monkeypatch: Any) -> None:
    """As it was once: people who bring the same share their group's weight, and large groups fall out."""
    moves, least = case()
    monkeypatch.setattr(leverage, "_distinct", lambda given: given)
    monkeypatch.setattr(leverage, "AGAIN", 1)
    shape = leverage.leverage_shape(moves)
    assert shape is not None
    assert total_noise(moves, shape) > 1.01 * least


def test_a_decomposition_that_does_not_converge_is_made_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = np.random.default_rng(4).standard_normal((40, 6))
    shape = leverage.leverage_shape(moves)

    def fails(_: np.ndarray) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    assert leverage.leverage_shape(moves) == pytest.approx(shape, abs=1e-12)
