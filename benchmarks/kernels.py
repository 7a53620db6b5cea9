"""All worlds at once against a loop of the same fits, side by side in one process; compiling is counted apart."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks.parts import Case, kmeans, moments, newton, quantiles, trees
from benchmarks.records import record, slug
from benchmarks.scale import peak
from leakcap.worlds import draw_worlds

REPEATS = 3


def main() -> None:
    """Dry Bean."""
    with tempfile.TemporaryDirectory() as empty:
        os.environ.setdefault("NUMBA_CACHE_DIR", empty)  # so that compiling is seen, and counted apart
        table("kernels", (case for part in (moments, quantiles, kmeans, newton, trees) for case in part.cases()))


def million() -> None:
    """The longer table: a million rows."""
    table("million", (case for part in (moments, quantiles, kmeans, trees) for case in part.large()))
    record("million-peak-memory", f"{peak():.1f} GiB, data and loops included")


def table(which: str, cases: Iterable[Case]) -> None:
    """A line for each case as it is measured, and its record."""
    rate = _product_rate()
    print(f"matrix products in f64: {rate / 1e9:.0f} Gflop/s on all cores")
    heads = ("one fit", "loop", "kernel", "faster", "price", "of product", "agrees", "compiles")
    print(f"{'work':<28}{'rows x columns':>16}" + "".join(f"{head:>12}" for head in heads), flush=True)
    for case in cases:
        line, seen = _measured(case, rate)
        print(line, flush=True)
        record(
            f"{which}-{slug(case.work)}",
            seen,
            topic="All worlds at once",
            claim=f"{case.work}, {case.rows:,} x {case.columns}, {case.worlds:,} worlds, against a loop",
            command=f"python -m benchmarks {which}",
            asked="-",
        )
    print(f"peak memory so far, data and loops included: {peak():.1f} GiB")


def _measured(case: Case, rate: float) -> tuple[str, str]:
    """The line of the table, and what the record keeps of it."""
    began = time.perf_counter()
    found = case.kernel()
    first = time.perf_counter() - began
    worlds = draw_worlds(case.rows, case.worlds, np.random.default_rng(1))  # the same that the case has drawn
    chosen = list(range(0, case.worlds, max(1, case.worlds // case.timed)))[: case.timed]
    pool = slice(None)  # no row needs to be picked
    plain, kernel, loop, answers = np.inf, np.inf, 0.0, []
    for turn in range(REPEATS):  # alternating: what disturbs one disturbs all
        kernel = min(kernel, _seconds(case.kernel))
        plain = min(plain, _seconds(lambda: case.plain(pool)))
        for w in chosen[turn::REPEATS]:
            start = time.perf_counter()
            answers.append((w, case.plain(worlds.mask(w))))
            loop += time.perf_counter() - start
    loop *= case.worlds / len(answers)
    ordered = sorted(answers, key=lambda one: one[0])
    apart = case.agreement(found, [w for w, _ in ordered], [one for _, one in ordered])
    price = f"{kernel / plain:.1f} fits"
    if case.passes is not None:
        case.passes()
        price = f"{kernel / min(_seconds(case.passes) for _ in range(REPEATS)):.0f} passes"
        price = f"{kernel / plain:.0f} / {price}"
    limit = f"{100 * case.flops / kernel / rate:.0f} %" if case.flops else "-"
    cells = (
        _time(plain),
        _time(loop),
        _time(kernel),
        f"{loop / kernel:.0f} x",
        price,
        limit,
        f"{apart:.0e}",
        _time(max(first - kernel, 0)),
    )
    size = f"{case.rows:,} x {case.columns}"
    line = f"{case.work:<28}{size:>16}" + "".join(f"{cell:>12}" for cell in cells)
    rated = f", {limit} of the product's rate" if case.flops else ""
    return line, f"{loop / kernel:.0f} times, {price}{rated}, agrees to {apart:.0e}"


def _product_rate() -> float:
    left = np.random.default_rng(0).normal(size=(1500, 1500))
    left @ left
    return 2 * 1500**3 / min(_seconds(lambda: left @ left) for _ in range(5))


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
