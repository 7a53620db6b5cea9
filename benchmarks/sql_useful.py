"""How far off answers in SQL are: TPC-H beside noise cell by cell, hospital stays, and data that nothing was tuned on.

`python -m benchmarks.sql_useful [tpch] [worlds] [alone] [own] [fewer] [diabetes] [visits]`. `tpchgen-cli parquet -s 1`
makes TPC-H, in the folder that LEAKCAP_TPCH names. Numbers beside `worlds` or `alone` ask these questions alone, of
tables as they were registered before, and keep what was seen of the others. Every question has a session, and the whole
clock, of its own;
sessions have seeds, so that an answer is repeated over many secrets. Errors are relative, against plain DuckDB on the
tables as they were before any bound; a number that is not given ("too few", or a row that is not there) counts as
infinitely wrong.

*Cell by cell* is the published rule of PAC databases: the question is run in 64 random halves of the people; each
number of the answer, doubled for sums and counts, gets noise of its own, of variance `var / (2 b)`, `var` over the
halves and `b` = 1/128 nats. What it tells adds up over the numbers of an answer: `n / 128` nats, from which follows the
success that it allows at most.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm
from tests.sql.test_right import KEYS, TPCH_BOUNDS, TPCH_LINKS
from tests.sql.tpch_queries import QUERIES

import leakcap as lc
from benchmarks.records import record, stored
from benchmarks.session_counts import own_folder
from leakcap import datasets
from leakcap.sql import asking
from leakcap.sql.compile import compiled
from leakcap.sql.engine import EngineLimits, LocalEngine
from leakcap.sql.evaluate import answered, cell_sums

CAPS = (0.55, 0.60)
NARROW = (7, 12, 14, 17, 6, 8, 15, 4)  # few rows of everybody
ANSWERED = (1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 17, 19, 20, 21, 22)
LONG = (9, 17, 21)  # of hundreds of numbers, each of which takes its time
BY_WORLDS = (6, 14, 12, 4, 19, 5, 7, 8, 22, 1, 13, 15, 20, *LONG)
ALONE = (6, 14)  # of one number
COHORTS = (256, 1024, 4096)
FEWEST_ALLOWED = 1024  # cohorts of a session
LIMITS = EngineLimits(seconds=600.0)
SEEDS, WORLDS, NATS = 60, 64, 1 / 128
FEW_ROWS = dict.fromkeys(NARROW, 5) | {17: 1}  # of one person, that a narrow question is said to need
WORLD_SEEDS = 3  # of questions that are asked of worlds, where every number has a price
FEW_SEEDS = 5  # of questions with many people or numbers
NOT = "not answered"
TOPIC = "Questions in SQL"
PUBLIC = ["nation", "region", "supplier", "part", "partsupp"]
ROWS = {"customer": 1, "orders": 40, "lineitem": 160}


class Asked:
    """A question of a catalog, asked again and again: what people bring is found once."""

    def __init__(self, catalog: lc.sql.Catalog, text: str) -> None:
        self.catalog, self.text = catalog, text
        self.known: dict[str, Any] = {}
        self.people = catalog.session_data()

    def sums(self, release: Any, catalog: Any, engine: Any, tables: dict[str, Any]) -> Any:
        """What people bring; kept where it hangs on no answer before."""
        if tables:
            return cell_sums(release, catalog, engine, tables)
        if release.table not in self.known:
            self.known[release.table] = cell_sums(release, catalog, engine, tables)
        return self.known[release.table]

    @contextmanager
    def quick(self) -> Iterator[None]:
        """In this process, with what is known: what leaves is the same."""
        self.engine = LocalEngine(self.catalog.path, LIMITS)
        engine = mock.Mock(run=self.engine.run)
        with (
            mock.patch.object(lc.sql.Catalog, "session_data", return_value=self.people),
            mock.patch.object(asking, "cell_sums", self.sums),
            mock.patch.object(asking, "WorkerEngine", return_value=engine),
            mock.patch("leakcap.sql.evaluate.cell_sums", self.sums),
            mock.patch("leakcap.sql.in_worlds.cell_sums", self.sums),
        ):
            try:
                yield
            finally:
                self.engine.close()

    def answers(self, cap: Any, seeds: int, rows: int | None = None, **design: Any) -> list[pd.DataFrame]:
        """Of sessions of their own; the numbers without their intervals."""
        found = []
        with self.quick():
            for seed in range(seeds):
                session = lc.Session(self.catalog, cap=cap, seed=seed, **design)
                frame = session.sql(self.text, share=1.0, rows=rows).frame
                found.append(frame[[name for name in frame if not str(name).endswith((" low", " high"))]])
        return found

    def by_cell(self, keys: int, seeds: int) -> tuple[list[pd.DataFrame], int]:
        """As PAC databases answer, each number with noise by its own spread over halves; and how many numbers."""
        program, rng = compiled(self.text, self.catalog), np.random.default_rng(0)
        with self.quick():
            halves = [_by_keys(self._half(program, rng), keys) for _ in range(WORLDS)]
        rows = pd.concat(halves)
        spread = rows.groupby(level=0).var()
        found = []
        for _ in range(seeds):
            secret = halves[rng.integers(WORLDS)]
            noise = np.sqrt(spread.reindex(secret.index) / (2 * NATS))
            found.append(secret + noise * rng.standard_normal(secret.shape))
        return found, spread.size

    def _half(self, program: Any, rng: np.random.Generator) -> pd.DataFrame:
        mask = rng.random(self.catalog.people) < 0.5
        made = answered(program, self.catalog, self.engine, lambda found: 2 * found.totals(mask))[0].to_pandas()
        return made[[one.column for one in program.outputs]]


def _by_keys(frame: pd.DataFrame, keys: int) -> pd.DataFrame:
    """Numbers by the text of their row's keys; columns by place."""
    names = [" | ".join(_told(one) for one in row[:keys]) for row in frame.itertuples(index=False)]
    numbers = frame.iloc[:, keys:].astype(float)
    numbers.columns = range(numbers.shape[1])
    numbers.index = names
    return numbers


def _told(one: Any) -> str:
    return f"{float(one):.9g}" if isinstance(one, (int, float, np.number)) else str(one)


def errors(answers: Sequence[pd.DataFrame], truth: pd.DataFrame) -> np.ndarray:
    """Relative errors of all numbers of all answers, by rows of the truth; infinite where there is none."""
    known = truth.to_numpy()
    found = []
    for one in answers:
        off = np.abs(one.reindex(truth.index).to_numpy() - known) / np.abs(known)
        found.append(np.where(np.isnan(off), np.inf, off)[known != 0])
    return np.concatenate(found)


def in_words(off: np.ndarray) -> str:
    """Median and 90 % of errors."""
    return " and ".join(_percent(float(np.quantile(off, level, method="higher"))) for level in (0.5, 0.9))


def _percent(one: float) -> str:
    return "none" if not np.isfinite(one) else f"{100 * one:.2g} %" if one < 10 else "over 1,000 %"


def tpch() -> None:
    """Beside noise cell by cell: rows of one person as declared."""
    files, plain = _tpch_files()
    catalog = _registered(files, "useful.duckdb", ROWS)
    seen: dict[str, list[str]] = {"55": [], "60": [], "cells": []}
    for number in ANSWERED:
        keys, truth = KEYS.get(number, 0), _truth(plain, number)
        asked = Asked(catalog, QUERIES[number])
        for cap in CAPS:
            answers = [_by_keys(one, keys) for one in asked.answers(cap, FEW_SEEDS)]
            seen[f"{100 * cap:.0f}"].append(f"Q{number} {_off_by(answers, truth)}")
        others, numbers = asked.by_cell(keys, FEW_SEEDS)
        allowed = lc.convert.percent_up(lc.convert.membership(numbers * NATS))
        seen["cells"].append(f"Q{number} {_off_by(others, truth)} ({numbers:,} numbers, {allowed})")
        print(f"Q{number}:", *(found[-1] for found in seen.values()), sep="\n    ", flush=True)
    for name, found in seen.items():
        _record_tpch(name, "; ".join(found))


def worlds() -> None:
    """One of 1,024 worlds: people in cohorts, fewer than a session allows among them."""
    how = f"in {', '.join(f'{count:,}' for count in COHORTS)} cohorts (a session allows 1,024 to 4,096; {WORLD_SEEDS}"
    long = f"Q{', Q'.join(map(str, LONG))}, of hundreds of numbers, {FEWEST_ALLOWED:,} cohorts and one secret"
    _by_worlds("worlds", BY_WORLDS, f"people {how} secrets each; {long})")


def alone() -> None:
    """The same with each person by themselves."""
    _by_worlds(
        "alone", ALONE, "each person by themselves (one secret: each number is priced in all worlds for everybody)"
    )


def _by_worlds(part: str, numbers: Sequence[int], how: str) -> None:
    """Written down after each question: they take long."""
    files, plain = _tpch_files()
    catalog = _registered(files, f"useful-{part}.duckdb", ROWS, again=len(sys.argv) < 3)
    chosen = [int(one) for one in sys.argv[1:] if one.isdigit()]
    seen = {cap: _seen_before(f"sql-useful-tpch-{part}-{100 * cap:.0f}", chosen) for cap in CAPS}
    for number in chosen or numbers:
        asked, keys, truth = Asked(catalog, QUERIES[number]), KEYS.get(number, 0), _truth(plain, number)
        for cap, found in seen.items():
            if part == "alone":
                off = [_off_by([_by_keys(one, keys) for one in asked.answers(cap, 1, design="worlds")], truth)]
            else:
                counts, seeds = ((FEWEST_ALLOWED,), 1) if number in LONG else (COHORTS, WORLD_SEEDS)
                off = [_of_cohorts(asked, cap, count, seeds, keys=keys, truth=truth) for count in counts]
            found.append(f"Q{number} {'; '.join(dict.fromkeys(off) if off[0].startswith(NOT) else off)}")
            print(f"{cap:.2f}", found[-1], flush=True)
            record(
                f"sql-useful-tpch-{part}-{100 * cap:.0f}",
                " | ".join(found),
                topic=TOPIC,
                claim="TPC-H at scale 1, a customer is a unit, 1,024 worlds: relative error of the numbers of each "
                "answer, median and 90 %, each question with the whole clock of a membership cap of "
                f".{100 * cap:.0f}; {how}",
                command=f"python -m benchmarks.sql_useful {part}",
                asked="-",
            )


def _seen_before(name: str, again: Sequence[int]) -> list[str]:
    """What a record says of questions that are not asked again; nothing where all are."""
    known = [one.seen.split(" | ") for one in stored() if one.name == name and again]
    return [one for one in chain(*known) if int(one.split(" ", 1)[0][1:]) not in again]


def _of_cohorts(asked: Asked, cap: float, count: int, seeds: int, *, keys: int, truth: pd.DataFrame) -> str:
    try:
        with mock.patch("leakcap.sessions.cohorts.FEWEST", min(COHORTS)):
            answers = asked.answers(cap, seeds, design="cohorts", cohorts=count)
    except lc.sql.NotAnswered as refusal:
        return f"{NOT}: {str(refusal).split(', ', 1)[0]}"
    return _off_by([_by_keys(one, keys) for one in answers], truth)


def fewer() -> None:
    """Where the question says how many rows of one person it needs."""
    files, plain = _tpch_files()
    catalog = _registered(files, "useful-fewer.duckdb", ROWS)
    seen: dict[str, list[str]] = {"fewer-55": [], "fewer-60": []}
    for number in NARROW:
        asked, keys, truth = Asked(catalog, QUERIES[number]), KEYS.get(number, 0), _truth(plain, number)
        for name, cap in zip(seen, CAPS, strict=True):
            answers = [_by_keys(one, keys) for one in asked.answers(cap, FEW_SEEDS, rows=FEW_ROWS[number])]
            seen[name].append(f"Q{number} {_off_by(answers, truth)}")
            print(name, seen[name][-1], flush=True)
    for name, found in seen.items():
        _record_tpch(name, "; ".join(found))


def own() -> None:
    """Where no rows are declared: noise for the most that somebody really brings, which is for the custodian alone."""
    files, plain = _tpch_files()
    catalog = _registered(files, "useful-own.duckdb", None)
    seen = []
    for number in NARROW:
        answers = Asked(catalog, QUERIES[number]).answers(CAPS[1], FEW_SEEDS)
        found = [_by_keys(one, KEYS.get(number, 0)) for one in answers]
        seen.append(f"Q{number} {_off_by(found, _truth(plain, number))}")
        print(seen[-1], flush=True)
    _record_tpch("own-60", "; ".join(seen))


def _tpch_files() -> tuple[dict[str, Path], Any]:
    """The tables, and plain DuckDB on them."""
    folder = Path(os.environ.get("LEAKCAP_TPCH", "tpch"))
    files = {one.stem: one for one in sorted(folder.glob("*.parquet"))}
    if not files:
        raise SystemExit("make the tables first: tpchgen-cli parquet -s 1 --output-dir=tpch, or name their folder")
    plain = duckdb.connect()
    for name, place in files.items():
        plain.execute(f"CREATE VIEW {name} AS SELECT * FROM '{place}'")
    return files, plain


def _registered(files: dict[str, Path], name: str, rows: Any, *, again: bool = True) -> lc.sql.Catalog:
    """The tables; with `again=False` as they were registered before, if they were."""
    place = next(iter(files.values())).parent / name
    if place.exists() and not again:
        return lc.sql.Catalog.load(place)
    place.unlink(missing_ok=True)
    settings = {"links": TPCH_LINKS, "bounds": TPCH_BOUNDS, "rows_per_unit": rows, "public": PUBLIC, "path": place}
    catalog = lc.sql.register(files, unit="customer.c_custkey", **settings)
    print(*catalog.report, sep="\n", flush=True)
    return catalog


def _truth(plain: Any, number: int) -> pd.DataFrame:
    return _by_keys(plain.sql(QUERIES[number]).to_arrow_table().to_pandas(), KEYS.get(number, 0))


def _off_by(answers: Sequence[pd.DataFrame], truth: pd.DataFrame) -> str:
    return in_words(errors(answers, truth)) if truth.shape[1] else _listed(answers, truth)


def _listed(answers: Sequence[pd.DataFrame], truth: pd.DataFrame) -> str:
    """Of an answer without numbers: how many of its rows are right, and how many of the right rows it has."""
    both = [len(set(one.index) & set(truth.index)) for one in answers]
    right = np.mean([a / max(1, len(one)) for a, one in zip(both, answers, strict=True)])
    return (
        f"{100 * right:.0f} % of listed rows are right, {100 * np.mean(both) / len(truth):.0f} % of right rows listed"
    )


def _record_tpch(name: str, seen: str) -> None:
    what = "TPC-H at scale 1, a customer is a unit: relative error of the numbers of each answer, median and 90 %"
    part = name.split("-", maxsplit=1)[0] if "-" in name else "tpch"
    rows = ", ".join(f"at most {most} {table}" for table, most in list(ROWS.items())[1:])
    how = (
        f"each number with noise of variance var / (2 / 128) by its own spread over {WORLDS} halves, as PAC databases "
        "answer; behind each the numbers of the answer, and the membership success that they allow together"
        if name == "cells"
        else "`bits`, each question with the whole clock of a membership cap of .60; no rows declared, so that noise "
        "is made for the most that somebody really brings: for the custodian alone"
        if part == "own"
        else f"`bits`, each question with the whole clock of a membership cap of .{name[-2:]} and `rows=5` (1 "
        "for Q17, of one brand in one container), by which noise is made for so many rows of one person and more "
        "are cut to them"
        if part == "fewer"
        else f"`bits`, each question with the whole clock of a membership cap of .{name}; declared: {rows} a customer"
    )
    record(
        f"sql-useful-tpch-{name}",
        seen,
        topic=TOPIC,
        claim=f"{what}; {how}; {FEW_SEEDS} secrets each",
        command=f"python -m benchmarks.sql_useful {part}",
        asked="-",
    )


STAYS = "select age, count(*) as stays, count(*) filter (where readmitted = '<30') as early from stays group by age"
APART = "select age, readmitted = '<30' as early, count(*) as stays from stays group by 1, 2"
RATE = "select age, count(*) as stays, avg(readmitted = '<30') as rate from stays group by age"
CLAIMED = (
    "Diabetes-130, stays and early readmissions by age, at most 10 rows of one person: median relative error of "
    f"counts, and of rates in points, {{}}; {SEEDS} secrets"
)


def diabetes() -> None:
    """Stays and early readmissions by age, in three ways; by halves, and of all rows under a pool cap."""
    table = datasets.diabetes130()[["patient_nbr", "age", "readmitted"]]
    counts = table.assign(early=table["readmitted"] == "<30").groupby("age", observed=False)["early"]
    truth = pd.DataFrame({0: counts.size(), 1: counts.sum()}).astype(float)
    truth.index = truth.index.astype(str)
    catalog = lc.sql.register({"stays": table}, unit="patient_nbr", rows_per_unit=10, keys={"age": list(truth.index)})
    print(*catalog.report, sep="\n", flush=True)
    games = {"diabetes": (0.6, "`bits`, the whole clock of a membership cap of .60")}
    games["diabetes-pool"] = (lc.pool_membership(0.6), "all rows, the whole clock of a pool cap of .60")
    for name, (cap, words) in games.items():
        seen = [_both(catalog, cap, truth, text) for text in (STAYS, APART)]
        seen.append(_rate(catalog, cap, truth))
        alone = f". Coins alone, without any noise: {_coins_alone(catalog, truth)}: no noise, however shaped, is below"
        record(
            f"sql-useful-{name}",
            "; ".join(seen) + (alone if name == "diabetes" else ""),
            topic=TOPIC,
            claim=CLAIMED.format(words),
            command="python -m benchmarks.sql_useful diabetes",
            asked="counts 2 %, rates 1 point",
        )


def _both(catalog: lc.sql.Catalog, cap: Any, truth: pd.DataFrame, text: str) -> str:
    """Both counts, as they are asked or from groups that are apart."""
    answers = Asked(catalog, text).answers(cap, SEEDS)
    found = [_by_keys(one, 1) if text is STAYS else _added(one) for one in answers]
    off = [_percent(float(np.median(errors([one[list(kept)] for one in found], truth[list(kept)])))) for kept in KINDS]
    how = "count with FILTER" if text is STAYS else "grouped by the condition as well"
    seen = f"{how}: median error of both counts {off[0]} (stays {off[1]}, early readmissions {off[2]})"
    print(seen, flush=True)
    return seen


KINDS = ((0, 1), (0,), (1,))  # both counts, stays, early readmissions


def _added(frame: pd.DataFrame) -> pd.DataFrame:
    """Stays and early readmissions, from counts of those that were early and those that were not."""
    early = [str(one) == "True" for one in frame["early"]]
    index = frame["age"].astype(str)
    stays = frame["stays"].astype(float)
    return pd.DataFrame({0: stays.groupby(index).sum(), 1: stays[early].groupby(index[early]).sum()})


def _rate(catalog: lc.sql.Catalog, cap: Any, truth: pd.DataFrame) -> str:
    answers = [_by_keys(one, 1) for one in Asked(catalog, RATE).answers(cap, SEEDS)]
    rates = truth[1] / truth[0]
    off = np.concatenate([np.abs(one[1].reindex(truth.index) - rates).to_numpy() for one in answers])
    stays = float(np.median(errors([one[[0]] for one in answers], truth[[0]])))
    seen = (
        f"asked for the rate: stays {_percent(stays)}, rate {100 * np.nanmedian(off):.2f} points, "
        f"{100 * np.isnan(off).mean():.0f} % of rates too few"
    )
    print(seen, flush=True)
    return seen


VISITS = {
    "visits by shop": ("select shop, count(*) as n from visits group by shop", 1),
    "spent by shop": ("select shop, sum(spent) as total from visits group by shop", 1),
    "mean by day of the week": ("select dayofweek(day) as d, avg(spent) as mean from visits group by 1", 1),
    "members by tier": ("select tier, count(*) as n from members group by tier", 1),
    "members who ever spent over 100": (
        "select count(*) from members where id in (select id from visits where spent > 100)",
        0,
    ),
    "months of gold members": (
        "select month(v.day) as m, sum(v.spent) as total from visits v join members m on v.id = m.id "
        "where m.tier = 'gold' group by 1",
        1,
    ),
}


def visits() -> None:
    """Made data with long tails, made last; nothing was tuned on them."""
    rng = np.random.default_rng(20_261_118)
    members = pd.DataFrame(
        {"id": np.arange(40_000), "tier": rng.choice(["none", "silver", "gold"], 40_000, p=[0.7, 0.25, 0.05])}
    )
    count = np.minimum(rng.zipf(1.8, 40_000), 60)
    rows = pd.DataFrame({"id": np.repeat(members["id"], count).to_numpy()})
    rows["shop"] = rng.choice(
        [f"s{k}" for k in range(12)], len(rows), p=(1 / np.arange(1, 13)) / (1 / np.arange(1, 13)).sum()
    )
    rows["spent"] = np.round(rng.lognormal(3, 1, len(rows)), 2)
    rows["day"] = (pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365, len(rows)), unit="D")).date
    given = {"members": members, "visits": rows}
    catalog = lc.sql.register(
        given,
        unit="members.id",
        links={"visits.id": "members.id"},
        bounds={"spent": (0, 300), "day": ("2025-01-01", "2025-12-31")},
        rows_per_unit={"members": 1, "visits": 20},
    )
    print(*catalog.report, sep="\n", flush=True)
    plain, seen = duckdb.connect(), []
    for name, table in given.items():
        plain.register(name, table)
    for words, (text, keys) in VISITS.items():
        truth = _by_keys(plain.sql(text).to_arrow_table().to_pandas(), keys)
        answers = [_by_keys(one, keys) for one in Asked(catalog, text).answers(CAPS[1], FEW_SEEDS)]
        seen.append(f"{words} {in_words(errors(answers, truth))}")
        print(seen[-1], flush=True)
    record(
        "sql-useful-visits",
        "; ".join(seen) + ". " + "; ".join(catalog.report),
        topic=TOPIC,
        claim="Made last, nothing tuned: 40,000 members and their visits, with long tails; at most 20 visits of one, "
        "up to 300 each: relative error, median and 90 %, `bits`, the whole clock of a membership cap of .60; "
        f"{FEW_SEEDS} secrets",
        command="python -m benchmarks.sql_useful visits",
        asked="-",
    )


def _coins_alone(catalog: lc.sql.Catalog, truth: pd.DataFrame) -> str:
    """The same counts with coins, and without any noise: by arithmetic, sums of so many coins being normal.

    As rows are bounded, and less what the bound takes off. Noise moves an answer by something that has nothing to do
    with the coins; of a sum that is symmetric and unimodal no such move brings more within a distance of its middle
    (Anderson). So no noise is below the second, were it even to know what the bound takes off.
    """
    made = cell_sums(compiled(STAYS, catalog).releases[0], catalog, LocalEngine(catalog.path, LIMITS), {})
    rows = made.keys.column(0).to_pylist()
    squares = np.stack([np.bincount(made.cells, one**2, minlength=made.groups) for one in made.values.T], axis=1)
    kept = pd.DataFrame(made.totals(np.ones(made.people, dtype=bool)), index=rows).loc[truth.index].to_numpy()
    spread = np.sqrt(pd.DataFrame(squares, index=rows).loc[truth.index].to_numpy()) / truth.to_numpy()
    off = kept / truth.to_numpy() - 1
    both, stays, early = (_percent(_median(off[:, kinds], spread[:, kinds])) for kinds in map(list, KINDS))
    least = _percent(_median(0 * off, spread))
    return f"{both} for both counts (stays {stays}, early readmissions {early}), {least} less what the bound takes off"


def _median(middles: np.ndarray, spreads: np.ndarray) -> float:
    """Of the distances from 0 of normal numbers, all together."""
    within = lambda far: np.mean(norm.cdf((far - middles) / spreads) - norm.cdf((-far - middles) / spreads))  # noqa: E731
    return float(brentq(lambda far: within(far) - 0.5, 0, 10))


PARTS = {
    "tpch": tpch,
    "worlds": worlds,
    "alone": alone,
    "own": own,
    "fewer": fewer,
    "diabetes": diabetes,
    "visits": visits,
}

if __name__ == "__main__":
    for part in [one for one in sys.argv[1:] if not one.isdigit()] or PARTS:
        with own_folder():
            PARTS[part]()
