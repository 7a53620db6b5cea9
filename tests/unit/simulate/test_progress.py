"""Progress without being asked: where somebody looks, and only at what takes long. Nothing after the plan is made."""

from __future__ import annotations

import io
import sys
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


def test_a_notebook_gets_a_line_for_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    (line,) = shown(LONG, on=io.StringIO).splitlines()
    assert "leakcap: worlds; 64 worlds" in line and "certificate about 9 s" in line


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
