"""However a file is said to be written, what is refused about it quotes no cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.leaks.command_line.runs import MARK, SMALL, said

WRITTEN = {
    "a decimal comma": (f"a;b\n{MARK},5;1\nx{MARK};2\n", ["decimal=,"]),
    "thousands": (f"a;b\n{MARK}.5;1\n1.{MARK};2\n", ["thousands=."]),
    "thousands by spaces": (f"a;b\n{MARK} 5;1\n1;2\n", ["thousands=space"]),
    "marks": (f"a;b\n?;1\nx{MARK};2\n", ["missing=marks"]),
    "a mark that is a cell": (f"a;b\n{MARK};1\n2;2\n", ["missing=2"]),
    "all marks": (f"a;b\n?;{MARK}\n-;{MARK}\n", ["missing=marks"]),
    "no dates": (f"a;b\n2024-01-31;1\n{MARK};2\n", ["dates=parts"]),
    "dates of another order": (f"a;b\n31.12.2024;{MARK}\n1.1.2024;{MARK}\n", ["dates=mdy"]),
    "bytes of another encoding": (f"a;b\n\xe9{MARK};1\n\x81{MARK};2\n", ["encoding=ascii"]),
    "bytes of no encoding": (f"a;b\n\x81{MARK};1\n2;2\n", ["encoding=cp1252"]),
    "another delimiter": (f"a;b\n1;{MARK}\n2;3\n", ["delimiter=|"]),
    "a delimiter in a cell": (f"a|b\n1|{MARK}|3\n2|3\n", ["delimiter=pipe"]),
    "two bytes for one": (f"a;b\n1;{MARK}\n", ["encoding=utf-16"]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_is_not_written_as_was_said_is_refused_without_its_cells(
    name: str, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    text, read = WRITTEN[name]
    (tmp_path / "odd.csv").write_bytes(text.encode("latin-1"))
    options = [word for one in read for word in ("--read", one)]
    for column in ("a", "a.year", "a,b", ""):
        chosen = ["--columns", column] if column else []
        order = ["release", "odd.csv", "--fn", "mean", *options, *chosen, *SMALL, "--out", "o"]
        code, words = said(order, capfd, caplog)
        assert MARK not in words
        assert code == 2, words
        assert "Traceback" not in words


@pytest.mark.parametrize("name", ["a decimal comma", "marks", "no dates", "dates of another order"])
def test_what_is_offered_quotes_no_cell(name: str, tmp_path: Path, capfd: Any, caplog: Any) -> None:
    text, _ = WRITTEN[name]
    (tmp_path / "odd.csv").write_text(text.replace(f"x{MARK}", MARK))
    code, words = said(["release", "odd.csv", "--fn", "mean", "--columns", "a", *SMALL, "--out", "o"], capfd, caplog)
    assert MARK not in words
    assert code == 2, words


def test_parts_of_a_folder_that_do_not_fit_quote_no_cell(tmp_path: Path, capfd: Any, caplog: Any) -> None:
    """The folders that parts lie in are cells: they are what the rows have in that column."""
    for ward, frame in ((f"ward={MARK}", pd.DataFrame({"a": [1.0]})), (f"ward={MARK}1", pd.DataFrame({"a": ["x"]}))):
        (tmp_path / "data" / ward).mkdir(parents=True)
        frame.to_parquet(tmp_path / "data" / ward / "part.parquet")
    code, words = said(["release", "data", "--fn", "mean", "--columns", "a", *SMALL, "--out", "o"], capfd, caplog)
    assert MARK not in words
    assert code == 2, words
    assert "part 2 of 2" in words


def test_the_search_for_cells_sees_a_careless_reader(
    tmp_path: Path, capfd: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted twin: an offer that shows what it is about."""
    monkeypatch.setattr("leakcap.tables.columns.offered_reading", lambda column: f"such as {column.iloc[0]}")
    (tmp_path / "odd.csv").write_text(WRITTEN["a decimal comma"][0])
    order = ["release", "odd.csv", "--fn", "mean", "--columns", "a", *SMALL, "--out", "o"]
    _, words = said(order, capfd, caplog)
    assert MARK in words
