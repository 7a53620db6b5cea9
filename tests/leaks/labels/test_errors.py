"""Errors hold no labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.leaks.command_line.runs import said

MARK = "777123"
FAILING = {
    "labels outside the classes": ["--classes", "a,b"],
    "text for numbers": ["--low", "0", "--high", "1"],
    "a class left out": ["--classes", "a,c"],
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", FAILING)
def test_errors_quote_no_label(name: str, form: str, capfd: Any, caplog: Any) -> None:
    table = pd.DataFrame({"y": ["a", f"x{MARK}", "b", None], "x": [int(MARK)] * 4})
    getattr(table, f"to_{form}")(f"data.{form}", index=False)
    options = ["--column", "y", "--epsilon", "1", *FAILING[name], "--out", "out"]
    code, words = said(["labels", f"data.{form}", *options], capfd, caplog)
    assert code == 2, words
    assert MARK not in words
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", ["int64", "float64", "bool"])
def test_errors_quote_no_number(kind: str, capfd: Any, caplog: Any) -> None:
    cells = np.array([0, 1, 0], dtype=kind) if kind == "bool" else np.array([0, 1, int(MARK)], dtype=kind)
    parquet.write_table(pa.table({"y": cells}), "data.parquet")
    for classes in ("0,1", "a,b", "0,7"):
        options = ["--column", "y", "--epsilon", "1", "--classes", classes, "--out", f"out{kind}{classes}"]
        code, words = said(["labels", "data.parquet", *options], capfd, caplog)
        assert code == (0 if kind == "bool" and classes == "0,1" else 2), words
        assert MARK not in words.replace(f"out{kind}", "")


@pytest.mark.parametrize("place", ["leakcap.custody.label_spending.write_private", "leakcap.cli.labels.label_page"])
def test_an_unexpected_error_is_told_by_kind_and_place_alone(
    place: str, capfd: Any, caplog: Any, monkeypatch: Any
) -> None:
    def defect(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"inside {MARK}")

    monkeypatch.setattr(place, defect)
    Path("data.csv").write_text("y\na\nb\n")
    options = ["--column", "y", "--epsilon", "1", "--classes", "a,b", "--out", "out"]
    code, words = said(["labels", "data.csv", *options], capfd, caplog)
    assert code == 70
    assert MARK not in words
    assert not Path("out/public").exists()


def test_a_careless_error_would_be_seen(capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    """The planted twin: an error that names the label it met."""
    from leakcap.errors import InputError
    from leakcap.tables.label_column import LabelColumn

    def careless(self: Any, *_: Any) -> Any:
        raise InputError(f"no class {self.table['y'].iloc[1]}")

    monkeypatch.setattr(LabelColumn, "codes", careless)
    Path("data.csv").write_text(f"y\na\nx{MARK}\n")
    options = ["--column", "y", "--epsilon", "1", "--classes", "a,b", "--out", "out"]
    assert MARK in said(["labels", "data.csv", *options], capfd, caplog)[1]
