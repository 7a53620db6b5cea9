"""Pools that differ in other people alone: what somebody brings to a question is the same in all of them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd

import leakcap as lc
from leakcap.sql.catalog import FACTS, UNIT
from leakcap.sql.compile import _Compiler, compiled
from leakcap.sql.domains import domain
from leakcap.sql.engine import EngineError, EngineLimits, LocalEngine
from leakcap.sql.evaluate import CellSums, answered
from leakcap.sql.program import Program
from leakcap.sql.refusals import NotAnswered
from leakcap.sql.terms import listed_terms
from tests.sql import hospital
from tests.sql.others import changed, odd

Tables = dict[str, pd.DataFrame]
LONGEST = 20.0  # seconds in the engine, for tables of some hundred rows
REFUSED, ANSWERED, PUBLIC = "refused", "answered", "public"
DECLARED = {"people.sex": ["f", "m"]}  # towns are not: which there are, the pool tells
TPCH_LINKS = {
    "orders.o_custkey": "customer.c_custkey",
    "lineitem.l_orderkey": "orders.o_orderkey",
    "lineitem.l_suppkey": "supplier.s_suppkey",
    "customer.c_nationkey": "nation.n_nationkey",
    "supplier.s_nationkey": "nation.n_nationkey",
}
TPCH_SETTINGS: dict[str, Any] = {
    "unit": "customer.c_custkey",
    "links": TPCH_LINKS,
    "bounds": {
        "l_quantity": (0, 50),
        "l_extendedprice": (0, 105_000),
        "l_discount": (0, 0.1),
        "c_acctbal": (-1000, 10_000),
        "o_totalprice": (0, 600_000),
        "l_shipdate": ("1992-01-01", "1998-12-31"),
        "o_orderdate": ("1992-01-01", "1998-12-31"),
    },
    "rows_per_unit": {"customer": 1, "orders": 3, "lineitem": 6},
    "keys": {
        "c_mktsegment": ["AUTOMOBILE", "BUILDING"],
        "o_orderstatus": ["F", "O", "P"],
        "o_orderpriority": ["1-URGENT", "5-LOW"],
        "l_returnflag": ["A", "N", "R"],
    },
    "public": ["supplier", "nation"],
}


@dataclass(frozen=True)
class Shape:
    """Keys of people: where each is, first where it is defined; and whose a row is, by a path of keys."""

    keys: Mapping[str, tuple[tuple[str, str], ...]]
    paths: Mapping[str, tuple[tuple[str, str, str], ...]]  # of a table: column here, table there, key there


SHAPES = {
    "hospital": Shape(
        {"id": (("people", "id"), ("stays", "person")), "stay": (("stays", "stay"), ("tests", "stay"))},
        {
            "people": (),
            "stays": (("person", "people", "id"),),
            "tests": (("stay", "stays", "stay"), ("person", "people", "id")),
        },
    ),
    "tpch": Shape(
        {
            "c_custkey": (("customer", "c_custkey"), ("orders", "o_custkey")),
            "o_orderkey": (("orders", "o_orderkey"), ("lineitem", "l_orderkey")),
        },
        {
            "customer": (),
            "orders": (("o_custkey", "customer", "c_custkey"),),
            "lineitem": (("l_orderkey", "orders", "o_orderkey"), ("o_custkey", "customer", "c_custkey")),
        },
    ),
}


def customers(seed: int = 0, people: int = 40) -> Tables:
    """Few rows by the names of TPC-H."""
    rng = np.random.default_rng(seed)
    custkey = rng.permutation(5000)[:people]
    orders = rng.integers(0, 5, people)
    orderkey = rng.permutation(50_000)[: orders.sum()]
    lines = rng.integers(0, 4, orders.sum())
    start = np.datetime64("1992-01-01")

    def days(size: int) -> pd.Series:
        return pd.Series((start + rng.integers(0, 2500, size)).astype("datetime64[ns]")).astype(hospital.DATE)

    size = int(lines.sum())
    return {
        "customer": pd.DataFrame(
            {
                "c_custkey": custkey,
                "c_nationkey": rng.integers(0, 4, people),
                "c_acctbal": np.round(rng.normal(4000, 4000, people), 2),
                "c_mktsegment": rng.choice(["AUTOMOBILE", "BUILDING"], people),
            }
        ),
        "orders": pd.DataFrame(
            {
                "o_orderkey": orderkey,
                "o_custkey": np.repeat(custkey, orders),
                "o_orderstatus": rng.choice(["F", "O", "P"], len(orderkey)),
                "o_totalprice": np.round(rng.gamma(2, 60_000, len(orderkey)), 2),
                "o_orderdate": days(len(orderkey)),
                "o_orderpriority": rng.choice(["1-URGENT", "5-LOW"], len(orderkey)),
            }
        ),
        "lineitem": pd.DataFrame(
            {
                "l_orderkey": np.repeat(orderkey, lines),
                "l_suppkey": rng.integers(0, 6, size),
                "l_quantity": rng.integers(1, 51, size),
                "l_extendedprice": np.round(rng.gamma(2, 15_000, size), 2),
                "l_discount": np.round(rng.integers(0, 11, size) / 100, 2),
                "l_returnflag": rng.choice(["A", "N", "R"], size),
                "l_shipdate": days(size),
            }
        ),
        "supplier": pd.DataFrame(
            {"s_suppkey": range(6), "s_nationkey": [0, 1, 2, 3, 0, 1], "s_acctbal": [0.0, -5.0, 10.5, 99.0, 1.0, 2.0]}
        ),
        "nation": pd.DataFrame({"n_nationkey": range(4), "n_name": ["FRANCE", "GERMANY", "o'LAND", ""]}),
    }


def owners(given: Tables, shape: Shape, table: str) -> pd.Series:
    """Whose each row of a table is."""
    path = shape.paths[table]
    if not path:
        return given[table][next(iter(shape.keys))]
    found = given[table][path[0][0]]
    for (_, there, key), (column, *_) in pairwise(path):
        found = found.map(given[there].set_index(key)[column])
    return found


def dense(given: Tables, shape: Shape) -> Tables:
    """All keys from 0 on: so those of people are those of other things, of other people."""
    new = {name: given[name].copy() for name in given}
    for places in shape.keys.values():
        first, column = places[0]
        ranks = {key: at for at, key in enumerate(sorted(given[first][column]))}
        for table, name in places:
            new[table][name] = new[table][name].map(ranks)
    return new


def alone(given: Tables, shape: Shape, kept: set[int]) -> Tables:
    """Nobody else is there at all."""
    return {**given, **{name: given[name][owners(given, shape, name).isin(kept)] for name in shape.paths}}


def joined(given: Tables, shape: Shape, kept: set[int]) -> Tables:
    """Twice as many people, with the same rows under other keys, before and after everybody in any order of keys."""
    new = dict(given)
    for name in shape.paths:
        other = given[name].copy()
        for places in shape.keys.values():
            for table, column in places:
                if table == name:
                    other[column] = 100_000 - other[column]
        less = given[name].copy()
        for places in shape.keys.values():
            for table, column in places:
                if table == name:
                    less[column] = -1 - less[column]
        new[name] = pd.concat([other, given[name], less], ignore_index=True)
    return new


def renamed(given: Tables, shape: Shape, _: set[int]) -> Tables:
    """All keys are others, in another order; `Pools` knows whose they were."""
    new = {name: given[name].copy() for name in given}
    for places in shape.keys.values():
        for table, column in places:
            new[table][column] = renaming(given[table][column])
    return new


def renaming(key: Any) -> Any:
    return (key * 7919 + 13) % 1_000_003


def one_more(given: Tables, shape: Shape, _: set[int]) -> Tables:
    """Somebody more: whoever has most rows once again, with values that fail wherever they can."""
    first = next(reversed(shape.paths))
    who = owners(given, shape, first).mode()[0]
    own = {name: given[name][owners(given, shape, name) == who].copy() for name in shape.paths}
    for places in shape.keys.values():
        for table, column in places:
            if table in own:
                own[table][column] += 200_000
    own = odd(own) if "people" in own else own
    return {**given, **{name: pd.concat([given[name], own[name]], ignore_index=True) for name in own}}


WAYS: dict[str, Any] = {
    "one more": one_more,
    "alone": alone,
    "joined": joined,
    "renamed": renamed,
    "doubled": lambda given, shape, kept: changed(given, kept, "doubled"),
    "odd": lambda given, shape, kept: changed(given, kept, "odd"),
}
OWN_WAYS = {"hospital": tuple(WAYS)[1:], "tpch": ("alone", "joined")}
LONGER, TAKES, TURNS = 1.5, 0.02, 3  # times, seconds: what one person may not add to the work of some hundred rows


@dataclass
class Pool:
    """Tables that are registered, and who everybody is."""

    way: str
    catalog: lc.sql.Catalog
    engine: LocalEngine
    names: list[Any]


@dataclass
class Pools:
    """One as it is, and others in which all but some people are different."""

    base: Pool
    others: list[Pool]
    kept: set[int]
    more: Pool | None = None  # with somebody more, where times are compared

    @classmethod
    def built(
        cls, folder: Path, what: str = "hospital", *, times: bool = False, ways: tuple[str, ...] | None = None
    ) -> Pools:
        shape = SHAPES[what]
        given = dense(hospital.tables() if what == "hospital" else customers(), shape)
        first = next(iter(shape.keys.values()))[0]
        ids = np.sort(given[first[0]][first[1]].to_numpy())
        kept = {int(one) for one in ids[np.random.default_rng(7).permutation(len(ids))[: len(ids) // 2]]}
        if what == "hospital":  # what is missing of ages and incomes is missing of others alone
            kept -= set(given["people"]["id"].iloc[[0, 1, 5]])

        def pool(way: str, tables: Tables) -> Pool:
            place = folder / f"{what} {way}"
            if what == "hospital":
                catalog = hospital.registered(place, tables, keys=DECLARED)
            else:
                catalog = lc.sql.register(tables, path=place, **TPCH_SETTINGS)
            limits = EngineLimits(seconds=LONGEST, memory="1GB", threads=1)
            names = catalog.session_data()[1]
            if way == "renamed":
                back = {int(renaming(one)): int(one) for one in ids}
                names = [back[int(one)] for one in names]
            return Pool(way, catalog, LocalEngine(catalog.path, limits), [int(one) for one in names])

        ways = [pool(way, WAYS[way](given, shape, kept)) for way in (OWN_WAYS[what] if ways is None else ways)]
        more = pool("one more", one_more(given, shape, kept)) if times else None
        return cls(pool("as it is", given), ways, kept, more)

    def outcome(self, text: str, other: Pool, *, plans: bool = True) -> str:
        """`REFUSED`, `ANSWERED` or `PUBLIC`; whatever else it says is a fault.

        Plans are compared if `plans`; otherwise the other pool runs the plan that was made of the first.
        """
        program = _compiled(text, self.base)
        same = _compiled(text, other) if plans else program
        if isinstance(program, str) or isinstance(same, str):
            if program != same:
                return f"{other.way}: refused in one pool alone, or in other words"
            return REFUSED if str(program).startswith(REFUSED) else str(program)
        whole = written(program)
        if plans and whole != written(same):
            return f"{other.way}: the plan is another"
        if any("TRY(" in one for one in whole):
            return "work is done again for somebody's row"
        public = PublicAnswers(self.base.catalog)
        if public.private.search(program.last):
            return "what is public looks at people"
        if not program.releases:
            return PUBLIC
        first, second = _brought(program, self.base, public), _brought(program, other, public)
        if isinstance(first, str) or isinstance(second, str):
            both = first if isinstance(first, str) else second
            return REFUSED if first == second == REFUSED else f"{other.way}: {both}"
        for one, two in zip(first, second, strict=True):
            found = self._difference(one, two, other)
            if found:
                return f"{other.way}: {found}"
        return self.longer(program) or ANSWERED

    def longer(self, program: Program) -> str:
        """What is said where somebody more makes a question take much longer; CPU time, in turns."""
        if self.more is None:
            return ""
        pools, public = (self.base, self.more), PublicAnswers(self.base.catalog)
        took: list[list[float]] = [[], []]
        for _ in range(TURNS):
            for pool, seconds in zip(pools, took, strict=True):
                began = time.process_time()
                _brought(program, pool, public)
                seconds.append(time.process_time() - began)
        alone, beside = map(min, took)
        return "one more: the question takes longer" if beside > LONGER * alone + TAKES else ""

    def _difference(self, one: CellSums, two: CellSums, other: Pool) -> str:
        if not one.keys.equals(two.keys):
            return "other groups are listed"
        most = one.release.base.most
        limits = np.array([each.size for each in one.release.sums])
        if most is not None and (np.abs(one.values) > most * limits * (1 + 1e-9)).any():
            return "somebody brings more than is declared"
        if self._own(one, self.base) != self._own(two, other):
            return "somebody brings something else"
        return ""

    def _own(self, found: CellSums, pool: Pool) -> dict[Any, tuple[float, ...]]:
        mine: dict[Any, tuple[float, ...]] = {}
        for unit, cell, row in zip(found.units, found.cells, found.values, strict=True):
            if not 0 <= unit < len(pool.names):
                return {"nobody": ()}
            if (who := pool.names[unit]) in self.kept and row.any():
                mine[who, int(cell)] = tuple(row.tolist())
        return mine


class PublicAnswers:
    """What was said to questions that name no table of people: it is the same in all pools, and asked once."""

    def __init__(self, catalog: lc.sql.Catalog) -> None:
        places = "|".join(one.place for one in catalog.tables.values() if one.private)
        self.private = re.compile(rf"\b({places}|{UNIT}|{FACTS})\b")
        self.known: dict[str, Any] = {}


@dataclass
class Asked:
    """The engine of a pool, that is asked only what is not known yet."""

    engine: LocalEngine
    public: PublicAnswers

    def run(self, sql: str, tables: dict[str, Any]) -> Any:
        if sql in self.public.known:
            return self.public.known[sql]
        found = self.engine.run(sql, tables)
        if not self.public.private.search(sql):
            self.public.known[sql] = found
        return found


def _compiled(text: str, pool: Pool) -> Program | str:
    try:
        # What takes too long for some pools is looked at elsewhere, and asked here: it may tell of others as well.
        with patch.object(_Compiler, "loose", property(lambda _: [], lambda *_: None), create=True):
            program = compiled(text, pool.catalog, hidden_pool=True)
        for one in program.releases:
            domain(one, pool.catalog)
    except NotAnswered as refusal:
        return f"{REFUSED}: {refusal}"
    except Exception as error:
        return f"{type(error).__name__} in the one who asks"
    return program


def written(program: Program) -> list[str]:
    """All SQL of a question, near enough to tell two of them apart."""
    found = [program.last]
    for one in program.releases:
        terms = [f"{term.of} {term.where}" for term in listed_terms(one.sums)]
        found.append(" ".join([one.base.sql, *terms, *(key.safe for key in one.keys), repr(one.sums), repr(one.keys)]))
    return found


def _as_if_released(one: CellSums) -> np.ndarray:
    numbers = one.groups, len(one.release.sums)
    return (37.0 * np.arange(np.prod(numbers)).reshape(numbers)) % 97 + 0.5


def _brought(program: Program, pool: Pool, public: PublicAnswers) -> list[CellSums] | str:
    """What everybody brings to each release; what is released on the way hangs on the groups alone."""
    timer = Timer(LONGEST, pool.engine.file.interrupt)
    timer.start()
    try:
        return answered(program, pool.catalog, Asked(pool.engine, public), _as_if_released)[1]
    except NotAnswered:
        return REFUSED
    except (duckdb.Error, EngineError) as error:
        return f"the engine fails: {type(error).__name__}"
    except Exception as error:
        return f"{type(error).__name__} on the way"
    finally:
        timer.cancel()
