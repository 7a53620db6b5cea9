"""Secret seeds (Algorithm 2 of PAC Privacy): what the matching costs, and what noise is left at both ends.

`python -m benchmarks.seeds [part ...]`. `cost` puts a plan with 32 seeds, 1,000 pairs of halves and 100 outputs beside
the function's own runs, in turn in one process, CPU seconds. The other parts are noise at membership cap .60 on Iris,
breast cancer and data that were made up last: of a function that ignores its seed, beside the closed figure; of one
that is all seed, as pairs are added; and of K-Means whose seed says where it starts, beside mode "confidence" alone.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.datasets import load_breast_cancer, load_iris

import leakcap as lc
from benchmarks.designs import standardised
from benchmarks.records import record
from leakcap.errors import LeakcapWarning
from leakcap.planning.plans import Plan
from leakcap.worlds import independent_worlds

CAP = 0.6
ROUNDS = 3


def made_last() -> Any:
    """Made up after everything else: 420 people, nine columns, three groups of unlike size, a few far out."""
    rng = np.random.default_rng(118_2026)
    where = rng.choice(3, size=420, p=[0.6, 0.3, 0.1])
    rows = rng.standard_normal((3, 9))[where] * 2 + rng.standard_normal((420, 9)) @ rng.standard_normal((9, 9)) / 3
    rows[:7] *= 5
    return standardised(rows)


DATA: dict[str, Callable[[], Any]] = {
    "iris": lambda: standardised(load_iris().data),
    "breast-cancer": lambda: standardised(load_breast_cancer().data),
    "last": made_last,
}


def drawn(rows: Any, *, seed: int) -> Any:
    """Cheap: a mean, and one number of a generator for every column."""
    return rows.mean(axis=0) + 0.1 * np.random.default_rng(seed).standard_normal(rows.shape[1])


def mean(rows: Any, *, seed: int) -> Any:
    return rows.mean(axis=0)


def all_seed(rows: Any, *, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(rows.shape[1])


def k_means(rows: Any, *, seed: int, k: int = 3, steps: int = 5) -> Any:
    """Lloyd's steps from rows that the seed chooses."""
    centres = rows[np.random.default_rng(seed).choice(len(rows), k, replace=False)]
    for _ in range(steps):
        nearest = (-2 * rows @ centres.T + (centres**2).sum(axis=1)).argmin(axis=1)
        counts = np.bincount(nearest, minlength=k)
        sums = np.stack([rows[nearest == one].sum(axis=0) for one in range(k)])
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    return centres


def planned(fn: Callable[..., Any], rows: Any, pairs: int, seeds: int = 32, **more: Any) -> Plan:
    return lc.plan(
        fn,
        rows,
        cap=CAP,
        mode="confidence",
        randomness="secret",
        seeds=seeds,
        worlds=2 * pairs,
        **{"weights": "equal", **more},
    )


def told(name: str, seen: str, claim: str, asked: str = "-") -> None:
    print(f"{name}: {seen}", flush=True)
    part = name.removeprefix("seeds-").split("-")[0]
    record(
        name,
        seen,
        topic="Caps and noise",
        claim=claim,
        command=f"python -m benchmarks.seeds {part}",
        asked=asked,
    )


def cost() -> None:
    """The whole plan over the runs that it makes, the function called by hand on the same rows with other seeds."""
    rows, rng = np.random.default_rng(0).standard_normal((200, 100)), np.random.default_rng(1)
    pairs, pilots, seeds = 1000, 125, 32
    plans, plain = [], []
    for _ in range(ROUNDS):
        worlds = independent_worlds(200, 2 * (pairs + pilots), rng, 0.5)
        began = time.process_time()
        for world in range(worlds.m):
            places = np.flatnonzero(worlds.mask(world))
            for seed in range(seeds):
                drawn(rows[places], seed=seed)
        plain.append(time.process_time() - began)
        began = time.process_time()
        planned(drawn, rows, pairs, seeds)
        plans.append(time.process_time() - began)
    ratio = min(plans) / min(plain)
    told(
        "seeds-cost",
        f"{ratio:.2f} times ({min(plans):.1f} s beside {min(plain):.1f} s of {2 * (pairs + pilots) * seeds:,} runs)",
        "Secret seeds, 32 seeds, 1,000 pairs, 100 outputs: the whole plan over the cheap function's own runs",
        "under 10 times",
    )


def ignores() -> None:
    for name, data in DATA.items():
        rows = data()
        found = []
        for pairs in (256, 1024, 4096):
            made = planned(mean, rows, pairs, 2, shape="isotropic")
            # Twice the trace is the mean distance: the closed figure for halves drawn without replacement.
            variance = rows.var(axis=0, ddof=1).sum() / len(rows)
            closed = math.sqrt(variance * rows.shape[1]) / float(ndtri(CAP))
            found.append(f"{made.noise.std / closed:.3f} ({pairs:,} pairs)")
        told(
            f"seeds-ignores-{name}",
            ", ".join(found),
            f"A mean that ignores its seed, {name}: noise over the deterministic figure, sqrt(tr Var) / Phi^-1(.60)",
            "towards 1 with pairs",
        )


def nothing() -> None:
    for name, data in DATA.items():
        rows = data()
        found = []
        for pairs in (256, 1024, 4096):
            made = planned(all_seed, rows, pairs, 2, shape="isotropic")
            found.append(f"{made.noise.std / math.sqrt(rows.shape[1]):.2f} ({pairs:,} pairs)")
        told(
            f"seeds-nothing-{name}",
            ", ".join(found),
            f"A function that is all seed, {name}: noise over the deviation of its answers, all of it for unseen pairs",
            "falls with pairs, like one over their root",
        )


def start() -> None:
    for name, data in DATA.items():
        rows = data()
        found = {seeds: planned(k_means, rows, 500, seeds).noise.std for seeds in (2, 8, 32)}

        def unseeded(rows: Any) -> Any:
            return k_means(rows, seed=int(np.random.default_rng().integers(2**32)))

        beside = lc.plan(unseeded, rows, cap=CAP, mode="confidence", worlds=1000, weights="equal").noise.std
        less = [beside / found[seeds] for seeds in (32, 8, 2)]
        told(
            f"seeds-start-{name}",
            "{:.2f} times less (32 seeds; {:.2f} with 8, {:.2f} with 2)".format(*less),
            f"K-Means from a secret start, {name}, cap .60: total noise beside mode 'confidence', 1,000 worlds",
        )


PARTS = {"cost": cost, "ignores": ignores, "nothing": nothing, "start": start}


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", LeakcapWarning)
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
