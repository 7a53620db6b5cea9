"""`leakcap labels` writes the table, with the labels privatised, and says what it did."""

from __future__ import annotations

import html
import json
import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import leakcap as lc
from tests.unit.cli.labels.commands import BINS, ROWS, THREE, YES, certificate, privatised, text_of
from tests.unit.report.test_page import words

FILES = {"labels.csv", "certificate.json", "certificate.txt", "page.html", "SHA256SUMS", "SHA256SUMS.sig"}

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
    (code,) = re.findall(r'<pre tabindex="0"><code>(.*?)</code></pre>', page, re.DOTALL)
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
    assert "nobody who had 50 %, thanks to the features or otherwise, with more than 73.11 %" in page.replace(
        "\u00a0", " "
    )
    assert "right at most" not in page


# Size


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_million_labels_take_seconds(form: str) -> None:
    rng = np.random.default_rng(0)
    many = pd.DataFrame({f"x{i}": rng.normal(size=1_000_000).round(4) for i in range(8)})
    many["y"] = rng.integers(0, 10, len(many))
    getattr(many, f"to_{form}")(f"many.{form}", index=False)
    started = time.process_time()
    options = ["--column", "y", "--epsilon", "1", "--classes", "0,1,2,3,4,5,6,7,8,9", "--mechanism", "krr", "-q"]
    assert privatised(*options, data=f"many.{form}") == 0
    assert time.process_time() - started < 30
