"""`leakcap ledger`: what it shows, verifies, exports, sets and forgets."""

from __future__ import annotations

import csv
import io
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.cli import main
from tests.unit.obfuscation.pools import FEW, pool


@pytest.fixture
def ledger(tmp_path: Path, own_key: Path) -> str:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    session(place).count(share=0.25)
    session(place, analyst="ann").sum("0", bounds=(0, 10), share=0.1)
    return place


def session(place: str, **how: Any) -> lc.Session:
    data = np.random.default_rng(0).integers(0, 10, size=(400, 1))
    return lc.Session(data, cap=0.6, ledger=place, name="people", **how)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(["ledger", *words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def facts(capsys: pytest.CaptureFixture[str], ledger: str) -> Any:
    (one,) = json.loads(run(capsys, "show", "--json", "--ledger", ledger)[1])["accounts"]
    return one


def test_show_says_what_was_answered_and_what_all_of_it_allows(capsys: pytest.CaptureFixture[str], ledger: str) -> None:
    code, out, _ = run(capsys, "show", "--ledger", ledger)
    words = " ".join(out.split())
    assert code == 0 and "people" in words and "2 answers so far" in words
    assert "All answers together allow at most 60 % right guesses whether a person takes part" in words
    assert facts(capsys, ledger)["together"]["success"] == pytest.approx(0.6, abs=1e-6)


def test_budgets_hold_and_are_written_down(capsys: pytest.CaptureFixture[str], ledger: str) -> None:
    code, out, _ = run(
        capsys,
        *("budget", "people", "--why", "new project", "--analyst", "ann=0.12", "--group", "research=eve,bob"),
        *("--cap", "membership=0.65", "--ledger", ledger),
    )
    assert code == 0 and "70.7" in out  # two groups of .65 together
    with pytest.raises(lc.BudgetError, match="your budget"):
        session(ledger, analyst="ann").count(share=0.05)
    session(ledger, analyst="eve").count(share=0.25)  # a clock of its own: not the custodian's answer
    assert [line.analyst for line in session(ledger, analyst="eve").history] == ["eve"]
    rows = json.loads(run(capsys, "export", "people", "--ledger", ledger)[1])
    assert [row["why"] for row in rows if row["kind"] == "budget"] == ["new project"]
    assert facts(capsys, ledger)["raised"] == [lc.membership(0.65).describe()]
    assert session(ledger).certificate.membership_success == pytest.approx(0.65, abs=2e-5)


def test_export_gives_the_same_rows_in_both_forms_to_its_owner_alone(
    capsys: pytest.CaptureFixture[str], ledger: str, tmp_path: Path
) -> None:
    rows = json.loads(run(capsys, "export", "people", "--ledger", ledger)[1])
    table = list(csv.DictReader(io.StringIO(run(capsys, "export", "people", "--format", "csv", "--ledger", ledger)[1])))
    assert [row["text"] for row in rows] == [row["text"] for row in table]
    assert [row["numbers"] for row in rows] == [json.loads(row["numbers"]) for row in table]
    target = tmp_path / "export.json"
    run(capsys, "export", "people", "--out", str(target), "--ledger", ledger)
    assert json.loads(target.read_text()) == rows and stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", [("people",), ()])
def test_the_page_is_its_owners_alone_and_says_what_all_answers_allow(
    capsys: pytest.CaptureFixture[str], ledger: str, tmp_path: Path, name: tuple[str, ...]
) -> None:
    target = tmp_path / "page.html"
    target.touch(mode=0o644)
    code, out, _ = run(capsys, "page", *name, "--out", str(target), "--ledger", ledger)
    assert code == 0 and "do not publish" in " ".join(out.split())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    page = target.read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "All answers together allow at most 60 % right guesses whether a person takes part." in page
    assert page.startswith("<!DOCTYPE html>") and "CUSTODIAN ONLY" in page


def test_verify_ends_with_1_where_an_entry_was_changed(
    capsys: pytest.CaptureFixture[str], ledger: str, tmp_path: Path
) -> None:
    import sqlite3

    assert run(capsys, "verify", "--ledger", ledger)[0] == 0
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE entries SET charge = charge - 1 WHERE charge > 0")
    database.close()
    code, out, _ = run(capsys, "verify", "--ledger", ledger)
    assert code == 1 and "changed by hand" in " ".join(out.split())


def test_forgetting_needs_a_yes_and_closes_the_account(capsys: pytest.CaptureFixture[str], ledger: str) -> None:
    code, _, err = run(capsys, "forget", "people", "--why", "asked to", "--ledger", ledger)
    assert code == 2 and "--yes" in err
    assert run(capsys, "forget", "people", "--why", "asked to", "--yes", "--ledger", ledger)[0] == 0
    with pytest.raises(lc.InputError, match="forgotten"):
        session(ledger)
    assert "closed" in run(capsys, "show", "--ledger", ledger)[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "nobody"), "no account"),
        (("page", "nobody", "--out", "page.html"), "no account"),
        (("export", "people", "--format", "xml"), "json or csv"),
        (("budget", "people", "--why", "x"), "name a budget"),
        (("budget", "people", "--why", "x", "--analyst", "ann"), "ann=0.2"),
        (("budget", "people", "--why", "x", "--group", "research"), "research=ann,bob"),
        (("budget", "people", "--why", "x", "--cap", "membership=0.55"), "never lowered"),
        (("budget", "people", "--why", "", "--analyst", "ann=1"), "who sets a budget and why"),
    ],
)
def test_what_cannot_be_done_says_what_can(
    capsys: pytest.CaptureFixture[str], ledger: str, words: tuple[str, ...], says: str
) -> None:
    code, _, err = run(capsys, *words, "--ledger", ledger)
    assert code == 2 and says in " ".join(err.split())


def test_words_of_others_are_no_formulas_in_a_table(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    session(ledger, analyst="=cmd|' /C calc'!A0").count(share=0.01)
    table = list(csv.DictReader(io.StringIO(run(capsys, "export", "people", "--format", "csv", "--ledger", ledger)[1])))
    assert table[-1]["who"] == "'=cmd|' /C calc'!A0"
    assert all(not row["text"].startswith("'") for row in table)


def test_an_encoded_pool_is_said_to_be_encoded_and_spent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, own_key: Path
) -> None:
    place, (X, y) = f"sqlite:///{tmp_path / 'encoded.db'}", pool()
    lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.1, ledger=place, name="trees").encode(X, y)
    code, out, _ = run(capsys, "show", "--ledger", place)
    words = " ".join(out.split())
    at = datetime.fromisoformat(facts(capsys, place)["encoded"])
    assert code == 0 and "trees" in words and "An encoded set for a server" in words
    assert f"were encoded on {at:%Y-%m-%d at %H:%M} UTC" in words and "neither be encoded nor released again" in words
    assert "0 %" not in words and "answers so far" not in words
    assert datetime.now(UTC) - at < timedelta(hours=1)
    assert run(capsys, "verify", "--ledger", place)[0] == 0
    with pytest.raises(lc.LeakcapError, match="nothing bounds two secrets"):
        lc.release(lc.stats.mean, X, cap=0.6, ledger=place, name="trees")
    page = tmp_path / "ledger.html"
    assert run(capsys, "page", "--out", str(page), "--ledger", place)[0] == 0
    assert "neither be encoded nor released again" in " ".join(page.read_text().split())


def test_an_account_that_was_not_encoded_is_not_said_to_be(capsys: pytest.CaptureFixture[str], ledger: str) -> None:
    assert "encoded" not in run(capsys, "show", "--ledger", ledger)[1]
    assert facts(capsys, ledger)["encoded"] == ""
