"""`leakcap labels --method statistics` and `--method pate`: a model leaves, and no label does."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.labels.learning.votes import NoisedVotes
from leakcap.labels.statistics.sums import SumsMechanism
from tests.unit.cli.labels.commands import certificate, privatised, text_of

ROWS = 300
SUMS = ["--column", "kind", "--epsilon", "4", "--classes", "a,b,c", "--method", "statistics"]
VOTES = ["--column", "kind", "--epsilon", "9", "--classes", "a,b,c", "--method", "pate", "--teachers", "60"]
SIGNED = {"certificate.json", "certificate.txt", "page.html", "SHA256SUMS", "SHA256SUMS.sig"}


@pytest.fixture(autouse=True)
def clusters(table: pd.DataFrame) -> pd.DataFrame:
    """Three clusters that numbers and a word tell apart."""
    rng = np.random.default_rng(5)
    kinds = rng.integers(0, 3, ROWS)
    centres = np.array([[0.0, 9.0], [9.0, 0.0], [-9.0, -9.0]])
    found = pd.DataFrame(rng.normal(size=(ROWS, 2)) + centres[kinds], columns=["width", "height"]).round(3)
    found.insert(1, "kind", np.array(["a", "b", "c"])[kinds])
    found["site"] = np.array(["north, east", " south ", ""])[(kinds + (rng.random(ROWS) < 0.2)) % 3]
    found.to_csv("clusters.csv", index=False)
    return found


def learnt(*options: str, data: str = "clusters.csv", out: str = "out") -> int:
    return privatised(*options, data=data, out=out)


def code_of(page: str) -> str:
    (code,) = re.findall(r'<pre tabindex="0"><code>(.*?)</code></pre>', page, re.DOTALL)
    return html.unescape(code)


def share_right(clusters: pd.DataFrame) -> float:
    return float((text_of("out/public/predictions.csv")["predicted"] == clusters["kind"]).mean())


@pytest.mark.parametrize("model", ["ridge", "logistic", "lda", "bayes"])
def test_a_model_of_noised_sums_leaves_and_its_page_reads_it(
    model: str, clusters: pd.DataFrame, monkeypatch: Any, capsys: Any
) -> None:
    assert learnt(*SUMS, "--model", model) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "300 labels by noised class sums" in said and "predictions.csv" in said
    assert f"A model of noised sums ({model}), learnt from 3 public columns." in said
    assert {path.name for path in Path("out/public").iterdir()} == {"model.json", "predictions.csv", *SIGNED}
    assert (certificate().epsilon, certificate().delta, certificate().classes) == (4.0, 1e-5, ("a", "b", "c"))
    predicted = text_of("out/public/predictions.csv")
    assert predicted["row"].tolist() == [str(row) for row in range(ROWS)]
    assert share_right(clusters) > 0.9  # at random it is a third
    page = Path("out/public/page.html").read_text()
    assert "Only the noised sums leave" in page and "in their old order" not in page
    clusters.drop(columns="kind").to_csv("out/public/features.csv", index=False)
    monkeypatch.chdir("out/public")
    read: dict[str, Any] = {}
    exec(code_of(page), read)
    assert read["predicted"].tolist() == predicted["predicted"].tolist()


def test_a_student_of_noised_votes_leaves_with_their_answers(
    clusters: pd.DataFrame, monkeypatch: Any, capsys: Any
) -> None:
    assert learnt(*VOTES) == 0, capsys.readouterr().err
    assert "A student of 60 teachers, who were asked about" in " ".join(capsys.readouterr().out.split())
    files = {"sums.json", "answers.csv", "predictions.csv", *SIGNED}
    assert {path.name for path in Path("out/public").iterdir()} == files
    answers = text_of("out/public/answers.csv")
    found = certificate()
    assert len(answers) == dict(found.settings)["answers"] and dict(found.settings)["teachers"] == 60
    assert (found.epsilon, found.leaves) == (9.0, "noised sums and answers")
    asked = clusters["kind"].to_numpy()[answers["row"].astype(int)]
    assert (answers["answer"] == asked).mean() > 0.8 and share_right(clusters) > 0.9
    clusters.drop(columns="kind").to_csv("out/public/features.csv", index=False)
    monkeypatch.chdir("out/public")
    read: dict[str, Any] = {}
    exec(code_of(Path("page.html").read_text()), read)
    assert (read["predicted"] == clusters["kind"]).mean() > 0.9


def test_parquet_columns_are_read_by_their_types(clusters: pd.DataFrame, monkeypatch: Any, capsys: Any) -> None:
    typed = clusters.assign(warm=clusters["width"] > 0, site=clusters["site"].astype("category"))
    typed.to_parquet("clusters.parquet")
    assert learnt(*SUMS, "-q", data="clusters.parquet") == 0, capsys.readouterr().err
    features = json.loads(Path("out/public/model.json").read_text())["features"]
    assert [one["column"] for one in features] == ["width", "height", "site", "site", "site", "warm"]
    typed.drop(columns="kind").to_parquet("out/public/features.parquet")
    predicted = text_of("out/public/predictions.csv")["predicted"]
    monkeypatch.chdir("out/public")
    read: dict[str, Any] = {}
    exec(code_of(Path("page.html").read_text()), read)
    assert read["predicted"].tolist() == predicted.tolist()


@pytest.mark.parametrize(
    ("epsilon", "options", "advised"),
    [
        ("2", ("--model", "ridge"), "--model logistic"),
        ("2", ("--model", "logistic"), ""),  # what is advised was taken
        ("0.1", ("--model", "lda"), "LDA(readout='auto'), in Python"),  # the command reads sums as discriminants
        ("9", (), "--method responses"),
    ],
)
def test_the_command_says_what_is_advised_where_something_else_was_taken(
    epsilon: str, options: tuple[str, ...], advised: str, capsys: Any
) -> None:
    assert learnt(*SUMS, "--epsilon", epsilon, "--features", "height,width", *options) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("lc.labels.advise names" in said) == bool(advised)
    assert not advised or f"lc.labels.advise names {advised}." in said


def test_an_epsilon_that_advice_does_not_know_is_refused_by_the_model_itself(capsys: Any) -> None:
    assert learnt(*SUMS, "--epsilon", "1e-7") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "labels say nothing" in said and "train without" not in said


def test_only_columns_that_are_named_are_learnt_from(capsys: Any) -> None:
    assert learnt(*SUMS, "--features", "height,width", "--delta", "1e-6", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["method"], facts["model"], facts["columns"]) == ("statistics", "ridge", ["height", "width"])
    assert facts["delta"] == 1e-6
    features = json.loads(Path("out/public/model.json").read_text())["features"]
    assert features == [{"column": "height", "value": None}, {"column": "width", "value": None}]


def test_all_methods_spend_in_one_folder_and_are_counted_together(capsys: Any) -> None:
    assert learnt(*SUMS, "-q") == 0
    assert learnt(*VOTES) == 4 and "--again" in capsys.readouterr().err
    assert learnt(*SUMS[:6], "--again", "-q") == learnt(*VOTES, "--again", "-q") == 0
    assert certificate("out/public-2").epsilon == 8.0
    last = certificate("out/public-3")
    assert (last.epsilon, last.delta, last.leaves) == (17.0, 2e-5, "noised sums and answers")
    assert "All 3 times" in Path("out/public-3/page.html").read_text()


def test_what_was_drawn_is_counted_also_where_no_student_came_of_it(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(NoisedVotes, "release", lambda self, votes: np.zeros(len(votes), dtype=np.int64))
    assert learnt(*VOTES) == 2
    assert "answered too little" in capsys.readouterr().err
    assert not Path("out/public").exists() and Path("out/custodian/labels/1.json").exists()
    assert learnt(*SUMS) == 4
    assert "epsilon 9 so far" in capsys.readouterr().err


def test_missing_labels_are_a_class_of_their_own_where_it_is_named(clusters: pd.DataFrame, capsys: Any) -> None:
    clusters.assign(kind=clusters["kind"].where(clusters.index % 3 > 0)).to_csv("holes.csv", index=False)
    assert learnt(*SUMS, data="holes.csv") == 2
    assert "--missing-as" in capsys.readouterr().err and not Path("out").exists()
    assert learnt(*SUMS, "--missing-as", "unknown", "-q", data="holes.csv") == 0
    assert certificate().classes == ("a", "b", "c", "unknown")
    assert json.loads(Path("out/public/model.json").read_text())["classes"] == ["a", "b", "c", "unknown"]


def test_a_first_row_in_place_of_names_is_not_shown(capsys: Any) -> None:
    lines = [f"{row}.5,{row % 7},{'ab'[row % 2]}" for row in range(40)]
    Path("nameless.csv").write_text("\n".join(["4.25,,a", *lines, "9.5,,a"]) + "\n")
    assert learnt("--column", "a", "--epsilon", "4", "--classes", "a,b", *SUMS[6:], data="nameless.csv") == 2
    assert "4.25" not in capsys.readouterr().err


# Mistakes


WRONG: dict[str, tuple[list[str], str]] = {
    "no such method": ([*SUMS[:6], "--method", "magic"], "responses"),
    "no such model": ([*SUMS, "--model", "forest"], "ridge"),
    "no classes": ([*SUMS[:4], *SUMS[6:]], "a class that occurs once"),
    "one class": ([*SUMS[:4], "--classes", "a", *SUMS[6:]], "at least two with --classes"),
    "a class left out": ([*SUMS[:4], "--classes", "a,b", *SUMS[6:]], "every class there may be"),
    "no such column": (["--column", "kin", *SUMS[2:]], "did you mean 'kind'"),
    "no such feature": ([*SUMS, "--features", "widht"], "did you mean 'width'"),
    "the labels as a feature": ([*SUMS, "--features", "kind"], "holds the labels"),
    "a mechanism for sums": ([*SUMS, "--mechanism", "krr"], "--mechanism is for --method responses"),
    "a prior for votes": ([*VOTES, "--prior", "0.2,0.3,0.5"], "--prior is for --method responses"),
    "a range for sums": ([*SUMS, "--low", "0"], "--low is for --method responses"),
    "a model for votes": ([*VOTES, "--model", "lda"], "--model is for --method statistics"),
    "a model for responses": ([*SUMS[:6], "--model", "lda"], "--model is for --method statistics"),
    "features for responses": ([*SUMS[:6], "--features", "width"], "--features is for --method statistics and pate"),
    "teachers for sums": ([*SUMS, "--teachers", "9"], "--teachers is for --method pate"),
    "more teachers than rows": ([*VOTES[:8], "--teachers", "301"], "fewer than teachers"),
    "one teacher": ([*VOTES[:8], "--teachers", "1"], "--teachers must"),
    "epsilon too small for votes": ([*VOTES[:3], "0.1", *VOTES[4:]], "take --method statistics"),
    "epsilon too small for sums": ([*SUMS[:3], "1e-9", *SUMS[4:]], "at least 1e-06"),
    "epsilon of nothing": ([*SUMS[:3], "0", *SUMS[4:]], "above 0"),
    "delta of one": ([*SUMS, "--delta", "1"], "delta"),
    "again, for the first time": ([*SUMS, "--again"], "--again"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_before_a_label_is_used(name: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(SumsMechanism, "release", lambda *given: pytest.fail("labels were summed"))
    options, told = WRONG[name]
    assert learnt(*options) == 2
    said = capsys.readouterr()
    assert told in said.err and "Traceback" not in said.err and "lc.labels" not in said.err
    assert said.out == "" and not Path("out").exists()


COLUMNS: dict[str, tuple[Any, str]] = {
    "text of many kinds": ([f"secret-{row}" for row in range(ROWS)], "of more than 64 kinds"),
    "a number is missing": ([1.5] * (ROWS - 1) + [None], "missing or infinite"),
    "a number is endless": ([1.5] * (ROWS - 1) + [float("inf")], "missing or infinite"),
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_that_cannot_be_learnt_from_are_named(
    name: str, form: str, clusters: pd.DataFrame, capsys: Any
) -> None:
    cells, told = COLUMNS[name]
    odd = clusters.assign(odd=cells)
    odd.to_csv("odd.csv", index=False) if form == "csv" else odd.to_parquet("odd.parquet")
    assert learnt(*SUMS, data=f"odd.{form}") == 2
    said = capsys.readouterr().err
    assert told in said and "'odd'" in said and "--features" in said and "secret-" not in said
    assert not Path("out").exists()
    assert learnt(*SUMS, "--features", "width,height,site", "-q", data=f"odd.{form}") == 0


def test_dates_and_labels_alone_are_refused(clusters: pd.DataFrame, capsys: Any) -> None:
    clusters.assign(day=pd.Timestamp("2026-01-01")).to_parquet("days.parquet")
    assert learnt(*SUMS, data="days.parquet") == 2
    assert "'day' is of type timestamp" in capsys.readouterr().err
    clusters[["kind"]].to_csv("alone.csv", index=False)
    assert learnt(*SUMS, data="alone.csv") == 2
    assert "nothing to learn from" in capsys.readouterr().err
