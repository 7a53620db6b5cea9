"""What pytest loads in a run with a fault: it tests the copy of the package, bounds the time, and tells outcomes."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

__all__ = ["ENVIRONMENT", "is_of"]

ENVIRONMENT = "LEAKCAP_MUTANT"  # what the runner says, as JSON: package, seconds, named, outcomes


def is_of(nodeid: str, named: str) -> bool:
    """Whether a test is the named one, or one of its parameters."""
    return nodeid == named or nodeid.startswith((f"{named}[", f"{named}::"))


class Outcomes:
    """Notes which tests failed and which passed; what is left of a test that has failed is skipped."""

    def __init__(self, named: list[str], path: Path) -> None:
        self.named, self.path = named, path
        self.failed: set[str] = set()
        self.passed: set[str] = set()

    def pytest_runtest_setup(self, item: Any) -> None:
        named = [node for node in self.named if is_of(item.nodeid, node)]
        if named and all(any(is_of(failed, node) for failed in self.failed) for node in named):
            pytest.skip("has failed for another parameter")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps({"failed": sorted(self.failed), "passed": sorted(self.passed)}))


def pytest_configure(config: Any) -> None:
    told = json.loads(os.environ[ENVIRONMENT])
    import leakcap

    if Path(leakcap.__file__).parent != Path(told["package"]):
        pytest.exit(f"the tests would run on {leakcap.__file__}, not on the copy", returncode=3)
    if told["seconds"]:
        resource.setrlimit(resource.RLIMIT_CPU, (told["seconds"], told["seconds"] + 5))
    config.pluginmanager.register(Outcomes(told["named"], Path(told["outcomes"])), "outcomes")
