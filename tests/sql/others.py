"""What a person brings to a question, and whether it stays the same when rows of others change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from leakcap.sql import Catalog
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import CellSums, answered
from tests.sql.hospital import as_dates, as_money, registered, tables

KEPT = 30  # people whose rows stay as they are, of 60
WAYS = ("gone", "doubled", "odd")
Brought = list[dict[tuple[Any, ...], tuple[float, ...]]]  # of each release: sums by person and group


@dataclass
class Hospitals:
    """The hospital, and others in which the rows of some people are as in it, and all the rest is different."""

    catalogs: list[Catalog]
    engines: list[LocalEngine]
    kept: frozenset[int]  # hidden numbers

    @classmethod
    def built(cls, folder: Path) -> Hospitals:
        given = tables()
        ids = np.sort(given["people"]["id"].to_numpy())
        some = np.random.default_rng(7).permutation(len(ids))[:KEPT]
        found = [registered(folder / "as it is", given)]
        found += [registered(folder / way, changed(given, set(ids[some]), way)) for way in WAYS]
        return cls(found, [LocalEngine(one.path) for one in found], frozenset(int(one) for one in some))

    def differences(self, text: str, ways: Iterable[str] = WAYS) -> list[str]:
        """Ways to change rows of others that change what somebody brings to a question; the question compiles."""
        own = self._own(text, 0)
        return [way for way in ways if self._own(text, 1 + WAYS.index(way)) != own]

    def _own(self, text: str, hospital: int) -> Brought:
        found = brought(text, self.catalogs[hospital], self.engines[hospital])
        return [{key: sums for key, sums in one.items() if key[0] in self.kept and any(sums)} for one in found]


def changed(given: dict[str, pd.DataFrame], kept: set[int], way: str) -> dict[str, pd.DataFrame]:
    """Tables in which rows of all but some people are gone, doubled, or full of odd values; people stay people."""
    people, stays, tests = (given[name] for name in ("people", "stays", "tests"))
    own = stays["person"].isin(kept)
    owned = tests["stay"].isin(stays["stay"][own])
    theirs = {
        "people": people[~people["id"].isin(kept)].copy(),
        "stays": stays[~own].copy(),
        "tests": tests[~owned].copy(),
    }
    if way == "gone":
        theirs |= {name: theirs[name].iloc[:0] for name in ("stays", "tests")}
    elif way == "doubled":
        new = theirs["stays"].assign(stay=theirs["stays"]["stay"] + 20_000, days=59, cost=4999.0, urgent=True, ward=3)
        more = theirs["tests"].assign(stay=theirs["tests"]["stay"] + 20_000, level=4.5)
        theirs |= {"stays": pd.concat([new, theirs["stays"]]), "tests": pd.concat([theirs["tests"], more, more])}
    else:
        theirs = odd(theirs)
    parts = {"people": people[people["id"].isin(kept)], "stays": stays[own], "tests": tests[owned]}
    return {**given, **{name: pd.concat([theirs[name], parts[name]], ignore_index=True) for name in parts}}


def odd(theirs: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    person, stay, test = (theirs[name] for name in ("people", "stays", "tests"))
    size = len(person)
    person["income"] = np.resize([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0, 5e-324], size)
    person["age"] = pd.array(np.resize(np.array([None, -5, 0, 10**15, 110], dtype=object), size), dtype="Int64")
    person["town"] = np.resize(
        np.array([None, "", "'", "A", "infinity", "2020-01-01", "nan", "1e999", "é\u202e"], dtype=object), size
    )
    person["sex"] = np.resize(np.array(["x", None, "f", "0"], dtype=object), size)
    ends = [35_700_000, 38_000_000, 2**31 - 2, 2**31 - 1]  # days: two further off than is kept, the last is no end
    far = [0, -719_163, 2_932_896, *ends, *(-one for one in ends)]
    person["since"] = as_dates(np.resize(far, size)).array
    person["paid"] = as_money([10**18 - 1, 1 - 10**18, 0, 1] * size)[:size].array
    size = len(stay)
    stay["stay"] = stay["stay"] + 30_000
    stay["days"] = np.resize([0, -1, 10**12, 60], size)
    stay["cost"] = np.resize([0.0, np.nan, np.inf, -1e300, 5000.0], size)
    stay["ward"] = np.resize([0, 99, -1, 3], size)
    stay["urgent"] = np.resize([True, False], size)
    test["stay"] = test["stay"] + 30_000
    test["level"] = np.resize([np.nan, np.inf, 0.0, -0.0, 1e300, -5.0], len(test))
    test["drug"] = np.resize([10, 0, 999], len(test))
    return {"people": person, "stays": stay, "tests": test}


def brought(text: str, catalog: Catalog, engine: LocalEngine) -> Brought:
    """What everybody brings to each release of a question; what is released on the way hangs on the groups alone."""
    _, found = answered(compiled(text, catalog), catalog, engine, _fixed)
    return [_by_key(one) for one in found]


def _by_key(one: CellSums) -> dict[tuple[Any, ...], tuple[float, ...]]:
    keys = _keys(one)
    return {
        (int(unit), *keys[cell]): tuple(row.tolist())
        for unit, cell, row in zip(one.units, one.cells, one.values, strict=True)
    }


def _keys(one: CellSums) -> list[tuple[str, ...]]:
    if not one.release.keys:
        return [()]
    return [tuple(map(repr, row.values())) for row in one.keys.to_pylist()]


def _fixed(one: CellSums) -> np.ndarray:
    """Numbers that look released, the same for the same group."""
    seeds = [crc32(repr(key).encode()) for key in _keys(one)]
    return np.array([[(seed >> at) % 97 + 0.5 for at in range(len(one.release.sums))] for seed in seeds])
