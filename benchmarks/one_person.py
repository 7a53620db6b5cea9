"""One person, any half: noise, cost, and what an attacker who knows everybody but two people reaches.

`python -m benchmarks.one_person [dry-bean-median] [dry-bean-medians] [dry-bean-ridge] [last]`. The attacker knows that
the secret half is one of two, which differ by a swap of the most exposed person with somebody outside, and runs the
plain function on both. The noise at which this attack is at the cap is what the bound by swaps cannot go below.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import binomtest

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets
from leakcap.noise import GRID, Seeded, released_vector
from leakcap.worlds import independent_worlds

CAP, TOPIC = 0.6, "Caps and noise"
PLAIN_WORLDS = 1024  # in which the function is simulated without any of this
GAMES, PAIRS, UNITS = 4000, 2048, 24


def dry_bean() -> Any:
    return datasets.dry_bean().select_dtypes("number").to_numpy(float)


def made_last() -> Any:
    """Nothing was tuned on it: skewed columns of several scales, ties, a few extreme people."""
    rng = np.random.default_rng(20261117)
    n = 6000
    income = np.exp(rng.normal(10, 1.1, n))
    visits = rng.negative_binomial(1, 0.08, n).astype(float)
    age = rng.integers(18, 95, n).astype(float)
    income[:5] *= 40
    return np.column_stack([income, visits, age, 0.3 * visits + rng.standard_t(3, n)])


def plain_seconds(fn: Callable[[Any], Any], table: Any) -> float:
    """CPU seconds of the function in `PLAIN_WORLDS` halves, one after the other."""
    rng, halves = np.random.default_rng(0), 64
    began = time.process_time()
    for _ in range(halves):
        fn(table[np.flatnonzero(rng.random(len(table)) < 0.5)])
    return (time.process_time() - began) * PLAIN_WORLDS / halves


def relative_noise(plan: lc.Plan) -> float:
    """Noise over sampling error, root mean square over all outputs that move."""
    halving = plan.summary().halving
    ratio = plan.noise.output_deviations[halving > 0] / halving[halving > 0]
    return float(np.sqrt((ratio**2).mean()))


class Pairs:
    """Answers of the plain function on halves that differ by a swap of one unit, in noise deviations."""

    def __init__(self, fn: Callable[[Any], Any], table: Any, plan: lc.Plan) -> None:
        self.fn, self.table, self.plan = fn, table, plan

    def coordinates(self, mask: Any) -> Any:
        made: Any = self.plan.releaser
        found = made.noise.space.project(np.ravel(self.fn(self.table[mask])))
        return np.clip(found, made.low, made.high)

    def pair(self, unit: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """With the unit, and with somebody else in its place."""
        mask = independent_worlds(len(self.table), 1, rng).mask(0)
        other = rng.choice(np.flatnonzero(mask != mask[unit]))
        swapped = mask.copy()
        swapped[[unit, other]] = mask[[other, unit]]
        both = self.coordinates(mask), self.coordinates(swapped)
        return both if mask[unit] else both[::-1]

    def lengths(self, unit: int, count: int, rng: np.random.Generator) -> Any:
        deviations = self.plan.noise.deviations
        pairs = (self.pair(unit, rng) for _ in range(count))
        return np.array([np.linalg.norm((one - two) / deviations) for one, two in pairs])


def most_exposed(pairs: Pairs, rng: np.random.Generator) -> int:
    """Of those whom the plan thinks most exposed, the one whom some hundred swaps show to be so."""
    some = np.argsort(-pairs.plan.exposure)[:UNITS]
    return int(max(some, key=lambda unit: ndtr(pairs.lengths(int(unit), 128, rng) / 2).mean()))


def needed_noise(lengths: Any) -> float:
    """The noise at which the attack is surely at the cap, two standard errors aside, as a multiple of the plan's."""
    low, high = 0.01, 2.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        told = ndtr(lengths / (2 * middle))
        sure = told.mean() - 2 * told.std() / np.sqrt(len(told))
        low, high = (middle, high) if sure > CAP else (low, middle)
    return low


def attacked(pairs: Pairs, unit: int, rng: np.random.Generator) -> tuple[int, int]:
    """How often the attacker is right about the unit in releases by the plan's own path."""
    noise, source, right = pairs.plan.noise, Seeded(7), 0
    for _ in range(GAMES):
        inside, outside = pairs.pair(unit, rng)
        coin = bool(rng.integers(2))
        released = released_vector(noise, inside if coin else outside, GRID, source)
        seen = noise.space.project(released)
        near = [np.linalg.norm((seen - at) / noise.deviations) for at in (inside, outside)]
        right += (near[0] < near[1]) == coin
    return right, GAMES


def measure(name: str, fn: Callable[[Any], Any], table: Any, what: str, asked: str) -> None:
    """Noise, attack and cost of one plan by swaps, and noise of the same function as a black box."""
    lc.plan(fn, table[:200], cap=0.7, mode="individual", seed=0)  # loads and compiles what it needs
    plain = plain_seconds(fn, table)
    began = time.process_time()
    plan = lc.plan(fn, table, cap=CAP, mode="individual", seed=0)
    took = time.process_time() - began
    pairs, rng = Pairs(fn, table, plan), np.random.default_rng(5)
    unit = most_exposed(pairs, rng)
    share = needed_noise(pairs.lengths(unit, PAIRS, rng))
    right, games = attacked(pairs, unit, rng)
    low, high = binomtest(right, games).proportion_ci(0.99)
    relative, certificate = relative_noise(plan), plan.certificate
    worlds = PLAIN_WORLDS + sum(count for _, count in certificate.draws)
    seen = (
        f"noise {relative:.3g} of the sampling error; certified {certificate.membership_success:.4f}, "
        f"attacked {right / games:.3f} ({low:.3f} to {high:.3f}); {1 / share:.2f} times the noise at which the attack "
        f"is at the cap; {worlds / PLAIN_WORLDS:.1f} times the worlds and {took / plain:.1f} times the CPU time of "
        f"{PLAIN_WORLDS:,} plain runs ({took:.3g} s)"
    )
    print(name, seen, flush=True)
    record(
        f"one-person-{name}",
        seen,
        topic=TOPIC,
        claim=f"{what}: one person, any half, cap {CAP:.2f}, by swaps; an attacker who knows all but two people",
        command=f"python -m benchmarks.one_person {name}",
        asked=asked,
    )


def black_box(name: str, fn: Callable[[Any], Any], table: Any, what: str) -> None:
    """The same function, of which nothing is known."""
    found = []
    for cap, mode in ((CAP, "individual"), (CAP, "confidence")):
        plan = lc.plan(fn, table, cap=cap, mode=mode, seed=0, worlds=8192)
        found.append(f"mode {mode}: {relative_noise(plan):.3g}")
    seen = f"noise over sampling error, 8,192 runs: {', '.join(found)}"
    print(name, seen, flush=True)
    record(
        f"one-person-any-{name}",
        seen,
        topic=TOPIC,
        claim=f"{what}: one person, any half, cap {CAP:.2f}, as a function that nothing is known about",
        command=f"python -m benchmarks.one_person any-{name}",
        asked="-",
    )


ASKED = "noise within 1.3 times of what an attack needs, less than ten times the plain runs"
PARTS: dict[str, Callable[[], None]] = {
    "dry-bean-median": lambda: measure(
        "dry-bean-median", lc.stats.median, dry_bean()[:, :1], "Dry Bean, median of one column", ASKED
    ),
    "dry-bean-medians": lambda: measure(
        "dry-bean-medians", lc.stats.median, dry_bean(), "Dry Bean, medians of all columns", ASKED
    ),
    "last": lambda: measure("last", lc.stats.median, made_last(), "data made last, medians of four columns", ASKED),
    "last-covariance": lambda: measure(
        "last-covariance", lc.stats.covariance, made_last(), "data made last, covariances of four columns", ASKED
    ),
    "any-dry-bean-median": lambda: black_box(
        "dry-bean-median", lambda rows: np.median(rows, axis=0), dry_bean()[:, :1], "Dry Bean, median of one column"
    ),
    "any-last": lambda: black_box(
        "last", lambda rows: np.median(rows, axis=0), made_last(), "data made last, medians of four columns"
    ),
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
