"""`leakcap release` as its user meets it: what is written, what is said, exit codes, and going on after a stop."""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.cli.limits import limits
from leakcap.custody import folders, keys, signing
from leakcap.custody.vault import Vault
from leakcap.errors import CapError
from leakcap.planning.entry import stored_plan
from leakcap.planning.released import forget_released
from tests.unit.cli.running import leakcap
from tests.unit.custody.rows import row as stored_row

HERE = __name__
SMALL = ["--cap", "mi=0.3", "--worlds", "16", "--draws", "256", "--workers", "1"]
FILES = {
    "answer.csv",
    "answer.json",
    "certificate.html",
    "certificate.json",
    "release.json",
    "SHA256SUMS",
    "SHA256SUMS.sig",
}
CALLS: list[int] = []
FAIL: list[BaseException] = []  # raised by `own` at its fifth call


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    CALLS.clear()
    FAIL.clear()
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "who": [f"p{i // 2}" for i in range(40)],
            "age": rng.normal(40, 9, size=40).round(2),
            "hours": rng.normal(35, 5, size=40).round(2),
            "town": np.where(rng.random(40) < 0.5, "here", "there"),
        }
    )
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def own(table: Any) -> Any:
    CALLS.append(len(table))
    if FAIL and len(CALLS) == 5:
        raise FAIL.pop()
    return {"mean": table["age"].mean(), "parts": [table["hours"].min(), table["hours"].max()]}


def ridge(table: Any) -> Any:
    return Ridge().fit(table[["age"]].to_numpy(), table["hours"].to_numpy())


def text(table: Any) -> Any:
    return "a word"


def says(table: Any) -> Any:
    print("I am here")
    return table["age"].mean()


def released(*options: str, out: str = "out") -> int:
    return leakcap("release", "people.csv", *SMALL, *options, "--out", out)


def public(out: str = "out") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(out, "public").iterdir()}


def everything(out: str = "out") -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path(out).rglob("*")) if path.is_file()}


# What is written


KINDS: dict[str, tuple[list[str], list[str]]] = {
    "mean": (["--fn", "mean", "--columns", "age,hours"], ["age", "hours"]),
    "median": (["--fn", "median", "--columns", "age"], ["age"]),
    "quantile": (
        ["--fn", "quantile", "--columns", "age", "--q", "0.25", "--q", "0.75"],
        ["age, 25 %", "age, 75 %"],
    ),
    "histogram": (
        ["--fn", "histogram", "--columns", "age,town", "--bins", "0,40,50,120"],
        ["age, under 40", "age, 40 to 50", "age, 50 or more", "town = here", "town = there"],
    ),
    "covariance": (["--fn", "covariance", "--columns", "age,hours"], ["age, variance", "hours, variance"]),
    "own": (["--fn", f"{HERE}:own"], ["mean"]),
    "model": (["--fn", f"{HERE}:ridge", "--drop", "n_iter_"], ["coef"]),
    "people": (["--fn", "mean", "--columns", "age", "--unit", "who"], ["age"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_files_that_programs_and_people_can_read(kind: str, capsys: Any) -> None:
    options, names = KINDS[kind]
    assert released(*options) == 0, capsys.readouterr().err
    files = public()
    assert set(files) - {"README.txt", "model.pkl"} == FILES
    rows = json.loads(files["answer.json"])["answer"]
    table = list(csv.DictReader(files["answer.csv"].decode().splitlines()))
    assert [row["output"] for row in table] == [row["output"] for row in rows]
    assert [float(row["released"]) for row in table] == [row["released"] for row in rows]
    for row in rows:
        assert row["low_95"] < row["released"] < row["high_95"]
        assert row["low_95"] < row["high_95"]
    assert all(any(row["output"].startswith(name) for row in rows) for name in names)
    assert not any(mark in row["output"] for row in rows for mark in "'{}")
    certificate = lc.Certificate.from_json(files["certificate.json"].decode())
    assert certificate.kind == "exact"
    assert certificate.units == (20 if kind == "people" else 40)
    assert certificate.outputs == len(rows)
    assert files["certificate.html"].startswith(b"<!DOCTYPE html>")
    assert ("model.pkl" in files) == (kind == "model")
    if kind == "model":
        model = pickle.loads(files["model.pkl"])
        assert isinstance(model, Ridge)
        assert model.predict(np.ones((3, 1))).shape == (3,)
    kept = {path.name for path in Path("out/custodian").iterdir()}
    assert kept == {"README.txt", "report.html", "exposure.csv", "plan"}
    exposure = list(csv.DictReader(Path("out/custodian/exposure.csv").read_text().splitlines()))
    assert len(exposure) == certificate.units
    bounds = [float(row["success_at_most"]) for row in exposure]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] <= certificate.membership_success
    assert set(exposure[0]) == {"unit" if kind == "people" else "row", "success_at_most"}


def test_what_is_published_is_what_was_released(capsys: Any) -> None:
    assert released("--fn", "mean", "--columns", "age,hours") == 0
    plan = stored_plan("out/custodian/plan")
    again = plan.release()
    value, (low, high) = again.value, again.interval(0.95)
    rows = json.loads(public()["answer.json"])["answer"]
    width = (high - low) / 2
    assert np.allclose([row["released"] for row in rows], value, rtol=0, atol=width.max() / 1000)
    assert plan.certificate.to_json().encode() == public()["certificate.json"]
    assert "released" in capsys.readouterr().out


def test_options_reach_the_certificate() -> None:
    options = ["--fn", "mean", "--columns", "age", "--rate", "1/3", "--public", "the town's name"]
    code = leakcap(
        "release", "people.csv", *options, "--cap", "mi=0.3", "--worlds", "18", "--draws", "256", "--out", "o"
    )
    assert code == 0
    certificate = lc.Certificate.from_json(public("o")["certificate.json"].decode())
    assert (certificate.rate, certificate.worlds) == ("1/3", 18)
    assert "the town's name" in certificate.declared_public


@pytest.mark.parametrize("mode", ["confidence", "empirical"])
def test_other_modes_are_released_and_say_what_they_are(mode: str) -> None:
    options = ["--fn", "mean", "--columns", "age", "--mode", mode, "--confidence", "0.9"]
    assert leakcap("release", "people.csv", *options, "--cap", "mi=0.3", "--worlds", "64", "--out", "out", "-q") == 0
    assert lc.Certificate.from_json(public()["certificate.json"].decode()).kind == mode


# What is said


MEAN = ["--fn", "mean", "--columns", "age"]


@pytest.mark.parametrize("kind", ["mean", "histogram"])
def test_a_coin_for_everybody_is_a_design_of_its_own(kind: str, capsys: Any) -> None:
    options, names = KINDS[kind]
    code = leakcap("release", "people.csv", *options, "--cap", "membership=0.7", "--design", "bits", "--out", "out")
    assert code == 0, capsys.readouterr().err
    certificate = lc.Certificate.from_json(public()["certificate.json"].decode())
    assert certificate.whoever_is_known
    assert certificate.membership_success <= 0.7
    assert len(json.loads(public()["answer.json"])["answer"]) == len(names)


@pytest.mark.parametrize(("name", "words"), [("matched", "matched pairs"), ("central", "central halves")])
def test_worlds_chosen_by_the_pool_are_designs_of_their_own(name: str, words: str, capsys: Any) -> None:
    assert released(*MEAN, "--design", name) == 0, capsys.readouterr().err
    certificate = lc.Certificate.from_json(public()["certificate.json"].decode())
    assert certificate.design == words
    assert words in public()["certificate.html"].decode()


def test_a_design_that_does_not_fit_is_refused_and_writes_nothing(capsys: Any) -> None:
    for options, words in (
        (["--fn", "median", "--columns", "age"], "--grid 0:100:5"),
        (["--fn", "mean", "--columns", "age", "--worlds", "64"], "design='bits'"),
    ):
        order = ["release", "people.csv", *options, "--cap", "membership=0.7", "--design", "bits", "--out", "out"]
        assert leakcap(*order) == 2
        assert words in capsys.readouterr().err
        assert not Path("out", "public").exists()


def test_results_go_to_standard_output_and_remarks_to_standard_error(capsys: Any) -> None:
    assert released(*MEAN) == 0
    said = capsys.readouterr()
    for words in ("mean of age", "95 % interval", "guess whether a given person took part", "Cap kept", "out/public"):
        assert words in said.out
    assert "worlds" in said.err
    assert "Traceback" not in said.err


def test_quiet_says_nothing(capfd: Any) -> None:
    keys.own_key()  # whose first use is told, however quiet
    signing.own_signer()
    assert released(*MEAN, "--quiet", "--worlds", "32") == 0
    assert capfd.readouterr() == ("", "")


def test_json_is_one_object_and_nothing_else(capfd: Any) -> None:
    keys.own_key()
    signing.own_signer()
    assert released(*MEAN, "--json", "--worlds", "32") == 0
    said = capfd.readouterr()
    facts = json.loads(said.out)
    assert said.err == ""
    assert Path(facts["public"]).is_dir() and Path(facts["custodian"]).is_dir()
    assert facts["kind"] == "exact"
    assert facts["caps"][0]["certified"] <= facts["caps"][0]["limit"] == 0.3
    assert (facts["outputs"], facts["units"]) == (1, 40)


def test_json_is_one_object_even_if_the_function_prints(capfd: Any) -> None:
    assert released("--fn", f"{HERE}:says", "--json") == 0
    json.loads(capfd.readouterr().out)


# Again


def test_the_same_command_again_is_refused_and_changes_nothing(capsys: Any) -> None:
    assert released(*MEAN) == 0
    before = everything()
    capsys.readouterr()
    for options in (MEAN, [*MEAN, "--preview"], [*MEAN, "--forget"], ["--fn", "median", "--columns", "hours"]):
        assert released(*options) == 4
        said = capsys.readouterr()
        assert said.out == ""
        assert "finished release" in said.err
    assert everything() == before


def test_a_preview_releases_nothing_and_the_release_after_it_runs_no_world_again(capsys: Any) -> None:
    assert released("--fn", f"{HERE}:own", "--preview") == 0
    assert "Nothing was released" in capsys.readouterr().out
    assert not Path("out/public").exists()
    assert Vault.existing(Path("out/custodian/plan")).read("release") is None
    assert len(CALLS) == 17
    assert released("--fn", f"{HERE}:own", "--preview", "--json") == 0
    assert json.loads(capsys.readouterr().out)["preview"] is True
    assert released("--fn", f"{HERE}:own") == 0
    assert len(CALLS) == 17
    assert set(public()) >= FILES


def compared(*options: str, cap: str = "membership=0.8") -> int:
    question = ["people.csv", "--fn", "mean", "--columns", "age,hours", "--worlds", "16", "--draws", "256"]
    return leakcap("release", *question, "--cap", cap, "--out", "out", "--workers", "1", *options)


def test_a_comparison_prints_all_promises_and_releases_nothing(capsys: Any) -> None:
    assert compared("--compare", "--bounds", "0,100") == 0
    said = capsys.readouterr().out
    assert "Nothing was released" in said
    assert all(name in said for name in ("worlds *", "bits", "pool", "Laplace", "Gaussian", "zCDP"))
    assert not Path("out/public").exists()
    assert Vault.existing(Path("out/custodian/plan")).read("release") is None
    assert compared("--compare", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in facts["promises"]} == {"worlds", "bits"}
    assert set(facts["not_compared"]) == {"pool", "Laplace", "Gaussian", "zCDP"}
    assert compared("-q") == 0
    assert set(public()) >= FILES


def test_a_comparison_of_a_pool_cap_uses_its_bounds(capsys: Any) -> None:
    question = ["people.csv", "--fn", "mean", "--columns", "age", "--cap", "pool=0.8", "--bounds", "0,100"]
    assert leakcap("release", *question, "--out", "out", "--compare", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["own"] == "pool"
    assert {one["name"] for one in facts["promises"]} == {"worlds", "bits", "pool", "Laplace", "Gaussian", "zCDP"}


def test_a_preview_points_to_a_better_promise(capsys: Any) -> None:
    assert compared("--preview", "--json") == 0
    (hint,) = json.loads(capsys.readouterr().out)["hints"]
    assert hint.startswith('design="bits" would do better')
    assert compared("--preview") == 0
    assert "--compare shows all promises" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("few_worlds")
@pytest.mark.parametrize(
    ("more", "promised"),
    [
        ([], "even knowing everything about everybody else"),
        (["--worlds", "16"], "unless they know others who were in it"),
        (["--design", "worlds", "--draws", "256"], "unless they know others who were in it"),
    ],
)
def test_a_sum_gets_bits_unless_worlds_are_asked_for_and_the_promise_is_told(
    more: list[str], promised: str, capsys: Any
) -> None:
    question = ["people.csv", "--fn", "mean", "--columns", "age", "--cap", "membership=0.8", "--out", "out", *more]
    assert leakcap("release", *question) == 0
    assert promised in " ".join(capsys.readouterr().out.split())


def test_a_preview_of_other_caps_does_not_spoil_the_release_or_its_check() -> None:
    looser = ["release", "people.csv", *MEAN, "--worlds", "16", "--draws", "256", "--out", "out", "-q"]
    assert leakcap(*looser, "--cap", "mi=0.4", "--preview") == 0
    assert leakcap(*looser, "--cap", "mi=0.3") == 0
    assert leakcap("check", "out/public/certificate.json", "--custodian", "out/custodian", "-q") == 0
    assert lc.Certificate.from_json(public()["certificate.json"].decode()).capped[0].limit == 0.3


STOPS: dict[str, tuple[Callable[[], BaseException], int, str]] = {
    "a failure": (lambda: ValueError("row 17"), 3, "raised ValueError"),
    "the user": (KeyboardInterrupt, 130, "goes on from here"),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_run_that_stopped_goes_on_with_the_same_command(name: str, capsys: Any) -> None:
    make, code, words = STOPS[name]
    FAIL.append(make())
    assert released("--fn", f"{HERE}:own") == code
    said = capsys.readouterr()
    assert words in said.err
    assert "row 17" not in said.err
    assert not Path("out/public").exists()
    assert released("--fn", f"{HERE}:own") == 0
    assert set(public()) >= FILES
    assert stored_plan("out/custodian/plan").outputs.shape == (16, 3)


def test_a_release_that_could_not_be_published_is_published_later_and_is_the_same(monkeypatch: Any) -> None:
    def full(self: Any, files: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders.Folders, "publish", full)
        assert released(*MEAN) != 0
    stored = stored_row(Vault.existing(Path("out/custodian/plan")), "release")
    assert not Path("out/public").exists()
    forget_released()
    assert released(*MEAN) == 0
    assert stored_row(Vault.existing(Path("out/custodian/plan")), "release") == stored is not None


def test_leftovers_of_a_killed_run_are_swept(tmp_path: Path) -> None:
    (tmp_path / "out" / ".public.123.part").mkdir(parents=True)
    (tmp_path / "out" / ".public.123.part" / "answer.csv").write_text("half")
    assert released(*MEAN, "-q") == 0
    assert {path.name for path in Path("out").iterdir()} == {"public", "custodian"}


def test_forget_removes_the_plan_and_leaves_the_rest(capsys: Any) -> None:
    assert released(*MEAN, "--forget") == 0
    assert {path.name for path in Path("out/custodian").iterdir()} == {"README.txt", "report.html", "exposure.csv"}
    assert set(public()) >= FILES
    capsys.readouterr()
    assert leakcap("check", "out/public/certificate.json", "--custodian", "out/custodian") == 2
    assert "no checkpoint" in capsys.readouterr().err


# Exit codes


WRONG: dict[str, tuple[list[str], int, str]] = {
    "no such file": (["release", "nobody.csv", *MEAN, *SMALL, "--out", "out"], 2, "no file"),
    "no such column": (
        ["release", "people.csv", "--fn", "mean", "--columns", "agee", *SMALL, "--out", "out"],
        2,
        "age",
    ),
    "no such statistic": (["release", "people.csv", "--fn", "meen", *SMALL, "--out", "out"], 2, "did you mean mean"),
    "no such module": (["release", "people.csv", "--fn", "nowhere:fn", *SMALL, "--out", "out"], 2, "no module"),
    "no such cap": (["release", "people.csv", *MEAN, "--cap", "privacy=9", "--out", "out"], 2, "membership=SUCCESS"),
    "a cap below chance": (["release", "people.csv", *MEAN, "--cap", "membership=0.4", "--out", "out"], 2, "0.5"),
    "no cap": (["release", "people.csv", *MEAN, "--out", "out"], 2, "cap"),
    "no out": (["release", "people.csv", *MEAN, *SMALL], 2, "out"),
    "an odd rate": (["release", "people.csv", *MEAN, *SMALL, "--rate", "2/5", "--out", "out"], 2, "1/k"),
    "a rate of nothing": (["release", "people.csv", *MEAN, *SMALL, "--rate", "1/0", "--out", "out"], 2, "--rate"),
    "odd clip": (["release", "people.csv", *MEAN, *SMALL, "--clip", "5", "--out", "out"], 2, "--clip"),
    "odd mode": (["release", "people.csv", *MEAN, *SMALL, "--mode", "fast", "--out", "out"], 2, "exact"),
    "few draws": (["release", "people.csv", *MEAN, *SMALL, "--draws", "5", "--out", "out"], 2, "256"),
    "workers below zero": (["release", "people.csv", *MEAN, *SMALL, "--workers", "-1", "--out", "out"], 2, "workers"),
    "an answer in words": (["release", "people.csv", "--fn", f"{HERE}:text", *SMALL, "--out", "out"], 3, "str"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_in_words_with_their_exit_code(name: str, capsys: Any) -> None:
    arguments, code, words = WRONG[name]
    assert leakcap(*arguments) == code
    said = capsys.readouterr()
    assert words in said.err
    assert "Traceback" not in said.err
    assert not Path("out/public").exists()


def test_no_workers_is_a_mistake() -> None:
    assert leakcap("release", "people.csv", *MEAN, *SMALL, "--workers", "0", "--out", "out", "-q") == 2


def test_out_that_is_a_file_is_a_mistake(capsys: Any) -> None:
    Path("out").write_text("taken")
    assert released(*MEAN) == 2
    assert "--out" in capsys.readouterr().err


def test_a_defect_has_an_exit_code_of_its_own(capsys: Any, monkeypatch: Any) -> None:
    def defect(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret text")

    monkeypatch.setattr("leakcap.tables.questions.plan", defect)
    assert released(*MEAN) == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "secret text" not in said


# The command itself


def test_every_command_explains_itself(capsys: Any) -> None:
    for command in ([], ["release"], ["check"], ["explain"], ["demo"]):
        assert leakcap(*command, "--help") == 0
        said = capsys.readouterr().out
        assert "Usage" in said
        assert len(said) > 200


def command_line(*arguments: str, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "leakcap", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def test_it_runs_as_a_module_with_a_function_of_the_current_folder() -> None:
    Path("analysis.py").write_text("def fn(table):\n    return table['age'].mean()\n")
    done = command_line("release", "people.csv", "--fn", "analysis:fn", *SMALL, "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outputs"] == 1


@pytest.mark.slow
def test_shells_can_complete_it() -> None:
    done = command_line(_LEAKCAP_COMPLETE="complete_bash", COMP_WORDS="leakcap ", COMP_CWORD="1")
    assert {"release", "check", "explain", "demo"} <= set(done.stdout.split())
    shown = command_line("--show-completion", "bash")
    assert shown.returncode == 0
    assert "leakcap" in shown.stdout


def test_a_bare_number_caps_membership_as_in_python() -> None:
    assert limits(["0.55", "tpr=0.01:0.05"]) == [lc.membership(0.55), lc.true_positive_rate(0.01, 0.05)]
    for word in ("x", "", "membership", "=3", "0.55:1"):
        with pytest.raises(CapError, match="--cap"):
            limits([word])
