"""Tables at their edges: however a sum is worked out, and in whichever world, it is what a plain engine says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sql import holders, in_worlds
from leakcap.sql.cells import Numbering
from leakcap.sql.compile import compiled
from leakcap.sql.domains import domain
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import CellSums, public_table
from leakcap.sql.refusals import NotAnswered
from leakcap.worlds import Worlds, draw_worlds
from tests.later import others_later
from tests.sql.hospital import DATE
from tests.sql.plain import Plain
from tests.sql.test_plans import all_plans

FAR = 2**63 - 1
NEAR = 1e-12  # of rows times the largest
LISTED = (3, 120, 130, 300)  # of keys that are declared
BY_KIND: dict[str, tuple[int, int]] = {  # ranges of the whole number that is grouped by
    "skewed": (0, 6),
    "gaps": (0, 6),
    "far": (2**62, 2**62 + 6),
    "unused": (-3, 9),
    "alone": (0, 6),
    "without rows": (0, 6),
    "a byte ends": (122, 131),
    "two bytes end": (32_762, 32_771),
    "two bytes begin": (-32_773, -32_764),
    "four bytes end": (2**31 - 9, 2**31 - 1),
    "others than are listed": (-40_000, 2**40),
}
SUMS = (
    "select g, count(*), sum(x) from t group by g",
    "select k, count(x), sum(y) from t group by k",
    "select k, g, b, count(*), sum(x) filter (where b), count(distinct who) from t group by 1, 2, 3",
    "select count(*), sum(y), count(*) filter (where x > 0), sum(x) from t",
    "select day, count(*) from t group by day",
    "select k, count(*), count(*) filter (where b) from t group by k",
)
VALUES = (
    "select g, count(*), min(x), max(y), count(distinct k), count(distinct x) filter (where b) from t group by g",
    "select k, count(*), min(y), count(distinct g), sum(y) from t group by k",
)


def tables(kind: str) -> dict[str, pd.DataFrame]:
    """People, and their rows; keys, numbers and conditions among them."""
    rng, people = np.random.default_rng(0), 1 if kind == "alone" else 40
    count = rng.integers(0, 5, people) if kind != "alone" else np.array([7])
    count[0] = {"skewed": 2000, "without rows": 0}.get(kind, count[0])
    count = count * (kind != "without rows")
    rows, (low, high) = int(count.sum()), BY_KIND[kind]
    k = rng.choice([*LISTED, 4, -40_000, 2**40], rows) if kind == "others than are listed" else None
    made = pd.DataFrame(
        {
            "who": np.repeat(np.arange(people), count),
            "g": pd.Categorical(rng.choice(["a", "b", "é'"], rows), categories=["a", "b", "c", "z", "é'"]),
            "k": pd.array(rng.integers(low, high + 1, rows) if k is None else k, dtype="Int64"),
            "x": pd.array(
                rng.choice([-FAR, -1, 0, 1, FAR], rows) if kind == "far" else rng.integers(-9, 9, rows), "Int64"
            ),
            "y": rng.choice([-0.0, 1e-300, 0.1, 1e6, np.inf, np.nan], rows)
            if kind == "far"
            else rng.normal(0, 9, rows),
            "b": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "day": pd.to_datetime("2024-02-27") + pd.to_timedelta(rng.integers(0, 5, rows), unit="D"),
        }
    )
    if kind == "gaps":
        for name in ("g", "k", "x", "y", "b", "day"):
            made.loc[rng.random(rows) < 0.8, name] = None
    made["day"] = made["day"].astype(DATE)
    return {"people": pd.DataFrame({"id": np.arange(people)}), "t": made}


def rows_of(table: Any, keys: int) -> dict[tuple[Any, ...], list[float | None]]:
    """Rows by their keys, to the last digit."""
    rows = zip(*(one.to_pylist() for one in table.columns), strict=True)
    return {row[:keys]: [None if one is None else float(one) for one in row[keys:]] for row in rows}


class Edge:
    """Registered tables of one kind."""

    def __init__(self, kind: str) -> None:
        low, high = BY_KIND[kind]
        declared = {"others than are listed": list(LISTED), "far": list(range(low, low + 7))}.get(kind)
        self.catalog = lc.sql.register(
            tables(kind),
            unit="people.id",
            links={"t.who": "people.id"},
            bounds={"t.k": (low, high), "t.x": (-FAR, FAR), "t.y": (-1e6, 1e6), "t.day": ("2024-02-26", "2024-03-03")},
            keys={"t.k": declared} if declared else None,
        )
        self.engine, rng, people = LocalEngine(self.catalog.path), np.random.default_rng(1), self.catalog.people
        self.known: dict[tuple[str, bytes], dict[tuple[Any, ...], list[float | None]]] = {}
        self.without = kind == "without rows"
        self.listed = kind == "others than are listed"
        self.near = NEAR * len(tables(kind)["t"]) * {"far": FAR, "skewed": 100}.get(kind, 100)
        self.masks = [rng.random(people) < 0.5, np.zeros(people, dtype=bool), np.ones(people, dtype=bool)]

    def plans(self, text: str, monkeypatch: pytest.MonkeyPatch) -> list[CellSums]:
        """A question in all ways; in no way where nobody's text is there to be grouped by."""
        return [] if self.without and "g," in text else all_plans(text, self, monkeypatch)

    def differences(self, made: CellSums, sums: Any, mask: np.ndarray, *, text: str) -> list[object]:
        """Rows that are not those of the plain engine; a group of nobody is a row of ours alone, with a count of 0."""
        keys = len(made.release.keys)
        mine, other = rows_of(public_table(made, sums), keys), self._plainly(text, mask, keys)
        found: list[object] = [
            (key, mine.get(key), row)
            for key, row in other.items()
            if key not in mine
            or any(abs((a or 0.0) - b) > self.near for a, b in zip(mine[key], row, strict=True) if b is not None)
        ]
        return found + [(key, row) for key, row in mine.items() if key not in other and keys and row[0]]

    def _plainly(self, text: str, mask: np.ndarray, keys: int) -> dict[tuple[Any, ...], list[float | None]]:
        """What the plain engine says, once for all ways of working it out."""
        asked = text, mask.tobytes()
        if asked not in self.known:
            plain = Plain(self.catalog, mask)
            self.known[asked] = rows_of(plain.file.sql(self._of_listed(text)).to_arrow_table(), keys)
            plain.close()
        return self.known[asked]

    def _of_listed(self, text: str) -> str:
        """Rows with other keys than are listed are in no group."""
        return text.replace(" from t ", f" from t where k in {LISTED} ") if self.listed and "k," in text else text


LATER = ("unused", "two bytes end", "two bytes begin")  # as others, of more or of fewer bytes
AT_ONCE = [kind for kind in BY_KIND if kind not in LATER]


@pytest.fixture(scope="module", params=others_later(BY_KIND, *AT_ONCE))
def edge(request: pytest.FixtureRequest) -> Iterator[Edge]:
    made = Edge(request.param)
    yield made
    made.engine.close()


def in_all_plans(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What differs from the plain engine, by whichever way sums are made."""
    found: list[object] = []
    for text in SUMS:
        for made in edge.plans(text, monkeypatch):
            for mask in edge.masks:
                found += edge.differences(made, made.totals(mask), mask, text=text)
    return found


def test_sums_of_tables_at_their_edges_are_those_of_a_plain_engine(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_all_plans(edge, monkeypatch) == []


@pytest.mark.parametrize("kind", ["a byte ends", "two bytes end"])
def test_a_code_with_too_few_bytes_would_be_seen(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    edge, size = Edge(kind), {"a byte ends": "TINYINT", "two bytes end": "SMALLINT"}[kind]
    monkeypatch.setattr(Numbering, "narrow", property(lambda self: f"TRY_CAST({self.code} AS {size})"))
    text = SUMS[5]
    made = all_plans(text, edge, pytest.MonkeyPatch())[0]
    assert edge.differences(made, made.totals(edge.masks[2]), edge.masks[2], text=text)


def test_whoever_is_retired_adds_nothing_and_everybody_is_charged(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = np.ones(edge.catalog.people, dtype=bool)
    for text in SUMS[:3]:
        for made in edge.plans(text, monkeypatch):
            sums = BroughtByCell(made.rows, None, np.ravel, public=False)
            deviations = np.full(sums.numbers, 1e18 if edge.near > 1e6 else 30.0)
            for pays, coins in ((~everybody, everybody), (everybody, ~everybody)):
                assert not sums.totals(deviations, pays, coins, False)[0].any()
            brought = np.zeros((edge.catalog.people, sums.numbers))
            units, cells, values = made.rows.entries
            brought.reshape(len(brought), made.groups, -1)[units, cells] = values
            np.testing.assert_allclose(sums.squares(deviations), ((brought / deviations) ** 2).sum(axis=1), rtol=1e-12)


def in_some_worlds(edge: Edge, cohorts: int | None) -> list[object]:
    """What differs from the plain engine in worlds of people, or of cohorts."""
    people, found = edge.catalog.people, []
    mates = None if cohorts is None else np.random.default_rng(2).integers(0, cohorts, people)
    worlds = draw_worlds(cohorts or max(4, people), 8, np.random.default_rng(3))
    for text in (*VALUES, *SUMS[:3]):
        if edge.without and "g," in text:
            continue
        release = compiled(text, edge.catalog, worlds=True).releases[0]
        known = in_worlds.in_worlds(release, edge.catalog, edge.engine, {}, mates)
        table = known.table(worlds)
        for at in (0, 5):
            inside = worlds.mask(at)[:people] if mates is None else worlds.mask(at)[mates]
            # Of no value an extreme is the middle of its range, and here 0: the plain engine has none
            found += edge.differences(known.made, table[at], inside, text=text)
            found += [text for _ in range(1) if not np.allclose(known.of(inside), table[at], atol=edge.near)]
    return found


@pytest.mark.parametrize("cohorts", [None, pytest.param(5, marks=pytest.mark.slow)])
def test_all_worlds_of_tables_at_their_edges_are_those_of_a_plain_engine(
    edge: Edge, cohorts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_some_worlds(edge, cohorts) == []
    if cohorts:
        monkeypatch.setattr(in_worlds, "LARGE", 1)
        monkeypatch.setattr(in_worlds, "SPARSE", 0)
        assert in_some_worlds(edge, cohorts) == []
    monkeypatch.setattr(holders, "TOGETHER", 2)  # values of one group in several turns
    monkeypatch.setattr(holders, "UNITS", 3)
    assert in_some_worlds(edge, cohorts) == []


def test_a_bit_that_is_read_from_the_next_person_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Worlds.columns
    monkeypatch.setattr(Worlds, "columns", lambda self, units, rows=None: honest(self, (units + 1) % self.n, rows))
    edge = Edge("unused")
    release = replace(compiled(VALUES[0], edge.catalog, worlds=True).releases[0])
    known = in_worlds.in_worlds(release, edge.catalog, edge.engine, {})
    worlds = draw_worlds(edge.catalog.people, 8, np.random.default_rng(3))
    assert edge.differences(known.made, known.table(worlds)[0], worlds.mask(0), text=VALUES[0])


@pytest.mark.parametrize("key", ["k", "k + 1", "round(k, -1)"])
def test_whole_numbers_that_no_float_is_are_not_listed_from_their_range(key: str) -> None:
    """Ends of ranges are floats: of 2^62 to 2^62 + 6 all would be one number, and the rows of the others lost."""
    low = 2**62
    rows = pd.DataFrame({"who": [1, 2, 3], "k": [low, low + 3, low + 6]})
    catalog = lc.sql.register({"t": rows}, unit="who", bounds={"k": (low, low + 6)}, rows_per_unit=1)
    with pytest.raises(NotAnswered, match="declare keys="):
        domain(compiled(f"select {key}, count(*) from t group by 1", catalog).releases[0], catalog)
