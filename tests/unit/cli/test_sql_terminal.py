"""The prompt of `leakcap sql` in a terminal: what is typed, completed, and brought back by the arrow."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from leakcap.cli.sql import _left

RUN = "from leakcap.cli import main; main()"
ENDS = 120.0  # seconds of silence, after which the prompt hangs
UP = "\x1b[A"


class Prompt:
    """A process at a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self.place, inside = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "INPUTRC": "/dev/null"}
        command = [sys.executable, "-c", RUN, *words]
        self.process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment)
        os.close(inside)

    def until(self, words: str) -> str:
        """What is shown up to these words."""
        shown, end = "", time.monotonic() + ENDS
        while words not in shown:
            assert select.select([self.place], [], [], end - time.monotonic())[0], shown
            shown += os.read(self.place, 10_000).decode(errors="replace")
        return shown

    def typed(self, text: str) -> None:
        os.write(self.place, text.encode())

    def close(self) -> int:
        code = self.process.wait(ENDS)
        os.close(self.place)
        return code


def test_questions_are_completed_brought_back_and_previewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("readline")
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"patient": range(300), "ward": ["A", "B"] * 150}).to_csv("stays.csv", index=False)
    order = ("--unit", "patient", "--rows-per-unit", "1", "--cap", "0.6", "--ledger", "sqlite:///ledger.db")
    prompt = Prompt("sql", "stays.csv", *order)
    try:
        prompt.until("sql> ")
        prompt.typed("select wa\t")
        prompt.until("ward")  # the rest of the name
        prompt.typed(", count(*) as n from sta\t group by ward;\n")
        shown = prompt.until("sql> ")
        assert "\u00b1" in shown and "Took at most 1 %" in shown.replace("\u00a0", " ")
        prompt.typed(f"{UP}\n")
        assert "Nothing was spent" in prompt.until("sql> ")  # the very same question
        prompt.typed("\\p select count(*) from stays;\n")
        assert "It takes at most" in prompt.until("sql> ")
        prompt.typed("\\q\n")
    finally:
        if prompt.process.poll() is None and sys.exc_info()[0] is not None:
            prompt.process.kill()
    assert prompt.close() == 0


@pytest.mark.parametrize(
    ("share", "said"), [(0.5, "50 %"), (0.0312345, "3.123 %"), (2e-12, "nothing"), (0.0, "nothing")]
)
def test_what_is_left_of_a_clock_reads_as_a_person_would_say_it(share: float, said: str) -> None:
    assert _left(share) == said
