"""`leakcap release` and the ledger: a second release is refused with the way on, and the ways on work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.cli import session
from tests.unit.cli.running import leakcap

SMALL = ("--cap", "membership=0.6", "--quiet")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(18, 90, 800), "cost": rng.gamma(2, 50, 800).round(2), "ward": rng.choice(["A", "B"], 800)}
    )
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    return tmp_path


def answer(folder: str) -> Any:
    return json.loads((Path(folder) / "public" / "answer.json").read_text())


@pytest.mark.parametrize("second", [("mean", "age"), ("mean", "cost"), ("sum", "age")])
def test_a_second_release_of_a_file_is_refused_wherever_it_lies(
    people: Path, second: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert leakcap("release", "people.csv", "--fn", "mean", "--columns", "age", *SMALL, "--out", "one") == 0
    (people / "elsewhere").mkdir()
    (people / "people.csv").rename(people / "elsewhere" / "renamed.csv")
    fn, column = second
    assert leakcap("release", "elsewhere/renamed.csv", "--fn", fn, "--columns", column, *SMALL, "--out", "two") == 4
    said = " ".join(capfd.readouterr().err.split())
    assert "--session" in said and "--alone" in said and not Path("two/public").exists()


def test_alone_releases_nevertheless_and_is_written_down(people: Path, capfd: pytest.CaptureFixture[str]) -> None:
    order = ("release", "people.csv", "--fn", "mean", "--columns", "age", *SMALL)
    assert leakcap(*order, "--out", "one") == 0
    assert leakcap(*order, "--out", "two", "--alone") == 0
    capfd.readouterr()
    assert leakcap("ledger", "show", "--json") == 0
    (account,) = json.loads(capfd.readouterr().out)["accounts"]
    assert leakcap("ledger", "export", account["name"]) == 0
    kinds = [row["kind"] for row in json.loads(capfd.readouterr().out)]
    assert kinds == ["opened", "release", "alone"]
    assert leakcap("ledger", "verify") == 0


def test_the_same_command_goes_on_in_its_own_folder(people: Path) -> None:
    order = ("release", "people.csv", "--fn", "mean", "--columns", "age", *SMALL, "--out", "one")
    assert leakcap(*order, "--preview") == 0
    assert leakcap(*order) == 0
    assert leakcap(*order) == 4  # finished


def test_rows_that_are_left_out_do_not_change_who_is_who(people: Path) -> None:
    table = pd.read_csv("people.csv")
    table.loc[::7, "cost"] = np.nan
    table.to_csv("people.csv", index=False)
    ask = ("release", "people.csv", "--cap", "membership=0.55", "--quiet", "--fn", "mean", "--columns")
    assert leakcap("release", "people.csv", "--session", *SMALL, "--fn", "count", "--out", "a") == 0
    assert leakcap(*ask, "cost", "--missing", "drop", "--out", "b") == 0  # in the same account: the same coins


def test_questions_of_a_session_share_one_cap(people: Path) -> None:
    ask = ("release", "people.csv", "--session", *SMALL)
    assert leakcap(*ask, "--fn", "count", "--by", "ward=A,B", "--where", "age > 40", "--out", "a") == 0
    assert (
        leakcap(*ask, "--fn", "mean", "--columns", "age,cost", "--bounds", "0,500", "--share", "0.4", "--out", "b") == 0
    )
    assert leakcap(*ask, "--fn", "quantile", "--columns", "age", "--q", "0.5", "--bounds", "0,128", "--out", "c") == 0
    assert leakcap(*ask, "--fn", "histogram", "--columns", "age", "--bins", "0:100:25", "--out", "d") == 0
    table = pd.read_csv("people.csv")
    assert abs(answer("a")["answer"][0] - ((table.age > 40) & (table.ward == "A")).sum()) < 300
    assert answer("b")["share"] == pytest.approx(0.4)
    cert = lc.SessionCertificate.from_json((people / "d" / "public" / "certificate.json").read_text())
    assert cert.answered == 4 and cert.membership_success == pytest.approx(0.6, abs=1e-6)
    assert sum(share for _, share in cert.questions) == pytest.approx(0.43)


def test_a_release_and_a_session_share_the_clock_where_they_can(
    people: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ask = ("release", "people.csv", "--session", *SMALL)
    assert leakcap(*ask, "--fn", "count", "--share", "0.9", "--out", "a") == 0
    assert leakcap("release", "people.csv", "--fn", "mean", "--columns", "age", *SMALL, "--out", "b") == 4
    assert "clock does not pay" in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fn", "share", "--session"), "--session answers"),
        (("--fn", "mean", "--session"), "--columns"),
        (("--fn", "mean", "--columns", "age", "--share", "0.1"), "add --session"),
        (("--fn", "mean", "--columns", "age", "--session", "--clip", "0,1"), "no meaning"),
        (("--fn", "histogram", "--columns", "age", "--session"), "--bins"),
        (("--fn", "count", "--by", "ward", "--session"), "declare them"),
        (("--fn", "count", "--session", "--where", "height > 3"), "no column 'height'"),
    ],
)
def test_what_cannot_be_asked_says_what_can(
    people: Path, words: tuple[str, ...], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leakcap("release", "people.csv", *words, *SMALL, "--out", "x") == 2
    assert says in " ".join(capfd.readouterr().err.split())
    assert not Path("x/public").exists()


def test_ids_in_a_session_are_read_as_they_are_written(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One id that is no number changes nobody's name, and long ones are not rounded."""
    seen: list[list[str]] = []

    class Watched(lc.Session):
        def __init__(self, *given: Any, **how: Any) -> None:
            super().__init__(*given, **how)
            seen.append([str(name) for name in self._table.units.names])

    monkeypatch.setattr(session, "Session", Watched)
    for number, last in enumerate((str(2**62 + 1), "x")):
        ids = ["007", "7", "1.0", last] * 5
        name = f"ids-{number}.csv"
        pd.DataFrame({"who": ids, "age": np.arange(20) + number}).to_csv(name, index=False)
        order = ("release", name, "--session", "--fn", "count", "--unit", "who", "--rows-per-unit", "10")
        assert leakcap(*order, *SMALL, "--out", f"out-{number}") == 0
    assert [sorted(names) for names in seen] == [["1", str(2**62 + 1), "7"], ["1", "7", "x"]]
