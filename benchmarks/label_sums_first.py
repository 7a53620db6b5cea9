"""Noised sums as the prior of `TwoStage` and `Classifier`, beside either alone at the same epsilon in all.

`python -m benchmarks.label_sums_first [beans] [adult]`. Half of epsilon goes to the sums (`Ridge`), half to responses.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.labels import LINEAR, Task, adult, task
from benchmarks.records import record
from leakcap import datasets, labels

EPSILONS = (0.2, 0.5, 1.0, 2.0)
DRAWS = 3
SUMS_SHARE = 0.5
SPLIT = 8  # rounds after sums were shaped by looking at another split of these rows


def beans() -> Task:
    table = datasets.dry_bean()
    test = np.random.default_rng(SPLIT).permutation(len(table)) >= int(0.7 * len(table))
    return task("Dry Bean", table.drop(columns="Class"), pd.factorize(table["Class"], sort=True)[0], test)


def sums(work: Task, epsilon: float, seed: int) -> Any:
    return labels.Ridge(epsilon, work.classes, random_state=seed).fit(work.train, work.train_kinds)


def responses(work: Task, epsilon: float, seed: int) -> Any:
    model = labels.Classifier(LINEAR, labels.auto(epsilon, work.classes), random_state=seed)
    return model.fit_private(work.train, work.train_kinds)


def two_stages(work: Task, epsilon: float, seed: int) -> Any:
    return labels.TwoStage(LINEAR, epsilon, work.classes, random_state=seed).fit_private(work.train, work.train_kinds)


def responses_after_sums(work: Task, epsilon: float, seed: int) -> Any:
    mechanism = labels.auto((1 - SUMS_SHARE) * epsilon, work.classes)
    prior = labels.Ridge(SUMS_SHARE * epsilon, random_state=seed)
    model = labels.Classifier(LINEAR, mechanism, random_state=seed, prior=prior)
    return model.fit_private(work.train, work.train_kinds)


def second_stage_after_sums(work: Task, epsilon: float, seed: int) -> Any:
    prior = labels.Ridge(SUMS_SHARE * epsilon, random_state=seed)
    model = labels.TwoStage(LINEAR, epsilon, work.classes, random_state=seed, prior=prior)
    return model.fit_private(work.train, work.train_kinds)


METHODS: dict[str, Callable[[Task, float, int], Any]] = {
    "sums": sums,
    "responses": responses,
    "two stages": two_stages,
    "sums, then responses": responses_after_sums,
    "sums, then the second stage": second_stage_after_sums,
}


def compare(name: str, work: Task) -> None:
    work = replace(work, train=work.train.astype(float))  # rows in double precision are fitted once, not once a class
    lines = []
    for epsilon in EPSILONS:
        told = []
        for method, fit in METHODS.items():
            found = [
                100 * np.mean(fit(work, epsilon, seed).predict(work.test) == work.test_kinds) for seed in range(DRAWS)
            ]
            told.append(f"{method} {np.mean(found):.1f} (±{np.std(found, ddof=1) / np.sqrt(DRAWS):.1f})")
        lines.append(f"epsilon {epsilon:g}: {', '.join(told)}")
        print(f"{work.name}, {lines[-1]}", flush=True)
    record(
        f"labels-sums-first-{name}",
        "; ".join(lines),
        topic="Private labels",
        claim=f"{work.name}, {len(work.train):,} rows: accuracy in % of `Ridge`, `Classifier` with `auto`, `TwoStage`, "
        f"and of the last two with `prior=Ridge(epsilon / 2)`, at the same epsilon in all; mean of {DRAWS} draws",
        command=f"python -m benchmarks.label_sums_first {name}",
        asked="-",
    )


PARTS: dict[str, Callable[[], None]] = {
    "beans": lambda: compare("beans", beans().first(4000)),
    "adult": lambda: compare("adult", adult().first(4000)),
}


def main() -> None:
    warnings.simplefilter("ignore")
    for name in [one for one in PARTS if one in sys.argv] or list(PARTS):
        PARTS[name]()


if __name__ == "__main__":
    main()
