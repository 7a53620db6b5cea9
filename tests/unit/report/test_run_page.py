"""What runs did, stage by stage: told beside the bar, and shown as a page for the custodian."""

from __future__ import annotations

import pytest

import leakcap as lc
from leakcap.simulate.progress import Forecast, Progress


def test_nothing_was_run_yet() -> None:
    run = lc.RunReport()
    assert run.stages == () and str(run) == "nothing was run yet" and "0 stages" in run.to_html()


def test_an_earlier_runs_steps_are_not_counted_in_the_pace() -> None:
    run = lc.RunReport(show=False)
    run(Progress(60, 100, 2.0, Forecast(100, 4, 0.1, 8), resumed=50))
    (stage,) = run.stages
    assert stage.per_second == pytest.approx(5) and stage.resumed == 50 and stage.workers == 4
