"""Kernel and loop on data that nobody tuned them on: which is faster, which is chosen, how far apart they are.

`python -m benchmarks.fresh [case ...]`. CPU seconds of kernel and loop are measured in turn, in one process: on a busy
machine wall time tells who else was there. The loop has a core for each world, so on all cores it can take no less than
its CPU seconds divided by the cores, and the kernel has all cores too. Where 1,024 worlds are too many, fewer are run
and the figures scaled, which leaves the kernel what it does once for all worlds many times over.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_blobs, make_classification

from benchmarks.records import record, slug
from leakcap import datasets, estimators
from leakcap.ground.cores import Machine, one_blas_thread
from leakcap.kernels import deviation_of, forecast_of, kernel_of
from leakcap.worlds import Units, draw_worlds

ROWS, WORLDS, LOOPED = 50_000, 1024, 4


def standard(table: Any) -> np.ndarray:
    given = np.asarray(table, dtype=np.float64)
    spread = given.std(axis=0)
    return (given - given.mean(axis=0)) / np.where(spread > 0, spread, 1)


def classification() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(ROWS, 20, n_informative=10, n_classes=3, random_state=0)


def blobs() -> tuple[np.ndarray, np.ndarray]:
    """Clusters that overlap: no gaps between them."""
    return make_blobs(ROWS, 10, centers=8, cluster_std=8.0, random_state=0)


def digits() -> tuple[np.ndarray, np.ndarray]:
    found = load_digits()
    return found.data / 16, found.target


def mnist() -> tuple[np.ndarray, np.ndarray]:
    with np.load(datasets.data_path("mnist.npz")) as found:
        return found["x_train"][:ROWS].reshape(ROWS, -1) / 255, found["y_train"][:ROWS].astype(int)


def adult() -> tuple[np.ndarray, np.ndarray]:
    """Text columns as a column for each value."""
    table = datasets.adult()
    rich = table["income"].str.startswith(">").to_numpy().astype(int)
    return standard(pd.get_dummies(table.drop(columns=["income", "split"])).to_numpy(np.float64)), rich


@dataclass(frozen=True)
class Fresh:
    """Data, an estimator, and how many worlds are affordable."""

    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    private: Any
    worlds: int = WORLDS

    @property
    def name(self) -> str:
        clusters = f" {self.private.n_clusters}" if isinstance(self.private, estimators.KMeans) else ""
        return f"{type(self.private).__name__}{clusters} {self.data.__name__}"


def cases() -> list[Fresh]:
    """Short ones first."""
    centres, pca = estimators.KMeans(8, n_init=1, random_state=0), estimators.PCA(8, random_state=0)
    many = estimators.KMeans(20, n_init=1, random_state=0)
    svm, logistic = estimators.LinearSVC(1.0), estimators.LogisticRegression(1.0)
    return [
        *(Fresh(data, pca) for data in (digits, blobs, classification)),
        Fresh(digits, centres),
        Fresh(blobs, centres),
        Fresh(digits, svm),
        Fresh(classification, svm, 128),
        Fresh(adult, pca, 128),
        Fresh(digits, logistic, 128),
        Fresh(classification, logistic, 128),
        Fresh(classification, centres, 128),
        Fresh(blobs, many, 128),
        Fresh(adult, centres, 128),
        Fresh(adult, svm, 32),
        Fresh(mnist, pca, 32),
        Fresh(mnist, centres, 32),
        Fresh(adult, logistic, 32),
    ]


PARTS = {slug(case.name): case for case in cases()}


def main(named: list[str]) -> None:
    print(
        f"{'case':<38}{'shape':>14}{'kernel s':>10}{'loop s':>10}{'plain s':>10}{'choice':>8}{'to best':>9}{'apart':>9}"
    )
    for name in named or PARTS:
        measure(PARTS[name])


def measure(case: Fresh) -> None:
    """CPU seconds for 1,024 worlds by the kernel, by the loop, and by scikit-learn's own fits beside them."""
    X, y = case.data()
    job = case.private._computation(case.private._rows(X, y, None))
    units, worlds = Units.of(len(X), None), draw_worlds(len(X), case.worlds, np.random.default_rng(1))
    kernel, forecast = kernel_of(job.answer, memory=Machine().memory), forecast_of(job.answer)
    assert kernel is not None
    chosen = forecast is None or forecast(job.data, units, worlds, Machine().memory).kernel_serves(Machine().memory)
    few = worlds if case.worlds == WORLDS else draw_worlds(len(X), 4, np.random.default_rng(0))
    kernel(job.data, units, few)  # compiled; fewer worlds may go another way
    answers, by_kernel, wall = _clocked(lambda: kernel(job.data, units, worlds))
    masks = [worlds.mask(world) for world in range(LOOPED)]
    with one_blas_thread():
        looped, loop, _ = _clocked(lambda: [job.answer(*(one[mask] for one in job.data)) for mask in masks])
        made = case.private._plain() if hasattr(case.private, "_plain") else None
        plain = _clocked(lambda: made.fit(X[masks[0]], y[masks[0]]))[1] if made is not None else float("nan")
    scaled, loop, plain = by_kernel * WORLDS / case.worlds, loop * WORLDS / LOOPED, plain * WORLDS
    measured = deviation_of(job.answer)
    apart = 0.0
    for world, answer in enumerate(looped):
        flat = np.concatenate([np.ravel(part) for part in answer.values()])
        rows = tuple(one[masks[world]] for one in job.data)
        found = answers[world]
        apart = max(
            apart, measured(found, flat, rows) if measured else float(np.abs(found - flat).max() / np.abs(flat).max())
        )
    ratio = (scaled if chosen else loop) / min(scaled, loop)
    way = "kernel" if chosen else "loop"
    shape = f"{X.shape[0]:,} x {X.shape[1]}"
    print(
        f"{case.name:<38}{shape:>14}{scaled:>10.1f}{loop:>10.1f}{plain:>10.1f}{way:>8}{ratio:>9.2f}{apart:>9.0e}",
        flush=True,
    )
    wall *= WORLDS / case.worlds
    beside = "" if made is None else f", scikit-learn's own fits {plain:.3g}"
    record(
        f"fresh-{slug(case.name)}",
        f"{way} chosen, {ratio:.2f} times the better: kernel {scaled:.3g} CPU s (wall {wall:.3g}), loop "
        f"{loop:.3g}{beside}; apart by {apart:.0e}; {case.worlds:,} worlds, {LOOPED} of the loop, scaled to 1,024",
        topic="All worlds at once",
        claim=f"Fresh data: {case.name}, {shape}",
        command="python -m benchmarks.fresh",
        asked="at most 1.1 times the better of kernel and loop",
    )


def _clocked(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What the work gives, and its CPU and wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    main(sys.argv[1:])
