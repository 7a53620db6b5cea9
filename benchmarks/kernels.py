"""All worlds at once against a loop of the same statistics, side by side; masks stay packed, compile time apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from leakcap import stats
from leakcap.datasets import dry_bean
from leakcap.errors import LeakcapError
from leakcap.kernels import kernel_of
from leakcap.worlds import Units, draw_worlds

WORLDS = 1024


def main() -> None:
    heads = f"{'one plain':>12}{'loop':>9}{'kernel':>10}{'faster':>9}{'price':>11}{'passes':>9}"
    print(f"{'work':<14}{'rows x columns':>16}{heads}")
    beans = _beans()
    _compare("mean", stats.mean, beans)
    _compare("covariance", stats.covariance, beans)
    _compare("mean", stats.mean, np.random.default_rng(0).normal(size=(1_000_000, 32)), timed=4)


def _beans() -> np.ndarray:
    try:
        return dry_bean().drop(columns="Class").to_numpy(dtype=np.float64)
    except LeakcapError:
        return np.random.default_rng(0).normal(size=(13_611, 16))


def _compare(name: str, function: Callable[..., Any], table: np.ndarray, timed: int = 32) -> None:
    """The loop is timed for some worlds and multiplied; kernel and plain statistic three times, the best counts."""
    rows, columns = table.shape
    units = Units.of(rows, None)
    worlds = draw_worlds(rows, WORLDS, np.random.default_rng(1))
    kernel = kernel_of(function)
    assert kernel is not None
    kernel((table[:64],), Units.of(64, None), draw_worlds(64, 4, np.random.default_rng(1)))  # compiles
    fast = min(_seconds(lambda: kernel((table,), units, worlds)) for _ in range(3))
    plain = min(_seconds(lambda: function(table)) for _ in range(3))
    loop = _seconds(lambda: [function(table[worlds.mask(w)]) for w in range(timed)]) / timed * WORLDS
    ones = np.ones(rows)
    once = min(_seconds(lambda: ones @ table) for _ in range(3))
    size = f"{rows:,} x {columns}"
    print(
        f"{name:<14}{size:>16}{1000 * plain:>9.2f} ms{loop:>7.2f} s{1000 * fast:>7.1f} ms{loop / fast:>7.0f} x"
        f"{fast / plain:>6.0f} fits{fast / once:>9.0f}"
    )


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
