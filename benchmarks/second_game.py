"""Is a person in the pool at all, and what do colluders learn? Measured, without and with a cap that speaks about it.

`python -m benchmarks.second_game [plans] [table ...]`, tables: treatments, filters, pool, collusion.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from sklearn.datasets import load_breast_cancer, load_iris

import leakcap as lc
from benchmarks.records import record
from leakcap.audit.attacks import collude, posterior
from leakcap.audit.second_game.pools import entries_of, pool_of, with_entries, without
from leakcap.audit.second_game.queries import Query, narrow
from leakcap.audit.second_game.universe import universe
from leakcap.audit.trials import knowledge, releases
from leakcap.errors import InputError, LeakcapWarning

CAP, PEOPLE, PLANS = 0.562, 100, 60
POOL_CAP, POOL_PLANS, POOL_RELEASES = 0.55, 6, 8  # plans under a pool cap are quick: so many times as many
SETTINGS = {"worlds": 64, "draws": 4096}
PARTS = ("treatments", "filters", "pool", "collusion")
LEAST = 20  # people that a mean is divided by, at least, in the last treatment
AMOUNT, SECOND, FIRST_KEY, SECOND_KEY, GROUP = range(5)


@dataclass(frozen=True)
class Table:
    """A small pool with somebody ordinary, an outlier, and somebody who is alone in a group."""

    name: str
    rows: Any  # amount, a second quantity, two columns to filter by, a group
    ordinary: int
    outlier: int
    alone: int
    low: Any  # public limits
    high: Any
    levels: tuple[float, ...]


def adult(seed: int = 5) -> Table:
    """99 people of the census without a capital gain of 10,000 or more, and one with 99,999."""
    given = lc.datasets.adult()
    races = sorted(given["race"].unique())
    rows = np.column_stack(
        [
            given[["capital_gain", "hours_per_week", "age", "fnlwgt"]].to_numpy(dtype=float),
            given["race"].map(races.index).to_numpy(dtype=float),
        ]
    )
    rng = np.random.default_rng(seed)
    modest = np.flatnonzero(
        (rows[:, 0] < 10_000) & np.isin(rows[:, GROUP], [races.index("White"), races.index("Black")])
    )
    # Not at 40 hours, the middle of the limits: that is what an empty group is answered with.
    few = np.flatnonzero((rows[:, 0] == 0) & (rows[:, 1] >= 50) & (rows[:, GROUP] == races.index("Other")))[:1]
    rich = np.flatnonzero(rows[:, 0] == 99_999)[:1]
    chosen = np.concatenate([rich, few, rng.choice(modest, PEOPLE - 2, replace=False)])
    low, high = [0, 0, 0, 0, 0], [10_000, 80, 100, 1e6, len(races)]
    return Table("Adult, 100 people", rows[chosen], 2, 0, 1, low, high, tuple(map(float, range(len(races)))))


def breast_cancer(seed: int = 5) -> Table:
    """100 patients, among them the one with the largest area error; groups by the tenths of symmetry."""
    given = load_breast_cancer().data
    rows = np.column_stack([given[:, [13, 1, 3, 8]], np.floor(given[:, 28] / 0.2)])
    top, few = int(rows[:, 0].argmax()), int(np.flatnonzero(rows[:, GROUP] == 3)[0])
    others = np.flatnonzero((rows[:, GROUP] < 3) & (np.arange(len(rows)) != top) & (rows[:, 0] < 100))
    chosen = np.concatenate([[top, few], np.random.default_rng(seed).choice(others, PEOPLE - 2, replace=False)])
    low, high = [0, 0, 0, 0, 0], [100, 40, 2500, 0.4, 4]
    return Table("breast cancer, 100 patients", rows[chosen], 2, 0, 1, low, high, (0.0, 1.0, 2.0, 3.0))


def tables() -> Iterator[Table]:
    try:
        yield adult()
    except InputError:
        print("(breast cancer in the place of Adult: LEAKCAP_DATA does not name a folder that has it)")
        yield breast_cancer()


def questions(table: Table) -> Iterator[tuple[str, Query, int]]:
    """What is asked, and of whom it is to be told whether they are in the pool."""
    where = narrow(table.rows, table.ordinary, 2, (FIRST_KEY, SECOND_KEY))
    amounts = (AMOUNT, SECOND)
    groups = (GROUP, table.levels)
    yield "mean, everybody; ordinary person", Query("mean", amounts), table.ordinary
    yield "mean, everybody; outlier", Query("mean", amounts), table.outlier
    yield "mean, filter of 2 people; one of them", Query("mean", amounts, where), table.ordinary
    yield "count, filter of 2 people; one of them", Query("count", where=where), table.ordinary
    yield "means by group; alone in a group", Query("mean", (SECOND,), by=groups), table.alone
    yield "counts by group; alone in a group", Query("count", by=groups), table.alone


def treatments(table: Table, query: Query) -> Iterator[tuple[str, Query, dict[str, Any]]]:
    """As it is; with bounded contributions; with these, no mean over few, and noise that is never small."""
    low, high = np.array(table.low, dtype=float), np.array(table.high, dtype=float)
    yield "as it is", query, {}
    bounded = replace(query, limits=(low, high))
    if query.what != "count":  # a person adds 1 to a count, whatever the entries
        yield "bounded", bounded, {}
    groups = len(query.by[1]) if query.by else 1
    if query.what == "count":
        yield "noise floor", query, {"floor": 2.0, "weights": np.ones(groups)}
    else:
        spans = np.tile((high - low)[list(query.columns)], groups)
        # In units of the limits one person moves such a mean by 1 / LEAST at most: a floor of twice that.
        yield "bounded, floor", replace(bounded, least=LEAST), {"floor": 2 / LEAST, "weights": 1 / spans**2}


def attacked(query: Query, table: Table, person: int, plans: int, **options: Any) -> tuple[str, float]:
    """The cells of a row, and the attacker's success from the value alone."""
    began = time.perf_counter()
    cap = lc.membership(CAP)
    found = universe(query, table.rows, person, cap=cap, plans=plans, **(SETTINGS | options)).findings
    cells = "".join(f"{one.measured:8.3f} ({one.interval[0]:.2f} to {one.interval[1]:.2f})" for one in found)
    return f"{cells}  {time.perf_counter() - began:5.0f} s", found[0].measured


HEAD = f"{'from the value':>23}{'and error bars':>23}{'and certificate':>23}"


def by_treatment(plans: int) -> None:
    for table in tables():
        print(f"\n{table.name}: was the person in the pool? cap {CAP}, {plans // 2} judged plans each, 95 % intervals")
        print(f"{'question':42}{'treatment':16}{HEAD}")
        seen = []
        for name, query, person in questions(table):
            for treatment, asked, options in treatments(table, query):
                cells, told = attacked(asked, table, person, plans, **options)
                print(f"{name:42}{treatment:16}{cells}", flush=True)
                seen.append(f"{name}, {treatment} {100 * told:.0f} %")
        # Somebody else in the outlier's place: the number of units is the same.
        swapped, _ = attacked(Query("mean", (AMOUNT, SECOND)), table, table.outlier, plans, instead=table.rows[3])
        print(f"{'mean, everybody; outlier or another':42}{'as it is':16}{swapped}", flush=True)
        record("second-game", f"from the value: {'; '.join(seen)}")


def by_filter(plans: int, sizes: tuple[int, ...] = (1, 2, 5, 10, 25, 50)) -> None:
    table = breast_cancer()
    print(f"\n{table.name}: mean over a filter, one of the people in it in the pool or not, cap {CAP}")
    print(f"{'people in the filter':42}{'':16}{HEAD}")
    for few in sizes:
        where = narrow(table.rows, table.ordinary, few, (FIRST_KEY, SECOND_KEY))
        query = Query("mean", (AMOUNT, SECOND), where)
        print(f"{int(where(table.rows).sum()):<58}{attacked(query, table, table.ordinary, plans)[0]}", flush=True)


@dataclass(frozen=True)
class Asked:
    """A question under a pool cap: the function, what it sees of the table, the bounds, of whom it is to be told."""

    name: str
    fn: Any
    data: Any
    bounds: Any
    person: int
    instead: Any = None


def under_a_pool_cap(table: Table) -> Iterator[Asked]:
    """The same questions, asked as a pool cap wants them: with declared bounds, by contributions of one person."""
    where = narrow(table.rows, table.ordinary, 2, (FIRST_KEY, SECOND_KEY))
    amounts, low, high = [AMOUNT, SECOND], np.array(table.low, dtype=float), np.array(table.high, dtype=float)
    both = table.rows[:, amounts]
    within = (low[amounts], high[amounts])
    groups = pd.DataFrame({"amount": table.rows[:, SECOND], "group": table.rows[:, GROUP]})
    keys = {"group": list(table.levels)}

    def selected(rows: Any) -> Any:
        return np.append(rows[0, amounts], 1.0) * where(rows)

    def mean(total: Any) -> Any:
        return np.clip(total[:2] / max(float(total[2]), 1.0), *within)

    few = lc.additive(selected, mean)
    count = lc.additive(lambda rows: float(where(rows)[0]))
    yield Asked("mean, everybody; ordinary person", lc.stats.mean, both, within, table.ordinary)
    yield Asked("mean, everybody; outlier", lc.stats.mean, both, within, table.outlier)
    ends = (np.append(within[0], 0.0), np.append(within[1], 1.0))
    yield Asked("mean, filter of 2 people; one of them", few, table.rows, ends, table.ordinary)
    yield Asked("count, filter of 2 people; one of them", count, table.rows, (0, 1), table.ordinary)
    means = lc.stats.group_by(keys, "mean", of="amount")
    ends = (low[SECOND], high[SECOND])
    yield Asked("means by group; alone in a group", means, groups, ends, table.alone)
    yield Asked("counts by group; alone in a group", lc.stats.group_by(keys), groups, None, table.alone)
    yield Asked("mean, everybody; outlier or another", lc.stats.mean, both, within, table.outlier, both[3])


def by_pool_cap(plans: int) -> None:
    """What is found under a pool cap. Replacing a person is leaving out and adding: distances of Gaussians add."""
    for table in tables():
        print(
            f"\n{table.name}: was the person in the pool? pool cap {POOL_CAP}, {plans // 2} judged plans each, 95 % "
            "intervals"
        )
        print(f"{'question':42}{'claim':16}{HEAD}")
        seen = []
        for asked in under_a_pool_cap(table):
            claim = POOL_CAP if asked.instead is None else float(ndtr(2 * ndtri(POOL_CAP)))
            began = time.perf_counter()
            found = universe(
                asked.fn,
                asked.data,
                asked.person,
                cap=lc.pool_membership(POOL_CAP),
                instead=asked.instead,
                plans=plans,
                releases=POOL_RELEASES,
                claim=claim,
                bounds=asked.bounds,
            ).findings
            cells = "".join(f"{one.measured:8.3f} ({one.interval[0]:.2f} to {one.interval[1]:.2f})" for one in found)
            verdicts = ", ".join(dict.fromkeys(one.verdict for one in found))
            print(f"{asked.name:42}{claim:<16.3f}{cells}  {verdicts}  {time.perf_counter() - began:5.0f} s", flush=True)
            seen.append((asked, found))
        alone = [found for asked, found in seen if asked.instead is None]
        each = [max(found[view].measured for found in alone) for view in range(3)]
        refuted = sum(one.verdict == "refuted" for _, found in seen for one in found)
        record(
            "second-game-pool-caps",
            f"at most {100 * each[0]:.0f} % from the value, {100 * each[1]:.0f} % with error bars and "
            f"{100 * each[2]:.0f} % with all that is public, in {len(alone)} cases, {plans // 2} judged plans each; "
            f"{refuted or 'none'} of {3 * len(seen)} claims refuted",
            topic="Attacks",
            claim="The second game under a pool cap of .55: an outlier, one of two in a filter, somebody alone in a "
            "group",
            command="python -m benchmarks.second_game 80 pool",
            asked="nothing found (92 and 100 % without it)",
        )


def by_noised_sums(trials: int = 40_000) -> None:
    """Many releases of one plan with the person and of one without: under a pool cap plans of one pool are alike.

    The attacker sees the noised sums, of which answer and error bars are made; learns from half of the releases in what
    direction the pools differ, and is judged on the others.
    """
    for table in tables():
        print(f"\n{table.name}: by the noised sums, pool cap {POOL_CAP}, {trials:,} judged releases, 95 % intervals")
        highest = (0.0, 0.0)  # success, and how far its interval reaches
        for asked in under_a_pool_cap(table):
            found = []
            inside = pool_of("with the person", asked.data, {})
            if asked.instead is None:
                outside = without(inside, asked.person, "without")
            else:
                outside = with_entries(inside, asked.person, entries_of(inside, (asked.instead,)), "another")
            for pool in (inside, outside):
                plan = lc.plan(asked.fn, *pool.data, cap=lc.pool_membership(POOL_CAP), bounds=asked.bounds)
                found.append(releases(plan, trials).seen)
            learn, judge = [one[::2] for one in found], [one[1::2] for one in found]
            first, second = (one.mean(axis=0) for one in learn)
            way = (first - second) / np.concatenate([learn[0] - first, learn[1] - second]).var(axis=0)
            right = [(judge[0] - (first + second) / 2) @ way > 0, (judge[1] - (first + second) / 2) @ way <= 0]
            told = float(np.mean(right))
            reach = 1.96 * float(np.sqrt(told * (1 - told) / trials))
            print(f"{asked.name:42}{told:8.3f} ({told - reach:.3f} to {told + reach:.3f})", flush=True)
            highest = max(highest, (told, reach)) if asked.instead is None else highest
        record(
            "second-game-pool-sums",
            f"at most {100 * highest[0]:.1f} % (95 % interval: {100 * highest[1]:.1f} to either side) in six cases, "
            f"{trials:,} judged releases each",
            topic="Attacks",
            claim="The same, by the noised sums that answer and error bars are made of: an attacker who learnt from "
            "as many releases",
            command="python -m benchmarks.second_game pool",
            asked="at most 55 %",
        )


def colluding(trials: int = 4000, known: tuple[int, ...] = (0, 1, 2, 3, 5, 7, 8, 10, 12, 14, 16)) -> None:
    """First game: k memberships of others are known."""
    print(
        f"\nIris means, cap {CAP}: success against the most exposed person, {trials:,} releases; measured / certified"
    )
    curves = {}
    for worlds, draws in ((128, None), (1024, None), (16_384, 2**14)):
        plan = lc.plan(lc.stats.mean, load_iris().data, cap=lc.membership(CAP), worlds=worlds, draws=draws)
        told = knowledge(plan)
        believe = posterior.as_claimed(told)
        assert believe is not None
        made, unit = releases(plan, trials), int(told.exposed[0])
        curves[worlds] = [collude.collude("collude", told, made, believe, unit, k, 1e-6) for k in known]
    print(f"{'k':>4}" + "".join(f"{f'{worlds:,} worlds':>36}" for worlds in curves))
    for place, k in enumerate(known):
        cells = [curve[place] for curve in curves.values()]
        shown = (
            f"{c.measured:.3f} ({c.interval[0]:.3f} to {c.interval[1]:.3f}) / {c.certified or 1.0:.3f}" for c in cells
        )
        print(f"{k:>4}" + "".join(f"{cell:>36}" for cell in shown), flush=True)
        if k == 10:
            record("second-game-collusion", ", ".join(f"{100 * cell.measured:.0f} %" for cell in cells))


def main(plans: int = PLANS, wanted: tuple[str, ...] = PARTS) -> None:
    warnings.simplefilter("ignore", LeakcapWarning)
    if "treatments" in wanted:
        by_treatment(plans)
    if "filters" in wanted:
        by_filter(plans)
    if "pool" in wanted:
        by_pool_cap(POOL_PLANS * plans)
        by_noised_sums()
    if "collusion" in wanted:
        colluding()


if __name__ == "__main__":
    given = sys.argv[1:]
    count = int(given.pop(0)) if given and given[0].isdigit() else PLANS
    main(count, tuple(given) or PARTS)
