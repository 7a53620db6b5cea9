"""Forests of fixed structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.parts import Case, beans
from leakcap.kernels.forest import forest
from leakcap.kernels.reference import plain_forest
from leakcap.worlds import draw_worlds

__all__ = ["cases", "large"]

TREES, DEPTH, CANDIDATES = 3, 5, 100
SMOOTHING, PENALTY = 0.5, 0.01  # what the private forest takes if nothing is said


def cases() -> list[Case]:
    """Dry Bean, 1,024 worlds."""
    return [_forest(*beans(), timed=16), _forest(*beans(), timed=8, steady=True)]


def large() -> list[Case]:
    """A million rows."""
    draw = np.random.default_rng(0)
    table = draw.normal(size=(1_000_000, 32))
    return [_forest(table, np.digitize(table[:, :8].sum(axis=1) + draw.normal(size=len(table)), [-2, 0, 2]), timed=1)]


def _forest(table: np.ndarray, labels: np.ndarray, timed: int, steady: bool = False) -> Case:
    worlds = draw_worlds(len(table), 1024, np.random.default_rng(1))
    shape: dict[str, Any] = {
        "nodes": np.random.default_rng(0).integers(0, table.shape[1], size=(TREES, 2**DEPTH - 1)),
        "thresholds": np.linspace(table.min(axis=0), table.max(axis=0), CANDIDATES + 2)[1:-1].T,
        "classes": int(labels.max()) + 1,
    }
    if steady:
        far = np.abs(np.linspace(-1, 1, CANDIDATES + 2)[1:-1])
        shape["penalties"] = np.tile(PENALTY * len(table) * far, (table.shape[1], 1))
        shape["smoothing"] = SMOOTHING
    return Case(
        f"forest, {TREES} x depth {DEPTH}" + (", steadied" if steady else ""),
        *table.shape,
        worlds.m,
        lambda rows: plain_forest(table[rows], labels[rows], **shape),
        lambda: forest(table, labels, worlds, **shape),
        _apart,
        timed=timed,
    )


def _apart(found: np.ndarray, chosen: list[int], plain: list[Any]) -> float:
    """The two must be equal to the last bit."""
    return max(float(np.abs(found[w] - one).max()) for w, one in zip(chosen, plain, strict=True))
