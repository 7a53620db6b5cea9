"""`leakcap audit --plant` and `--canaries`: from a file of labels to a verdict on a model."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from tests.unit.cli.running import leakcap

CLASSES = ["ash", "birch", "cedar"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels with canaries in them, the scores of a model that learnt them by heart, and a certificate."""
    place = tmp_path_factory.mktemp("canaries")
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"size": np.round(rng.normal(size=200), 3), "tree": rng.choice(CLASSES, 200)})
    data.to_csv(place / "trees.csv", index=False)
    plant = ["--plant", "150", "--column", "tree", "--classes", ",".join(CLASSES)]
    assert leakcap("audit", str(place / "trees.csv"), *plant, "--out", str(place / "out"), "-q") == 0
    planted = pd.read_csv(place / "out" / "custodian" / "planted.csv")
    by_heart = pd.DataFrame({name: (planted["tree"] == name).astype(float) for name in reversed(CLASSES)})
    by_heart.to_csv(place / "scores.csv", index=False)
    pd.DataFrame(np.ones((200, 3)), columns=CLASSES).to_csv(place / "even.csv", index=False)
    text = lc.labels.KRR(epsilon=1.0, classes=CLASSES).certificate(labels=200).to_json()
    (place / "certificate.json").write_text(text)
    return place


def judged(place: Path, scores: str, *options: str) -> int:
    key = str(place / "out" / "custodian" / "canaries.json")
    return leakcap("audit", "--canaries", key, "--predictions", str(place / scores), *options)


def test_planting_changes_the_labels_alone_and_is_the_custodians(place: Path) -> None:
    before, after = pd.read_csv(place / "trees.csv"), pd.read_csv(place / "out" / "custodian" / "planted.csv")
    assert (before["tree"] != after["tree"]).sum() == 150 and before["size"].equals(after["size"])
    for path in (place / "out" / "custodian").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not (place / "out" / "public").exists()


def test_a_model_that_learnt_by_heart_is_refuted(place: Path, tmp_path: Path, capsys: Any) -> None:
    certificate = ("--certificate", str(place / "certificate.json"))
    assert judged(place, "scores.csv", *certificate, "--out", str(tmp_path / "report.html")) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "REFUTED" in said and "at most 1 is allowed" in said and "heuristic" not in said
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600
    assert judged(place, "even.csv", *certificate) == 0
    assert "Not refuted" in capsys.readouterr().out


def test_programs_get_the_figures(place: Path, capsys: Any) -> None:
    assert judged(place, "scores.csv", "--json") == 0  # nothing was promised
    held = json.loads(capsys.readouterr().out)
    assert held["verdict"] == "no promise" and held["epsilon_lower"] > 3 and held["target"] == "labels"


def test_predicted_classes_will_do(place: Path, tmp_path: Path, capsys: Any) -> None:
    planted = pd.read_csv(place / "out" / "custodian" / "planted.csv")
    planted[["tree"]].to_csv(place / "named.csv", index=False)
    certificate = ("--certificate", str(place / "certificate.json"))
    for file, *column in (("named.csv",), ("out/custodian/planted.csv", "--column", "tree")):
        assert judged(place, file, *certificate, *column) == 1
        assert "REFUTED" in capsys.readouterr().out
    planted["tree"].replace("ash", "yew").to_csv(place / "strange.csv", index=False)
    assert judged(place, "strange.csv") == 2
    assert "yew" not in capsys.readouterr().err


def test_several_models_share_the_errors(place: Path, capsys: Any) -> None:
    lower = []
    for looks in ("1", "20"):
        assert judged(place, "scores.csv", "--json", "--looks", looks) == 0
        lower.append(json.loads(capsys.readouterr().out)["epsilon_lower"])
    assert lower[1] < lower[0]
    assert judged(place, "scores.csv", "--looks", "0") == 2


def test_scores_that_are_missing_are_asked_for(place: Path, capsys: Any) -> None:
    scores = pd.read_csv(place / "even.csv")
    scores.iloc[3, 1] = np.nan
    scores.to_csv(place / "holes.csv", index=False)
    assert judged(place, "holes.csv") == 2
    assert "birch are missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "name the folder of a release"),
        (("--plant", "5"), "to plant, name the file"),
        (("{place}/trees.csv", "--plant", "5", "--column", "tree", "--classes", "ash,birch", "--out", "{place}/new"),
         "not among --classes"),
        (("{place}/trees.csv", "--plant", "500", "--column", "tree", "--classes", "ash,birch,cedar",
          "--out", "{place}/new"), "the file has 200 labels, fewer than --plant 500"),
        (("{place}/trees.csv", "--plant", "0", "--column", "tree", "--classes", "ash,birch,cedar",
          "--out", "{place}/new"), "plant must be at least 1"),
        (("{place}/trees.csv", "--plant", "5", "--column", "tree", "--classes", "ash,birch,cedar",
          "--out", "{place}/out"), "exists already"),
        (("--canaries", "{place}/none.json"), "give --canaries KEY --predictions FILE"),
        (("--canaries", "{place}/none.json", "--predictions", "{place}/scores.csv"), "no key of canaries"),
        (("{place}/out", "--canaries", "{place}/none.json", "--predictions", "{place}/scores.csv"), "to judge a model"),
        (("--certificate", "{place}/certificate.json"), "give --canaries KEY --predictions FILE"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(place: Path, options: tuple[str, ...], words: str, capsys: Any) -> None:
    assert leakcap("audit", *(option.format(place=place) for option in options)) == 2
    assert words in capsys.readouterr().err


def test_predictions_need_a_column_for_every_class(place: Path, capsys: Any) -> None:
    assert judged(place, "trees.csv") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "named ash, birch, cedar; or one column of predicted classes" in said
    assert judged(place, "scores.csv", "--certificate", str(place / "trees.csv")) == 2
    assert judged(place, "scores.csv", "--certificate", str(place / "none.json")) == 2
