"""Under a pool cap the published folder tells nothing but the noisy sums: not how many people there are either."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.noise import released_vector
from leakcap.planning.released import forget_released
from tests.unit.cli.running import leakcap

POOL = importlib.import_module("leakcap.modes.pool")
PEOPLE = 1237
RNG = np.random.default_rng(2)
VISITS = pd.DataFrame(
    {
        "who": [f"p{number}" for number in range(PEOPLE)],
        "cost": RNG.normal(50, 10, PEOPLE).round(2),
        "ward": ["alone", *np.resize(list("AB"), PEOPLE - 1)],
        "sick": np.resize([True, False, False], PEOPLE),
    }
)
VISITS.loc[0, "cost"] = 1e7  # the person: an outlier, alone in a ward
QUESTIONS = {
    "mean": ["--fn", "mean", "--columns", "cost", "--bounds", "0,100"],
    "sum": ["--fn", "sum", "--columns", "cost", "--bounds", "0,100"],
    "count": ["--fn", "count"],
    "by group": ["--fn", "mean", "--columns", "cost", "--by", "ward=A,B,alone", "--bounds", "0,100"],
    "share": ["--fn", "share", "--columns", "sick", "--by", "ward=A,alone"],
    "histogram": ["--fn", "histogram", "--columns", "ward", "--levels", "ward=A,B,alone"],
    "people": ["--fn", "mean", "--columns", "cost", "--bounds", "0,100", "--unit", "who", "--rows-per-unit", "2"],
}


@pytest.fixture
def held(monkeypatch: Any) -> None:
    """Noisy sums that are the same whatever was added up."""

    def to_the_point(noise: Any, coordinates: Any, step: float, _: Any, *, whole: Any) -> Any:
        point = 30.0 + 3 * np.arange(noise.space.rank)
        source = SimpleNamespace(normals=lambda size: point)
        return released_vector(noise, 0 * coordinates, step, source, whole=0 * whole)  # type: ignore[arg-type]

    monkeypatch.setattr(POOL, "released_vector", to_the_point)


def published(rows: pd.DataFrame, options: list[str], place: Path, monkeypatch: Any) -> dict[str, bytes]:
    place.mkdir()
    monkeypatch.chdir(place)
    rows.to_csv("visits.csv", index=False)
    forget_released()
    assert leakcap("release", "visits.csv", *options, "--cap", "pool=0.55", "--out", "out", "--quiet") == 0
    return {path.name: path.read_bytes() for path in sorted(Path("out/public").iterdir())}


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("name", QUESTIONS)
def test_public_files_are_the_same_without_the_person(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    first = published(VISITS, QUESTIONS[name], tmp_path / "with", monkeypatch)
    assert first == published(VISITS[1:], QUESTIONS[name], tmp_path / "without", monkeypatch)
    assert {"answer.csv", "answer.json", "certificate.html", "certificate.json"} <= set(first)


def numbers_of_people(files: dict[str, bytes]) -> list[str]:
    """Files in which the number of people stands, as people or programs write it."""
    return [name for name, content in files.items() if re.search(rb"(?<![\d.])1,?237(?![\d.])", content)]


def test_public_files_hold_no_number_of_people(tmp_path: Path, monkeypatch: Any) -> None:
    files = published(VISITS, QUESTIONS["by group"], tmp_path / "pool", monkeypatch)
    assert numbers_of_people(files) == []


def test_a_planted_number_of_people_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    made = POOL.certificate
    monkeypatch.setattr(POOL, "certificate", lambda *given, **figures: made(*given, **figures | {"bounds": PEOPLE}))
    files = published(VISITS, QUESTIONS["by group"], tmp_path / "pool", monkeypatch)
    assert "certificate.json" in numbers_of_people(files)
