"""The law of the noise under `design="bits"`: honest releases pass, and noise that is no noise is refuted."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import leakcap as lc

BITS = import_module("leakcap.modes.bits")
X = np.random.default_rng(0).normal(size=(60, 3)) * [1, 10, 0.1]
ASKED = ["law"]
TRIALS = 4000
FEW = 1500  # for faults that stand out: p-values below 1e-20


def audited(fn: Any = lc.stats.mean, trials: int = TRIALS) -> Any:
    return lc.audit.run(lc.plan(fn, X, cap=0.6, design="bits", seed=1), attacks=ASKED, trials=trials)


@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.covariance])
def test_honest_noise_under_bits_is_not_refuted(fn: Any) -> None:
    report = audited(fn=fn)
    assert report.verdict != "refuted"
    assert min(finding.p_value for finding in report.findings) > 1e-4


def last_follows_from_first(numbers: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    return np.append(numbers[:-1], 1.59 * np.tanh(numbers[0]))


def cut(numbers: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    return np.clip(numbers, -2.5, 2.5)


def knows_the_answer(numbers: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    return numbers + 0.1 * np.sign(coordinates[0])


def larger_for_some(numbers: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    return numbers * (1.1 if coordinates[0] > 0 else 0.9)


def heavy(numbers: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    return np.where(np.abs(numbers) > 1, numbers * 1.1, numbers * 0.7)


@pytest.mark.parametrize("fault", [last_follows_from_first, cut, knows_the_answer, larger_for_some, heavy])
def test_planted_noise_under_bits_is_refuted(fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    released = BITS.released_vector

    class Bent:
        def __init__(self, randomness: Any, coordinates: np.ndarray) -> None:
            self.randomness, self.coordinates = randomness, coordinates

        def normals(self, size: int) -> np.ndarray:
            return fault(self.randomness.normals(size), self.coordinates)

    def bent(noise: Any, coordinates: Any, step: float, randomness: Any) -> Any:
        return released(noise, coordinates, step, Bent(randomness, coordinates))

    monkeypatch.setattr(BITS, "released_vector", bent)
    report = audited(trials=TRIALS if fault is knows_the_answer else FEW)
    assert report.verdict == "refuted"
    assert min(finding.p_value for finding in report.findings) < 1e-6
