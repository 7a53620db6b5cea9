"""Whatever is wrong with tables, files and declarations: one sentence that says what to do, no cell, no file left.

Every cell that could be quoted holds SECRET.
"""

from __future__ import annotations

import datetime
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sql import asking
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import in_world
from leakcap.sql.failures import CAUSES, in_words
from tests.refusals import refusal
from tests.sql.hospital import DATE, registered, tables

SECRET = "sesame4711"
ONE = pd.DataFrame({"who": [1, 2, 2, 3], "x": [1.0, 2.0, 3.0, 4.0], "n": [1, 2, 3, 4], "s": [SECRET, "b", "c", "a"]})
DAYS = ONE.assign(day=[datetime.date(2020, 1, 1)] * 4)
PEOPLE = pd.DataFrame({"id": [1, 2, 3], "ward": [7, 7, 8]})
STAYS = pd.DataFrame({"person": [1, 2], "code": [SECRET, "b"]})


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def refused(words: str, given: Any, **settings: Any) -> None:
    """Registering ends in one sentence with these words, and leaves nothing."""
    before = sorted(Path(tempfile.gettempdir()).rglob("*"))
    error = refusal(
        lambda: lc.sql.register(given, **{"unit": "who", **settings}), words, kind=InputError, private=(SECRET,)
    )
    assert "\n" not in str(error) and len(str(error)) < 400
    assert sorted(Path(tempfile.gettempdir()).rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "given", "settings"),
    [
        ("two finite numbers", ONE, {"bounds": {"x": (float("nan"), 1)}}),
        ("two finite numbers", ONE, {"bounds": {"n": (0, float("inf"))}}),
        ("two finite numbers", ONE, {"bounds": {"x": (0, 1e200)}}),
        ("low below high", ONE, {"bounds": {"x": (1, 1)}}),
        ("two finite numbers", ONE, {"bounds": {"x": 5}}),
        ("two finite numbers", ONE, {"bounds": {"x": ("a", "b")}}),
        ("bounds are for numbers and dates, and data.s holds text", ONE, {"bounds": {"s": ("a", "b")}}),
        ("holds dates", DAYS, {"bounds": {"day": (2019, 2020)}}),
        ("low below high", DAYS, {"bounds": {"day": ("2021-01-01", "2020-01-01")}}),
        ("is a key, and a key that is cut is another one's", ONE, {"bounds": {"who": (0, 2)}}),
        ("is named twice", ONE, {"bounds": {"x": (0, 1), "data.x": (0, 2)}}),
        ("must be by column", ONE, {"bounds": [(0, 1)]}),
        ("a whole number above 0", ONE, {"rows_per_unit": 1.5}),
        ("a whole number above 0", ONE, {"rows_per_unit": True}),
        ("a whole number above 0", ONE, {"rows_per_unit": {"data": -1}}),
        ("there is no table 'stays'", ONE, {"rows_per_unit": {"stays": 1}}),
        ("must be a list of values", ONE, {"keys": {"s": "ab"}}),
        ("must be a list of values", ONE, {"keys": {"n": 5}}),
        ("must be whole numbers, as the column is", ONE, {"keys": {"n": ["a"]}}),
        ("must be whole numbers", ONE, {"keys": {"n": [1.5]}}),
        ("must be numbers", ONE, {"keys": {"x": [float("nan")]}}),
        ("must be text", ONE, {"keys": {"s": [1]}}),
        ("must be dates", DAYS, {"keys": {"day": ["yesterday"]}}),
        ("are an empty list", ONE, {"keys": {"s": []}}),
        ("public must be a list", ONE, {"public": 5}),
        ("there is no column 'y.z'", ONE, {"links": {"x": "y.z"}}),
        ("there is no column None", ONE, {"unit": None}),
    ],
)
def test_what_is_declared_wrongly(words: str, given: Any, settings: dict[str, Any]) -> None:
    refused(words, given, **settings)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("do not say whose they are", ONE.assign(who=[1, 2, None, 3])),
        ("do not say whose they are", pl.DataFrame({"who": [1.0, float("nan")], "x": [1.0, 2.0]})),
        ("infinite or have too many digits", ONE.assign(who=[1, 2, np.inf, 3])),
        ("infinite or have too many digits", pa.table({"who": np.array([1, 2], dtype="datetime64[ns]"), "x": [1, 2]})),
        ("infinite or have too many digits", ONE.assign(who=np.array([2**64 - 1, 2**64 - 2, 1, 2], dtype=np.uint64))),
        ("cannot say whose a row is", ONE.assign(who=[[1], [2], [3], [1]])),
        ("have the same name, or differ by the case", pd.DataFrame([[1, 2, 3]], columns=["who", "x", "x"])),
        ("have the same name, or differ by the case", pa.table({"who": [1], "X": [1], "x": [2]})),
        ("there is no column 'who'", ONE.set_index("who")),
        ("has no columns", pd.DataFrame()),
        ("a table must be", ONE["x"]),
        ("a table must be", np.ones((2, 2))),
        ("a table must be", {"data": None}),
        ("column 'c' of 'data' is of a kind", ONE.assign(c=pd.period_range("2020-01", periods=4))),
        ("column 'c' of 'data' is of a kind", ONE.assign(c=pd.arrays.SparseArray([0, 0, 1, 0]))),
        (
            "column 'c' of 'data' is of a kind",
            pa.table({"who": [1], "c": pa.array([Decimal(1)], pa.decimal256(60, 2))}),
        ),
        ("is the target of a link and repeats", None),
    ],
)
def test_tables_that_cannot_be_used(words: str, given: Any) -> None:
    if given is None:
        given = {"who": ONE, "wards": pd.DataFrame({"n": [1, 1]})}
        refused(words, given, unit="who.who", links={"who.n": "wards.n"}, public=["wards"])
        return
    refused(words, given)


@pytest.mark.parametrize(
    ("words", "stays", "settings"),
    [
        ("have no partner along their link", {"person": [1, 9]}, {}),
        ("have no partner along their link", {"person": [1, None]}, {}),
        ("stays.person holds text, and people.id whole numbers", {"person": ["1", SECRET]}, {}),
        ("is a key, and a key that is cut", {"person": [1, 2]}, {"bounds": {"stays.person": (0, 1)}}),
        ("does not say whose its rows are", {"person": [1, 2]}, {"links": {}}),
        ("leads from the table of people to people", {"person": [1]}, {"links": {"people.ward": "stays.person"}}),
        ("leads from a public table to people", {"person": [1, 2]}, {"public": ["stays"]}),
    ],
)
def test_links_that_lead_nowhere(words: str, stays: dict[str, Any], settings: dict[str, Any]) -> None:
    given = {"people": PEOPLE, "stays": pd.DataFrame(stays)}
    refused(words, given, **{"unit": "people.id", "links": {"stays.person": "people.id"}, **settings})


GOOD = b"who,x\n1,1.5\n2,2.5\n"


@pytest.mark.parametrize(
    ("words", "name", "content"),
    [
        ("there is no column 'who'", "data.csv", b""),
        ("has no rows", "data.csv", b"who,x\n"),
        ("not in UTF-8", "data.csv", "who,x\n1,sesame4711é\n".encode("latin-1")),
        ("does not look like CSV|UTF-8", "data.csv", bytes(range(256)) * 50),
        ("check that it is whole", "data.csv.gz", GOOD),
        ("check that it is whole", "data.parquet", GOOD),
        ("check that it is whole", "data.parquet", b"half"),
        ("is no whole DuckDB file", "data.duckdb", b""),
        ("is no whole DuckDB file", "data.duckdb", SECRET.encode() * 3000),
        ("is of no kind that is read here", "data.xlsx", b"PK"),
        ("there is no file", "missing.csv", None),
    ],
)
def test_files_that_cannot_be_read(words: str, name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(words, tmp_path / name)


def test_half_a_parquet_file(tmp_path: Path) -> None:
    ONE.to_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "data.parquet").write_bytes(whole[: len(whole) // 2])
    refused("'data' could not be read: check that it is whole", tmp_path / "data.parquet")
    torn = bytearray(whole)
    torn[4:200] = bytes(196)
    (tmp_path / "data.parquet").write_bytes(torn)
    refused("'data' could not be read: check that it is whole", tmp_path / "data.parquet")


def test_folders_whose_files_share_a_name(tmp_path: Path) -> None:
    for name in ("data.csv", "data.csv.gz"):
        (tmp_path / name).write_bytes(GOOD)
    refused("several files of the folder would be table 'data'", tmp_path)
    refused("there are no tables", tmp_path / "temporary")


def test_files_that_are_someone_elses_at_the_moment(tmp_path: Path) -> None:
    place = tmp_path / "data.duckdb"
    with duckdb.connect(str(place)) as file:
        file.execute("CREATE TABLE data AS SELECT 1 AS who")
        refused("is open elsewhere: close it there", place)
    hold = "import duckdb, sys; f = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", hold, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        refused("is open elsewhere: close it there", place)
        with pytest.raises(InputError, match="is open elsewhere"):
            lc.sql.Catalog.load(place)
    finally:
        other.communicate()


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may read everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(GOOD)
    (tmp_path / "data.csv").chmod(0)
    refused("may not be read|could not be read", tmp_path / "data.csv")


def test_what_the_engine_says_becomes_a_sentence_and_is_not_passed_on() -> None:
    newer = "IO Error: Trying to read a database file with version number 99, but we can only read version 64"
    assert "update DuckDB" in in_words(duckdb.IOException(newer), "data.duckdb")
    for sign in (*CAUSES, "conversion error"):
        said = in_words(duckdb.Error(f'{sign.split("|")[0]}: could not convert "{SECRET}"'), "data")
        assert SECRET not in said and said.count(":") >= 1


@contextmanager
def a_full_disk(size: int) -> Iterator[None]:
    """No file of this process grows beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(tmp_path: Path) -> None:
    rows = pd.DataFrame({"who": np.arange(200_000), "x": np.random.default_rng(0).random(200_000)})
    (tmp_path / "kept").mkdir()
    with a_full_disk(600_000):
        refused("make room on the disk", rows)
        refused("make room on the disk", rows, path=tmp_path / "kept" / "tables.duckdb")
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("path", [5, "a\0b", "x" * 300, Path("/proc/none.duckdb")])
def test_places_where_no_file_can_be(path: Any) -> None:
    refused("path|nothing can be written", ONE, path=path)


ODD = [
    "unit",
    "print",
    "cohort",
    "name",
    "key",
    "at",
    "c0",
    "t0",
    "rowid",
    "select",
    "a b",
    'a"b',
    "a'b",
    "a.b",
    "😀",
    "ünï",
]


def total(catalog: lc.sql.Catalog, text: str) -> list[float]:
    everybody = np.ones(catalog.people, dtype=bool)
    engine = LocalEngine(catalog.path)
    try:
        found = in_world(compiled(text, catalog), catalog, engine, everybody).to_pandas()
    finally:
        engine.close()
    return list(found.iloc[0].astype(float))


def written(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_columns_have_the_custodians_names_whatever_they_are() -> None:
    given = ONE.assign(**{name: ONE.x * at for at, name in enumerate(ODD)})
    catalog = lc.sql.register(given, unit="who", bounds=dict.fromkeys(ODD, (0, 100)), order="as given")
    text = f"select {', '.join(f'sum({written(name)})' for name in ODD)} from data"
    assert total(catalog, text) == pytest.approx([10.0 * at for at in range(len(ODD))])


@pytest.mark.parametrize("name", ODD)
def test_tables_and_people_have_the_custodians_names_whatever_they_are(name: str) -> None:
    given = ONE.rename(columns={"who": name})
    catalog = lc.sql.register({name: given}, unit=name, bounds={"x": (0, 5)}, rows_per_unit=1)
    assert catalog.people == 3 and total(catalog, f"select count(distinct {written(name)}) from {written(name)}") == [3]


def test_keys_of_names_with_dots_are_not_each_others() -> None:
    people = pd.DataFrame({"b.id": [1, 2], "ward": [1, 1]})
    wards = pd.DataFrame({"id.x": [1, 2], "name": ["eyes", "heart"]})
    catalog = lc.sql.register(
        {"a": people, "a.b": wards}, unit="a.b.id", links={"a.ward": "a.b.id.x"}, public=["a.b"], rows_per_unit=1
    )
    assert catalog.person == 'a."b.id"'
    text = 'select w.name, count(*) as n from a join "a.b" w on a.ward = w."id.x" group by w.name'
    assert [one.name for one in compiled(text, catalog).outputs] == ["name", "n"]


def _csv(folder: Path) -> Path:
    ONE.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def _parquet(folder: Path) -> Path:
    ONE.to_parquet(folder / "data.parquet")
    return folder / "data.parquet"


FOUND: dict[str, Callable[[Path], Any]] = {
    "csv": _csv,
    "objects": lambda _: ONE.assign(s=ONE["s"].astype(object)),
    "dates": lambda _: DAYS,
}
TYPED: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: ONE,
    "arrow in pandas": lambda _: DAYS.assign(day=DAYS["day"].astype(DATE)),
    "polars": lambda _: pl.from_pandas(ONE),
    "arrow": lambda _: pa.Table.from_pandas(ONE),
    "parquet": _parquet,
}


@pytest.mark.parametrize("kind", [*FOUND, *TYPED])
def test_under_a_pool_cap_no_kind_is_found_in_values(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One person's text among numbers would make a column of text, and a refusal would say so."""
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)
    catalog = lc.sql.register({**FOUND, **TYPED}[kind](tmp_path), unit="who", rows_per_unit=2)
    session, known = lc.Session(catalog, cap=lc.pool_membership(0.55), seed=1), lc.Session(catalog, cap=0.6, seed=1)
    if kind in FOUND:
        with pytest.raises(InputError, match=r"kinds of columns are not found in their values.*register a Parquet"):
            session.sql("select count(*) from data", share=0.1)
    else:
        assert len(session.sql("select count(*) from data", share=0.1).frame) == 1
    assert len(known.sql("select count(*) from data", share=0.1).frame) == 1  # there the pool is known


def test_without_that_refusal_one_persons_cell_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above is for: two pools that differ in one cell."""
    monkeypatch.setattr("leakcap.sql.relations._refuse_found", lambda _: None)
    said = set()
    for cell in (b"3.5", b"none"):
        (tmp_path / "data.csv").write_bytes(b"who,x\n1,2.5\n2," + cell + b"\n")
        catalog = lc.sql.register(tmp_path / "data.csv", unit="who", rows_per_unit=1)
        with pytest.raises(InputError) as caught:
            compiled("select sum(x) from data", catalog, hidden_pool=True)
        said.add(str(caught.value))
    assert len(said) == 2


def test_an_index_is_no_column() -> None:
    given = DAYS.assign(day=DAYS["day"].astype(DATE)).set_index("x")
    catalog = lc.sql.register(given, unit="who")
    assert [one.name for one in catalog.tables["data"].columns] == ["who", "n", "s", "day"]


KINDS: dict[str, Callable[[], Any]] = {
    "pandas categories": lambda: pd.Categorical(["a", "b", "a", "b"], categories=["a", "b", "z"]),
    "pandas strings": lambda: pd.array(["a", "b", "a", "b"], dtype="string"),
    "several kinds in one column": lambda: pd.Series([1, "a", 2.5, "a"], dtype=object),
}


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_any_make_is_text(kind: str) -> None:
    catalog = lc.sql.register(ONE.assign(c=KINDS[kind]()), unit="who", rows_per_unit=2)
    column = catalog.tables["data"].column("c")
    assert column is not None and column.kind == "text" and column.levels and "a" in column.levels


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b", "z"])])
def test_categories_of_polars_are_text(dtype: Any) -> None:
    given = pl.from_pandas(ONE).with_columns(c=pl.Series(["a", "b", "a", "b"], dtype=dtype)).lazy()
    column = lc.sql.register(given, unit="who").tables["data"].column("c")
    assert column is not None and column.levels == ("a", "b")


def kept(catalog: lc.sql.Catalog, name: str) -> list[Any]:
    column = catalog.tables["data"].column(name)
    assert column is not None
    with duckdb.connect(str(catalog.path), read_only=True) as file:
        return [row[0] for row in file.execute(f"SELECT {column.place} FROM t0").fetchall()]


def test_numbers_without_end_are_cut_or_missing_and_the_report_says_so() -> None:
    huge = np.array([2**64 - 1, 2, 3, 4], dtype=np.uint64)
    bounded = lc.sql.register(ONE.assign(n=huge), unit="who", bounds={"n": (0, 10)})
    assert sorted(kept(bounded, "n")) == [2, 3, 4, 10]
    free = lc.sql.register(ONE.assign(n=huge), unit="who")
    assert kept(free, "n").count(None) == 1
    assert any("1 values are missing from now on: beyond 64 bits" in line for line in free.report)
    wide = pa.table({"who": [1, 2], "n": pa.array([Decimal("1" * 28 + ".5"), Decimal("2.5")], pa.decimal128(38, 10))})
    assert kept(lc.sql.register(wide, unit="who", bounds={"n": (0, 10)}), "n") == [Decimal(10), Decimal("2.5")]


def test_times_of_a_zone_are_kept_in_utc_and_odd_columns_are_left_out() -> None:
    given = ONE.assign(at=pd.to_datetime(["2020-01-01 00:30"] * 4).tz_localize("Europe/Berlin"), b=[b"x"] * 4)
    catalog = lc.sql.register(given, unit="who")
    assert kept(catalog, "at") == [datetime.datetime(2019, 12, 31, 23, 30)] * 4
    assert catalog.tables["data"].column("b") is None
    assert any("in UTC" in line for line in catalog.report) and any(
        "data.b: left out" in line for line in catalog.report
    )


def test_a_late_text_makes_a_csv_column_one_of_text(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"who,x\n" + b"1,5\n" * 30_000 + b"2,oops\n")
    column = lc.sql.register(tmp_path / "data.csv", unit="who").tables["data"].column("x")
    assert column is not None and column.kind == "text"


def test_a_path_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "data1.csv").write_bytes(b"who,x\n5,1\n6,1\n7,1\n")
    (tmp_path / "data[1].CSV").write_bytes(GOOD)
    assert lc.sql.register(tmp_path / "data[1].CSV", unit="who").people == 2


def test_a_person_with_a_million_rows_is_cut_quickly_and_leaves_others_alone() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"who": np.r_[np.zeros(300_000, int), np.arange(1, 1001)], "x": rng.random(301_000)})
    catalog = lc.sql.register(rows, unit="who", rows_per_unit=10)
    assert catalog.report == ("data: 299,990 of 301,000 rows left out, beyond 10 of one person (1 person has more)",)
    assert len(kept(catalog, "x")) == 1010


def test_which_rows_count_hangs_on_a_persons_own_rows_and_the_key_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither who else is there, nor the order of rows; another key chooses others."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"who": rng.integers(0, 20, 400), "x": rng.permutation(400)})

    def chosen(given: pd.DataFrame) -> set[int]:
        return set(kept(lc.sql.register(given, unit="who", rows_per_unit=3), "x"))

    first, mine = chosen(rows), set(rows[rows.who == 9].x)
    assert len(first & mine) == 3
    assert chosen(rows[rows.who > 4]) & mine == first & mine
    assert chosen(rows.sample(frac=1, random_state=1)) == first
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "another" / "key"))
    assert chosen(rows) != first  # of 20 people; of one by chance in 1,000


def test_order_as_given_is_kept() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"who": rng.integers(0, 500, 200_000), "x": np.arange(200_000)})
    given = lc.sql.register(rows, unit="who", order="as given")
    assert kept(given, "x") == list(range(200_000))
    with duckdb.connect(str(lc.sql.register(rows, unit="who").path), read_only=True) as file:
        whose = file.execute("SELECT unit FROM t0").fetchnumpy()["unit"]
    assert (np.diff(whose) >= 0).all()


CHANGES = [
    "DELETE FROM t0 WHERE unit = 0",
    "UPDATE t0 SET c2 = 3 WHERE unit = 0",
    "INSERT INTO t0 SELECT 77, * EXCLUDE (unit) FROM t0 LIMIT 1; DELETE FROM unit WHERE unit = 3",
    "UPDATE t3 SET c2 = 1",
]


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return registered(tmp_path_factory.mktemp("hospital") / "kept.duckdb").path


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for each question takes a second, and what is asked here is not how they are started."""
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("change", CHANGES)
def test_a_registered_file_that_was_changed_is_noticed_and_nothing_is_spent(
    change: str, hospital: Path, tmp_path: Path
) -> None:
    catalog = lc.sql.Catalog.load(shutil.copy(hospital, tmp_path / "kept.duckdb"))
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    session = lc.Session(catalog, cap=0.6, ledger=ledger, name="hospital")
    session.sql("select count(*) from stays", share=0.1)
    with duckdb.connect(str(catalog.path)) as file:
        file.execute(change)
    with pytest.raises(InputError, match="was changed, replaced or taken away"):
        session.sql("select sum(days) from stays", share=0.1)
    with pytest.raises(InputError, match="was changed, replaced or taken away"):
        session.preview_sql("select sum(days) from stays", share=0.1)
    assert len(session.history) == 1
    with pytest.raises(InputError, match="was changed, replaced or taken away"):
        lc.Session(lc.sql.Catalog.load(catalog.path), cap=0.6, ledger=ledger, name="hospital")


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("ask", ["sql", "preview_sql"])
def test_a_file_that_changes_while_a_question_runs_costs_nothing(
    ask: str, hospital: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hidden numbers of people may be others in the new one, and charges would be somebody else's."""
    catalog = lc.sql.Catalog.load(shutil.copy(hospital, tmp_path / "kept.duckdb"))
    session = lc.Session(catalog, cap=0.6, seed=0)
    honest = asking.cell_sums

    def meanwhile(*given: Any, **how: Any) -> Any:
        found = honest(*given, **how)
        Path(shutil.copy(hospital, tmp_path / "new.duckdb")).replace(catalog.path)
        return found

    monkeypatch.setattr(asking, "cell_sums", meanwhile)
    with pytest.raises(InputError, match="was changed, replaced or taken away"):
        getattr(session, ask)("select count(*) from stays", share=0.1)
    assert not session.history and session.remaining.share == 1


def test_a_file_that_was_replaced_is_noticed(hospital: Path, tmp_path: Path) -> None:
    catalog = lc.sql.Catalog.load(shutil.copy(hospital, tmp_path / "kept.duckdb"))
    session = lc.Session(catalog, cap=0.6, seed=0)
    catalog.path.unlink()
    with pytest.raises(InputError, match="was changed, replaced or taken away"):
        session.sql("select count(*) from stays")
    shutil.copy(hospital, tmp_path / "kept.duckdb")  # the same tables, and yet another file
    with pytest.raises(InputError, match="was changed, replaced or taken away"):
        session.sql("select count(*) from stays")


@pytest.mark.usefixtures("_in_this_process")
def test_tables_that_change_keep_their_ledger_and_answers_are_those_of_the_new_ones(tmp_path: Path) -> None:
    """The same people have the same coins and clocks; a stored answer is given again for the same tables alone."""

    def session(**changes: Any) -> lc.Session:
        return lc.Session(registered(**changes), cap=0.6, ledger=f"sqlite:///{tmp_path}/ledger.db", name="hospital")

    text = "select w.name, count(*) as n from stays s join wards w on w.ward = s.ward group by w.name"
    first = session()
    assert not first.sql(text, share=0.1).again and first.sql(text, share=0.1).again
    once = first.spent.share
    more = tables()
    more["wards"] = pd.concat([more["wards"], pd.DataFrame({"ward": [9], "name": ["new"], "beds": [1]})])
    answer = session(given=more).sql(text, share=0.1)  # a public table has changed: five groups, of which one is new
    assert not answer.again and len(answer.frame) == 5
    changed = tables()
    changed["stays"]["days"] += 1
    later = session(given=changed)
    assert not later.sql(text, share=0.1).again
    assert later.spent.share == pytest.approx(3 * once, rel=1e-6)


@pytest.mark.usefixtures("_in_this_process")
def test_another_key_opens_no_ledger_of_the_first(
    hospital: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    lc.Session(lc.sql.Catalog.load(hospital), cap=0.6, ledger=ledger, name="hospital").sql("select count(*) from stays")
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "another" / "key"))
    again = lc.sql.Catalog.load(hospital)  # the file is not sealed by it
    with pytest.raises(lc.errors.LeakcapError, match="key"):
        lc.Session(again, cap=0.6, ledger=ledger, name="hospital")
