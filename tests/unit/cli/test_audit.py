"""`leakcap audit`: a true release is not refuted, a faulty one ends with exit code 1, and what it writes is kept."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.custody.checkpoint import Checkpoint
from leakcap.noise import released_vector
from leakcap.planning.released import forget_released
from tests.unit.cli.running import leakcap

finite = importlib.import_module("leakcap.modes.exact")  # the package has a function of this name

TRIALS = "300"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 24 people in 16 worlds, in the folder `one`."""
    place = tmp_path_factory.mktemp("audit")
    values = np.random.default_rng(7).normal(40, 9, size=(24, 2))
    pd.DataFrame(values, columns=["a", "b"]).to_csv(place / "one.csv", index=False)
    options = ["--fn", "mean", "--columns", "a,b", "--cap", "membership=0.7", "--worlds", "16", "--draws", "256"]
    forget_released()
    assert leakcap("release", str(place / "one.csv"), *options, "-q", "--out", str(place / "one")) == 0
    return place


def audit(custodian: Path, *options: str, trials: str = TRIALS) -> int:
    return leakcap("audit", str(custodian), "--trials", trials, *options)


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a hundredth of the certified noise."""

    def wrong(noise: Any, coordinates: Any, step: float, randomness: Any) -> Any:
        return released_vector(replace(noise, deviations=noise.deviations / 100), coordinates, step, randomness)

    monkeypatch.setattr(finite, "released_vector", wrong)


def test_a_true_release_is_not_refuted_wherever_its_folder_is_named_from(place: Path, capsys: Any) -> None:
    for custodian in (place / "one", place / "one" / "custodian", place / "one" / "custodian" / "plan"):
        assert audit(custodian) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "Nothing refuted in 300 releases" in said
        assert "REFUTED" not in said


def test_json_parses_and_quiet_is_quiet(place: Path, capfd: Any) -> None:
    assert audit(place / "one", "--json") == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["verdict"] in ("holds", "inconclusive")
    assert facts["trials"] == 300
    assert facts["certificate"]["units"] == 24
    named = {one["attack"].partition(",")[0] for one in facts["findings"]}
    assert {"bayes", "learned", "world", "predictable"} <= named
    assert audit(place / "one", "--quiet") == 0
    assert capfd.readouterr() == ("", "")


def test_a_faulty_release_ends_with_exit_code_1(place: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    without_noise(monkeypatch)
    assert audit(place / "one") == 1
    said = " ".join(capfd.readouterr().out.split())
    assert "REFUTED" in said and "Do not publish" in said
    assert audit(place / "one", "--json") == 1
    facts = json.loads(capfd.readouterr().out)
    assert facts["verdict"] == "refuted"
    assert min(one["p_value"] for one in facts["findings"]) < 1e-6


def test_it_attacks_the_noise_that_was_stored_and_searches_none(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a release is made with, right or wrong: somebody made it smaller after it was certified."""

    def searched(*_: Any, **__: Any) -> Any:
        raise AssertionError("the noise is in the checkpoint")

    monkeypatch.setattr(finite, "calibrate", searched)
    assert audit(place / "one", "-q") == 0
    copy = tmp_path / "one"
    shutil.copytree(place / "one", copy)
    stored = Checkpoint.stored(copy / "custodian" / "plan")
    mark, noise = stored.kept("noise-0")
    stored.keep("noise-0", (mark, replace(noise, deviations=noise.deviations / 100)))
    assert audit(copy, "-q") == 1


def test_a_page_or_figures_are_written_for_the_custodian_alone(place: Path, tmp_path: Path, capsys: Any) -> None:
    for name, start in (("audit.html", "<!DOCTYPE html>"), ("audit.htm", "<!DOCTYPE html>"), ("audit.json", "{")):
        out = tmp_path / name
        assert audit(place / "one", "--out", str(out)) == 0
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        assert out.read_text(encoding="utf-8").startswith(start)
        assert name in " ".join(capsys.readouterr().err.split()).replace(" ", "")
    assert "CUSTODIAN ONLY" in (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "audit.json").read_text())["trials"] == 300


def test_a_faulty_release_has_its_page_all_the_same(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    assert audit(place / "one", "--out", str(tmp_path / "audit.html"), "-q") == 1
    assert "Refuted: this release tells more" in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_no_file_is_overwritten_and_nothing_is_attacked_in_vain(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "audit.html"
    out.write_text("mine")
    monkeypatch.setattr("leakcap.cli.audit.attack", lambda *_, **__: pytest.fail("attacked before it was refused"))
    assert audit(place / "one", "--out", str(out)) == 2
    assert out.read_text() == "mine"
    assert "exists already" in " ".join(capsys.readouterr().err.split())


def test_mistakes_are_told_and_quote_no_data(place: Path, tmp_path: Path, capsys: Any) -> None:
    assert audit(tmp_path / "none") == 2
    assert "no checkpoint" in capsys.readouterr().err
    assert audit(place / "one", trials="7") == 2
    said = capsys.readouterr().err
    assert "trials" in said and "200" in said


def test_the_page_holds_no_value_of_the_table(place: Path, tmp_path: Path) -> None:
    assert audit(place / "one", "--out", str(tmp_path / "audit.html"), "-q") == 0
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    table = pd.read_csv(place / "one.csv")
    for value in table.to_numpy().ravel():
        assert f"{value:.3f}" not in page


def test_a_release_of_a_sum_is_audited_from_its_folder(tmp_path: Path, capsys: Any) -> None:
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(40, 9, size=30)})
    table.to_csv(tmp_path / "one.csv", index=False)
    options = ["--fn", "mean", "--columns", "a", "--cap", "membership=0.8", "--out", str(tmp_path / "out"), "-q"]
    assert leakcap("release", str(tmp_path / "one.csv"), *options) == 0
    assert audit(tmp_path / "out") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Nothing refuted" in said
    reached = re.search(r"deviations that the noise reaches ([\d.]+%?)", said)
    assert reached
    assert 2 < float(reached[1]) < 7, "deviations are no share"
