"""`leakcap release --read`: tables as they come, and the ledger knows them however they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.cli.release import ReleaseOrder, account_of
from tests.unit.cli.running import leakcap

SMALL = ("--cap", "membership=0.6", "--quiet")
COMMA = ("--read", "decimal=,")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The same people with decimal points, with decimal commas, and in a folder of two parts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"cost": rng.gamma(2, 50, 800).round(2), "height": rng.normal(170, 9, 800).round(1)})
    monkeypatch.chdir(tmp_path)
    frame.to_csv("points.csv", index=False)
    frame.to_csv("commas.csv", index=False, sep=";", decimal=",")
    Path("parts").mkdir()
    frame[:300].to_parquet("parts/0.parquet")
    frame[300:].to_parquet("parts/1.parquet")
    return frame


def answers(folder: str) -> Any:
    return json.loads((Path(folder) / "public" / "answer.json").read_text())["answer"]


@pytest.mark.parametrize("source", [("points.csv",), ("commas.csv", *COMMA), ("parts",)])
def test_the_answer_is_about_the_numbers_that_were_written(source: tuple[str, ...], table: pd.DataFrame) -> None:
    assert leakcap("release", *source, "--fn", "mean", "--columns", "cost,height", *SMALL, "--out", "o") == 0
    for one, name in zip(answers("o"), ("cost", "height"), strict=True):
        assert one["low_95"] - 5 < table[name].mean() < one["high_95"] + 5


@pytest.mark.parametrize("second", [("points.csv",), ("commas.csv", *COMMA), ("parts",)])
@pytest.mark.parametrize("first", [("points.csv",), ("commas.csv", *COMMA), ("parts",)])
@pytest.mark.usefixtures("table")
def test_the_same_people_are_known_however_they_are_written(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    about = ("--fn", "mean", "--columns", "cost", *SMALL)
    assert leakcap("release", *first, *about, "--out", "one") == 0
    assert leakcap("release", *second, *about, "--out", "two") != 0
    assert not Path("two/public").exists()


@pytest.mark.usefixtures("table")
def test_a_file_is_known_by_its_bytes_however_it_is_read() -> None:
    """Read in another way its columns are others, and its people are the same."""
    orders = [
        ReleaseOrder(data=Path("points.csv"), fn="mean", cap=("0.6",), out=Path("o"), read=read)
        for read in ((), ("thousands=,",), ("missing=marks",))
    ]
    assert len({account_of(order).name for order in orders}) == 1
    about = ("--fn", "mean", "--columns", "height", *SMALL)
    assert leakcap("release", "points.csv", *about, "--out", "one") == 0
    assert leakcap("release", "points.csv", *about, "--read", "missing=170", "--missing", "drop", "--out", "two") == 4
    whole = account_of(ReleaseOrder(data=Path("parts"), fn="mean", cap=("0.6",), out=Path("o")))
    Path("parts/1.parquet").rename("parts/2.parquet")
    assert account_of(ReleaseOrder(data=Path("parts"), fn="mean", cap=("0.6",), out=Path("o"))).name != whole.name


@pytest.mark.usefixtures("table")
def test_sessions_read_tables_alike() -> None:
    order = ("release", "commas.csv", *COMMA, "--fn", "mean", "--session", *SMALL)
    assert leakcap(*order, "--columns", "cost", "--bounds", "0,500", "--share", "0.2", "--out", "one") == 0
    answer = json.loads(Path("one/public/answer.json").read_text())["answer"][0]
    assert 50 < answer < 200
    pd.DataFrame({"born": ["1990-01-31", "2001-12-01"] * 300}).to_csv("born.csv", index=False)
    dated = ("release", "born.csv", "--read", "dates=parts", "--fn", "mean", "--session", *SMALL)
    assert leakcap(*dated, "--columns", "born.year", "--bounds", "1900,2020", "--out", "two") == 0
    assert 1980 < json.loads(Path("two/public/answer.json").read_text())["answer"][0] < 2010


@pytest.mark.usefixtures("table")
def test_labels_are_read_in_other_encodings_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    Path("labels.csv").write_bytes("größe|y\n1,5|no\n".encode("cp1252") * 1 + "é|yes\n".encode("cp1252") * 9)
    order = ("labels", "labels.csv", "--column", "y", "--classes", "no,yes", "--epsilon", "1", "--quiet")
    read = ("--read", "encoding=cp1252", "--read", "delimiter=pipe")
    assert leakcap(*order, *read, "--out", "one") == 0
    written = Path("one/public/labels.csv").read_text()
    assert written.startswith("größe|y\n1,5|")
    assert leakcap(*order, *COMMA, "--out", "two") == 2
    assert "cells leave as they are" in " ".join(capfd.readouterr().err.split())
    assert leakcap("labels", "parts", *order[2:], "--out", "three") == 2
    assert "one file" in " ".join(capfd.readouterr().err.split())
