"""What a cluster costs: 1,024 tasks of 50 ms by two Dask workers, beside joblib's two processes; bytes moved per task.

    python -m benchmarks.cluster_overhead [tasks]

The work of a task is a product of matrices repeated until 50 ms of the core's own time are used up, so that a busy
machine slows both alike; and sleeping for 50 ms, which no other work disturbs. Rounds of both engines alternate.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from joblib import Parallel, delayed

import leakcap as lc
from benchmarks.records import record
from leakcap.simulate.executors import workers_for

TASKS, SECONDS, ROUNDS = 1024, 0.05, 2
ROWS = 10_000 * 8  # numbers that all tasks share: 640 kB
PARTS: tuple[str, ...] = ()  # it is one


def busy(table: np.ndarray, number: int) -> float:
    end, found = time.thread_time() + SECONDS, float(number)
    square = table[:2500].reshape(50, 50)
    while time.thread_time() < end:
        found = float((square @ square).sum()) + number
    return found


def asleep(table: np.ndarray, number: int) -> float:
    time.sleep(SECONDS)
    return float(table[number % len(table)])


def main(tasks: int = TASKS) -> None:
    warnings.simplefilter("ignore")
    table, told, moved = np.random.default_rng(0).normal(size=ROWS), [], 0.0
    for work, words in ((busy, "computing"), (asleep, "asleep")):
        ratios = [ratio for _ in range(ROUNDS) for ratio in _round(work, table, tasks)]
        with lc.cluster.connect(workers=2) as cluster:
            workers = workers_for(cluster, None, False)
            list(workers.run(work, (table,), range(64)))
            moved = (workers.moved - 2 * table.nbytes) / 64
        told.append(f"{median(ratios):.2f} times joblib {words} ({', '.join(f'{one:.2f}' for one in ratios)})")
        print(told[-1], flush=True)
    if tasks == TASKS:
        record(
            "cluster-overhead",
            f"{'; '.join(told)}; {moved:,.0f} bytes a task, and the data once to each worker",
            topic="Beyond one machine",
            claim="1,024 tasks of 50 ms by two Dask workers on the same two cores",
            command="python -m benchmarks.cluster_overhead",
            asked="1.15 times joblib on 2 cores",
        )


def _round(work: Callable[[np.ndarray, int], float], table: np.ndarray, tasks: int) -> list[float]:
    """Dask's time over joblib's; workers of both have started before."""
    with lc.cluster.connect(workers=2) as cluster, Parallel(2) as pool:
        workers = workers_for(cluster, None, False)
        for some in (range(8), range(tasks)):
            began = time.perf_counter()
            there = dict(workers.run(work, (table,), some))
            between = time.perf_counter()
            here = pool(delayed(work)(table, number) for number in some)
            ended = time.perf_counter()
        assert [there[place] for place in range(tasks)] == here
    return [(between - began) / (ended - between)]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TASKS)
