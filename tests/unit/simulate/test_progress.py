"""Progress without being asked: where somebody looks, and only at what takes long. Nothing after the plan is made."""

from __future__ import annotations

import io
import sys
import types
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.ground import announce
from leakcap.simulate import progress
from leakcap.simulate.progress import Forecast, Progress, ignore, watching

X = np.random.default_rng(3).normal(size=(40, 2))
SHORT = Forecast(worlds=64, workers=1, seconds_per_world=0.01, output_bytes=1024)
LONG = Forecast(worlds=64, workers=1, seconds_per_world=0.01, output_bytes=1024, certificate_seconds=9.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def shown(forecast: Forecast, asked: bool | None = None, on: type[io.StringIO] = Terminal) -> str:
    """What stands on standard error in the end."""
    with redirect_stderr(on()) as written, watching(asked) as watch:
        watch(Progress(2, 64, 0.1, forecast))
        watch(Progress(64, 64, 0.5, forecast))
    return written.getvalue()


def test_a_long_plan_is_shown_in_a_terminal_and_a_short_one_is_not() -> None:
    assert "worlds" in shown(LONG)
    assert shown(SHORT) == ""


def test_a_short_one_is_shown_if_asked_for_and_a_long_one_not_if_unwanted() -> None:
    assert "worlds" in shown(SHORT, asked=True)
    assert shown(LONG, asked=False) == ""


def test_a_plan_that_takes_longer_than_forecast_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.7)
    assert shown(SHORT) == "", "forecast: 0.64 s"
    clock = iter([0.0, 0.1])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock, 1.0))
    assert "worlds" in shown(SHORT)


def test_nobody_looks_at_a_pipe() -> None:
    assert shown(LONG, on=io.StringIO) == ""
    with redirect_stderr(io.StringIO()), watching(None) as watch:
        assert watch is ignore


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What stood under the cell of a notebook, one after the other, on one line."""
    lines: list[str] = []

    class Line:
        def update(self, content: dict[str, str], raw: bool) -> None:
            assert raw and lines
            lines.append(content["text/plain"])

    def display(content: dict[str, str], *, raw: bool, display_id: bool) -> Line:
        assert raw and display_id and not lines, "another line"
        lines.append(content["text/plain"])
        return Line()

    notebook = types.ModuleType("IPython.display")
    notebook.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    return lines


def test_a_notebook_gets_one_line_that_is_written_anew(cell: list[str]) -> None:
    assert shown(LONG, on=io.StringIO) == ""
    first, last = cell
    assert first.startswith("leakcap: worlds 2 of 64, 20 worlds/s, about 3 s left; 64 worlds at")
    assert "certificate about 9 s" in first and last == "leakcap: worlds 64 of 64, 128 worlds/s"


def test_rows_and_what_has_travelled_are_told_in_a_terminal_and_in_a_notebook(cell: list[str]) -> None:
    state = Progress(32, 64, 2.0, LONG, moved=3_000_000, rows=5_000_000)
    assert state.pace == "16 worlds/s, 2.5e+06 rows/s, 3 MB moved"
    with redirect_stderr(io.StringIO()), watching(True) as watch:
        watch(state)
        watch(Progress(1000, 0, 0.5, SHORT, stage="rows"))
    assert "2.5e+06 rows/s, 3 MB moved, about 2 s left" in cell[0]
    assert cell[1].startswith("leakcap: rows 1,000, 2e+03 rows/s; ")


def test_a_report_is_told_beside_what_is_shown(cell: list[str]) -> None:
    run = lc.RunReport(show=True)
    with redirect_stderr(io.StringIO()), watching(run) as watch:
        watch(Progress(32, 64, 2.0, LONG))
    assert len(cell) == 1 and run.stages[0].done == 32
    quiet = lc.RunReport(show=False)
    with watching(quiet) as watch:
        assert watch is quiet


def test_compiling_is_told_also_before_a_short_plan() -> None:
    with redirect_stderr(Terminal()) as written, watching(None):
        announce.compiling(6.2)
    assert "compiling inner loops, once for this version: about 6 s" in written.getvalue()


def test_the_forecast_counts_the_whole_plan() -> None:
    assert LONG.whole_seconds == pytest.approx(9.64)


@pytest.mark.parametrize("mode", ["exact", "confidence"])
def test_nothing_is_shown_once_the_secret_is_drawn(mode: str) -> None:
    """Else the order or the timing of what is shown could tell about the secret world."""
    seen: list[Any] = []
    options = {"draws": 256} if mode == "exact" else {}
    plan = lc.plan(
        lambda x: x.mean(), X, cap=lc.mutual_information(0.3), worlds=64, mode=mode, progress=seen.append, **options
    )
    before = len(seen)
    plan.release()
    assert before == len(seen) > 0


def test_a_summary_tells_how_long_the_whole_plan_took() -> None:
    plan = lc.plan(lambda x: x.mean(), X, cap=lc.mutual_information(0.3), worlds=16, draws=256, seed=1)
    summary = plan.summary()
    assert summary.seconds > plan.run.seconds > 0
    assert f"whole plan, noise and certificate included: {summary.seconds:.2g} s" in str(summary)
