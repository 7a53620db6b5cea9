"""`leakcap sql`: one question, the prompt, a store, the ledger, and how it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakcap.cli.sql_words import as_sql_options
from tests.unit.cli.running import leakcap

ORDER = ("--unit", "patient", "--rows-per-unit", "4", "--cap", "0.6", "--ledger", "sqlite:///ledger.db")
BY_WARD = "select ward, count(*) as n from stays group by ward"


@pytest.fixture
def stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"patient": rng.integers(0, 800, 2000) * 7, "ward": rng.choice(["A", "B"], 2000)})
    monkeypatch.chdir(tmp_path)
    table.assign(days=rng.integers(1, 30, 2000)).to_csv("stays.csv", index=False)
    return tmp_path


def test_a_question_is_answered_charged_and_stored(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--share", "0.2", "--store", "kept.duckdb", "--json") == 0
    first = json.loads(capfd.readouterr().out)
    assert first["columns"] == ["ward", "n", "n low", "n high"] and first["share"] == pytest.approx(0.2, rel=1e-6)
    kept = ("sql", "kept.duckdb", BY_WARD, "--cap", "0.6", "--ledger", "sqlite:///ledger.db", "--share", "0.2")
    assert leakcap(*kept, "--json") == 0
    again = json.loads(capfd.readouterr().out)
    assert again["share"] == 0 and again["rows"] == first["rows"] and again["remaining"] == first["remaining"]
    assert leakcap(*kept, "--unit", "patient") == 2
    assert "was registered already" in capfd.readouterr().err


@pytest.mark.slow  # tests/unit/cluster/test_sql.py asks workers, and test_cluster.py gives a command some
def test_workers_of_a_cluster_answer_the_same_question(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    told = []
    for where in (("--backend", "dask"), ("--backend", "serial")):
        assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--share", "0.2", "--json", *where) == 0
        told.append(json.loads(capfd.readouterr().out))
    assert told[0]["rows"] == told[1]["rows"] and [one["share"] > 0 for one in told] == [True, False]


def test_workers_are_those_of_a_cluster(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--backend", "threads") == 2
    assert "backend must be 'dask'" in " ".join(capfd.readouterr().err.split())


def test_what_bounds_have_cut_is_said_once(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--store", "kept.duckdb") == 0
    assert "143 of 2,000 rows left out, beyond 4 of one person" in " ".join("".join(capfd.readouterr()).split())
    assert leakcap("sql", "kept.duckdb", BY_WARD, "--cap", "0.6", "--ledger", "sqlite:///ledger.db") == 0
    assert "left out" not in "".join(capfd.readouterr())


def test_fewer_rows_of_one_person_are_nearer(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wide = []
    for rows in ("4", "1"):
        assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--share", "0.2", "--rows", rows, "--json") == 0
        told = json.loads(capfd.readouterr().out)["rows"][0]
        wide.append(told[3] - told[2])
    assert wide[1] < 0.8 * wide[0]  # what coins leave open stays
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--rows", "0") == 2
    assert "rows must be at least 1" in " ".join(capfd.readouterr().err.split())
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER[:-1], "sqlite:///2.db", "--rows", "1", "--design", "worlds") == 2
    assert "--rows is for sessions with --design bits" in " ".join(capfd.readouterr().err.split())


def test_other_bounds_go_on_in_the_same_account(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One set of people has one secret, however their tables are registered."""
    left = []
    for more in ((), ("--bounds", "days=0,20")):
        assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, *more, "--share", "0.2", "--json") == 0
        left.append(json.loads(capfd.readouterr().out)["remaining"])
    assert left[0] > left[1]


def test_a_prompt_goes_on_after_mistakes(
    stays: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = f"\\t\n\\p {BY_WARD}\nselect max(days) from stays;\n\\x\nselect count(*)\n from stays;\n\\s\n\\q\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert leakcap("sql", "stays.csv", *ORDER) == 0
    told = capfd.readouterr()
    out, err = " ".join(told.out.split()), " ".join(told.err.split())
    assert (
        "stays (people's rows): patient, ward, days" in out
        and "It takes at most 1 % of anybody's clock" in out.replace("\xa0", " ")
    )
    assert "count(*)" in out and "±" in out and "has 99\xa0% of the clock left" in out.replace(" %", "\xa0%")
    assert "There is no such word" in err and "at `MAX(days)`" in err


def test_what_newcomers_type_at_a_prompt_is_no_question(
    stays: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of other prompts; and in the middle of a question words of ours, after which it goes on."""
    typed = "help\n.tables\nselect count(*)\n\\t\nas people\n from stays;\nselect\n\\q\nselect count(*) from stays;\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert leakcap("sql", "stays.csv", *ORDER) == 0
    told = capfd.readouterr()
    assert told.out.count("what is left") == 2 and told.err.count("There is no such word") == 1
    assert told.out.count("people's rows") == 1 and told.out.count("±") == 1
    assert any(line.split()[-1:] == ["people"] for line in told.out.splitlines())  # as the answer was to be called


def test_a_question_without_an_end_is_said_not_to_be_asked(
    stays: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for typed, said in (("select count(*)\nfrom stays", True), ("\n", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert leakcap("sql", "stays.csv", *ORDER) == 0
        assert ("was not asked: end it with ;" in " ".join(capfd.readouterr().err.split())) == said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("stays.csv", BY_WARD, "--cap", "0.6"),
            "say whose row it is, as in --unit patient or --unit customer.id: there are stays.patient, stays.ward, "
            "stays.days",
        ),
        (("stays.csv", BY_WARD, "--unit", "patient"), "say what to cap"),
        (("none.csv", BY_WARD, *ORDER), "there is no file"),
        (("stays.csv", BY_WARD, *ORDER, "--bounds", "days=1"), "--bounds takes two ends"),
        (("stays.csv", "drop table stays", *ORDER), "a question is a SELECT"),
    ],
)
def test_mistakes_end_in_a_sentence(
    stays: Path, words: tuple[str, ...], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leakcap("sql", *words) == 2
    assert says in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("give links={'a.b': 'c.d'}, or name it in public= if", "give --link a.b=c.d, or name it in --public if"),
        ("give bounds={'column': (low, high)} when", "give --bounds column=LOW,HIGH when"),
        ("declare keys={'town': [...]} when", "declare --keys town=VALUE,VALUE when"),
        ("with rows_per_unit=, and join", "with --rows-per-unit, and join"),
        ("is answered with design='worlds'", "is answered with --design worlds"),
        ("at `public=1`: no", "at `public=1`: no"),
    ],
)
def test_arguments_are_named_as_options(said: str, told: str) -> None:
    assert as_sql_options(said) == told


def test_extremes_and_keys_by_a_noised_count_are_options(stays: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert leakcap("sql", "stays.csv", "select max(days) from stays", *ORDER) == 2
    assert "--design worlds" in " ".join(capfd.readouterr().err.split())
    listed = (
        "--design",
        "worlds",
        "--worlds",
        "64",
        "--bounds",
        "days=0,30",
        "--ledger",
        "sqlite:///listed.db",
        "--share",
        "0.3",
    )
    assert leakcap("sql", "stays.csv", "select max(days) as d from stays", *ORDER, *listed, "--json") == 0
    assert json.loads(capfd.readouterr().out)["columns"][0] == "d"
    shown = ("--noised-keys", "ward=20", "--share", "0.5", "--json")
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, *shown) == 0
    assert [row[0] for row in json.loads(capfd.readouterr().out)["rows"]] == ["A", "B"]
    assert leakcap("sql", "stays.csv", BY_WARD, *ORDER, "--noised-keys", "ward=many") == 2
    assert "a number of people" in " ".join(capfd.readouterr().err.split())
