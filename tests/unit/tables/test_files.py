"""Files that cannot be read, and public data that can."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap import datasets
from leakcap.tables import files
from leakcap.tables.questions import Question, ask
from tests.unit.tables.people import MARK, PEOPLE, refused

real = pytest.mark.skipif(not os.environ.get("LEAKCAP_DATA"), reason="LEAKCAP_DATA names no folder")

# Files that cannot be read


FILES: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("t.csv", "", "is empty"),
    "blank": ("t.csv", "\n\n", "is empty"),
    "an empty Parquet file": ("t.parquet", b"", "is empty"),
    "header only": ("t.csv", "a,b\n", "no rows"),
    "an unknown ending": ("t.xlsx", "a", "must end in .csv"),
    "a spreadsheet": ("t.csv", b"PK\x03\x04SECRET", "save the sheet as CSV"),
    "Parquet in disguise": ("t.csv", b"PAR1SECRET", "let its name end in .parquet"),
    "gzip in disguise": ("t.csv", gzip.compress(b"a\nSECRET\n"), "let its name end in .gz"),
    "no gzip": ("t.csv.gz", "a,b\nSECRET,1\n", "cannot be unpacked"),
    "cut off": ("t.csv.gz", gzip.compress(os.urandom(9999).hex().encode())[:5000], "cannot be unpacked"),
    "no Parquet": ("t.parquet", "SECRET,1\n" * 99, "cannot be read as Parquet"),
    "another encoding": ("t.csv", "a,b\nSECRET,é\n".encode("latin-1"), "UTF-8"),
    "binary": ("t.csv", bytes(range(128, 256)) * 9, "UTF-8"),
    "an open quotation mark": ("t.csv", 'a,b\n1,"SECRET\n2,3\n', "quotation mark"),
    "one long line": ("t.csv", "a,b\n1,2\n3,4,SECRET\n", "1 line.* more fields than the 2 names"),
    "long lines": ("t.csv", "a,b\n1,2,SECRET\n3,4,SECRET\n", "2 line.* more fields"),
    "columns of one name": ("t.csv", "a,b,a\n1,2,3\n", r"several columns of the same name: a \(columns 1 and 3\)"),
    "no header": ("t.csv", f"{MARK},SECRET,1\n{MARK},x,2\n", "first line looks like data"),
    "no header, numbers twice": ("t.csv", f"{MARK},SECRET,{MARK}\n1,x,2\n", "first line of t.csv looks like data"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read_are_told_apart(name: str, table: Any) -> None:
    ending, content, words = FILES[name]
    path = table(content, ending)
    refused(words, lambda: ask(path, "mean", ["a"]))
    refused("", lambda: ask(path, "mean"))


def test_files_that_are_not_there_are_told_apart(tmp_path: Path) -> None:
    refused("there is no file", lambda: ask(tmp_path / "no.csv", "mean", ["a"]))
    refused("is a folder", lambda: ask(tmp_path, "mean", ["a"]))
    refused("cannot be opened|no file", lambda: ask(tmp_path / ("x" * 300 + ".csv"), "mean", ["a"]))


def test_files_that_may_not_be_read_are_told_apart(table: Any, monkeypatch: Any) -> None:
    def denied(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    path = table("a\n1\n")
    monkeypatch.setattr(files, "_first_bytes", denied)
    refused("may not be read by you", lambda: ask(path, "mean", ["a"]))


def test_an_unquoted_comma_in_any_column_is_found(table: Any) -> None:
    """pandas itself would read the shifted cells without a word when only some columns are wanted."""
    path = table("a,note,b\n1,fine,2\n3,well, SECRET,4\n")
    refused("more fields", lambda: ask(path, "mean", ["a"]))
    assert ask(table('a,note,b\n1,fine,2\n3,"well, yes",4\n'), "mean", ["a", "b"]).data.tolist() == [[1, 2], [3, 4]]
    assert ask(table("a,b,\n1,2,\n3,4,\n"), "mean", ["a", "b"]).data.tolist() == [[1, 2], [3, 4]]


def test_semicolons_byte_order_marks_and_blanks_are_read(table: Any) -> None:
    path = table("\ufeffage; x\n1;2.5\n3;4.5\n")
    assert ask(path, "mean", ["age", "x"]).data.tolist() == [[1, 2.5], [3, 4.5]]


def test_an_index_that_pandas_wrote_is_a_column_if_it_has_a_name(table: Any) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "id": [5, 7, 6]})
    assert ask(table(frame.set_index("id"), "t.parquet"), "mean", ["id", "x"]).data.tolist() == [[5, 1], [7, 2], [6, 3]]
    nameless = table(frame.set_axis([3, 9, 4]), "u.parquet")
    assert "index" not in refused("no column 'y'", lambda: ask(nameless, "mean", ["y"]))


def test_only_the_needed_columns_of_a_parquet_file_are_read(table: Any, monkeypatch: Any) -> None:
    path, read, asked = table(PEOPLE, "t.parquet"), files.arrow_table, []

    def watched(path: Path, columns: list[str]) -> Any:
        asked.append(columns)
        return read(path, columns)

    monkeypatch.setattr(files, "arrow_table", watched)
    ask(path, "mean", ["age"], unit="who")
    assert asked == [["who", "age"]]


# Public data


@real
def test_adult_means_and_shares() -> None:
    path = datasets.data_path("adult.csv.gz")
    frame = datasets.adult()
    question = ask(path, "mean", ["age", "hours_per_week"], strata=["sex", "income"])
    np.testing.assert_allclose(question.fn(question.data), frame[["age", "hours_per_week"]].mean())
    shares: Question = ask(path, "histogram", ["age", "education"], bins=["0:100:20"])
    assert shares.names is not None and len(shares.names) == 5 + 16
    np.testing.assert_allclose(
        shares.fn(shares.data)[5:], frame["education"].value_counts(normalize=True).sort_index(), rtol=1e-12
    )
    refused("--fn histogram", lambda: ask(path, "mean", ["age", "workclass"]))


@real
def test_diabetes_stays_belong_to_patients() -> None:
    path = datasets.data_path("diabetes130.parquet")
    question = ask(path, "mean", ["time_in_hospital"], unit="patient_nbr")
    assert question.unit is not None
    assert question.unit.dtype == np.int64
    assert len(np.unique(question.unit)) == 71_518
    refused(
        "'race' changes .* for 249 of them",
        lambda: ask(path, "mean", ["time_in_hospital"], unit="patient_nbr", strata=["race"]),
    )
    refused("'age' is text", lambda: ask(path, "mean", ["age"]))


@real
def test_heart_disease_has_six_gaps() -> None:
    path = datasets.data_path("heart_disease_cleveland.csv.gz")
    refused("6 of 303 rows have a missing value in ca, thal", lambda: ask(path, "mean", ["age", "ca", "thal"]))
    question = ask(path, "median", ["age", "ca", "thal"], missing="drop")
    assert question.notes == ("6 of 303 rows with missing values were left out",)
    np.testing.assert_allclose(
        question.fn(question.data), datasets.heart_disease().dropna()[["age", "ca", "thal"]].median()
    )
