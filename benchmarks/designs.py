"""Random halves, matched pairs and central halves at the same cap: errors in the first game, success in the second.

`python -m benchmarks.designs [case ...]`. Errors are root sums of squares over all outputs: what halving costs, what
noise costs, and both together. The second game: plans with and without the person who is farthest from everybody's
mean; how often an attacker who knows all others tells which it was, from the value alone, and with its error bars.
`any question` is the certified success at the hardest question of prior 1 %: the cap is about one person only.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge

import leakcap as lc
from benchmarks.noise import scaled_iris
from benchmarks.records import record
from leakcap import datasets
from leakcap.audit.second_game.universe import universe
from leakcap.errors import LeakcapWarning
from leakcap.kernels.kmeans.entry import kmeans
from leakcap.kernels.linear.least_squares import ridge
from leakcap.kernels.offers import offers

CAP, WORLDS = 0.6, 1024
DESIGNS = {"random": "worlds", "matched": "matched", "central": "central"}
PLAYED = {"worlds": 64, "draws": 1024, "releases": 32}  # each plan of the second game


@offers(lambda data, units, worlds, start: kmeans(data[0], worlds, start).reshape(worlds.m, -1), tolerance=1e-6)
def centres(rows: Any, start: Any) -> Any:
    return KMeans(len(start), init=start, n_init=1).fit(rows).cluster_centers_


@offers(lambda data, units, worlds: ridge(*data, worlds, units, alpha=10.0).reshape(worlds.m, -1))
def weights(rows: Any, target: Any) -> Any:
    fitted = Ridge(10.0).fit(rows, target)
    return np.append(fitted.coef_, fitted.intercept_)


@dataclass(frozen=True, eq=False)
class Case:
    """A function of some tables; `plans` of it are made for the second game."""

    fn: Callable[..., Any]
    data: tuple[Any, ...]
    plans: int


def standardised(table: Any) -> Any:
    return (table - table.mean(axis=0)) / table.std(axis=0)


def started(rows: Any, k: int) -> Any:
    """K-Means from fixed rows."""
    return partial(centres, start=rows[np.random.default_rng(0).choice(len(rows), k, replace=False)])


def breast_cancer() -> tuple[Any, Any]:
    table, kinds = load_breast_cancer(return_X_y=True)
    return standardised(table), kinds.astype(float)


def dry_bean() -> tuple[Any, Any]:
    beans = datasets.dry_bean()
    return standardised(beans.drop(columns="Class").to_numpy(float)), (beans["Class"] == "SEKER").to_numpy(float)


def shops(seed: int = 2024) -> tuple[Any, Any]:
    """Made up after everything else: 1,500 customers, skewed sums, rare large ones, two groups; a yearly bill."""
    rng = np.random.default_rng(seed)
    age, group = rng.uniform(18, 90, 1500), rng.random(1500) < 0.3
    spent = rng.lognormal(3 + 0.01 * age, 0.8)
    visits = rng.poisson(2 + 5 * group)
    rest = rng.standard_t(3, size=(1500, 3))
    bill = 0.5 * spent + 4 * visits + 10 * group + rest[:, 0] + rng.normal(0, 10, 1500)
    return standardised(np.column_stack([age, group, spent, visits, rest])), standardised(bill)


def stars(seed: int = 2025) -> tuple[Any, Any]:
    """Made up after everything else: 701 points in ten columns, five groups of unlike size and shape."""
    rng = np.random.default_rng(seed)
    which = rng.choice(5, 701, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    shapes = rng.standard_normal((5, 10, 10)) / 3
    middles = 2 * rng.standard_normal((5, 10))
    rows = middles[which] + np.einsum("nij,nj->ni", shapes[which], rng.standard_normal((701, 10)))
    return standardised(rows), standardised(rows[:, 0] * rows[:, 1] + rng.standard_normal(701))


def of_tables(
    name: str, tables: Callable[[], tuple[Any, Any]], k: int, plans: int = 60
) -> dict[str, Callable[[], Case]]:
    """Means, K-Means and ridge of one data set, which is loaded where it is asked for."""

    def kmeans_case() -> Case:
        rows, _ = tables()
        return Case(started(rows, k), (rows,), plans)

    return {
        f"{name}-mean": lambda: Case(lc.stats.mean, tables()[:1], plans),
        f"{name}-k-means": kmeans_case,
        f"{name}-ridge": lambda: Case(weights, tables(), plans),
    }


PARTS: dict[str, Callable[[], Case]] = {
    "iris-mean": lambda: Case(lc.stats.mean, (scaled_iris(),), plans=200),
    **of_tables("breast-cancer", breast_cancer, 2),
    **of_tables("dry-bean", dry_bean, 7, plans=40),
    **of_tables("shops", shops, 4),
    **of_tables("stars", stars, 5),
}
ASKED = {"iris-mean": "at least 1.8 times less total error, matched"}


@dataclass(frozen=True)
class Errors:
    halving: float
    noise: float
    any_question: float  # of prior 1 %, certified

    @property
    def total(self) -> float:
        return float(np.hypot(self.halving, self.noise))


def errors(case: Case, design: str) -> Errors:
    made = lc.plan(case.fn, *case.data, cap=CAP, worlds=WORLDS, design=design, seed=0)
    halving = float(np.sqrt((made.summary().halving ** 2).sum()))
    return Errors(halving, made.noise.std, made.certificate.posterior(0.01))


def second_game(case: Case, design: str) -> tuple[float, float]:
    """Success against the person who is farthest from the mean: by the value, and with its error bars."""
    rows = case.data[0]
    person = int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmax())
    told = universe(case.fn, case.data, person, cap=CAP, plans=case.plans, design=design, **PLAYED).findings
    return told[0].measured, told[1].measured


def _beside(ratio: float) -> str:
    return f"{ratio:.2f} times less" if ratio >= 1 else f"{1 / ratio:.2f} times more"


def measure(name: str) -> None:
    case, told, random = PARTS[name](), [], None
    for label, design in DESIGNS.items():
        began = time.perf_counter()
        found, (value, bars) = errors(case, design), second_game(case, design)
        random = random or found
        less = "" if found is random else f" ({_beside(random.total / found.total)})"
        told.append(
            f"{label}: halving {found.halving:.4f}, noise {found.noise:.4f}, total {found.total:.4f}{less}; any "
            f"question {100 * found.any_question:.0f} %; second game {100 * value:.0f} %, {100 * bars:.0f} % with "
            "error bars"
        )
        print(f"{name}: {told[-1]} [{time.perf_counter() - began:.0f} s]", flush=True)
    rows = len(case.data[0])
    record(
        f"designs-{name}",
        ". ".join(told),
        topic="Caps and noise",
        claim=f"{name}, {rows:,} rows, cap {CAP:.2f}, {WORLDS:,} worlds: errors by design, and the second game against "
        f"the person farthest from the mean ({case.plans} plans)",
        command=f"python -m benchmarks.designs {name}",
        asked=ASKED.get(name, "-"),
    )


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", LeakcapWarning)
    for name in names or PARTS:
        measure(name)


if __name__ == "__main__":
    main(sys.argv[1:])
