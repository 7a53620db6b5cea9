"""The command line on real data, as the guides tell it; skipped where LEAKCAP_DATA names no folder with them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import leakcap as lc
from leakcap.cli import main
from leakcap.datasets import data_path

QUICK = ["--worlds", "64", "--draws", "2048", "--cap", "membership=0.6", "--quiet"]


def file(name: str) -> str:
    try:
        return str(data_path(name))
    except lc.InputError:
        pytest.skip(f"no {name} in LEAKCAP_DATA")


def released(out: Path, *arguments: str) -> dict[str, float]:
    """What a command has published; the certificate must hold."""
    run(["release", *arguments, "--out", str(out), *QUICK])
    run(["check", str(out / "public" / "certificate.json"), "--custodian", str(out / "custodian"), "--quiet"])
    with (out / "public" / "answer.csv").open(encoding="utf-8") as rows:
        return {row["output"]: float(row["released"]) for row in csv.DictReader(rows)}


def run(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code in (0, None)


def test_heart_disease_by_sex(tmp_path: Path) -> None:
    path = file("heart_disease_cleveland.csv.gz")
    options = ["--fn", "mean", "--columns", "age,chol,ca", "--strata", "sex", "--missing", "drop"]
    found = released(tmp_path / "out", path, *options)
    assert 45 < found["age"] < 64
    assert 200 < found["chol"] < 300
    certificate = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text())
    assert certificate["units"] == 299
    assert "stratified" in certificate["design"]


@pytest.mark.slow
def test_hospital_stays_with_patients_as_units(tmp_path: Path) -> None:
    path = file("diabetes130.parquet")
    options = ["--fn", "mean", "--columns", "time_in_hospital,num_medications", "--unit", "patient_nbr"]
    found = released(tmp_path / "out", path, *options)
    assert 4 < found["time_in_hospital"] < 5
    with (tmp_path / "out" / "custodian" / "exposure.csv").open() as rows:
        assert sum(1 for _ in rows) == 71_518 + 1


@pytest.mark.slow
def test_shares_of_education_in_the_census(tmp_path: Path) -> None:
    found = released(tmp_path / "out", file("adult.csv.gz"), "--fn", "histogram", "--columns", "education")
    assert sum(found.values()) == pytest.approx(1, abs=0.02)
    assert 0.28 < found["education = HS-grad"] < 0.37
