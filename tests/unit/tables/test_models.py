"""Models of a file: the command releases what the shown Python releases, and refuses what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap import estimators
from leakcap.estimators.base import PrivateEstimator
from leakcap.tables.models import MODELS, ask_model
from tests.unit.cli.running import leakcap

KEEP = ["--unit", "who", "--columns", "a,b", "--workers", "1", "--quiet"]
BOUNDS = ["--bounds", "a=-4,4", "--bounds", "b=-4,4", "--rows-per-unit", "1"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: Any) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"who": np.arange(240), "a": rng.normal(size=240), "b": rng.normal(size=240)})
    made["kind"] = np.where(made["a"] + 0.3 * rng.normal(size=240) > 0, "high", "low")
    made["size"] = 3 * made["a"] - made["b"] + 0.1 * rng.normal(size=240)
    made.to_csv("people.csv", index=False)
    return made


def test_a_model_leaves_with_its_certificate_and_predicts(table: pd.DataFrame) -> None:
    asked = ["--fn", "LogisticRegression", "--target", "kind", "--cap", "membership=0.7", "--out", "made"]
    assert leakcap("release", "people.csv", *asked, *KEEP) == 0
    release = lc.load("made", trust=True)
    assert type(release.value).__module__.startswith("sklearn.")
    assert (release.value.predict(table[["a", "b"]].to_numpy()) == table["kind"]).mean() > 0.8
    by_hand = estimators.LogisticRegression(cap=lc.membership(0.7), options={"design": "bits"}, random_state=0)
    with pytest.warns(lc.errors.SimulationWarning):
        by_hand.fit(table[["a", "b"]], table["kind"], unit=table["who"])
    theirs = json.loads(release.certificate.to_json())
    ours = json.loads(by_hand.certificate_.to_json())
    same = ("mode", "caps", "units", "outputs", "pool_public")
    assert [theirs.get(name) for name in same] == [ours.get(name) for name in same]


@pytest.mark.parametrize(("kind", "target"), [("Ridge", "size"), ("GaussianNB", "kind")])
def test_under_a_pool_cap_everything_of_its_form_is_declared(kind: str, target: str, capsys: Any) -> None:
    asked = ["--fn", kind, "--target", target, "--cap", "pool=0.7", "--out", kind]
    more = ["--bounds", "size=-15,15"] if target == "size" else ["--setting", "classes=high, low"]
    assert leakcap("release", "people.csv", *asked, *KEEP, *BOUNDS) == 2
    said = capsys.readouterr().err
    assert "target_bounds" in said or "classes" in said
    assert leakcap("release", "people.csv", *asked, *KEEP, *BOUNDS, *more) == 0
    assert lc.load(kind, trust=True).certificate.mode == "pool"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fn", "KMeans", "--target", "kind"], "leave out --target"),
        (["--fn", "Ridge"], "--target names the column"),
        (["--fn", "mean", "--columns", "a", "--target", "kind"], "are for models"),
        (["--fn", "Ridge", "--target", "size", "--bins", "0,1"], "leave out --bins"),
        (["--fn", "Ridge", "--target", "size", "--setting", "cap=3"], "no --setting"),
        (["--fn", "GaussianNB", "--target", "kind", "--setting", "classes=high,"], "a comma between them"),
        (["--fn", "Ridge", "--target", "a", "--columns", "a,b"], "leave it out of --columns"),
        (["--fn", "Ridge", "--target", "size", "--columns", "a", "--bounds", "0,1"], "for a pool cap"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(words: list[str], said: str, capsys: Any) -> None:
    assert leakcap("release", "people.csv", *words, "--cap", "membership=0.7", "--out", "made") == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not Path("made/public").exists()


@pytest.mark.parametrize("kind", MODELS)
def test_the_list_of_models_says_which_promises_each_can_keep(kind: str) -> None:
    """Those that are said to be made of sums say how; the others inherit the refusal."""
    made, base = getattr(estimators, kind), PrivateEstimator
    known = MODELS[kind]
    own = {name: getattr(made, name) is not getattr(base, name) for name in ("_sums_of_half", "_sums_of_all")}
    assert (known.bits, known.pool) == (own["_sums_of_half"], own["_sums_of_all"])


def test_rows_that_were_left_out_are_said(table: pd.DataFrame) -> None:
    table.loc[3, "a"] = np.nan
    table.to_csv("gaps.csv", index=False)
    question = ask_model(Path("gaps.csv"), "Ridge", columns=["a,b"], target="size", missing="drop", unit="who")
    assert len(question.data) == 239 and any("left out" in line for line in question.public)
