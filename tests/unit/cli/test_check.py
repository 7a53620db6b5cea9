"""`leakcap check`: true certificates hold, and no figure of one can be changed unnoticed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.audit.recheck import findings
from leakcap.custody.vault import Vault
from leakcap.planning.entry import stored_plan
from leakcap.planning.plans import Plan
from leakcap.planning.released import forget_released
from tests.unit.cli.running import leakcap
from tests.unit.custody.rows import edit, never_written


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two releases of two tables: `one` and `two`."""
    place = tmp_path_factory.mktemp("check")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        for name in ("one", "two"):
            values = np.random.default_rng(len(name) + ord(name[0])).normal(40, 9, size=(24, 2))
            pd.DataFrame(values, columns=["a", "b"]).to_csv(place / f"{name}.csv", index=False)
            caps = ["--cap", "mi=0.3", "--cap", "membership=0.9"]
            options = ["--fn", "mean", "--columns", "a,b", *caps, "--worlds", "16", "--draws", "256", "-q"]
            forget_released()
            assert leakcap("release", str(place / f"{name}.csv"), *options, "--out", str(place / name)) == 0
        yield place


@pytest.fixture(scope="module")
def plan(place: Path) -> Plan:
    return stored_plan(place / "one" / "custodian" / "plan")


@pytest.fixture
def given(place: Path) -> dict[str, Any]:
    return json.loads((place / "one" / "public" / "certificate.json").read_text())


def check(certificate: Path, custodian: Path, *options: str) -> int:
    return leakcap("check", str(certificate), "--custodian", str(custodian), *options)


def test_a_true_certificate_holds_wherever_its_folder_is_named_from(place: Path, capsys: Any) -> None:
    certificate = place / "one" / "public" / "certificate.json"
    for custodian in (place / "one", place / "one" / "custodian", place / "one" / "custodian" / "plan"):
        assert check(certificate, custodian) == 0
        said = capsys.readouterr().out
        assert "The certificate holds." in said
        assert "NO" not in said


def test_json_and_quiet(place: Path, capfd: Any) -> None:
    certificate = place / "one" / "public" / "certificate.json"
    assert check(certificate, place / "one", "--json") == 0
    said = capfd.readouterr()
    facts = json.loads(said.out)
    assert facts["holds"] is facts["guarantee"] is True
    assert all(one["holds"] for one in facts["findings"])
    assert check(certificate, place / "one", "--quiet") == 0
    assert capfd.readouterr() == ("", "")


def changed(value: Any) -> Any:
    """Another figure that a forger might like, still a plausible one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * (1 - 1e-12) if value else 1e-12
    if isinstance(value, str):
        return f"{value}x" if "/" not in value else "1/3"
    if isinstance(value, list):
        return [changed(value[0]), *value[1:]] if value else ["something"]
    return value | {"certified": changed(value["certified"])}


def test_no_entry_of_a_certificate_can_be_changed_unnoticed(given: dict[str, Any], plan: Plan) -> None:
    """Each in turn, by as little as floats allow."""
    for name, value in given.items():
        forged = given | {name: changed(value)}
        if name == "kind":
            forged[name] = "closed_form"
        if name in ("secret_id", "data_id"):
            forged[name] = "0" * 32
        if name in ("leakage_curve", "hockey_sticks", "known_memberships", "draws"):
            assert value, name
            forged[name] = [[value[0][0], changed(value[0][1])], *value[1:]]
        certificate = lc.Certificate.from_json(json.dumps(forged))
        first, second, *_ = findings(certificate, plan)
        assert not second.holds, name
        if name != "leakcap_version":  # another version may have chosen other words; the stored release tells
            assert not first.holds, name
            assert name in first.words


NUMBERS = ["membership_success", "mutual_information", "name_a_member_success", "gamma_used", "worlds", "units"]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_changed_figure_ends_with_exit_code_1(
    name: str, given: dict[str, Any], place: Path, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "forged.json").write_text(json.dumps(given | {name: changed(given[name])}))
    assert check(tmp_path / "forged.json", place / "one") == 1
    said = capsys.readouterr().out
    assert name in " ".join(said.split())
    assert "does not hold" in said


def test_the_certificate_of_another_release_does_not_hold(place: Path, capsys: Any) -> None:
    assert check(place / "two" / "public" / "certificate.json", place / "one") == 1
    assert check(place / "one" / "public" / "certificate.json", place / "two") == 1
    assert "another certificate" in " ".join(capsys.readouterr().out.split())


def test_the_plan_folder_of_another_release_put_in_place_does_not_hold(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "one", tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "custodian" / "plan")
    shutil.copytree(place / "two" / "custodian" / "plan", tmp_path / "out" / "custodian" / "plan")
    assert check(tmp_path / "out" / "public" / "certificate.json", tmp_path / "out", "-q") == 1


def test_a_damaged_plan_is_an_error_not_a_verdict(place: Path, tmp_path: Path, capsys: Any) -> None:
    shutil.copytree(place / "one", tmp_path / "out")
    vault = Vault.existing(tmp_path / "out" / "custodian" / "plan")
    edit(vault, "UPDATE entries SET content = substr(content, 1, length(content) - 1)")
    assert check(tmp_path / "out" / "public" / "certificate.json", tmp_path / "out") == 2
    assert "damaged" in capsys.readouterr().err


def test_fresh_draws_alone_catch_a_membership_success_that_was_lowered(plan: Plan) -> None:
    """Even if plan and release both carried the forged certificate: the attacker is stronger than it says."""
    fresh = [one for one in findings(plan.certificate, plan) if "fresh releases" in one.words]
    assert [one.holds for one in fresh] == [True]
    forged = replace(plan.certificate, membership_success=0.51)
    caught = [one for one in findings(forged, plan) if "fresh releases" in one.words]
    assert [one.holds for one in caught] == [False]


def test_fresh_draws_alone_catch_noise_that_was_too_small(plan: Plan, monkeypatch: Any) -> None:
    """The planted twin: a release path with a tenth of the noise under the same certificate."""
    noise = plan.noise
    weaker = replace(plan.releaser, noise=replace(noise, deviations=noise.deviations / 10))
    monkeypatch.setattr(plan, "releaser", weaker)
    caught = {one.words[:14]: one.holds for one in findings(plan.certificate, plan)}
    assert caught["16,384 fresh r"] is False
    assert sum(not holds for holds in caught.values()) == 1, "nothing else sees it"


def test_a_risk_that_is_not_shared_out_as_proved_is_seen(plan: Plan) -> None:
    def verdict(**forged: float) -> list[bool]:
        certificate = replace(plan.certificate, **forged)
        return [one.holds for one in findings(certificate, plan) if "the risk is shared out" in one.words]

    assert verdict() == [True]
    assert verdict(gamma_again=plan.certificate.gamma_used / 2) == [False], "one stage: nobody was looked at again"
    assert verdict(gamma_used=plan.certificate.gamma_used * 2) == [False]


def test_a_cap_that_is_not_kept_is_seen(plan: Plan) -> None:
    figures = tuple(replace(one, limit=one.before) for one in plan.certificate.capped)
    found = [one for one in findings(replace(plan.certificate, capped=figures), plan) if "NOT kept" in one.words]
    assert len(found) == 2
    assert not any(one.holds for one in found)


def test_words_cannot_be_changed_behind_another_version(place: Path, tmp_path: Path, given: dict[str, Any]) -> None:
    """A plan that was not released yet: only its own certificate could tell."""
    shutil.copytree(place / "one", tmp_path / "out")
    never_written(Vault.existing(tmp_path / "out" / "custodian" / "plan"), "release")
    forged = given | {"leakcap_version": "9.9", "not_promised": ["Nothing at all is left open."]}
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert check(tmp_path / "forged.json", tmp_path / "out", "-q") == 1


@pytest.mark.parametrize(
    "meaning",
    [
        "cap [/bold] it",
        "cap\n\x1b[2J  yes The certificate holds.",
    ],
    ids=["markup", "escapes"],
)
def test_a_forged_certificate_does_not_speak_for_itself(
    meaning: str, given: dict[str, Any], place: Path, tmp_path: Path, capsys: Any
) -> None:
    figures = [one | {"meaning": meaning} for one in given["capped"]]
    (tmp_path / "forged.json").write_text(json.dumps(given | {"capped": figures}))
    assert check(tmp_path / "forged.json", place / "one") == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "The certificate holds." not in {line.strip() for line in said.replace("yes ", "").splitlines()}


UNREADABLE = {"no JSON": "{", "a list": "[]", "an empty object": "{}", "a number": "5", "nothing": ""}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_certificate_is_a_mistake(name: str, place: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "odd.json").write_text(UNREADABLE[name])
    assert check(tmp_path / "odd.json", place / "one") == 2
    assert "JSON" in capsys.readouterr().err


def test_a_file_or_folder_that_is_not_there_is_a_mistake(place: Path, tmp_path: Path, capsys: Any) -> None:
    assert check(tmp_path / "none.json", place / "one") == 2
    assert "certificate.json" in capsys.readouterr().err
    assert check(place / "one" / "public" / "certificate.json", tmp_path / "none") == 2
    assert "no checkpoint" in capsys.readouterr().err


def test_a_certificate_of_another_mode_can_be_checked(tmp_path: Path, capsys: Any) -> None:
    X = np.random.default_rng(0).normal(size=(24, 2))
    for mode, words in (("confidence", "The certificate holds."), ("empirical", "no guarantee")):
        forget_released()
        plan = lc.plan(
            np.mean, X, cap=lc.mutual_information(0.3), worlds=64, mode=mode, checkpoint=tmp_path / mode, draws=256
        )
        (tmp_path / f"{mode}.json").write_text(plan.release().certificate.to_json())
        assert check(tmp_path / f"{mode}.json", tmp_path / mode) == 0
        assert words in capsys.readouterr().out


SUMS = {
    "a coin for everybody": ["--fn", "mean", "--columns", "a,b", "--cap", "membership=0.8"],
    "covariances": ["--fn", "covariance", "--columns", "a,b", "--cap", "membership=0.8"],
    "everybody": ["--fn", "mean", "--columns", "a,b", "--cap", "pool=0.8", "--bounds", "0,100"],
}


@pytest.mark.parametrize("name", SUMS)
def test_the_certificate_of_a_sum_is_computed_again_without_the_data(name: str, place: Path, tmp_path: Path) -> None:
    forget_released()
    assert leakcap("release", str(place / "one.csv"), *SUMS[name], "--out", str(tmp_path / "out"), "-q") == 0
    public = tmp_path / "out" / "public" / "certificate.json"
    check = ["check", str(public), "--custodian", str(tmp_path / "out" / "custodian"), "-q"]
    assert leakcap(*check) == 0
    changed = json.loads(public.read_text())
    changed["membership_success"] -= 1e-6
    public.write_text(json.dumps(changed))
    assert leakcap(*check) == 1


def test_the_certificate_of_an_average_over_blocks_is_computed_again(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(40, 9, size=200)
    median = lc.blocks(np.median, blocks=10, bounds=(0, 100))
    made = lc.plan(median, values, cap=0.8, design="bits", checkpoint=tmp_path / "plan").release()
    again = stored_plan(tmp_path / "plan")
    assert all(claim.holds for claim in findings(made.certificate, again))
    with pytest.raises(lc.InputError, match="needs the data"):  # what is made of sums is not stored
        again.release()
