"""Questions in SQL about people in parts, here and on workers: answers, charges, refusals of one table, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leakcap as lc
from leakcap.errors import InputError, LeakcapError
from leakcap.sessions.cell_rows import CellRows
from leakcap.sql import asking, parted
from leakcap.sql.engine import EngineLimits, LocalEngine, WorkerEngine, limited
from tests.sql.hospital import registered, tables
from tests.sql.kept_engine import kept_engine

DECLARED = {"people.sex": ["f", "m"], "people.town": ["A", "B", "C", None]}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("select count(*) from people", {"share": 0.2}),
    ("select sex, count(*), avg(age), stddev_pop(income) from people group by sex", {"share": 0.2}),
    ("select s.urgent, w.name, sum(s.days) from stays s, wards w where s.ward = w.ward group by 1, 2", {"share": 0.2}),
    ("select count(*) from people where age > (select avg(age) from people)", {"share": 0.3}),
    ("select year(s.day), corr(s.days, s.cost), sum(s.cost) from stays s group by 1", {"share": 0.1}),
    ("select median(cost), quantile_cont(days, 0.9) from stays", {"share": 0.1}),
    ("select count(distinct stay), sum(level) from tests where level > 0", {"share": 0.3}),  # some retire
    ("select count(*) from stays where days > 3", {"share": 0.1, "rows": 2}),
    ("select sum(paid * 2) from people where town in ('A', 'B')", {"share": 0.1}),
    ("select count(*) from people where income > 8000", {"share": 0.5}),  # most do
    ("select count(*) from people", {"share": 2.0}),
    ("select name, beds from wards order by beds", {}),
    ("select age from people", {}),
    ("select max(age) from people", {}),
    ("select ward, sum(whatever) from stays group by ward", {}),
]


def told(session: lc.Session, asked: list[tuple[str, dict[str, Any]]] = ASKED) -> list[Any]:
    """Answers, prices, refusals and what is left, in order."""
    found: list[Any] = []
    for text, how in asked:
        for ask in (session.preview_sql, session.sql):
            try:
                made = ask(text, **how)
                found.append(made.frame.to_csv() + repr(made.share) if hasattr(made, "frame") else made)
            except LeakcapError as error:
                found.append(f"{type(error).__name__}: {error}")
    told = [str(one) if one is None or isinstance(one, str) else repr(one) for one in found]
    history = [(one.number, one.question, one.share, one.numbers) for one in session.history]
    return [*told, repr((session.spent, session.remaining, history)), session.certificate.to_json()]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for each part of each question takes a second, and what is asked here is not how they are started."""
    monkeypatch.setattr(asking, "WorkerEngine", kept_engine)
    monkeypatch.setattr(parted, "WorkerEngine", LocalEngine)


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return registered(keys=DECLARED)


@pytest.mark.parametrize(
    ("analyst", "cap", "parts", "asked"),
    [
        ("ann", 0.6, [4], ASKED),
        (None, lc.pool_membership(0.6), [3], ASKED[1::2]),
    ],
    ids=["analyst", "pool cap"],
)
def test_parts_give_the_answers_charges_and_refusals_of_one_table(
    catalog: lc.sql.Catalog,
    monkeypatch: pytest.MonkeyPatch,
    analyst: str | None,
    cap: Any,
    parts: list[int],
    asked: Any,
) -> None:
    expected = told(lc.Session(catalog, cap=cap, analyst=analyst, seed=1), asked)
    monkeypatch.setattr(asking, "AT_ONCE", 0)
    for count in parts:
        session = lc.Session(replace(catalog, parts=count), cap=cap, analyst=analyst, seed=1)
        assert told(session, asked) == expected
    assert sum("Error" in one for one in expected) < len(expected) / 2


@pytest.mark.slow
def test_and_the_custodian_is_told_the_same_of_any_number_of_parts(
    catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_parts_give_the_answers_charges_and_refusals_of_one_table(catalog, monkeypatch, None, 0.6, [1, 2, 9, 64], ASKED)


def test_a_part_that_is_left_out_would_be_seen(catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = told(lc.Session(catalog, cap=0.6, seed=1), ASKED[:2])
    monkeypatch.setattr(asking, "AT_ONCE", 0)
    rows = parted.CatalogPart.tables.fget  # type: ignore[attr-defined]

    def without_the_last(part: parted.CatalogPart) -> dict[str, Any]:
        found: dict[str, Any] = rows(part)
        return {**found, "t0": found["t0"].slice(0, 0)} if part.people.start else found

    monkeypatch.setattr(parted.CatalogPart, "tables", property(without_the_last))
    assert told(lc.Session(replace(catalog, parts=2), cap=0.6, seed=1), ASKED[:2]) != expected


@pytest.mark.parametrize("units", [[0, 1, 3], [3, 0, 1], [-1, 0, 1], [0, -1, 1]])
def test_rows_of_somebody_beyond_the_edge_of_a_part_are_refused(units: list[int]) -> None:
    """Compiled loops look at no edge: somebody who is in two parts would be written beside what belongs to others."""
    with pytest.raises(AssertionError, match="somebody else"):
        CellRows.of_entries(3, 1, np.array(units, np.int32), np.zeros(3, np.int32), np.ones((3, 1)))


def test_parts_that_take_too_long_together_end_the_question_and_nobody_pays(
    catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One engine after the other: each is within its limit, and all of them are not."""
    monkeypatch.setattr(asking, "AT_ONCE", 0)
    moments = iter([100.0, 100.5, 101.5, 102.5])
    monkeypatch.setattr(parted, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    session = lc.Session(replace(catalog, parts=3), cap=0.6, seed=1)
    with limited(EngineLimits(seconds=2.0)), pytest.raises(lc.sql.NotAnswered, match="took longer than 2 seconds"):
        session.sql(ASKED[0][0], share=0.1)
    assert session.spent.share == 0 and not session.history


def test_an_engine_without_a_file_is_locked_too(catalog: lc.sql.Catalog) -> None:
    part = parted.CatalogPart(catalog, slice(0, 7))
    engine = WorkerEngine(None, None, part.tables)
    assert engine.run("SELECT count(DISTINCT unit) AS n FROM t0", {})["n"].to_pylist() == [7]
    for text in ("SELECT * FROM read_csv('/etc/passwd')", "CREATE TABLE x AS SELECT 1", "SET threads = 4"):
        with pytest.raises(LeakcapError, match="could not be answered"):
            engine.run(text, {})
    engine.close()


def test_a_file_that_changed_is_not_read_for_workers(catalog: lc.sql.Catalog, tmp_path: Path) -> None:
    own = registered(tmp_path / "own.duckdb")
    part = parted.CatalogPart(own, slice(0, 5))
    (tmp_path / "own.duckdb").touch()
    with pytest.raises(InputError, match="was changed"):
        part.carried()


def in_files(folder: Path, frame: pd.DataFrame, parts: int) -> Any:
    """A shuffled table in so many Parquet files."""
    order = np.random.default_rng(parts).permutation(len(frame))
    folder.mkdir()
    for at, rows in enumerate(np.array_split(order, parts)):
        pq.write_table(pa.Table.from_pandas(frame.iloc[rows], preserve_index=False), folder / f"{at}.parquet")
    return lc.partitions(str(folder))


def of_partitions(folder: Path, parts: int) -> lc.sql.Catalog:
    """The hospital, its stays and tests in files of which each holds rows of many people."""
    found: dict[str, Any] = tables()
    found |= {name: in_files(folder / name, found[name], parts) for name in ("stays", "tests")}
    return registered(given=found, keys=DECLARED)


def test_a_folder_of_parquet_files_is_registered_as_one_table_is(
    own_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("leakcap.sql.register"), "PART", 200)
    monkeypatch.setattr(asking, "AT_ONCE", 1)
    some = [ASKED[2], ASKED[6]]
    expected = told(lc.Session(registered(keys=DECLARED), cap=0.6, seed=1), some)
    for parts in (5,):
        (tmp_path / str(parts)).mkdir()
        catalog = of_partitions(tmp_path / str(parts), parts)
        assert catalog.parts > 2
        assert told(lc.Session(catalog, cap=0.6, seed=1), some) == expected
