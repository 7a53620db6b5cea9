"""`leakcap labels` as its user meets it: what is written, said and refused, and what a second run costs."""

from __future__ import annotations

import html
import json
import math
import re
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import leakcap as lc
from leakcap.cli import folders
from leakcap.label_certificate import LabelCertificate
from tests.report.test_page import words

from .running import leakcap

ROWS = 60
FILES = {"labels.csv", "certificate.json", "certificate.txt", "page.html"}
YES = ["--column", "sick", "--epsilon", "1", "--classes", "no,yes"]
THREE = ["--column", "kind", "--epsilon", "1", "--classes", "a,b,c"]
BINS = ["--column", "pay", "--epsilon", "2", "--low", "0", "--high", "100"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: Any) -> pd.DataFrame:
    """Labels of several types among features that are awkward to write."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    words = ["plain", "with, comma", 'with "quotes"', "two\nlines", " padded ", "", "007", "1.10", "NA", "semi;colon"]
    found = pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(ROWS)],
            "words": [words[i % len(words)] for i in range(ROWS)],
            "sick": np.where(rng.random(ROWS) < 0.3, "yes", "no"),
            "age": rng.normal(40, 9, size=ROWS).round(2),
            "kind": rng.choice(["a", "b", "c"], size=ROWS),
            "code": rng.integers(0, 2, size=ROWS),
            "pay": rng.uniform(0, 100, size=ROWS).round(1),
        }
    )
    found.to_csv("people.csv", index=False)
    return found


def privatised(*options: str, data: str = "people.csv", out: str = "out") -> int:
    return leakcap("labels", data, *options, "--out", out)


def text_of(path: str, **options: Any) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, na_filter=False, **options)


def certificate(out: str = "out/public") -> LabelCertificate:
    return LabelCertificate.from_json(Path(out, "certificate.json").read_text())


def everything(out: str = "out") -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path(out).rglob("*")) if path.is_file()}


# What is written


def test_other_columns_stay_as_they_were_row_by_row(capsys: Any) -> None:
    assert privatised(*YES) == 0, capsys.readouterr().err
    assert {path.name for path in Path("out/public").iterdir()} == FILES
    before, after = text_of("people.csv"), text_of("out/public/labels.csv")
    assert list(after) == list(before)
    pd.testing.assert_frame_equal(after.drop(columns="sick"), before.drop(columns="sick"))
    assert set(after["sick"]) == {"no", "yes"}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz", "; .csv"])
def test_a_text_file_keeps_its_format(ending: str, table: pd.DataFrame) -> None:
    separator = "\t" if "tsv" in ending else ";" if ";" in ending else ","
    name = f"data{ending.removeprefix('; ')}"
    table.to_csv(name, index=False, sep=separator)
    assert privatised(*YES, "-q", data=name) == 0
    after = text_of(f"out/public/labels{ending.removeprefix('; ')}", sep=separator)
    assert list(after) == list(table)
    before = text_of(name, sep=separator)
    pd.testing.assert_frame_equal(after.drop(columns="sick"), before.drop(columns="sick"))


def test_a_parquet_file_keeps_its_types(table: pd.DataFrame) -> None:
    whole = pa.Table.from_pandas(table, preserve_index=False)
    whole = whole.append_column("day", pa.array([19_000 + i for i in range(ROWS)], pa.date32()))
    parquet.write_table(whole, "people.parquet")
    assert privatised("--column", "code", "--epsilon", "1", "--classes", "0,1", "-q", data="people.parquet") == 0
    after = parquet.read_table("out/public/labels.parquet")
    assert after.schema.names == whole.schema.names
    assert after.schema.types == whole.schema.types
    assert after.drop_columns(["code"]).equals(whole.drop_columns(["code"]))
    assert set(after.column("code").to_pylist()) == {0, 1}


TYPES: dict[str, tuple[Any, str]] = {
    "int8": (pa.array([0, 1] * 20, pa.int8()), "0,1"),
    "uint64": (pa.array([0, 2**64 - 1] * 20, pa.uint64()), f"0,{2**64 - 1}"),
    "whole numbers by names with a point": (pa.array([0, 1] * 20, pa.int64()), "0.0,1.0"),
    "float32 tenths": (pa.array([0.1, 0.2] * 20, pa.float32()), "0.1,0.2"),
    "float64 by whole names": (pa.array([0.0, 1.0] * 20), "0,1"),
    "yes and no": (pa.array([True, False] * 20), "true,false"),
    "yes and no as numbers": (pa.array([True, False] * 20), "0,1"),
    "text": (pa.array(["x", "y"] * 20), "x,y"),
    "text of numbers": (pa.array(["1.0", "2"] * 20), "1,2.00"),
    "large text": (pa.array(["x", "y"] * 20, pa.large_string()), "x,y"),
    "categories": (pa.array(["x", "y"] * 20).dictionary_encode(), "x,y"),
    "decimals": (pa.array([1, 2] * 20, pa.decimal128(5, 2)), "1,2"),
}


@pytest.mark.parametrize("kind", TYPES)
def test_labels_of_every_type_are_found_by_name_and_written_in_their_type(kind: str, capsys: Any) -> None:
    cells, classes = TYPES[kind]
    parquet.write_table(pa.table({"y": cells}), "y.parquet")
    options = ["--column", "y", "--epsilon", "30", "--classes", classes, "--mechanism", "krr"]
    assert privatised(*options, data="y.parquet") == 0, capsys.readouterr().err
    after = parquet.read_table("out/public/labels.parquet").column("y")
    assert after.type == (pa.string() if kind == "categories" else cells.type)
    if kind != "text of numbers":  # epsilon 30: a label is changed once in 10^13 runs
        assert after.to_pylist() == cells.to_pylist()


@pytest.mark.parametrize("cells", [["1", "0"], ["1.0", "0.0"], [" 1", "0 "], ["1e0", "-0"], ["01", "00"]])
def test_numbers_in_text_are_found_however_they_are_written(cells: list[str]) -> None:
    Path("y.csv").write_text("x,y\n" + "".join(f"7,{cells[i % 2]}\n" for i in range(20)))
    assert privatised("--column", "y", "--epsilon", "30", "--classes", "0,1", "-q", data="y.csv") == 0
    assert text_of("out/public/labels.csv")["y"].tolist() == ["1", "0"] * 10


WIDE = ["kind=a", "kind=b", "kind=c"]
MECHANISMS: dict[str, tuple[list[str], list[str], type]] = {
    "krr": ([*THREE, "--mechanism", "krr"], ["kind"], lc.labels.KRR),
    "unary": ([*THREE, "--mechanism", "unary"], WIDE, lc.labels.UnaryBits),
    "subset": ([*THREE, "--mechanism", "subset"], WIDE, lc.labels.SubsetSelection),
    "laplace": ([*THREE, "--mechanism", "laplace"], WIDE, lc.labels.Laplace),
    "gaussian": ([*THREE, "--mechanism", "gaussian", "--delta", "1e-6"], WIDE, lc.labels.Gaussian),
    "prior": ([*THREE, "--prior", "0.49,0.49,0.02"], ["kind"], lc.labels.RRWithPrior),
    "bins": (BINS, ["pay"], lc.labels.RROnBins),
    "bins by name, with a prior": (
        [*BINS, "--mechanism", "bins", "--prior", "0.5,0.3,0.2"],
        ["pay"],
        lc.labels.RROnBins,
    ),
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_the_page_says_about_learning_works(
    name: str, form: str, table: pd.DataFrame, capsys: Any, monkeypatch: Any
) -> None:
    """The lines on the page, run as they are beside the published file."""
    options, columns, kind = MECHANISMS[name]
    table.to_parquet("people.parquet")
    assert privatised(*options, data=f"people.{form}") == 0, capsys.readouterr().err
    page = Path("out/public/page.html").read_text()
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    assert f"lc.labels.{kind.__name__}(" in html.unescape(code)
    monkeypatch.chdir("out/public")
    learnt: dict[str, Any] = {}
    exec(html.unescape(code), learnt)
    assert isinstance(learnt["mechanism"], kind)
    assert learnt["posterior"].shape == (ROWS, learnt["mechanism"].n_classes)
    assert np.allclose(learnt["posterior"].sum(axis=1), 1)
    place = list(table).index(columns[0].partition("=")[0])
    assert list(learnt["table"])[place : place + len(columns)] == columns
    assert certificate(".").mechanism == kind.name
    assert learnt["mechanism"].certificate(ROWS).epsilon == certificate(".").epsilon


def test_marks_are_ones_and_zeros_in_text_and_yes_or_no_in_parquet(table: pd.DataFrame) -> None:
    table.to_parquet("people.parquet")
    assert privatised(*THREE, "--mechanism", "unary", "-q", out="text") == 0
    assert privatised(*THREE, "--mechanism", "unary", "-q", data="people.parquet", out="typed") == 0
    text = text_of("text/public/labels.csv")[WIDE]
    assert set(text.to_numpy().ravel()) == {"0", "1"}
    typed = parquet.read_table("typed/public/labels.parquet")
    assert {typed.schema.field(name).type for name in WIDE} == {pa.bool_()}


def test_the_certificate_is_that_of_the_mechanism() -> None:
    assert privatised(*THREE, "--mechanism", "unary", "--prior", "0.5,0.3,0.2", "-q") == 0
    made = lc.labels.UnaryBits(epsilon=1.0, classes=["a", "b", "c"])
    assert certificate() == made.certificate(ROWS, [0.5, 0.3, 0.2])
    assert Path("out/public/certificate.txt").read_text() == f"{certificate()}\n"


def test_auto_takes_what_tells_most() -> None:
    assert privatised(*THREE, "-q") == 0
    assert certificate().mechanism == lc.labels.auto(1.0, 3).name


def excess(epsilon: str) -> float:
    """How many more of 20,000 labels come out as they went in than epsilon 1 says, in deviations."""
    labels = np.random.default_rng(5).integers(0, 4, 20_000)
    pd.DataFrame({"y": labels}).to_csv("many.csv", index=False)
    options = ["--column", "y", "--classes", "0,1,2,3", "--mechanism", "krr", "--epsilon", epsilon, "-q"]
    assert privatised(*options, data="many.csv") == 0
    share = float((text_of("out/public/labels.csv")["y"].astype(int) == labels).mean())
    expected = math.e / (math.e + 3)
    return (share - expected) / math.sqrt(expected * (1 - expected) / 20_000)


def test_labels_are_kept_as_often_as_epsilon_says() -> None:
    """Beyond five deviations once in 1.7 million runs."""
    assert abs(excess("1")) < 5


def test_labels_kept_more_often_would_be_noticed() -> None:
    """The planted twin: epsilon 1.2 taken for 1. It is 14 deviations away, and seen but for once in 10^18 runs."""
    assert excess("1.2") > 5


def test_numbers_become_one_of_a_few_values() -> None:
    assert privatised(*BINS, "-q") == 0
    made = lc.labels.RROnBins(2.0, 0, 100)
    assert set(text_of("out/public/labels.csv")["pay"].astype(float)) <= set(made.values.tolist())
    assert certificate().classes == tuple(str(float(value)) for value in made.values)


def test_labels_beyond_the_range_count_as_its_ends() -> None:
    Path("y.csv").write_text("y\n-5\n1e300\ninf\n-inf\n50\n")
    assert privatised("--column", "y", "--epsilon", "40", "--low", "0", "--high", "100", "-q", data="y.csv") == 0
    found = text_of("out/public/labels.csv")["y"].astype(float)
    assert found[0] == found[3] < found[4] < found[1] == found[2]


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
    "bins of words": (["--column", "kind", "--epsilon", "1", "--low", "0", "--high", "1"], "no numbers"),
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


# What is said


def test_the_terminal_hears_public_things(capsys: Any) -> None:
    assert privatised(*YES, "--title", "Sick [leave]", "--issuer", "The <clinic>") == 0
    said = " ".join(capsys.readouterr().out.split())
    for one in ("Sick [leave]", "epsilon = 1", "randomised response", "73.11 %", "out/public", "out/custodian"):
        assert one in said
    page = Path("out/public/page.html").read_text()
    assert "The &lt;clinic&gt;" in page and "<clinic>" not in page
    assert "Sick [leave]" in page


def test_quiet_says_nothing_and_json_is_one_object(capfd: Any) -> None:
    assert privatised(*YES, "--quiet", out="one") == 0
    assert capfd.readouterr() == ("", "")
    assert privatised(*THREE, "--mechanism", "unary", "--json", out="two") == 0
    said = capfd.readouterr()
    facts = json.loads(said.out)
    assert said.err == ""
    assert (facts["labels"], facts["classes"], facts["columns"]) == (ROWS, ["a", "b", "c"], WIDE)
    assert (facts["epsilon"], facts["delta"], facts["runs"], facts["kind"]) == (1.0, 0.0, 1, "label_dp")
    assert facts["guess_success_at_most"] == certificate("two/public").guess_success
    assert Path(facts["public"]).is_dir() and Path(facts["custodian"]).is_dir()


@pytest.mark.parametrize("mechanism", ["krr", "unary"])
def test_the_page_asks_for_nothing_outside_and_takes_no_name_for_markup(mechanism: str) -> None:
    Path("y.csv").write_text("x,<i>y\n1,<script>a\n2,</pre>b&\n")
    options = ["--column", "<i>y", "--epsilon", "1", "--classes", "<script>a,</pre>b&", "--mechanism", mechanism]
    assert privatised(*options, "--title", "<b>", "--issuer", "<b>", "-q", data="y.csv") == 0
    page = Path("out/public/page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert not re.findall(r"<script|<link|<i>|<b>y|https?://|url\(|@import| src=", page)
    said = words(page)  # raises where tags are not closed in order
    for name in ("<script>a", "</pre>b&", "<i>y", "epsilon = 1", "rounded up"):
        assert name in said


def test_the_page_promises_nothing_to_those_who_guess_from_features() -> None:
    """73 % is what a guess of 50 % becomes; whoever guesses better beforehand does better afterwards."""
    assert privatised(*YES, "--prior", "0.9,0.1", "-q") == 0
    page = words(Path("out/public/page.html").read_text())
    assert "90 % success before, knowing the stated prior" in page.replace("\u00a0", " ")
    assert "whoever had 50 %, thanks to the features or otherwise, with at most 73.11 %" in page.replace("\u00a0", " ")
    assert "right at most" not in page


# Again


def test_a_second_run_is_refused_and_changes_nothing(capsys: Any) -> None:
    assert privatised(*YES, "-q") == 0
    before = everything()
    for options in (YES, THREE, BINS, [*YES, "--json"]):
        assert privatised(*options) == 4
        said = capsys.readouterr()
        assert said.out == ""
        assert "privatised in out before" in said.err and "--again" in said.err
    assert everything() == before


def test_runs_that_are_asked_for_again_are_all_counted(capsys: Any) -> None:
    assert privatised(*YES, "-q") == 0
    first = everything()
    assert privatised(*YES, "--again", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2
    assert privatised(*YES[:3], "0.5", *YES[4:], "--mechanism", "gaussian", "--delta", "1e-6", "--again", "-q") == 0
    assert first.items() <= everything().items(), "what has left is kept"
    two, three = certificate("out/public-2"), certificate("out/public-3")
    assert (two.epsilon, two.delta, three.epsilon, three.delta) == (2.0, 0.0, 2.5, 1e-6)
    assert two.guess_success == pytest.approx(math.exp(2) / (1 + math.exp(2)))
    one = certificate("out/public").mutual_information
    assert two.mutual_information == pytest.approx(2 * one)
    assert one < two.mutual_information < three.mutual_information <= math.log(2) * (1 + 1e-9)
    assert "privatised 3 times" in str(three)
    page = Path("out/public-3/page.html").read_text()
    assert "All 3 times" in page and "epsilon = 2.5, delta = 1e-06" in page
    assert privatised(*YES) == 4
    assert "epsilon 2.5 so far" in capsys.readouterr().err


def test_two_observations_of_a_label_tell_no_more_than_the_certificate_of_both_says() -> None:
    """The best attacker on both files of randomised response: computed from the channel itself."""
    assert privatised(*YES, "-q") == privatised(*YES, "--again", "-q") == 0
    keep = math.e / (math.e + 1)
    both = [
        (keep * keep, (1 - keep) ** 2),
        (keep * (1 - keep),) * 2,
        ((1 - keep) * keep,) * 2,
        ((1 - keep) ** 2, keep**2),
    ]
    best = sum(max(pair) / 2 for pair in both)
    told = sum(p / 2 * math.log(p / (sum(pair) / 2)) for pair in both for p in pair)
    found = certificate("out/public-2")
    assert best <= found.guess_success
    assert told <= found.mutual_information
    # The twin: the certificate of one run alone does not cover what both tell.
    assert told > certificate().mutual_information


def test_a_run_with_other_classes_counts_what_any_prior_allows() -> None:
    assert privatised(*YES, "-q") == privatised(*THREE, "--again", "-q") == 0
    found = certificate("out/public-2")
    assert found.mutual_information == pytest.approx(min(found.epsilon, math.log(2 * 3)))


def test_a_run_with_coarser_bins_does_not_forget_what_the_finer_ones_told() -> None:
    fine, coarse = [*BINS, "-q"], [*BINS, "-q"]
    fine[fine.index("--epsilon") + 1], coarse[coarse.index("--epsilon") + 1] = "8", "0.5"
    assert privatised(*fine) == privatised(*coarse, "--again") == privatised(*coarse, "--again") == 0
    told = [certificate(f"out/{name}").mutual_information for name in ("public", "public-2", "public-3")]
    assert len(certificate("out/public-2").classes) < len(certificate().classes)
    assert told[0] < told[1] <= told[2]


def test_a_run_that_could_not_be_published_has_spent_its_epsilon(monkeypatch: Any, capsys: Any) -> None:
    def full(self: Any, files: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders.Folders, "publish", full)
        assert privatised(*YES) != 0
    assert not Path("out/public").exists()
    capsys.readouterr()
    assert privatised(*YES) == 4
    assert "start in a new folder" in capsys.readouterr().err
    assert privatised(*YES, "--again", "-q") == 0
    assert certificate("out/public-2").epsilon == 2


def test_nothing_is_published_that_was_not_recorded(monkeypatch: Any) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("leakcap.cli.labels.record", stopped)
    assert privatised(*YES) == 130
    assert not Path("out/public").exists()


def test_of_two_runs_at_once_one_is_refused(monkeypatch: Any, capsys: Any) -> None:
    from leakcap.cli import labels

    monkeypatch.setattr(labels, "spent_before", lambda out, again: [])
    assert privatised(*YES, "-q") == 0
    before = everything()
    assert privatised(*YES) == 4
    assert "just now" in capsys.readouterr().err
    assert everything() == before


def test_what_was_spent_is_the_custodians_and_a_damaged_record_is_refused(capsys: Any) -> None:
    assert privatised(*YES, "-q") == 0
    kept = Path("out/custodian/labels/1.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path("out/custodian").stat().st_mode) == 0o700
    kept.write_text(kept.read_text()[:-20])
    for options in (YES, [*YES, "--again"]):
        assert privatised(*options) == 2
        assert "damaged" in capsys.readouterr().err


def test_a_folder_of_another_release_is_not_written_into(capsys: Any) -> None:
    Path("out/public").mkdir(parents=True)
    assert privatised(*YES) == 4
    assert "finished release" in capsys.readouterr().err
    assert privatised(*YES, "--again") == 2


# Size


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_million_labels_take_seconds(form: str) -> None:
    rng = np.random.default_rng(0)
    many = pd.DataFrame({f"x{i}": rng.normal(size=1_000_000).round(4) for i in range(8)})
    many["y"] = rng.integers(0, 10, len(many))
    getattr(many, f"to_{form}")(f"many.{form}", index=False)
    started = time.monotonic()
    options = ["--column", "y", "--epsilon", "1", "--classes", "0,1,2,3,4,5,6,7,8,9", "--mechanism", "krr", "-q"]
    assert privatised(*options, data=f"many.{form}") == 0
    assert time.monotonic() - started < 30
