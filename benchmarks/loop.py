"""A loop over worlds around a scikit-learn fit of about 50 ms, against as many bare fits on the same cores.

The bare fit is timed with all cores busy at the same time, each with one thread in numerical libraries, as in the loop.
The loop counts everything: unpacking masks, taking rows, sending data, the answer on the whole pool; "cold" also counts
the start of worker processes, which import scikit-learn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks.records import record, slug
from leakcap.ground.cores import one_blas_thread, threads
from leakcap.simulate import Pool, run_worlds
from leakcap.simulate.executors import end_workers
from leakcap.worlds import Units, draw_worlds

ROWS = 4000
ROUNDS = 3


def pool() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 16))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=ROWS), [-1, 1])


PROBE = np.random.default_rng(1).normal(size=(50, 16))


def boosting(X: Any, y: Any) -> Any:
    return GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0).fit(X, y).predict_proba(PROBE)


def forest(X: Any, y: Any) -> Any:
    return RandomForestClassifier(n_estimators=7, max_depth=8, random_state=0).fit(X, y).predict_proba(PROBE)


def logistic(X: Any, y: Any) -> Any:
    wide = np.hstack([X, X**2, X[:, :8] * X[:, 8:]])
    model = LogisticRegression(C=100, tol=1e-7, max_iter=400).fit(wide, y)
    return np.column_stack([model.coef_, model.intercept_])


def frame(table: Any) -> Any:
    return forest(table.drop(columns=["y", "town"]).to_numpy(), table["y"].to_numpy())


def main(worlds: int = 256) -> None:
    X, y = pool()
    table = pd.DataFrame(X).assign(y=y, town=np.array(["here", "there"])[y % 2])
    heads = f"{'one fit':>10}{'bare':>9}{'loop':>9}{'ratio':>8}{'cold':>9}{'ratio':>8}"
    print(f"{worlds} worlds of {ROWS // 2:,} rows on {threads()} cores, best of {ROUNDS}\n{'work':<24}{heads}")
    compare("boosting", boosting, (X, y), worlds)
    compare("forest", forest, (X, y), worlds)
    compare("logistic regression", logistic, (X, y), worlds)
    compare("forest, table with text", frame, (table,), worlds)
    compare("forest, four times", forest, (X, y), 4 * worlds)


def compare(name: str, fn: Callable[..., Any], data: tuple[Any, ...], m: int) -> None:
    cores = threads()
    worlds, units = draw_worlds(ROWS, m, np.random.default_rng(2)), Units.of(ROWS, None)
    bare, warm, cold = [], [], []

    def loop() -> float:
        began = time.perf_counter()
        run_worlds(fn, Pool(data), units, worlds, workers=cores)
        return time.perf_counter() - began

    with Parallel(n_jobs=cores) as side_by_side:
        side_by_side(delayed(fits)(fn, data, worlds, 0, 2) for _ in range(cores))  # starts them
        for _ in range(ROUNDS):
            share = m // (2 * cores)  # half as long as the loop
            bare.append(np.mean(side_by_side(delayed(fits)(fn, data, worlds, i * share, share) for i in range(cores))))
            end_workers()
            cold.append(loop())
            warm.append(loop())
    fit = float(min(bare))
    limit = m * fit / cores
    print(
        f"{name:<24}{1000 * fit:>7.1f} ms{limit:>7.2f} s{min(warm):>7.2f} s{min(warm) / limit:>7.3f}x"
        f"{min(cold):>7.2f} s{min(cold) / limit:>7.3f}x"
    )
    record(
        f"loop-{slug(name)}",
        f"{min(warm) / limit:.2f}; with the start of worker processes {min(cold) / limit:.2f}",
        topic="All worlds at once",
        claim=f"The loop over {m:,} worlds around {name}, against the bare fits on all cores",
        command="python -m benchmarks loop",
        asked="within 1.15",
    )


def fits(fn: Callable[..., Any], data: tuple[Any, ...], worlds: Any, first: int, count: int) -> float:
    """Seconds of a bare fit; rows are taken before the clock starts."""
    rows = [[one[worlds.mask(first + i)] for one in data] for i in range(count)]
    with one_blas_thread():
        began = time.perf_counter()
        for some in rows:
            fn(*some)
        return (time.perf_counter() - began) / count
