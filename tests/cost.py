"""What the tests cost in CPU seconds, and the one guard that stops a test that hangs.

Wall seconds depend on what else the machine does, so that no test may decide by them. CPU seconds do too, if less: a
core beside a busy one takes up to twice as many for the same work. So a short piece of work is measured again and again
between the tests, and what tests took is told as it would have been on a quiet core.
"""

from __future__ import annotations

import faulthandler
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

GUARD_SECONDS = 30 * 60  # wall clock of one test: nothing takes a tenth of it, even on a busy machine
SLOWEST_SHOWN = 25

QUIET_SECONDS = 2.9e-3  # CPU seconds of `some_work` on the quiet core that budgets are for, of 2.5 GHz
MEASURED_EVERY = 2.0  # wall seconds: a few thousandths of the time

# CPU seconds on a quiet core of a new machine, where loops are compiled wherever they are first used; a little is left.
# Going over one prints a line and fails nothing: make the test cheaper, or say why not.
BUDGETS = {
    "tests/unit": 710,
    "tests/claims": 650,
    "tests/leaks": 290,
    "tests/kills": 52,
    "tests/docs": 195,
    "tests/everyday": 32,
    "tests/reproductions": 58,
    "tests/sql": 150,
    "src": 22,
}


_elsewhere: list[float] = []


def count_seconds(seconds: float) -> None:
    """Of a process that a child has waited for, while the child itself has not ended; less than 0 takes them back."""
    _elsewhere.append(seconds)


def cpu_seconds() -> float:
    """Of this process, of those of its children that have ended, and what was counted beside them."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system + sum(_elsewhere)


TEXTS = [str(number) for number in range(2000)]
NUMBERS = np.random.default_rng(0).standard_normal((200, 200))


def some_work() -> None:
    """A little of what tests do: dictionaries, text, numbers in arrays."""
    known = {}
    for number in range(20_000):
        known[TEXTS[number % 2000]] = number
    json.dumps(TEXTS)
    np.sort(NUMBERS, axis=0)
    np.exp(NUMBERS).cumsum(axis=1)


class Pace:
    """How many times longer than a quiet core this one takes, as it was a moment ago."""

    def __init__(self) -> None:
        self.latest, self.measured = 1.0, -MEASURED_EVERY

    def __call__(self) -> float:
        if time.monotonic() - self.measured >= MEASURED_EVERY:
            self.latest = min(self._seconds(), self._seconds()) / QUIET_SECONDS
            self.measured = time.monotonic()
        return self.latest

    def _seconds(self) -> float:
        began = time.thread_time()
        some_work()
        return time.thread_time() - began


def tier_of(nodeid: str) -> str:
    """`tests/<tier>`, or `src` for doctests."""
    parts = nodeid.split("::", maxsplit=1)[0].split("/")
    return "src" if parts[0] == "src" else "/".join(parts[:2])


def folder_of(nodeid: str) -> str:
    """`tests/<tier>/<room>`, or the tier where a file lies in no room."""
    parts = nodeid.split("::", maxsplit=1)[0].split("/")
    return "src" if parts[0] == "src" else "/".join(parts[:-1][:3])


class Meter:
    """Measures every test where it runs; adds up and prints where the results arrive (`pytest -n`: elsewhere)."""

    def __init__(self) -> None:
        self.started = 0.0
        self.pace, self.pace_before = Pace(), 1.0
        self.seconds: dict[str, float] = {}  # as on a quiet core
        self.taken = 0.0  # here
        self.stderr = os.dup(2)  # pytest redirects it while a test runs

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.pace_before = self.pace()
        self.started = cpu_seconds()
        faulthandler.dump_traceback_later(GUARD_SECONDS, exit=True, file=self.stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: Any) -> Iterator[None]:
        report = yield
        if call.when == "teardown":
            taken = cpu_seconds() - self.started
            pace = (self.pace_before + self.pace()) / 2
            report.user_properties += [("cpu_seconds", taken), ("quiet_seconds", taken / pace)]
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown":
            told = dict(report.user_properties)
            self.seconds[report.nodeid] = told.get("quiet_seconds", 0.0)
            self.taken += told.get("cpu_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.seconds:
            terminalreporter.section("CPU seconds, as on a quiet core")
            terminalreporter.write_line(f"{self.taken:8.1f}  were taken here, beside whatever else was going on")
            for line in lines(self.seconds):
                terminalreporter.write_line(line)


def lines(seconds: dict[str, float]) -> Iterator[str]:
    """Tiers with their budgets, the rooms below them, the slowest tests; tiers over their budget last."""
    rooms: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for nodeid, spent in seconds.items():
        rooms[tier_of(nodeid)][folder_of(nodeid)] += spent
    tiers = {tier: sum(below.values()) for tier, below in rooms.items()}
    yield f"{sum(tiers.values()):8.1f}  in {len(seconds)} tests, without start-up and collection"
    for tier in sorted(tiers):
        budget = f"of {BUDGETS[tier]}" if tier in BUDGETS else "no budget"
        yield f"{tiers[tier]:8.1f}  {tier} ({budget})"
        for room in sorted(rooms[tier]):
            if room != tier:
                yield f"{rooms[tier][room]:8.1f}      {room}"
    yield f"The slowest {SLOWEST_SHOWN}:"
    for nodeid in sorted(seconds, key=seconds.__getitem__, reverse=True)[:SLOWEST_SHOWN]:
        yield f"{seconds[nodeid]:8.1f}  {nodeid}"
    for tier, spent in tiers.items():
        if spent > BUDGETS.get(tier, float("inf")):
            yield f"OVER BUDGET: {tier} took {spent:.0f} CPU seconds of {BUDGETS[tier]}"
