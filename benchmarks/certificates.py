"""What a whole plan costs, and what it certifies: this version against an earlier one, in turn in one process.

`python -m benchmarks.certificates [--auto] [work ...]`; with `--auto` this version chooses how many worlds it runs, and
the earlier one has the 1,024 that were its default. The variable `LEAKCAP_BEFORE` names the `src` folder of a checkout
of an earlier version. Both are loaded into this process side by side and plan the same functions of the same data with
the same seeds.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import record, slug
from leakcap import datasets

CAP, WORLDS = 0.6, 1024
PARTS = (
    "Dry Bean means",
    "Dry Bean, one column",
    "Dry Bean covariance",
    "Dry Bean median",
    "Dry Bean, one median",
    "Dry Bean K-Means",
    "Dry Bean linear SVM",
    "Dry Bean logistic",
    "Dry Bean PCA",
    "Dry Bean forest",
    "Adult means",
    "Adult, one column",
)
AUTO = "--auto"
FOREST = {"n_estimators": 10, "max_depth": 5, "n_thresholds": 40, "splits": "entropy", "ranges": (-4, 4)}
FLAGS = (AUTO,)


class Version:
    """One copy of the package: its modules stand in `sys.modules` while it is at work, also for late imports."""

    def __init__(self, source: Path) -> None:
        self.source, self.modules = str(source.resolve()), {}
        with self as package:
            self.package = package

    def __enter__(self) -> Any:
        self.others = {name: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
        sys.modules.update(self.modules)
        sys.path.insert(0, self.source)
        importlib.invalidate_caches()
        return importlib.import_module("leakcap")

    def __exit__(self, *_: object) -> None:
        sys.path.remove(self.source)
        self.modules = {name: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
        sys.modules.update(self.others)


def _ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] == "leakcap"


def works() -> dict[str, tuple[Any, Any]]:
    """By name: data, and what is to be done with them by a version of the package."""
    beans, people = datasets.dry_bean(), datasets.adult().select_dtypes("number").to_numpy(float)
    kinds = np.unique(beans.iloc[:, -1], return_inverse=True)[1]
    table = beans.select_dtypes("number").to_numpy(float)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    start = table[np.random.default_rng(0).choice(len(table), 7, replace=False)]

    def statistic(name: str, **options: Any) -> Any:
        def plan_statistic(lc: Any, tables: Any, settings: dict[str, Any]) -> Any:
            listed = {"design": "worlds"} if settings["worlds"] == "auto" else {}  # otherwise their number says so
            return lc.plan(getattr(lc.stats, name), *tables, **options, **settings, **listed)

        return plan_statistic

    def fitted(make: Any) -> Any:
        def plan(lc: Any, tables: Any, settings: dict[str, Any]) -> Any:
            kept = {"cap": settings["cap"], "worlds": settings["worlds"], "random_state": settings["seed"]}
            return make(lc.estimators, kept).fit(*tables).plan_

        return plan

    alone, labelled, one = (table,), (table, kinds), (table[:, :1],)
    every = (
        (alone, statistic("mean")),
        (one, statistic("mean")),
        (alone, statistic("covariance")),
        (alone, statistic("median")),
        (one, statistic("median")),
        (alone, fitted(lambda le, kept: le.KMeans(7, init=start, n_init=1, **kept))),
        (labelled, fitted(lambda le, kept: le.LinearSVC(0.005, **kept))),
        (labelled, fitted(lambda le, kept: le.LogisticRegression(0.01, **kept))),
        (alone, fitted(lambda le, kept: le.PCA(5, **kept))),
        (labelled, fitted(lambda le, kept: le.RandomForestClassifier(**FOREST, **kept))),
        ((people,), statistic("mean")),
        ((people[:, :1],), statistic("mean")),
    )
    return dict(zip(PARTS, every, strict=True))


@contextmanager
def quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def planned(
    version: Version, tables: tuple[Any, ...], work: Any, seed: int, *, worlds: int | str = WORLDS
) -> dict[str, float]:
    """CPU seconds of a whole plan, and its figures."""
    with version as lc, quietly():
        settings = {"cap": lc.membership(CAP), "worlds": worlds, "seed": seed}
        began = time.process_time()
        plan = work(lc, tables, settings)
        took = time.process_time() - began
        found = plan.certificate
        return {
            "CPU s": took,
            "worlds": plan.worlds.m,
            "noise": float(np.sqrt((np.asarray(plan.noise.deviations) ** 2).sum())),
            "success": found.membership_success,
            "true positives at 1 %": found.true_positive_rate(0.01),
        }


def record_auto(name: str, old: dict[str, float], new: dict[str, float]) -> None:
    record(
        f"auto-{slug(name)}",
        f"{new['worlds']:,} worlds, {new['noise'] / old['noise']:.2f} of the noise, {new['CPU s']:.0f} CPU s; before "
        f"{old['CPU s']:.0f} CPU s",
        topic="Certifying: time and memory",
        claim=f'{name}, membership capped at {CAP:.2f}: `worlds="auto"` against the 1,024 worlds of version f8d0ec9',
        command="python -m benchmarks.certificates --auto",
        asked="less noise in less time",
    )


def main(arguments: list[str]) -> None:
    if "LEAKCAP_BEFORE" not in os.environ:
        sys.exit("set LEAKCAP_BEFORE to the src folder of a checkout of the earlier version (f8d0ec9)")
    now, before = Version(Path(__file__).parent.parent / "src"), Version(Path(os.environ["LEAKCAP_BEFORE"]))
    auto, named = AUTO in arguments, [one for one in arguments if one != AUTO]
    chosen = {name: work for name, work in works().items() if not named or name in named}
    gains, noises = [], []
    print(f"{'':24}{'before, CPU s':>15}{'now':>9}{'gain':>7}{'noise':>8}{'true positives at 1 %':>24}")
    for name, (tables, work) in chosen.items():
        small = tuple(one[:: max(1, len(one) // 400)] for one in tables)
        for version in (before, now):  # compile
            planned(version, small, work, 0)
        old = planned(before, tables, work, 1)
        new = planned(now, tables, work, 1, worlds="auto" if auto else WORLDS)
        gains.append(old["CPU s"] / new["CPU s"])
        noises.append(new["noise"] / old["noise"])
        rates = [one["true positives at 1 %"] for one in (old, new)]
        print(
            f"{name:24}{old['CPU s']:15.1f}{new['CPU s']:9.1f}{gains[-1]:7.1f}{noises[-1]:8.3f}"
            f"{rates[0]:14.2%}{rates[1]:10.2%}",
            flush=True,
        )
        if auto:
            record_auto(name, old, new)
            continue
        record(
            f"certificates-{slug(name)}",
            f"{gains[-1]:.1f} times less CPU ({old['CPU s']:.1f} s, {new['CPU s']:.1f} s), {noises[-1]:.3f} of the "
            f"noise; true positives at 1 % false alarms {rates[0]:.2%} and {rates[1]:.2%}",
            topic="Certifying: time and memory",
            claim=f"{name}, {WORLDS:,} worlds, membership capped at {CAP:.2f}: a whole plan against version f8d0ec9",
            command="python -m benchmarks.certificates",
            asked="at least 4 times less CPU, 6 in the geometric mean; no more noise in the mean",
        )
    mean = math.exp(np.mean(np.log(gains)))
    print(f"geometric mean of the gains {mean:.1f}, least {min(gains):.1f}; noise in the mean {np.mean(noises):.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
