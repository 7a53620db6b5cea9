"""Label-private ridge: accuracy against epsilon on CIFAR-10 embeddings and on tables, and what a fit costs.

`python -m benchmarks.label_statistics [small] [large] [largest] [tables] [speed]`; the first two take minutes each.
All but `tables` need the file of embeddings.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.linear_model import RidgeClassifier

from benchmarks.encoded_sets import embeddings
from benchmarks.labels import Task, adult, dry_bean
from benchmarks.records import record
from leakcap import labels

DRAWS = 5
TOPIC = "Private labels"


def accuracies(work: Task, epsilon: float, draws: int = DRAWS) -> list[float]:
    """Accuracy in % on the rows to judge by, one for every draw of the noise."""
    found = []
    for seed in range(draws):
        model = labels.Ridge(epsilon, work.classes, random_state=seed).fit(work.train, work.train_kinds)
        found.append(100 * float(model.score(work.test, work.test_kinds)))
    print(f"{work.name}, epsilon {epsilon:g}: {np.mean(found):.1f} % +- {np.std(found):.2f}", flush=True)
    return found


def curve(name: str, epsilons: tuple[float, ...], asked: str) -> None:
    work = Task("CIFAR-10 embeddings", *embeddings())
    found = [accuracies(work, epsilon) for epsilon in epsilons]
    listed = ", ".join(f"{epsilon:g}".removeprefix("0") for epsilon in epsilons)
    record(
        f"labels-statistics-{name}",
        f"{', '.join(f'{np.mean(one):.1f}' for one in found)} %, spread {max(map(np.std, found)):.2f} at most",
        topic=TOPIC,
        claim=f"`labels.Ridge` on 50,000 CIFAR-10 embeddings, delta 1e-5, at epsilon {listed}; {DRAWS} draws each",
        command=f"python -m benchmarks.label_statistics {name}",
        asked=asked,
    )


def small() -> None:
    """CIFAR-10 embeddings at small epsilon."""
    curve("small", (0.05, 0.1, 0.18, 0.29), "at least 84.5 % at .18 and 86 % at .29")


def large() -> None:
    """CIFAR-10 embeddings at larger epsilon."""
    curve("large", (0.5, 1.0, 1.6), "at least 88 % at 1")


def largest() -> None:
    """CIFAR-10 embeddings with little noise."""
    curve("largest", (8.0,), "ridge regression without noise: 89.6 %")


def made() -> Task:
    """Twelve uneven classes, some of whose columns have heavy tails; no setting was looked at on it."""
    rng = np.random.default_rng(11)
    kinds = rng.choice(12, 20_000, p=np.arange(1, 13) / 78)
    table = 1.2 * rng.standard_normal((12, 60))[kinds] * (rng.random(60) < 0.4) + rng.standard_normal((20_000, 60))
    table = table @ rng.standard_normal((60, 60))
    table[:, :20] = np.exp(0.1 * table[:, :20])
    return Task("made", table[:15_000], kinds[:15_000], table[15_000:], kinds[15_000:])


def tables() -> None:
    """Adult, Dry Bean, and data made for this; beside ridge regression without noise."""
    epsilons = (0.05, 0.1, 0.5, 1.0, 2.0, 8.0)
    for work in (adult(), dry_bean(), made()):
        plain = RidgeClassifier().fit(work.train, work.train_kinds).score(work.test, work.test_kinds)
        found = [np.mean(accuracies(work, epsilon)) for epsilon in epsilons]
        name = work.name.lower().replace(" ", "-")
        record(
            f"labels-statistics-{name}",
            f"{', '.join(f'{one:.1f}' for one in found)} %; without noise {100 * plain:.1f}",
            topic=TOPIC,
            claim=f"`labels.Ridge`, {work.name} data, delta 1e-5, at epsilon .05, .1, .5, 1, 2, 8; {DRAWS} draws each",
            command="python -m benchmarks.label_statistics tables",
            asked="beside ridge regression without noise",
        )


def speed() -> None:
    """A label-private fit in plain ridge fits: CPU seconds, in turn, in one process."""
    work = Task("CIFAR-10 embeddings", *embeddings())
    ratios = []
    for _ in range(3):
        plain = cpu_seconds(RidgeClassifier(), work)
        ratios.append(cpu_seconds(labels.Ridge(1.0, 10, random_state=0), work) / plain)
        print(f"plain {plain:.1f} s, label-private {ratios[-1]:.2f} times that", flush=True)
    record(
        "labels-statistics-speed",
        f"{np.median(ratios):.2f} plain fits (median of three)",
        topic=TOPIC,
        claim="CPU time of `labels.Ridge` at epsilon 1, 50,000 x 1,280 in double precision, in `RidgeClassifier` fits",
        command="python -m benchmarks.label_statistics speed",
        asked="under 3",
    )


def cpu_seconds(model: object, work: Task) -> float:
    began = time.process_time()
    model.fit(work.train, work.train_kinds)  # type: ignore[attr-defined]
    return time.process_time() - began


PARTS = {"small": small, "large": large, "largest": largest, "tables": tables, "speed": speed}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
