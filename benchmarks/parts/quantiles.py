"""Quantiles of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.parts import Case, beans
from leakcap.kernels.moments import quantiles
from leakcap.worlds import draw_worlds

__all__ = ["cases", "large"]


def cases() -> list[Case]:
    """Dry Bean, 1,024 worlds."""
    table, _ = beans()
    return [_quantiles("median", table, [0.5], 16), _quantiles("quantiles .1 .5 .9", table, [0.1, 0.5, 0.9], 16)]


def large() -> list[Case]:
    """A million rows."""
    table = np.random.default_rng(0).normal(size=(1_000_000, 32))
    return [_quantiles("median", table, [0.5], 4), _quantiles("quantiles .1 .5 .9", table, [0.1, 0.5, 0.9], 4)]


def _quantiles(work: str, table: np.ndarray, q: list[float], timed: int) -> Case:
    worlds = draw_worlds(len(table), 1024, np.random.default_rng(1))
    return Case(
        work,
        *table.shape,
        worlds.m,
        lambda rows: np.quantile(table[rows], q, axis=0),
        lambda: quantiles(table, worlds, q),
        _apart,
        timed=timed,
    )


def _apart(found: np.ndarray, chosen: list[int], plain: list[Any]) -> float:
    """The two must be equal to the last bit."""
    return max(float(np.abs(found[w] - one).max()) for w, one in zip(chosen, plain, strict=True))
