"""A million units: a whole plan inside the memory limit, and a million outputs."""

from __future__ import annotations

import resource
import time

import numpy as np

import leakcap as lc
from benchmarks.records import record


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(n=1_000_000, d=10, m=1024) -> None:
    rng = np.random.default_rng(0)
    people = rng.standard_normal((n, d))
    before = peak()
    began = time.perf_counter()
    plan = lc.plan(lambda X: X.mean(axis=0), people, cap=lc.membership(0.55), worlds=m)
    cert, took = plan.certificate, time.perf_counter() - began
    print(
        f"{m:,} worlds x {d} outputs x {n:,} units: {took:.0f} s, peak memory {peak():.2f} GiB "
        f"({before:.2f} before), certified {cert.membership_success:.4f}, draws {cert.draws}"
    )
    record("scale-units", f"{took:.0f} s, peak memory {peak():.2f} GiB")
    wide = rng.standard_normal((200, 1_000_000)).astype(np.float32)
    began = time.perf_counter()
    plan = lc.plan(lambda X: X.mean(axis=0, dtype=np.float64), wide, cap=lc.membership(0.6), worlds=64)
    value = plan.release().value
    took = time.perf_counter() - began
    print(f"64 worlds x {value.size:,} outputs x 200 units: {took:.0f} s, peak {peak():.2f} GiB")
    record("scale-outputs", f"{took:.0f} s, peak memory {peak():.1f} GiB")
