"""Private estimators without noise beside their plain twins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_wine

from tests.unit.estimators.making import every

WINE, SORTS = load_wine(return_X_y=True)
WINE = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, size=500)
NAMES = tuple(every())


def without_noise(private: Any, data: tuple[Any, ...], weight: Any = None) -> Any:
    """The estimator that would leave if all of the pool took part and nothing were added."""
    rows = private._rows(data[0], data[1] if len(data) > 1 else None, weight)
    mechanism = private._computation(rows)
    return mechanism.build(mechanism.answer(*mechanism.data))


def assert_alike(ours: Any, theirs: Any, names: tuple[str, ...], tolerance: float = 2e-3) -> None:
    for name in names:
        one, other = getattr(ours, name), getattr(theirs, name)
        if name == "components_":  # signs are free
            one, other = np.abs(one), np.abs(other)
        assert np.shape(one) == np.shape(other), name
        assert np.abs(np.asarray(one, dtype=float) - other).max() <= tolerance * np.abs(other).max() + 1e-12, name
