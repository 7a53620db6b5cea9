"""Errors of the command line hold no cells."""

from __future__ import annotations

import os
import warnings
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.leaks.command_line.runs import MARK, SMALL, panics, raises, said


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Every cell holds the mark."""
    path = tmp_path / "marked.csv"
    rows = {
        "who": [f"w{MARK}{i // 2}" for i in range(24)],
        "age": [float(f"{MARK}.{i:02d}") for i in range(24)],
        "name": [f"n{MARK}x{i}" for i in range(24)],
        "town": [f"t{MARK}{'ab'[i % 2]}" for i in range(24)],
    }
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


raising, panicking = raises, panics


def exiting(table: Any) -> Any:
    raise SystemExit(f"cannot handle {table['age'].iloc[0]}")


def texts(table: Any) -> Any:
    return str(table["age"].iloc[0])


def other_keys(table: Any) -> Any:
    return {str(table["age"].iloc[0]): 1.0}


def not_numbers(table: Any) -> Any:
    return [table["age"].iloc[0], float("nan")]


def warning(table: Any) -> Any:
    warnings.warn(f"odd value {table['age'].iloc[0]}", stacklevel=1)
    return table["age"].mean()


def far_keys(table: Any) -> Any:
    return {(i, table["age"].iloc[0] if i == 3 else 0): 1.0 for i in range(4)}


Nameless = make_dataclass(f"C{MARK}", ["mean"])


def of_no_module(table: Any) -> Any:
    return Nameless(table["age"].mean())


AGE = ["--columns", "age"]
FAILING: dict[str, tuple[list[str], int]] = {
    "a text column": (["--fn", "mean", "--columns", "name"], 2),
    "categories that are names": (["--fn", "histogram", "--columns", "name"], 2),
    "no such column": (["--fn", "mean", "--columns", "agee"], 2),
    "strata of one": (["--fn", "mean", *AGE, "--strata", "name"], 2),
    "strata that split people": (["--fn", "mean", *AGE, "--unit", "who", "--strata", "town"], 2),
    "no such function": (["--fn", f"{__name__}:nothing"], 2),
    "raises": (["--fn", f"{__name__}:raising"], 3),
    "exits": (["--fn", f"{__name__}:exiting"], 3),
    "text": (["--fn", f"{__name__}:texts"], 3),
    "keys that differ": (["--fn", f"{__name__}:other_keys"], 3),
    "keys far inside": (["--fn", f"{__name__}:far_keys"], 3),
    "not a number": (["--fn", f"{__name__}:not_numbers"], 3),
    "an answer that cannot be stored": (["--fn", f"{__name__}:of_no_module"], 2),
    "a cap that cannot be kept": (["--fn", "mean", *AGE, "--cap", "identification=0.001"], 2),
    "clip of one end": (["--fn", "mean", *AGE, "--clip", "1"], 2),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_command_that_fails_quotes_no_cell(name: str, marked: Path, capfd: Any, caplog: Any) -> None:
    options, expected = FAILING[name]
    code, words = said(["release", str(marked), *options, *SMALL, "--out", "out"], capfd, caplog)
    assert MARK not in words
    assert code == expected, words
    assert "leakcap: " in words
    assert "Traceback" not in words
    assert not Path("out/public").exists()


BROKEN = {
    "ragged": f"a,b\n1,2\n{MARK},2,3,{MARK}\n",
    "open quotation mark": f'a,b\n1,"{MARK}\n2,3\n',
    "infinite": f"a,b\ninf,{MARK}\n{MARK},2\n3,4\n5,6\n",
    "mixed": f"a,b\n{MARK},x{MARK}\nx{MARK},2\n3,4\n5,6\n",
    "decimal commas": f'a,b\n"{MARK},5",1\n"{MARK},6",2\n',
    "no names": "\n".join(f"{MARK},{i}" for i in range(9)) + "\n",
    "holes": f"a,b\n,{MARK}\n{MARK},2\n3,4\n5,6\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_without_its_cells(name: str, tmp_path: Path, capfd: Any, caplog: Any) -> None:
    (tmp_path / "broken.csv").write_text(BROKEN[name])
    for column in ("a", "a,b", ""):
        chosen = ["--columns", column] if column else []
        code, words = said(["release", "broken.csv", "--fn", "mean", *chosen, *SMALL, "--out", "o"], capfd, caplog)
        assert MARK not in words
        assert code == 2, words


@pytest.mark.parametrize("content", [b"PAR1 777123", b"a,b\n\xff\xfe777123,1\n", b"", b"PK\x03\x04777123"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_bytes_that_are_no_table_are_refused_without_being_shown(
    content: bytes, ending: str, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    (tmp_path / f"broken.{ending}").write_bytes(content)
    options = ["--fn", "mean", "--columns", "a", *SMALL, "--out", "o"]
    code, words = said(["release", f"broken.{ending}", *options], capfd, caplog)
    assert MARK not in words
    assert code == 2, words


@pytest.mark.parametrize(
    "place", ["leakcap.tables.questions.plan", "leakcap.cli.release.public_files", "leakcap.tables.questions.units_of"]
)
def test_an_unexpected_error_is_told_by_kind_and_place_alone(
    place: str, marked: Path, capfd: Any, caplog: Any, monkeypatch: Any
) -> None:
    """Exit code 70: a defect of leakcap. Its text may hold anything."""

    def defect(*_: Any, **__: Any) -> Any:
        try:
            raise KeyError(f"row {MARK}")
        except KeyError as error:
            raise RuntimeError(f"inside {MARK}") from error

    monkeypatch.setattr(place, defect)
    options = ["--fn", "mean", *AGE, "--unit", "who", *SMALL, "--out", "out"]
    code, words = said(["release", str(marked), *options], capfd, caplog)
    assert code == 70
    assert "RuntimeError" in words
    assert MARK not in words
    assert not Path("out/public").exists()


def test_a_panic_quotes_no_cell(marked: Path, capfd: Any, caplog: Any) -> None:
    options = ["--fn", f"{__name__}:panicking", *SMALL, "--out", "out"]
    code, words = said(["release", str(marked), *options], capfd, caplog)
    assert code == 3
    assert MARK not in words


def test_warnings_of_the_function_quote_no_cell(marked: Path, capfd: Any, caplog: Any) -> None:
    """Raised in simulated worlds, they do not tell the secret; but they are the data's, in a log."""
    code, words = said(["release", str(marked), "--fn", f"{__name__}:warning", *SMALL, "--out", "out"], capfd, caplog)
    assert code == 0, words
    assert MARK not in words


FLAG = "LEAKCAP_TEST_PARENT"


def raising_in_workers(table: Any) -> Any:
    if os.environ[FLAG] != str(os.getpid()):
        raise ValueError(f"cannot handle {table['age'].iloc[0]}")
    return table["age"].mean()


def dying_in_workers(table: Any) -> Any:
    if os.environ[FLAG] != str(os.getpid()):
        os._exit(3)
    return table["age"].mean()


@pytest.mark.usefixtures("_processes")
@pytest.mark.parametrize("fn", ["raising_in_workers", pytest.param("dying_in_workers", marks=pytest.mark.slow)])
def test_workers_that_fail_quote_no_cell(fn: str, marked: Path, capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv(FLAG, str(os.getpid()))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    options = ["--fn", f"{__name__}:{fn}", *SMALL, "--workers", "2", "--out", "out"]
    code, words = said(["release", str(marked), *options], capfd, caplog)
    assert code == 3, words
    assert MARK not in words
    assert not Path("out/public").exists()


def test_the_search_for_cells_sees_a_careless_error(marked: Path, capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    """The planted twin."""
    monkeypatch.setattr("leakcap.cli.endings.defect_in_words", lambda error: f"{error}")

    def defect(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"inside {MARK}")

    monkeypatch.setattr("leakcap.tables.questions.plan", defect)
    _, words = said(["release", str(marked), "--fn", "mean", *AGE, *SMALL, "--out", "out"], capfd, caplog)
    assert MARK in words
