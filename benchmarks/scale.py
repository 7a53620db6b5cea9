"""A million units: a whole plan inside the memory limit, what certifying it costs, and a million outputs."""

from __future__ import annotations

import resource
import time

import numpy as np

import leakcap as lc
from benchmarks.records import record
from leakcap.leakage.confidence import Attempts
from leakcap.noise import calibrate, subspace
from leakcap.noise.search import Goal
from leakcap.worlds import draw_worlds


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


def crowd(n=1_000_000, d=10, m=1024) -> None:
    """CPU seconds from the answers in all worlds to the certificate: search, certifying, known memberships."""
    rng = np.random.default_rng(0)
    people, worlds = rng.standard_normal((n, d)), draw_worlds(n, m, rng)
    outputs = np.zeros((m, d))
    for start in range(0, n, 2**14):
        tile = slice(start, min(start + 2**14, n))
        outputs += worlds.columns(tile).astype(np.float64) @ people[tile] / (n // 2)
    del people
    for size in (2000, n):  # the first one compiles
        some = worlds if size == n else draw_worlds(size, 64, rng)
        space = subspace(outputs[: some.m])
        began, before = time.process_time(), peak()
        found = calibrate(
            Goal.of([lc.membership(0.55)], some),
            space.coordinates,
            space.variances,
            attempts=Attempts(1e-6),
            rng=np.random.default_rng(1),
        )
        took = time.process_time() - began
    findings = found.findings
    print(
        f"{n:,} units x {m:,} worlds x {d} outputs after simulation: {took:.0f} CPU s, peak memory {peak():.2f} GiB "
        f"({before:.2f} before), certified {findings.membership:.4f}, {findings.effort}"
    )
    record(
        "scale-certifying",
        f"{took:.0f} CPU s, peak memory {peak():.2f} GiB",
        topic="Certifying: time and memory",
        claim=f"{n:,} units x {m:,} worlds x {d} outputs, membership capped at 0.55: from answers to certificate",
        command="python -m benchmarks crowd",
        asked="at most 100 CPU s, below 2 GiB",
    )
