"""The meter and the guard of `tests/cost.py`."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import cost

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests import cost
cost.GUARD_SECONDS = {guard}
def pytest_configure(config):
    config.pluginmanager.register(cost.Meter())
"""
HANGS = "import time\ndef test_hangs():\n    time.sleep(600)\n"
WORKS = "def test_works():\n    sum(range(10**7))\n"


def run(folder: Path, *options: str, guard: int, **files: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder of its own, with these files and a guard of so many seconds."""
    for name, text in {"conftest": CONFTEST.format(guard=guard), **files}.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    alone = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take seconds to load
    return subprocess.run(command, cwd=folder, env=os.environ | alone, capture_output=True, text=True, check=False)


def test_what_hangs_is_stopped_and_says_where(tmp_path: Path) -> None:
    done = run(tmp_path, guard=1, test_it=HANGS)
    assert done.returncode != 0
    assert "Timeout" in done.stderr and "in test_hangs" in done.stderr


def test_cpu_seconds_are_told_from_other_processes_too(tmp_path: Path) -> None:
    done = run(tmp_path, "-p", "xdist", "-n", "1", guard=600, test_it=WORKS)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.endswith("test_it.py::test_works")]
    assert 0 < float(line.split()[0]) < 60
    (line,) = [line for line in done.stdout.splitlines() if "were taken here" in line]
    assert 0 < float(line.split()[0]) < 60


def test_on_a_core_that_takes_twice_as_long_half_of_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=2 * cost.QUIET_SECONDS)  # what the work takes
    monkeypatch.setattr(cost.time, "thread_time", lambda: next(clock))
    spent = itertools.count(step=3.0)
    monkeypatch.setattr(cost, "cpu_seconds", lambda: next(spent))
    meter, report = cost.Meter(), SimpleNamespace(when="teardown", nodeid="a test", user_properties=[])
    list(meter.pytest_runtest_protocol())  # this test goes on without a guard
    measuring = meter.pytest_runtest_makereport(SimpleNamespace(when="teardown"))
    next(measuring)
    with pytest.raises(StopIteration):
        measuring.send(report)
    meter.pytest_runtest_logreport(report)
    os.close(meter.stderr)
    assert meter.taken == 3.0 and meter.seconds == {"a test": pytest.approx(1.5)}


def test_the_pace_is_measured_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[None] = []
    monkeypatch.setattr(cost, "some_work", lambda: worked.append(None))
    now = [100.0]
    monkeypatch.setattr(cost.time, "monotonic", lambda: now[0])
    pace = cost.Pace()
    for now[0], times in ((100.0, 2), (101.9, 2), (102.0, 4), (103.0, 4)):
        pace()
        assert len(worked) == times


def test_folders_have_sums_and_budgets_and_going_over_one_is_said() -> None:
    told = list(cost.lines({"tests/leaks/labels/test_a.py::test_b": 1000.0, "src/leakcap/caps.py::leakcap.caps": 2.5}))
    assert f"  1000.0  tests/leaks (of {cost.BUDGETS['tests/leaks']})" in told
    assert "  1000.0      tests/leaks/labels" in told
    assert f"     2.5  src (of {cost.BUDGETS['src']})" in told
    assert [line for line in told if line.startswith("OVER BUDGET")] == [told[-1]]
    assert "tests/leaks" in told[-1]


def test_every_tier_has_a_budget() -> None:
    tiers = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py"))}
    assert tiers | {"src"} == set(cost.BUDGETS)
