"""Copies the package, plants a fault in the copy, runs the tests that must fail, and says what happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutants.faults import PACKAGE, ROOT, Mutant
from tests.mutants.planted import ENVIRONMENT, is_of

__all__ = ["BAD", "CAUGHT", "SURVIVED", "Finished", "Outcome", "run_all", "verdict"]

CPU_SECONDS = 60  # of the tests of one fault
CAUGHT, SURVIVED, EXPECTED = "caught", "survived", "survived, as its reason says"
NOT_APPLIED, NOT_RUN, TOO_SLOW, STALE = "did not apply", "did not run", "too slow", "caught, against its reason"
BAD = (SURVIVED, NOT_APPLIED, NOT_RUN, TOO_SLOW, STALE)


@dataclass(frozen=True)
class Outcome:
    """What became of one fault."""

    mutant: Mutant
    status: str
    detail: str = ""
    cpu_seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        about = self.mutant
        return {
            "name": about.name,
            "file": about.file,
            "means": about.means,
            "status": self.status,
            "detail": self.detail,
            "cpu_seconds": round(self.cpu_seconds, 1),
        }


@dataclass(frozen=True)
class Finished:
    """A run of pytest that has ended."""

    code: int
    seconds: float
    output: str
    failed: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()

    def has_failed(self, named: str) -> bool:
        return any(is_of(node, named) for node in self.failed)

    def has_passed(self, named: str) -> bool:
        return not self.has_failed(named) and any(is_of(node, named) for node in self.passed)


@dataclass
class Workshop:
    """Copies of the package, one for each run at a time: a folder, and what numba compiles from it."""

    folder: Path
    free: SimpleQueue[Path] = field(default_factory=SimpleQueue)

    def furnish(self, benches: int) -> None:
        for number in range(benches):
            bench = self.folder / f"bench-{number}"
            shutil.copytree(PACKAGE, bench / "leakcap", ignore=shutil.ignore_patterns("__pycache__"))
            self.free.put(bench)

    @contextmanager
    def bench(self) -> Iterator[Path]:
        """A copy that nobody else uses meanwhile."""
        taken = self.free.get()
        try:
            yield taken
        finally:
            self.free.put(taken)


def run_all(
    mutants: Sequence[Mutant], jobs: int, tell: Callable[[Outcome], None] = lambda _: None, *, healthy: bool = True
) -> list[Outcome]:
    """Plant every fault in turn, `jobs` at a time; first run the tests that are named without any fault."""
    with tempfile.TemporaryDirectory(prefix="leakcap-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        shop = Workshop(Path(folder))
        shop.furnish(jobs)
        sick = _sick(shop, mutants, pool, jobs) if healthy else {}

        def judged(mutant: Mutant) -> Outcome:
            outcome = _outcome(shop, mutant, sick)
            tell(outcome)
            return outcome

        return list(pool.map(judged, mutants))


def _sick(shop: Workshop, mutants: Sequence[Mutant], pool: ThreadPoolExecutor, jobs: int) -> dict[str, str]:
    """Named tests that do not pass without a fault, and what pytest said: they could prove nothing."""
    named = sorted({node for mutant in mutants for node in mutant.tests})
    files = sorted({node.partition("::")[0] for node in named})
    groups = [[node for node in named if node.partition("::")[0] in files[first::jobs]] for first in range(jobs)]

    def run(group: list[str]) -> dict[str, str]:
        with shop.bench() as bench:
            finished = _pytest(bench, group, seconds=0, compiled=bench / "compiled")
        return {node: finished.output[-2000:] for node in group if not finished.has_passed(node)}

    found: dict[str, str] = {}
    for part in pool.map(run, filter(None, groups)):
        found |= part
    return found


def _outcome(shop: Workshop, mutant: Mutant, sick: dict[str, str]) -> Outcome:
    problem = mutant.problem()
    if problem:
        return Outcome(mutant, NOT_APPLIED, problem)
    for node in mutant.tests:
        if node in sick:
            return Outcome(mutant, NOT_RUN, f"{node} does not pass without the fault\n{sick[node]}")
    with shop.bench() as bench:
        package = bench / "leakcap"
        original = package / mutant.file
        # Compiled code is kept per file, and what calls it from another file would not be compiled again.
        loops = "compiled(" in original.read_text()
        compiled = bench / f"compiled-{mutant.name}" if loops else bench / "compiled"
        mutant.plant(package)
        _forget_bytecode(original)
        try:
            finished = _pytest(bench, list(mutant.tests), seconds=CPU_SECONDS, compiled=compiled)
        finally:
            shutil.copy2(PACKAGE / mutant.file, original)
            _forget_bytecode(original)
    return verdict(mutant, finished)


def verdict(mutant: Mutant, finished: Finished) -> Outcome:
    def outcome(status: str, detail: str = "") -> Outcome:
        return Outcome(mutant, status, detail, finished.seconds)

    if finished.code in (-signal.SIGXCPU, -signal.SIGKILL):
        return outcome(TOO_SLOW, f"more than {CPU_SECONDS} CPU seconds: name fewer or smaller tests")
    if finished.code not in (0, 1):
        return outcome(NOT_RUN, finished.output[-2000:])
    unseen = [node for node in mutant.tests if not finished.has_failed(node)]
    if unseen:
        return outcome(EXPECTED if mutant.survives else SURVIVED, mutant.survives or f"passed: {', '.join(unseen)}")
    return outcome(STALE, "take the reason away") if mutant.survives else outcome(CAUGHT)


def _pytest(bench: Path, nodes: list[str], *, seconds: int, compiled: Path) -> Finished:
    outcomes = bench / "outcomes.json"
    outcomes.unlink(missing_ok=True)
    told = {"package": str(bench / "leakcap"), "seconds": seconds, "named": nodes, "outcomes": str(outcomes)}
    environment = os.environ | {
        ENVIRONMENT: json.dumps(told),
        "PYTHONPATH": f"{bench}{os.pathsep}{ROOT}",
        "NUMBA_CACHE_DIR": str(compiled),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.planted", "-p", "no:cacheprovider", "--tb=short"]
    output = bench / "output.txt"
    with output.open("w") as told_by_pytest:
        child = subprocess.Popen(
            [*command, *nodes], cwd=ROOT, env=environment, stdout=told_by_pytest, stderr=subprocess.STDOUT
        )
        _, status, spent = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    known = json.loads(outcomes.read_text()) if outcomes.exists() else {"failed": (), "passed": ()}
    return Finished(
        code=child.returncode,
        seconds=spent.ru_utime + spent.ru_stime,
        output=output.read_text(),
        failed=tuple(known["failed"]),
        passed=tuple(known["passed"]),
    )


def _forget_bytecode(source: Path) -> None:
    """Bytecode is told apart by the second in which its source was written: too coarse here."""
    for stale in (source.parent / "__pycache__").glob(f"{source.stem}.*"):
        stale.unlink()
