"""The certifying pass against the f32 matrix product of the same process, and the search against the pass."""

from __future__ import annotations

import sys
import time

import numpy as np

import leakcap as lc
from benchmarks.records import record
from leakcap.leakage import Attempts, Sampled, observe_units
from leakcap.leakage.measures import thresholds
from leakcap.noise import subspace
from leakcap.noise.search import Goal
from leakcap.worlds import draw_worlds


def product_rate(seconds=1.0):
    """f32 flops per second of numpy's own product, all cores, at a shape that suits it."""
    a, b = np.ones((2048, 2048), np.float32), np.ones((2048, 2048), np.float32)
    a @ b
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        a @ b
        done += 1
    return done * 2 * 2048**3 / (time.perf_counter() - began)


def main(m=1024, n=13_611, d=112, draws=16_384, repeats=3) -> None:
    rng = np.random.default_rng(0)
    worlds = draw_worlds(n, m, rng)
    people = rng.standard_normal((n, d))
    outputs = np.stack([people[worlds.mask(w)].mean(axis=0) for w in range(m)])
    space = subspace(outputs)
    points = space.coordinates / np.sqrt(space.variances) / 4
    cuts = thresholds(0.5)
    observe_units(Sampled(points, 256, np.random.SeedSequence(0)), worlds, cuts)  # compile
    flops = 2 * draws * (m // 2) * n + 2 * draws * m * points.shape[1]
    for _ in range(repeats):
        rate = product_rate()
        began = time.perf_counter()
        observe_units(Sampled(points, draws, np.random.SeedSequence(1)), worlds, cuts)
        took = time.perf_counter() - began
        share = flops / took / rate
        print(
            f"{m:,} worlds x {n:,} units x {d} outputs x {draws:,} draws: {took:.2f} s, {flops / took / 1e9:.1f} "
            f"Gflop/s of {rate / 1e9:.1f} = {share:.0%} (as if unpaired: {2 * share:.0%})"
        )
    record("rate-pass", f"{took:.1f} s, {share:.0%} of the product's rate in executed flops")
    search_against_pass(space, worlds)


def search_against_pass(space, worlds) -> None:
    """A whole calibration, timed in its two parts."""
    module = sys.modules["leakcap.noise.calibrate"]
    whole, passes = module.certify, []

    def timed(*args, **options):
        began = time.perf_counter()
        found = whole(*args, **options)
        passes.append(time.perf_counter() - began)
        return found

    module.certify = timed
    try:
        began = time.perf_counter()
        caps = (lc.membership(0.55),)
        done = module.calibrate(
            Goal.of(caps, worlds),
            space.coordinates,
            space.variances,
            attempts=Attempts(1e-6),
            rng=np.random.default_rng(3),
        )
        total = time.perf_counter() - began
    finally:
        module.certify = whole
    search = total - sum(passes)
    print(
        f"calibration to 0.55: certified {done.findings.membership:.4f} in {len(passes)} attempt(s) of "
        f"{np.mean(passes):.1f} s ({done.findings.effort.stages[-1]:,} draws); search {search:.1f} s = "
        f"{search / np.mean(passes):.2f} passes"
    )
    record("rate-search", f"{search / np.mean(passes):.2f} passes")
