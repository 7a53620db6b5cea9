"""What registration makes of tables: owners, bounds and ranges; and what it says where it cannot."""

import stat

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sql.engine import LocalEngine
from tests.sql.hospital import BOUNDS, LINKS, registered, tables


def _rows(catalog, table):
    with duckdb.connect(str(catalog.path), read_only=True) as file:
        return file.sql(f"SELECT * FROM {catalog.tables[table].place}").df()


def test_every_row_knows_its_owner_along_the_links():
    given = tables()
    catalog = registered()
    numbers = {name: at for at, name in enumerate(sorted(given["people"]["id"]))}
    whose = given["tests"].merge(given["stays"], on="stay")["person"].map(numbers)
    expected = np.bincount(whose, minlength=len(numbers))
    found = np.bincount(_rows(catalog, "tests")["unit"], minlength=len(numbers))
    assert (found == expected).all()


def test_rows_beyond_the_bound_are_left_out_for_good_and_nobody_elses_change():
    few = {"people": 1, "stays": 2, "tests": 20}
    catalog = registered(rows_per_unit=few)
    assert _rows(catalog, "stays")["unit"].value_counts().max() == 2
    assert any("rows left out, beyond 2 of one person" in line for line in catalog.report)
    given = tables()
    last = given["people"]["id"].max()  # the highest number: others keep theirs
    for name, key in (("people", "id"), ("stays", "person")):
        given[name] = given[name][given[name][key] != last]
    given["tests"] = given["tests"][given["tests"]["stay"].isin(given["stays"]["stay"])]
    without = registered(given=given, rows_per_unit=few)
    both = [
        _rows(one, "stays").query("unit < 59").sort_values(["unit", "c0"]).reset_index(drop=True)
        for one in (catalog, without)
    ]
    pd.testing.assert_frame_equal(both[0], both[1])


def test_values_are_cut_to_their_range_and_what_is_no_number_is_missing():
    catalog = registered(bounds={**BOUNDS, "stays.days": (0, 10)})
    place = catalog.tables["stays"].column("days").place
    assert _rows(catalog, "stays")[place].max() == 10
    assert any(line.startswith("stays.days:") and "cut to 0 to 10" in line for line in catalog.report)
    income = _rows(catalog, "people")[catalog.tables["people"].column("income").place]
    assert income.isna().sum() == 2 and np.isfinite(income.dropna()).all()


def test_the_file_is_the_custodians_alone_and_opens_again(tmp_path):
    catalog = registered(tmp_path / "kept.duckdb")
    assert stat.S_IMODE((tmp_path / "kept.duckdb").stat().st_mode) == 0o600
    again = lc.sql.Catalog.load(tmp_path / "kept.duckdb")
    assert again.tables == catalog.tables and again.people == 60 and again.print == catalog.print


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv", "parquet", "folder", "duckdb"])
def test_tables_of_every_kind_are_read(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)
    frame = pd.DataFrame({"who": [3, 1, 1], "odd name": [1.5, 2.5, None], "wörd": ["a", "b", "a"]})
    given = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pl.from_pandas(frame).to_arrow()}.get(kind)
    if kind == "csv":
        given = tmp_path / "data.csv"
        frame.to_csv(given, index=False)
    elif kind in ("parquet", "folder"):
        frame.to_parquet(tmp_path / "data.parquet")
        given = tmp_path / "data.parquet" if kind == "parquet" else tmp_path
    elif kind == "duckdb":
        given = tmp_path / "given.duckdb"
        with duckdb.connect(str(given)) as file:
            file.register("frame", frame)
            file.execute("CREATE TABLE data AS SELECT * FROM frame")
    catalog = lc.sql.register(given, unit="who", bounds={"odd name": (0, 10)}, rows_per_unit=2)
    session = lc.Session(catalog, cap=0.6, seed=0)
    found = session.sql('select "wörd", sum("odd name") from data group by "wörd"', share=0.5).frame
    assert catalog.people == 2 and list(found["wörd"]) == ["a", "b"]


ONE = pd.DataFrame({"who": [1, 2], "x": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("given", "settings", "words"),
    [
        (ONE.iloc[:0], {}, "there is nobody to ask about"),
        (ONE.assign(who=[1, None]), {}, "do not say whose they are"),
        (ONE, {"unit": "whom"}, "there is no column 'whom'"),
        (ONE, {"bounds": {"x": (3, 1)}}, "low below high"),
        (ONE, {"bounds": {"x": (0, float("inf"))}}, "low below high"),
        (ONE, {"bounds": {"y": (0, 1)}}, "there is no column 'y'"),
        (ONE, {"rows_per_unit": 0}, "a whole number above 0"),
        (ONE, {"public": ["data"]}, "it cannot be both"),
        (ONE, {"order": "random"}, "order must be"),
        ({"a": ONE, "A": ONE}, {}, "case of their letters"),
        ({}, {}, "there are no tables"),
        ([1, 2], {}, "a table must be a data frame"),
        ("missing.csv", {}, "there is no file"),
        ({"data": ONE, "more": pd.DataFrame({"y": [1]})}, {}, "does not say whose its rows are"),
    ],
)
def test_what_cannot_be_registered_is_said_in_one_sentence(given, settings, words):
    with pytest.raises(InputError, match=words):
        lc.sql.register(given, **{"unit": "who", **settings})


def test_links_without_a_partner_and_to_what_repeats_are_refused():
    given = tables()
    given["stays"].loc[0, "person"] = -1
    with pytest.raises(InputError, match="have no partner along their link"):
        registered(given=given)
    given = tables()
    given["wards"] = pd.concat([given["wards"], given["wards"]])
    with pytest.raises(InputError, match=r"wards\.ward is the target of a link and repeats"):
        registered(given=given)
    with pytest.raises(InputError, match="found along one link"):
        registered(links={**LINKS, "tests.drug": "people.id"})


def test_a_path_that_exists_or_has_no_folder_is_refused_and_nothing_is_left_behind(tmp_path):
    (tmp_path / "there.duckdb").write_text("")
    with pytest.raises(InputError, match="exists: choose another path"):
        registered(tmp_path / "there.duckdb")
    with pytest.raises(InputError, match="there is no folder"):
        registered(tmp_path / "no" / "x.duckdb")
    with pytest.raises(InputError):
        lc.sql.register(ONE.iloc[:0], unit="who", path=tmp_path / "new.duckdb")
    assert not (tmp_path / "new.duckdb").exists()


def test_a_foreign_file_is_no_catalog(tmp_path):
    (tmp_path / "text.duckdb").write_text("nothing")
    with pytest.raises(InputError, match="is no whole DuckDB file"):
        lc.sql.Catalog.load(tmp_path / "text.duckdb")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as file:
        file.execute("CREATE TABLE t (x INT)")
    with pytest.raises(InputError, match=r"not made by leakcap\.sql\.register"):
        lc.sql.Catalog.load(tmp_path / "other.duckdb")
