"""Drawing worlds: bits and a fix-up against one permutation per world."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.records import record
from leakcap.worlds import draw_worlds


def main(n=1_000_000, m=1024) -> None:
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    draw_worlds(n, m, rng)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(8):
        mask = np.zeros(n, dtype=bool)
        mask[rng.permutation(n)[: n // 2]] = True
        np.packbits(mask)
        np.packbits(~mask)
    plain = (time.perf_counter() - began) / 8 * m / 2
    print(f"{m:,} worlds x {n:,} units: {ours:.2f} s; permutations {plain:.1f} s (from 8): {plain / ours:.0f} x")
    record("masks", f"{ours:.1f} s, {plain / ours:.0f} times faster")
