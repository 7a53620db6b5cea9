"""Processes that wait for questions: each answers one, is locked like any other, and never has an old file open."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import leakcap as lc
from leakcap.sql.engine import EngineError, EngineLimits, WorkerEngine, limited
from leakcap.sql.processes import SpareProcesses, ended
from leakcap.sql.refusals import NotAnswered
from tests.sql.hospital import registered

SMALL = EngineLimits(seconds=30.0, memory="200MB", threads=1)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> lc.sql.Catalog:
    return registered(tmp_path_factory.mktemp("waiting") / "tables.duckdb")


@pytest.fixture
def spare() -> Iterator[SpareProcesses]:
    made = SpareProcesses(1)
    yield made
    made.close()


def waiting(spare: SpareProcesses) -> list[int]:
    return [one.pid for of_file in spare._waiting.values() for one in of_file]


def there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_question_gets_a_process_of_its_own_that_waited_and_ends(
    catalog: lc.sql.Catalog, spare: SpareProcesses
) -> None:
    spare.prepare(catalog.path, SMALL)
    seen = list[int]()
    for _ in range(2):
        (ahead,) = waiting(spare)
        with limited(SMALL, spare):
            engine = WorkerEngine(catalog.path)
        assert engine.process.pid == ahead
        assert engine.run("SELECT 1 AS x", {}).to_pylist() == [{"x": 1}]
        engine.close()
        assert not there(ahead)
        seen.append(ahead)
    assert len({*seen, *waiting(spare)}) == 3, "a process answered twice"


MANY = 1_100  # more than `select` can look at


def test_answers_are_heard_however_many_files_are_open(catalog: lc.sql.Catalog) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 2 * MANY:
        pytest.skip("this machine lets nobody open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    with ExitStack() as ends:
        ends.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(MANY):
            ends.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        engine = WorkerEngine(catalog.path, SMALL)
        ends.callback(engine.close)
        assert engine.run("SELECT 1 AS x", {}).to_pylist() == [{"x": 1}]


def test_a_process_that_waited_is_locked_and_is_killed_at_its_limit(
    catalog: lc.sql.Catalog, spare: SpareProcesses, tmp_path: Path
) -> None:
    (tmp_path / "beside.csv").write_text("secret\nsesame\n")
    with limited(EngineLimits(seconds=0.5, memory="200MB", threads=1), spare):
        spare.prepare(catalog.path, SMALL)
        engine = WorkerEngine(catalog.path, SMALL)
        with pytest.raises(EngineError):
            engine.run(f"SELECT * FROM read_csv('{tmp_path / 'beside.csv'}')", {})
        engine.close()
        hung = WorkerEngine(catalog.path)
        hung.process.send_signal(signal.SIGSTOP)
        with pytest.raises(NotAnswered, match=r"longer than 0\.5 seconds"):
            hung.run("SELECT 1", {})
    assert not there(hung.process.pid)


def test_one_that_died_while_it_waited_answers_nothing(catalog: lc.sql.Catalog, spare: SpareProcesses) -> None:
    spare.prepare(catalog.path, SMALL)
    (dead,) = spare._waiting.values()
    dead[0].kill()
    dead[0].wait()
    with limited(SMALL, spare):
        engine = WorkerEngine(catalog.path)
    assert engine.run("SELECT 1 AS x", {}).to_pylist() == [{"x": 1}]
    engine.close()


def test_another_version_of_a_file_gets_another_process(
    catalog: lc.sql.Catalog, spare: SpareProcesses, tmp_path: Path
) -> None:
    path = tmp_path / "copied.duckdb"
    shutil.copy(catalog.path, path)
    spare.prepare(path, SMALL)
    (old,) = waiting(spare)
    shutil.copy(catalog.path, tmp_path / "new.duckdb")
    (tmp_path / "new.duckdb").replace(path)
    taken = spare.taken(path, SMALL)
    assert taken.pid != old
    ended(taken)


def test_files_that_nobody_asks_about_keep_no_process(
    catalog: lc.sql.Catalog, spare: SpareProcesses, tmp_path: Path
) -> None:
    first = list[int]()
    for at in range(6):
        shutil.copy(catalog.path, tmp_path / f"{at}.duckdb")
        spare.prepare(tmp_path / f"{at}.duckdb", SMALL)
        first = first or waiting(spare)
    assert len(waiting(spare)) == 4 and not there(first[0])


def test_none_is_left_when_a_server_ends(catalog: lc.sql.Catalog) -> None:
    closed, forgotten = SpareProcesses(2), SpareProcesses(1)
    for one in (closed, forgotten):
        one.prepare(catalog.path, SMALL)
    before = waiting(closed) + waiting(forgotten)
    assert len(before) == 3
    closed.close()
    closed.prepare(catalog.path, SMALL)
    assert waiting(closed) == [], "what ended starts nothing any more"
    del forgotten, one
    gc.collect()
    assert not [pid for pid in before if there(pid)]
