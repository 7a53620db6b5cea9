"""`leakcap sql` on Diabetes-130, as the guide shows it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from leakcap import datasets
from tests.unit.cli.running import leakcap

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "ask-in-sql.md"
AGES = [f"[{age}-{age + 10})" for age in range(0, 100, 10)]


def shown() -> tuple[list[str], str]:
    """The command of the guide and what it prints, numbers left out."""
    (block,) = re.findall(r"```text\n\$ leakcap (sql diabetes130.*?)```", GUIDE.read_text(), re.DOTALL)
    command, _, printed = block.partition("\n")
    return shlex.split(command), without_numbers(printed)


def without_numbers(text: str) -> str:
    kept = re.sub(r"\[[\d-]+\)", lambda age: f"age{AGES.index(age[0])}of", text)
    return " ".join(re.sub(r"(?<![a-z])-?\d[\d,.]*", "#", kept).split())


@pytest.mark.skipif("LEAKCAP_DATA" not in os.environ, reason="needs the data folder")
def test_what_the_guide_shows_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_key: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(datasets.data_path("diabetes130.parquet"), tmp_path)
    command, expected = shown()
    assert leakcap(*command, "--ledger", "sqlite:///ledger.db") == 0
    told, printed = capfd.readouterr()[::-1]
    report = told[told.index("  diabetes130:") :]  # behind what is said of a new key
    assert without_numbers(report + printed) == expected
