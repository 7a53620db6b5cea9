"""Missing labels, and options or files that make no sense."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.unit.cli.labels.commands import BINS, THREE, YES, certificate, privatised, text_of

# Missing labels


def with_holes(marks: list[str]) -> None:
    rows = [f"{i},{mark}" for i, mark in enumerate([*marks, "no", "yes", "no"])]
    Path("holes.csv").write_text("x,sick\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize("mark", ["", "NA", "NaN", "null", '""', "None"])
def test_missing_labels_are_refused_or_a_class_of_their_own(mark: str, capsys: Any) -> None:
    with_holes([mark] * 3)
    assert privatised(*YES, data="holes.csv") == 2
    said = capsys.readouterr().err
    assert "missing" in said and "--missing-as" in said
    assert not Path("out").exists()
    options = [*YES[:3], "30", *YES[4:], "--missing-as", "unknown", "--mechanism", "krr", "-q"]
    assert privatised(*options, data="holes.csv") == 0
    assert text_of("out/public/labels.csv")["sick"].tolist() == [*["unknown"] * 3, "no", "yes", "no"]
    assert certificate().classes == ("no", "yes", "unknown")


def test_a_class_may_be_called_what_elsewhere_means_missing() -> None:
    with_holes(["None", "None"])
    assert privatised("--column", "sick", "--epsilon", "30", "--classes", "no,yes,None", "-q", "--mechanism", "krr",
                      data="holes.csv") == 0  # fmt: skip
    assert text_of("out/public/labels.csv")["sick"].tolist() == ["None", "None", "no", "yes", "no"]


def test_missing_labels_may_join_a_class() -> None:
    with_holes(["", "yes"])
    assert privatised(*YES[:3], "30", *YES[4:], "--missing-as", "no", "-q", data="holes.csv") == 0
    assert text_of("out/public/labels.csv")["sick"].tolist() == ["no", "yes", "no", "yes", "no"]
    assert certificate().classes == ("no", "yes")


@pytest.mark.parametrize(("name", "kind"), [("9", pa.int64()), ("unknown", pa.string())])
def test_missing_labels_among_numbers_have_a_number_or_make_text_of_all(name: str, kind: Any) -> None:
    parquet.write_table(pa.table({"y": pa.array([0, None, 1, 0], pa.int64())}), "y.parquet")
    options = ["--column", "y", "--epsilon", "30", "--classes", "0,1", "--missing-as", name, "--mechanism", "krr", "-q"]
    assert privatised(*options, data="y.parquet") == 0
    after = parquet.read_table("out/public/labels.parquet").column("y")
    assert after.type == kind
    assert [str(one) for one in after.to_pylist()] == ["0", name, "1", "0"]


@pytest.mark.parametrize("name", ["9", "9.5", "unknown"])
def test_the_type_of_the_column_does_not_tell_whether_a_label_was_missing(name: str) -> None:
    """As pandas writes them: whole numbers become fractions as soon as one is missing."""
    options = ["--column", "y", "--epsilon", "30", "--classes", "0,1", "--missing-as", name, "--mechanism", "krr", "-q"]
    types = []
    for hole in (1, np.nan):
        pd.DataFrame({"y": [0, hole, 1, 0]}).to_parquet("y.parquet")
        assert privatised(*options, data="y.parquet", out=f"out{hole}") == 0
        page = Path(f"out{hole}/public/page.html").read_text()
        types.append((parquet.read_table(f"out{hole}/public/labels.parquet").schema.field("y"), page))
    assert types[0] == types[1]


def test_no_number_is_missing_in_parquet_too(capsys: Any) -> None:
    parquet.write_table(pa.table({"y": pa.array([0.0, math.nan, 1.0])}), "y.parquet")
    for options in (["--classes", "0,1"], ["--low", "0", "--high", "1"]):
        assert privatised("--column", "y", "--epsilon", "1", *options, data="y.parquet") == 2
        assert "missing" in capsys.readouterr().err


def test_an_empty_line_in_a_file_of_labels_alone_is_a_missing_label(capsys: Any) -> None:
    Path("y.csv").write_text("sick\nno\n\nyes\n")
    assert privatised(*YES, data="y.csv") == 2
    assert "missing" in capsys.readouterr().err


# Mistakes


WRONG: dict[str, tuple[list[str], str]] = {
    "no classes": (["--column", "sick", "--epsilon", "1"], "a class that occurs once"),
    "one class": (["--column", "sick", "--epsilon", "1", "--classes", "yes"], "one class"),
    "no names": (["--column", "sick", "--epsilon", "1", "--classes", ","], "commas between"),
    "a class twice": (["--column", "sick", "--epsilon", "1", "--classes", "no,yes,no"], "twice"),
    "a number twice": (["--column", "code", "--epsilon", "1", "--classes", "0,1,1.0"], "twice"),
    "a class left out": (["--column", "kind", "--epsilon", "1", "--classes", "a,b"], "every class there may be"),
    "text for numbers": (["--column", "sick", "--epsilon", "1", "--classes", "0,1"], "every class there may be"),
    "epsilon of nothing": (["--column", "sick", "--epsilon", "0", "--classes", "no,yes"], "above 0"),
    "epsilon below zero": (["--column", "sick", "--epsilon", "-1", "--classes", "no,yes"], "above 0"),
    "endless epsilon": (["--column", "sick", "--epsilon", "inf", "--classes", "no,yes"], "finite"),
    "no number for epsilon": (["--column", "sick", "--epsilon", "nan", "--classes", "no,yes"], "finite"),
    "a word for epsilon": (["--column", "sick", "--epsilon", "much", "--classes", "no,yes"], "--epsilon"),
    "no epsilon": (["--column", "sick", "--classes", "no,yes"], "--epsilon"),
    "no such column": (["--column", "sik", "--epsilon", "1", "--classes", "no,yes"], "did you mean 'sick'"),
    "no such mechanism": ([*YES, "--mechanism", "noise"], "krr"),
    "an idle delta": ([*YES, "--delta", "1e-6"], "gaussian"),
    "delta of one": ([*YES, "--mechanism", "gaussian", "--delta", "1"], "delta"),
    "a short prior": ([*THREE, "--prior", "0.5,0.5"], "3 probabilities"),
    "a prior beyond one": ([*YES, "--prior", "0.9,0.9"], "sum to 1"),
    "a prior in words": ([*YES, "--prior", "half,half"], "--prior"),
    "bins without a range": (["--column", "pay", "--epsilon", "1", "--mechanism", "bins"], "--low"),
    "half a range": (["--column", "pay", "--epsilon", "1", "--low", "0"], "--high"),
    "a range upside down": (["--column", "pay", "--epsilon", "1", "--low", "5", "--high", "1"], "below high"),
    "an endless range": (["--column", "pay", "--epsilon", "1", "--low", "0", "--high", "inf"], "finite"),
    "bins and classes": ([*BINS, "--classes", "a,b"], "either"),
    "bins and another mechanism": ([*BINS, "--mechanism", "krr"], "--mechanism"),
    "bins of words": (["--column", "kind", "--epsilon", "1", "--low", "0", "--high", "1"], "not numbers"),
    "a nameless class for missing ones": ([*YES, "--missing-as", " "], "--missing-as"),
    "again, for the first time": ([*YES, "--again"], "--again"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_and_leave_nothing_behind(name: str, capsys: Any) -> None:
    options, told = WRONG[name]
    assert privatised(*options) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""
    assert "Traceback" not in said.err
    assert not Path("out").exists()


FILES_IN_TROUBLE = {
    "empty": ("", "is empty"),
    "no rows": ("who,sick\n", "no rows"),
    "columns of one name": ("sick,x,sick\nno,1,yes\nyes,2,no\n", "same name"),
    "ragged": ("x,sick\n1,no\n2,yes,3\n", "fields"),
    "a column in the way": ("sick,sick=yes\nno,1\nyes,0\n", "already"),
}


@pytest.mark.parametrize("name", FILES_IN_TROUBLE)
def test_files_in_trouble_are_refused(name: str, capsys: Any) -> None:
    content, told = FILES_IN_TROUBLE[name]
    Path("bad.csv").write_text(content)
    assert privatised(*YES, "--mechanism", "unary", data="bad.csv") == 2
    assert told in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_parquet_column_of_another_kind_is_refused(capsys: Any) -> None:
    parquet.write_table(pa.table({"y": pa.array([[1], [2]]), "n": pa.array([1, 2])}), "y.parquet")
    assert privatised("--column", "y", "--epsilon", "1", "--classes", "1,2", data="y.parquet") == 2
    assert "numbers, text, or yes and no" in capsys.readouterr().err
    assert privatised("--column", "n", "--epsilon", "1", "--classes", "one,two", data="y.parquet") == 2
    assert "whole numbers" in capsys.readouterr().err


def test_missing_file_and_folder(capsys: Any) -> None:
    assert privatised(*YES, data="nobody.csv") == 2
    assert "no file" in capsys.readouterr().err
    Path("taken").write_text("mine")
    assert privatised(*YES, out="taken") == 2
    assert Path("taken").read_text() == "mine"
