"""Tables as they come: `--read` and what is offered; nothing is guessed, and no message quotes a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.tables.files import digest_of, open_table
from leakcap.tables.offered import offered_reading
from leakcap.tables.questions import ask
from leakcap.tables.reading import Reading
from tests.unit.tables.people import MARK, refused

WRITTEN: dict[str, tuple[list[str], list[str], list[float]]] = {
    "a decimal comma": (["1,5", "-7712345,25", "3"], ["decimal=,"], [1.5, -7712345.25, 3]),
    "commas for thousands": (["1,234.5", "77,123,451", "3"], ["thousands=,"], [1234.5, 77123451, 3]),
    "points for thousands": (["1.234", "77.123.451", "3,5"], ["thousands=."], [1234, 77123451, 3.5]),
    "points, and all whole": (["1.234", "7.712"], ["thousands=."], [1234, 7712]),
    "spaces": (["1 234,5", "77\u00a0123", "7\u202f712"], ["thousands=space", "decimal=,"], [1234.5, 77123, 7712]),
    "apostrophes": (["1'234.5", "7\u2019712"], ["thousands=apostrophe"], [1234.5, 7712]),
    "signs and powers": (["+1,5", "2,5e3", ",5"], ["decimal=,"], [1.5, 2500, 0.5]),
}


def _file(table: Any, cells: list[str]) -> Path:
    return table("x;y\n" + "".join(f"{cell};1\n" for cell in cells))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_are_read_as_they_are_said_to_be_written(name: str, table: Any) -> None:
    cells, read, numbers = WRITTEN[name]
    assert ask(_file(table, cells), "mean", ["x"], read=read).data[:, 0].tolist() == numbers
    typed = table(pd.DataFrame({"x": cells}), "t.parquet")
    assert ask(typed, "mean", ["x"], read=read).data[:, 0].tolist() == numbers


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "points, and all whole"])
def test_what_is_offered_is_what_reads_it(name: str, table: Any) -> None:
    cells, read, numbers = WRITTEN[name]
    said = refused("'x' is text", lambda: ask(_file(table, cells), "mean", ["x"]))
    for option in read:
        assert f"--read {option}" in said
    offered = [word for word in said.replace(", or", " ").split() if "=" in word]
    assert ask(_file(table, cells), "mean", ["x"], read=offered).data[:, 0].tolist() == numbers


def test_where_two_ways_fit_both_are_offered() -> None:
    said = offered_reading(pd.Series(["1,234", "5,678"]))
    assert "--read decimal=," in said
    assert "--read thousands=, for the other" in said


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1,5", "7712345"], ["thousands=,"]),  # taking the comma out would make 15 of it
        (["1,234,5", "1"], ["thousands=,"]),
        (["1.23", "1.234,5"], ["thousands=."]),
        (["1.5", "2.5"], ["decimal=,"]),  # points are no decimals where commas are
        (["1.5", "2.5"], ["thousands=."]),
        (["1,5", "SECRET"], ["decimal=,"]),
        (["1 5", "2"], ["thousands=space"]),
        (["7712,345.5", "3"], ["thousands=,"]),
        (["1.234.5", "1,1"], ["decimal=,"]),
    ],
)
def test_a_cell_that_is_no_number_in_the_way_that_was_said_is_refused(
    table: Any, cells: list[str], read: list[str]
) -> None:
    refused("'x' is text", lambda: ask(_file(table, cells), "mean", ["x"], read=read))
    refused("'x' is text", lambda: ask(table(pd.DataFrame({"x": cells}), "t.parquet"), "mean", ["x"], read=read))


@pytest.mark.parametrize("mark", ["n/a", "N.A.", " ? ", "-", "unknown"])
def test_marks_are_missing_values(table: Any, mark: str) -> None:
    path = _file(table, ["7712345", mark, "3"])
    if mark != "n/a":  # which is an empty cell to every reader
        refused("add --read missing=marks", lambda: ask(path, "mean", ["x"]))
    for word in ("marks", mark.strip()):
        refused(
            "1 of 3 rows have a missing value in x",
            lambda word=word: ask(path, "mean", ["x"], read=[f"missing={word}"]),
        )
        question = ask(path, "mean", ["x"], read=[f"missing={word}"], missing="drop")
        assert question.data[:, 0].tolist() == [7712345, 3]


def test_marks_go_out_of_numbers_and_of_text_too(table: Any) -> None:
    path = table("x;town\n-999;A\n3;none at all\n4;B\n5;A\n6;B\n")
    read = ["missing=-999,none at all"]
    assert ask(path, "mean", ["x"], read=read, missing="drop").data[:, 0].tolist() == [3, 4, 5, 6]
    shares = ask(path, "histogram", ["town"], read=read, missing="drop")
    assert shares.names == ("town = A", "town = B")
    assert len(shares.data) == 4


def test_other_encodings_are_offered_and_read(table: Any) -> None:
    path = table("größe,x\nSECRETé,1\nb,2\n".encode("cp1252"))
    refused("add --read encoding=cp1252", lambda: ask(path, "mean", ["x"]))
    assert ask(path, "mean", ["x"], read=["encoding=cp1252"]).data.tolist() == [[1], [2]]
    assert "größe" in open_table(path, Reading.of(["encoding=cp1252"])).columns
    refused("is not text in ascii", lambda: ask(path, "mean", ["x"], read=["encoding=ascii"]))
    wide = table("a,x\né,1\nb,2\n".encode("utf-16"), "wide.csv")
    refused("add --read encoding=utf-16", lambda: ask(wide, "mean", ["x"]))
    assert ask(wide, "mean", ["x"], read=["encoding=utf-16"]).data.tolist() == [[1], [2]]


@pytest.mark.parametrize(("between", "word"), [("\t", "tab"), ("|", "pipe")])
def test_other_delimiters_are_offered_and_read(table: Any, between: str, word: str) -> None:
    path = table(f"a{between}b\n7712345{between}2\n3{between}4\n")
    refused(f"--read delimiter={word}", lambda: ask(path, "mean", ["a"]))
    assert ask(path, "mean", ["a", "b"], read=[f"delimiter={word}"]).data.tolist() == [[7712345, 2], [3, 4]]
    assert ask(table("a:b\n1:2\n"), "mean", ["b"], read=["delimiter=:"]).data.tolist() == [[2]]


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (["decimal"], "What it can say: decimal="),
        (["colour=red"], "What it can say"),
        (["decimal=;"], "comma or point"),
        (["decimal=,", "decimal=."], "one thing twice"),
        (["decimal=,", "thousands=,"], "must be different"),
        (["thousands=1"], "point, comma, space or apostrophe"),
        (["delimiter=ab"], "any other single character"),
        (["delimiter=x"], "any other single character"),
        (["encoding=klingon"], "names no encoding"),
        (["encoding=base64"], "names no encoding"),
        (["missing=, "], "must be marks"),
        (["dates=ydm"], "must be parts"),
    ],
)
def test_what_cannot_be_said_is_told_what_can(table: Any, read: list[str], words: str) -> None:
    refused(words, lambda: ask(table("a\n1\n2\n"), "mean", ["a"], read=read))


def test_a_parquet_file_needs_no_delimiter(table: Any) -> None:
    path = table(pd.DataFrame({"x": [1.0, 2.0]}), "t.parquet")
    refused("Parquet needs neither", lambda: ask(path, "mean", ["x"], read=["delimiter=;"]))
    refused("Parquet needs neither", lambda: ask(path, "mean", ["x"], read=["encoding=cp1252"]))


# Whose rows they are


def test_one_person_stays_one_however_their_number_is_written(table: Any) -> None:
    """1.234 and 1234 are one patient where points stand between thousands: two would be two secrets."""
    path = table("who;x\n1.234;1\n1234;2\n5.678.901.234.567.890.123;3\n5678901234567890123;4\n")
    question = ask(path, "mean", ["x"], unit="who", read=["thousands=."])
    assert question.unit is not None
    assert question.unit[0] == question.unit[1]
    assert question.unit[2] == question.unit[3]
    assert len(np.unique(question.unit)) == 2
    odd = table("who;x\n1.234;1\n1234;2\nA7;3\n")  # somebody else's number that is none changes nobody's
    owners = ask(odd, "mean", ["x"], unit="who", read=["thousands=."]).unit
    assert owners is not None
    assert owners.tolist() == ["1234", "1234", "A7"]
    comma = table("who;x\n7,0;1\n7;2\n8;3\n")
    owners = ask(comma, "mean", ["x"], unit="who", read=["decimal=,"]).unit
    assert owners is not None
    assert owners.tolist() == [7, 7, 8]


def test_files_are_told_apart_to_their_last_byte(table: Any) -> None:
    """By what the ledger knows them: thousands of rows alike, and the last one another."""
    same = "x\n" + "1\n" * 5000
    assert digest_of(table(f"{same}1\n", "a.csv")) != digest_of(table(f"{same}2\n", "b.csv"))
    assert digest_of(table(f"{same}1\n", "a.csv")) == digest_of(table(f"{same}1\n", "c.csv"))


# Dates


DATES = {
    "ymd": (["2024-12-31", "1977-01-12T13:55:00"], "parts"),
    "dmy": (["31.12.2024", "12.1.1977 13:55"], "dmy"),
    "mdy": (["12/31/2024", "1/12/1977 13:55"], "mdy"),
}


@pytest.mark.parametrize("order", DATES)
def test_dates_become_numbers(order: str, table: Any) -> None:
    cells, word = DATES[order]
    path = table("born;x\n" + "".join(f"{cell};1\n" for cell in cells))
    said = refused("'born' holds dates", lambda: ask(path, "mean", ["born"]))
    assert f"add --read dates={word} and ask for born.year" in said
    parts = ["born.year", "born.month", "born.day", "born.weekday", "born.hour"]
    data = ask(path, "mean", parts, read=[f"dates={word}"]).data
    assert data.tolist() == [[2024, 12, 31, 2, 0], [1977, 1, 12, 3, 13]]


def test_days_and_months_that_fit_both_ways_are_left_to_the_custodian(table: Any) -> None:
    path = table("born,x\n1.2.2024,1\n3.4.2023,2\n")
    refused("dates=dmy or dates=mdy, whichever it is", lambda: ask(path, "mean", ["born"]))


@pytest.mark.parametrize("cell", ["2024-13-01", "2024-02-30", "SECRET", "7712345", "24-01-01", "31.12.2024"])
def test_a_cell_that_is_no_date_is_refused(cell: str, table: Any) -> None:
    path = table(f"born,x\n2024-12-31,1\n{cell},2\n")
    refused("'born' are no dates of year, month, day", lambda: ask(path, "mean", ["born.year"], read=["dates=parts"]))


def test_typed_dates_and_gaps(table: Any) -> None:
    days = pd.to_datetime(["2024-12-31", None, "1977-01-12"])
    frame = pd.DataFrame({"when": days, "day": [day.date() if day is not pd.NaT else None for day in days], "x": 1.0})
    path = table(frame, "t.parquet")
    assert ask(path, "mean", ["when.year", "day.month"], read=["dates=parts"], missing="drop").data.tolist() == [
        [2024, 12],
        [1977, 1],
    ]
    refused("1 of 3 rows have a missing value", lambda: ask(path, "mean", ["when.year"], read=["dates=parts"]))
    refused("'when' holds dates", lambda: ask(path, "mean", ["when"], read=["dates=parts"]))
    refused("no column 'when.year'", lambda: ask(path, "mean", ["when.year"]))


def own(rows: pd.DataFrame) -> float:
    return float(len(rows))


def test_a_function_of_ones_own_gets_parts_in_place_of_dates(table: Any) -> None:
    path = table("who,born,x\n1,2024-12-31,1\n2,1977-01-12,2\n")
    question = ask(path, f"{__name__}:own", unit="who", read=["dates=parts"])
    assert list(question.data.columns) == ["born.year", "born.month", "born.day", "born.weekday", "x"]
    assert list(ask(path, f"{__name__}:own", unit="who").data.columns) == ["born", "x"]


# One column


def test_the_only_column_need_not_be_named(table: Any) -> None:
    assert ask(table("age\n1\n2\n"), "mean").names == ("age",)
    assert ask(table("who,age\n1,5\n2,7\n1,8\n"), "mean", unit="who").data.tolist() == [[5], [7], [8]]
    assert ask(table("ward,age\nA,5\nB,7\n"), "mean", by=["ward=A,B"]).columns == ("age",)
    refused("such as --columns", lambda: ask(table("ward,age\nA,5\nB,7\n"), "mean"))
    refused("first line of", lambda: ask(table(f"{MARK}\n1\n2\n"), "mean"))


# Folders


def _folder(tmp_path: Path, parts: dict[str, pd.DataFrame]) -> Path:
    for name, frame in parts.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path)
    return tmp_path / "data"


def test_a_folder_of_parquet_files_is_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    parts = {f"part-{i}.parquet": pd.DataFrame({"x": [10.0 * i, 10.0 * i + 1], "y": [i, i]}) for i in (2, 0, 1)}
    folder = _folder(tmp_path, parts)
    (folder / "_SUCCESS").touch()
    pd.DataFrame({"other": [1]}).to_parquet(folder / "_metadata.parquet")
    assert ask(folder, "mean", ["x"]).data[:, 0].tolist() == [0, 1, 10, 11, 20, 21]
    assert open_table(folder).columns == ("x", "y")


def test_folders_that_name_a_value_are_a_column(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "ward=B/p.parquet": pd.DataFrame({"x": [3.0, 4.0]}),
            "ward=A/p.parquet": pd.DataFrame({"x": [1.0, 2.0]}),
        },
    )
    question = ask(folder, "mean", ["x"], by=["ward=A,B"])
    assert question.names == ("x, ward = A", "x, ward = B")
    assert question.fn(question.data)["x"].tolist() == [1.5, 3.5]


def test_parts_of_other_tables_are_told_by_their_place(tmp_path: Path) -> None:
    first = pd.DataFrame({"x": [1.0, 2.0]})
    folder = _folder(tmp_path, {"a.parquet": first, "ward=SECRET/b.parquet": pd.DataFrame({"z": [1.0]})})
    refused(r"part 2 of 2 in data \(b.parquet\) has other columns", lambda: ask(folder, "mean", ["x"]))
    other = _folder(tmp_path / "types", {"a.parquet": first, "ward=SECRET/b.parquet": pd.DataFrame({"x": [1]})})
    refused("'x' is int64 in part 2 of 2", lambda: ask(other, "mean", ["x"]))
    (tmp_path / "none").mkdir()
    refused("without Parquet files", lambda: ask(tmp_path / "none", "mean", ["x"]))


def test_a_broken_part_is_refused_without_its_bytes(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"a.parquet": pd.DataFrame({"x": [1.0, 2.0]})})
    (folder / "b.parquet").write_bytes(b"PAR1 SECRET 7712345")
    refused("data cannot be read as Parquet", lambda: ask(folder, "mean", ["x"]))
