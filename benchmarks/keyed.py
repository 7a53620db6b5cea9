"""Keyed coins and worlds: nanoseconds of one core for each id."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.records import record
from leakcap.worlds.keyed import keyed_bits, keyed_words, keyed_worlds

KEY = bytes(range(16))
WORLDS = 1024


def main(n=4_000_000) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(10**9, 10**10, n)
    ids = {"whole numbers": numbers, "texts": numbers.astype(str)}
    ids["texts as Python objects"] = ids["texts"].astype(object)
    for kind, names in ids.items():
        spent = _nanoseconds(lambda names=names: keyed_bits(names, KEY), n)
        print(f"coins, {kind} of ten digits: {spent:.0f} ns an id")
        record(
            f"keyed-{kind.replace(' ', '-').lower()}",
            f"{spent:.0f} ns of one core",
            topic="Beyond one machine",
            claim=f"The keyed coin of an id, {kind} of ten digits",
            command="python -m benchmarks keyed",
            asked="50 ns",
        )
    some = numbers[: n // 8]
    words = _nanoseconds(lambda: keyed_words(some, KEY, WORLDS // 2), len(some)) / (WORLDS // 2 // 64)
    masks = _nanoseconds(lambda: keyed_worlds(some, KEY, WORLDS), len(some)) / (WORLDS // 2 // 64)
    print(f"words of 64 worlds: {words:.0f} ns each, {masks:.0f} ns as masks")
    record(
        "keyed-worlds",
        f"{words:.0f} ns, {masks:.0f} ns as masks",
        topic="Beyond one machine",
        claim="64 pairs of keyed worlds for an id, of 1,024 worlds",
        command="python -m benchmarks keyed",
        asked="50 ns",
    )


def _nanoseconds(work, names: int) -> float:
    """Of the core that does it, the fastest of three: other programs make it wait, not work."""
    work()
    spent = []
    for _ in range(3):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent) / names * 1e9
