"""One person, any half: noise, cost, and what attackers reach.

`python -m benchmarks.one_person [part ...]`, the parts are in `PARTS`. The bound by swaps is attained by an attacker
who is told the secret half but for one swap: that it is one of two halves, with the most exposed person and with
somebody else instead. This attacker runs the plain function on both. What this attack gains over a coin, two standard
errors aside, is what a bound by swaps cannot go below; nor can its noise go below that at which the attack is at the
cap. A second attacker plays the game that is promised, and knows nothing of the others: the best line between releases
with and without the person.
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
GAMES, PAIRS, UNITS, SEEDS = 4000, 16384, 24, 5
ASKED = "bound within 1.3 times of an attack, cost below ten times the plain runs"


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
    """Answers of the plain function on halves that differ by a swap of one unit."""

    def __init__(self, fn: Callable[[Any], Any], table: Any) -> None:
        self.fn, self.table = fn, table

    def half(self, rng: np.random.Generator) -> Any:
        return independent_worlds(len(self.table), 1, rng).mask(0)

    def answer(self, mask: Any) -> Any:
        return np.ravel(self.fn(self.table[mask]))

    def pair(self, unit: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """With the unit, and with somebody else in its place."""
        mask = self.half(rng)
        other = rng.choice(np.flatnonzero(mask != mask[unit]))
        swapped = mask.copy()
        swapped[[unit, other]] = mask[[other, unit]]
        both = self.answer(mask), self.answer(swapped)
        return both if mask[unit] else both[::-1]

    def pairs(self, unit: int, count: int, rng: np.random.Generator) -> Any:
        """`(2, count, d)`."""
        found = [self.pair(unit, rng) for _ in range(count)]
        return np.stack([np.stack(side) for side in zip(*found, strict=True)])


def noised_coordinates(plan: lc.Plan, answers: Any) -> Any:
    """In noise deviations, clipped as a release is."""
    made: Any = plan.releaser
    found = np.stack([made.noise.space.project(answer) for answer in answers])
    return np.clip(found, made.low, made.high) / plan.noise.deviations


def lengths(plan: lc.Plan, pairs: Any) -> Any:
    return np.linalg.norm(noised_coordinates(plan, pairs[0]) - noised_coordinates(plan, pairs[1]), axis=1)


def most_exposed(plan: lc.Plan, pairs: Pairs, rng: np.random.Generator) -> int:
    """Of those whom the plan thinks most exposed, the one whom some hundred swaps show to be so."""
    some = np.argsort(-plan.exposure)[:UNITS]
    return int(max(some, key=lambda unit: ndtr(lengths(plan, pairs.pairs(int(unit), 128, rng)) / 2).mean()))


def gain(distances: Any) -> float:
    """What the attack surely gains over a coin, two standard errors aside."""
    told = ndtr(distances / 2) - 0.5
    return float(told.mean() - 2 * told.std() / np.sqrt(len(told)))


def spread(numbers: list[float]) -> str:
    return f"{sorted(numbers)[len(numbers) // 2]:.3g} ({min(numbers):.3g} to {max(numbers):.3g})"


def needed_noise(distances: Any) -> float:
    """The noise at which the attack is surely at the cap, two standard errors aside, as a multiple of the plan's."""
    low, high = 0.01, 2.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if gain(distances / middle) > CAP - 0.5 else (low, middle)
    return low


def told_all_but_two(plan: lc.Plan, pairs: Any, rng: np.random.Generator) -> int:
    """How often whoever is told the half but for one swap is right, on releases by the plan's own path."""
    noise, source, right = plan.noise, Seeded(7), 0
    for inside, outside in zip(*(noised_coordinates(plan, side[:GAMES]) for side in pairs), strict=True):
        coin = bool(rng.integers(2))
        released = released_vector(noise, (inside if coin else outside) * noise.deviations, GRID, source)
        seen = noise.space.project(released) / noise.deviations
        right += bool(np.linalg.norm(seen - inside) < np.linalg.norm(seen - outside)) == coin
    return right


def told_nothing(plan: lc.Plan, pairs: Pairs, unit: int, rng: np.random.Generator) -> int:
    """How often whoever knows nothing of the others is right: a line found on some releases, tried on others."""
    halves = [pairs.half(rng) for _ in range(2 * GAMES)]
    inside = np.array([mask[unit] for mask in halves])
    seen = noised_coordinates(plan, [pairs.answer(mask) for mask in halves])
    seen = seen + rng.standard_normal(seen.shape)
    known, member = seen[:GAMES], inside[:GAMES]
    means = known[member].mean(axis=0), known[~member].mean(axis=0)
    line = np.linalg.lstsq(np.atleast_2d(np.cov(known.T)), means[0] - means[1], rcond=None)[0]
    said = seen[GAMES:] @ line > (means[0] + means[1]) @ line / 2
    return int((said == inside[GAMES:]).sum())


def share_of(right: int) -> str:
    low, high = binomtest(right, GAMES).proportion_ci(0.99)
    return f"{right / GAMES:.3f} ({low:.3f} to {high:.3f})"


def measure(name: str, fn: Callable[[Any], Any], table: Any, what: str, *, count: int = PAIRS) -> None:
    """Noise, attack and cost of plans by swaps."""
    lc.plan(fn, table[:200], cap=0.7, mode="individual", seed=0)  # loads and compiles what it needs
    plans, costs = [], []
    for seed in range(SEEDS):
        before, began = plain_seconds(fn, table), time.process_time()
        plans.append(lc.plan(fn, table, cap=CAP, mode="individual", seed=seed))
        spent = time.process_time() - began
        costs.append(2 * spent / (before + plain_seconds(fn, table)))  # on both sides: the machine is not always alike
    pairs, rng = Pairs(fn, table), np.random.default_rng(5)
    unit = most_exposed(plans[0], pairs, rng)
    swapped = pairs.pairs(unit, count, rng)
    distances = [lengths(plan, swapped) for plan in plans]
    certified = [plan.certificate.membership_success for plan in plans]
    gains = [(most - 0.5) / gain(far) for most, far in zip(certified, distances, strict=True)]
    worlds = PLAIN_WORLDS + sum(count for _, count in plans[0].certificate.draws)
    seen = (
        f"{SEEDS} plans: bound {spread(gains)} times what the attack gains over a coin, noise "
        f"{spread([1 / needed_noise(far) for far in distances])} times that at which the attack is at the cap, cost "
        f"{spread(costs)} times the CPU time of {PLAIN_WORLDS:,} plain runs; the first: noise "
        f"{relative_noise(plans[0]):.3g} of the sampling error, certified "
        f"{certified[0]:.4f}, {worlds:,} worlds in all; told the half but for one swap, the "
        f"attacker is right in {share_of(told_all_but_two(plans[0], swapped, rng))}, told nothing of the others in "
        f"{share_of(told_nothing(plans[0], pairs, unit, rng))}"
    )
    print(name, seen, flush=True)
    record(
        f"one-person-{name}",
        seen,
        topic=TOPIC,
        claim=f"{what}: one person, any half, cap {CAP:.2f}, by swaps, beside attacks on the most exposed person",
        command=f"python -m benchmarks.one_person {name}",
        asked=ASKED,
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


PARTS: dict[str, Callable[[], None]] = {
    "dry-bean-median": lambda: measure(
        "dry-bean-median", lc.stats.median, dry_bean()[:, :1], "Dry Bean, median of one column", count=2**17
    ),
    "dry-bean-medians": lambda: measure(
        "dry-bean-medians", lc.stats.median, dry_bean(), "Dry Bean, medians of all columns"
    ),
    "last": lambda: measure("last", lc.stats.median, made_last(), "data made last, medians of four columns"),
    "last-covariance": lambda: measure(
        "last-covariance", lc.stats.covariance, made_last(), "data made last, covariances of four columns"
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
