"""Copies in the place of processes do what those do: they answer, are cut off, and leave nothing behind."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="no duckdb here: pip install 'leakcap[sql]' brings it")

from leakcap.sql.engine import EngineError, EngineLimits, WorkerEngine
from leakcap.sql.refusals import NotAnswered
from tests.copies import Copies, Copy

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """CPU seconds of copies that were killed."""
    spent: list[float] = []
    copies = Copies(spent.append)
    monkeypatch.setattr(subprocess, "Popen", copies.popen())
    yield spent
    copies.close()
    for source in copies._sources.values():
        assert not Path(source.folder).exists() and source.process.returncode


def engine(seconds: float = 60.0) -> WorkerEngine:
    return WorkerEngine(None, EngineLimits(seconds=seconds, memory="200MB", threads=1), {})


def test_questions_are_answered_by_a_copy_each_and_what_it_took_is_counted(counted: list[float]) -> None:
    first, second = engine(), engine()
    for one in (first, second):
        assert isinstance(one.process, Copy) and one.process.poll() is None
        assert one.run("SELECT sum(range) AS s FROM range(2000000)", {}).to_pylist() == [{"s": 1999999000000}]
    assert first.process.pid != second.process.pid and not counted
    for one in (first, second):
        one.close()
        gone = Path(f"/proc/{one.process.pid}")
        while gone.exists():  # for a moment
            time.sleep(0.01)
    assert len(counted) == 2 and sum(counted) > 0


def test_one_that_died_is_told_as_any_other(counted: list[float]) -> None:
    dead = engine()
    dead.process.kill()
    dead.process.wait()
    with pytest.raises(EngineError, match="error 9"):
        dead.run("SELECT 1", {})


def test_one_that_takes_too_long_is_ended(counted: list[float]) -> None:
    slow = engine(seconds=0.2)
    with pytest.raises(NotAnswered, match="longer than"):
        slow.run(ENDLESS, {})
    assert slow.process.poll() is not None and sum(counted) > 0


def test_other_processes_are_started_as_ever(counted: list[float]) -> None:
    engine().close()
    with subprocess.Popen(["echo", "here"], stdout=subprocess.PIPE) as other:
        assert other.communicate()[0] == b"here\n" and not isinstance(other, Copy)
