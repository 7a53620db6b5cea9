"""A distilled model by the command: with the votes held fixed, what is published and said is the same without a person.

What audits need is sealed beside it: no cell of anybody can be read there, and nothing of it is published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.cli import distil
from leakcap.estimators import distilled as settings
from leakcap.planning.released import forget_released
from leakcap.sessions import desk
from tests.leaks.test_sessions import Stopped
from tests.unit.cli.running import leakcap

MARK = "777123"
TEACHER = [
    "--fn",
    "Distilled",
    "--teacher",
    "sklearn.naive_bayes:GaussianNB",
    "--setting",
    "blocks=4",
    "--setting",
    "classes=down,up",
]
TABLE = ["--columns", "a,b", "--target", "kind", "--unit", "who", "--rows-per-unit", "1", "--public-rows"]


def people() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    found = pd.DataFrame(draw.normal(size=(120, 2)), columns=["a", "b"])
    found["kind"] = np.where(found["a"] > 0, "up", "down")
    found["who"] = [f"zq{number}" for number in range(120)]
    found.loc[0, ["a", "b"]] = float(MARK)
    return found


@pytest.fixture
def _votes_held_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "LOUDEST", 1e6)
    monkeypatch.setattr(desk, "datetime", Stopped)
    monkeypatch.setattr(desk, "with_noise", lambda total, grains, deviations, _: np.sin(np.arange(len(deviations))))


def published(rows: pd.DataFrame, public: Path, place: Path, monkeypatch: Any, capfd: Any) -> dict[str, bytes]:
    """The public folder, and what both streams said."""
    place.mkdir()
    monkeypatch.chdir(place)
    rows.to_csv("people.csv", index=False)
    forget_released()
    capfd.readouterr()
    ledger = ["--ledger", f"sqlite:///{place / 'ledger.db'}"]
    words = ["release", "people.csv", *TEACHER, *TABLE, str(public), "--cap", "pool=0.55", *ledger, "--out", "out"]
    code, said = leakcap(*words), capfd.readouterr()
    assert code == 0, said.err
    files = {path.name: path.read_bytes() for path in sorted(Path("out/public").iterdir())}
    return files | {"both streams": (said.out + said.err).encode()}


@pytest.fixture
def public(tmp_path: Path) -> Path:
    draw = np.random.default_rng(4)
    path = tmp_path / "public.csv"
    pd.DataFrame(draw.normal(size=(30, 2)), columns=["a", "b"]).to_csv(path, index=False)
    return path


def telling(public: Path, tmp_path: Path, monkeypatch: Any, capfd: Any) -> set[str]:
    """What is not the same with everybody, without the first person, and without the last."""
    everybody = people()
    runs = [
        published(rows, public, tmp_path / f"try{number}", monkeypatch, capfd)
        for number, rows in enumerate((everybody, everybody[1:], everybody[:-1]))
    ]
    return {name for name in set().union(*runs) if len({run.get(name) for run in runs}) > 1}


@pytest.mark.usefixtures("_votes_held_fixed")
def test_what_a_distilled_release_publishes_and_says_is_the_same_without_a_person(
    public: Path, tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    assert telling(public, tmp_path, monkeypatch, capfd) == set()
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "people.csv"]
    assert any("votes" in path.parts for path in files), "rows are kept for audits"
    assert not [path for path in files if MARK.encode() in path.read_bytes() or b"zq17" in path.read_bytes()]


@pytest.mark.usefixtures("_votes_held_fixed")
def test_a_planted_number_of_people_among_the_published_facts_is_caught(
    public: Path, tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    """The fault: rows that are kept for audits are counted for everybody to see."""
    kept, rows = distil.KeptVotes.of, list[int]()

    def counting(folder: Path, question: Any) -> Any:
        rows.append(len(question.features))
        return kept(folder, question)

    monkeypatch.setattr(distil.KeptVotes, "of", counting)
    dumps = distil.json_text.dumps
    monkeypatch.setattr(
        distil, "json_text", type("Told", (), {"dumps": staticmethod(lambda x, **how: dumps(x | {"rows": rows[-1]}))})
    )
    assert "answer.json" in telling(public, tmp_path, monkeypatch, capfd)
