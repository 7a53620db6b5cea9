"""Attacks on all units at once against a loop over units (LiRA), and a whole audit against the loop over worlds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn import cluster

import leakcap as lc
from benchmarks.records import record
from benchmarks.utility import standardised
from leakcap import estimators
from leakcap.audit.shadow.lira import EmpiricalLira, Lira
from leakcap.audit.shadow.threshold import Threshold
from leakcap.worlds import draw_worlds

UNITS, WORLDS, TARGETS = 13_611, 1024, 32  # Dry Bean
TURNS = 7


def by_unit(shadow: Any, inside: Any, target: Any, units: range) -> Any:
    """The same statistics unit by unit, as attack libraries compute them."""
    found = np.empty((len(target), len(units)))
    for place, unit in enumerate(units):
        member = inside[:, unit]
        scores_in, scores_out = shadow[member, unit], shadow[~member, unit]
        found[:, place] = norm.logpdf(target[:, unit], np.mean(scores_in), np.std(scores_in)) - norm.logpdf(
            target[:, unit], np.mean(scores_out), np.std(scores_out)
        )
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came out."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def on_one_core(work: Callable[[], Any]) -> Any:
    """The same without other threads, where the system lets us say so."""
    if not hasattr(os, "sched_setaffinity"):
        return work()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return work()
    finally:
        os.sched_setaffinity(0, cores)


def main(units: int = UNITS, worlds: int = WORLDS, targets: int = TARGETS) -> None:
    rng = np.random.default_rng(0)
    inside = draw_worlds(units, worlds, rng).masks()
    shadow = rng.normal(size=(worlds, units)) + 0.2 * inside
    target = rng.normal(size=(targets, units))
    quick = {
        "online": Lira(),
        "online, one core": Lira(),
        "online, pooled variances": Lira(variance="pooled"),
        "offline": Lira("offline"),
        "calibrated threshold": Threshold("outside"),
    }
    slow = {"online, empirical laws (ranks)": EmpiricalLira(), "offline, empirical law": EmpiricalLira("offline")}
    for attack in (*quick.values(), *slow.values()):  # compiled before anything is timed
        attack.fit(shadow[:, :50].copy(), inside[:, :50].copy())(target[:, :50])
    loops, apart = [], 0.0
    seconds: dict[str, list[float]] = {what: [] for what in (*quick, *slow)}
    cuts = np.linspace(0, units, TURNS + 1).astype(int)
    for turn in range(TURNS):  # by turns: a machine that others use is slow for both
        some = range(cuts[turn], cuts[turn + 1])
        taken, expected = timed(lambda some=some: by_unit(shadow, inside, target, some))
        loops.append(taken / len(some) * units)
        for what, attack in quick.items() if turn else (quick | slow).items():

            def work(attack: Any = attack) -> Any:
                return attack.fit(shadow, inside)(target)

            taken, found = timed(lambda work=work: on_one_core(work)) if what.endswith("one core") else timed(work)
            seconds[what].append(taken)
            if what == "online":
                apart = max(apart, float(np.abs(found[:, some.start : some.stop] - expected).max()))
    loop = float(np.median(loops))
    print(f"{'LiRA, all units at once':44}{'s':>10}{'x faster':>10}")
    for what, times in seconds.items():
        print(f"{what:44}{np.median(times):>10.3f}{loop / np.median(times):>10.0f}")
    print(f"{'a loop over units, online':44}{loop:>10.3f}")
    print(f"largest difference from the loop's statistics: {apart:.1e}; medians of {TURNS} turns")
    times = [f"{loop / np.median(seconds[what]):.0f} times" for what in ("online", "online, one core")]
    record("audit-lira", f"{times[0]}, {times[1]} on one core")
    whole_audit()


def whole_audit() -> None:
    """The default audit of a Dry Bean K-Means plan beside the plain loop over its worlds."""
    train = standardised()[0]
    fitted = estimators.KMeans(7, cap=lc.membership(0.562), random_state=1, options={"draws": 4096}).fit(train)
    plan, start = fitted.plan_, fitted.cluster_centers_
    taken, _ = timed(lambda: lc.audit.run(plan))
    some = range(0, plan.worlds.m, 16)
    loop, _ = timed(
        lambda: [cluster.KMeans(7, init=start, n_init=1).fit(train[plan.worlds.mask(world)]) for world in some]
    )
    loop *= plan.worlds.m / len(some)
    print(f"default audit of Dry Bean's K-Means {taken:.1f} s; the plain loop over its worlds {loop:.1f} s")
    record("audit-default", f"{taken:.1f} s, the loop {loop:.1f} s")


if __name__ == "__main__":
    main()
