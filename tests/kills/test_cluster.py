"""Workers, schedulers and askers killed without warning: the same answer bit for bit, no charge twice, little redone.

`python -m benchmarks.cluster_kills` does the same a hundred times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.cluster_kills import KINDS, client_killed, disturbed, planned, trimmed

import leakcap as lc
from leakcap.errors import InputError, OutputError
from tests.later import others_later

distributed = pytest.importorskip("distributed", reason="clusters need Dask")


@pytest.fixture(scope="module")
def two() -> Iterator[lc.cluster.Cluster]:
    with lc.cluster.connect(workers=2, patience=120) as found:
        yield found


@pytest.mark.parametrize("kind", others_later(["any function", "a session's answer"], "a session's answer"))
def test_killed_workers_change_nothing(two: lc.cluster.Cluster, kind: str) -> None:
    found = disturbed(kind, 1, two, KINDS[kind](None))
    assert found["right"] and found["killed"], found


def test_tasks_that_run_again_with_other_randomness_are_noticed(two: lc.cluster.Cluster, tmp_path: Path) -> None:
    """The planted fault: a worker that takes the place of a lost one draws afresh."""
    lost = tmp_path / "lost"

    def afresh(rows: Any) -> Any:
        return trimmed(rows + 1e-9 * np.random.default_rng().normal() if lost.exists() else rows)

    right = planned(afresh, two)
    assert right == planned(afresh, two)
    lost.write_text("")
    assert right != planned(afresh, two)


@pytest.mark.slow
def test_a_killed_asker_goes_on_where_it_was(tmp_path: Path) -> None:
    found = [client_killed(number, tmp_path) for number in range(2)]
    assert max(one["again"] for one in found) < 0.05, found
    assert len({one["answer"] for one in found}) == 1


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_run_and_the_same_call_goes_on(tmp_path: Path) -> None:
    def slow(rows: Any) -> Any:
        time.sleep(0.05)
        with (tmp_path / "log").open("a") as log:
            log.write("world\n")
        return np.median(rows, axis=0)

    def asked(backend: Any, place: str | None) -> Any:
        folder = None if place is None else tmp_path / place
        table = np.random.default_rng(5).normal(size=(60, 2))
        return lc.plan(slow, table, cap=0.7, worlds=128, draws=512, seed=11, backend=backend, checkpoint=folder)

    with Outside(tmp_path) as (scheduler, cluster):
        threading.Thread(target=_killed_amid, args=(scheduler, tmp_path / "log")).start()
        with pytest.raises(OutputError, match="the connection to the scheduler was lost: nothing was released"):
            asked(cluster, "run")
    before = (tmp_path / "log").read_text().count("world")
    found = asked(None, "run")  # on this machine: where it goes on is of no consequence
    again = (tmp_path / "log").read_text().count("world") - before
    assert 0 < again < 128
    assert found.certificate.to_json() == asked(None, None).certificate.to_json()


def _killed_amid(scheduler: subprocess.Popen[bytes], log: Path) -> None:
    """Once some worlds are done, however busy the machine is."""
    while not log.exists() or log.read_text().count("world") < 20:
        time.sleep(0.02)
    scheduler.send_signal(signal.SIGKILL)


class Outside:
    """A scheduler and a worker of their own processes."""

    def __init__(self, folder: Path) -> None:
        quiet = {f"DASK_DISTRIBUTED__WORKER__MEMORY__{name}": "False" for name in ("TARGET", "SPILL")}
        self._how: dict[str, Any] = {"env": os.environ | quiet, "cwd": folder, "stderr": subprocess.DEVNULL}
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> tuple[subprocess.Popen[bytes], lc.cluster.Cluster]:
        program = [sys.executable, "-m", "dask"]
        scheduler = [*program, "scheduler", "--host", "127.0.0.1", "--port", "18811", "--no-dashboard"]
        worker = [*program, "worker", "tcp://127.0.0.1:18811", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        self._processes += [subprocess.Popen(command, **self._how) for command in (scheduler, worker)]
        end = time.monotonic() + 60
        while True:
            try:
                return self._processes[0], lc.cluster.connect("dask://127.0.0.1:18811", patience=60)
            except InputError:
                if time.monotonic() > end:
                    raise

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
