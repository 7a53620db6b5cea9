"""The engine with the allow-list off: whatever SQL gets there, files and settings are out of reach, and so is why."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sql import worker as process
from leakcap.sql.engine import FAILED, EngineError, EngineLimits, LocalEngine, WorkerEngine
from leakcap.sql.refusals import NotAnswered
from leakcap.sql.worker import locked
from tests.refusals import texts_of
from tests.sql.hospital import registered, tables

SMALL = EngineLimits(seconds=30.0, memory="200MB", threads=1)
SECRET = "sesame-4711"  # in a file beside the tables

READS = [
    "SELECT content FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM '{folder}/*.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "SELECT * FROM 'https://127.0.0.1/x.csv'",
    "SELECT getenv('HOME')",
    "SELECT * FROM '{link}'",
    "SELECT content FROM read_text('{link}')",
    "SELECT content FROM read_text('/proc/self/environ')",
    "SELECT content FROM read_text('/dev/stdin')",
    "SELECT * FROM glob('*')",
    "SELECT * FROM glob('/proc/self/environ')",
    "SELECT * FROM read_ndjson_objects('{file}')",
    "SELECT * FROM parquet_kv_metadata('{file}')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM read_text('https://127.0.0.1/x')",
    "SELECT * FROM read_parquet('s3://x/y')",
    "SELECT * FROM sqlite_scan('{file}', 't')",
    "SELECT * FROM postgres_scan('host=127.0.0.1', 'public', 't')",
    "SELECT * FROM mysql_scan('host=127.0.0.1', 'x', 't')",
    "SELECT * FROM st_read('{file}')",
    "SELECT * FROM delta_scan('{folder}')",
]
WRITES = [
    "COPY t0 TO '{new}'",
    "COPY (SELECT 1) TO '{new}' (FORMAT parquet)",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "COPY t0 FROM '{file}'",
    "EXPORT DATABASE '{new}'",
    "EXPORT DATABASE '{new}' (FORMAT parquet)",
    "IMPORT DATABASE '{folder}'",
    "COPY (SELECT 1) TO '{own}'",
    "COPY (SELECT 1) TO '{link}'",
    "ATTACH '{own}' AS other (READ_WRITE)",
    "ATTACH '{link}' AS other (TYPE sqlite)",
    "ATTACH 'host=127.0.0.1' AS other (TYPE postgres)",
    "ATTACH '{new}' AS other",
    "ATTACH '{file}' AS other",
    "ATTACH ':memory:' AS other",
    "CREATE TABLE z AS SELECT 1",
    "CREATE OR REPLACE TABLE t0 AS SELECT 1",
    "CREATE VIEW z AS SELECT 1",
    "CREATE SCHEMA z",
    "CREATE SEQUENCE z",
    "CREATE MACRO z(x) AS x",
    "CREATE TYPE z AS ENUM ('a')",
    "CREATE INDEX z ON t0 (c0)",
    "CREATE SECRET z (TYPE s3)",
    "INSERT INTO t0 SELECT * FROM t0",
    "UPDATE t0 SET c0 = 1",
    "DELETE FROM t0",
    "TRUNCATE t0",
    "DROP TABLE t0",
    "ALTER TABLE t0 ADD COLUMN z INT",
    "ALTER TABLE t0 RENAME TO z",
    "COMMENT ON TABLE t0 IS 'z'",
]
SETTINGS = [
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET allow_community_extensions = true",
    "SET autoload_known_extensions = true",
    "SET threads = 64",
    "SET memory_limit = '1TB'",
    "SET temp_directory = '{folder}'",
    "SET GLOBAL threads = 64",
    "SET SESSION threads = 64",
    "RESET threads",
    "PRAGMA threads = 64",
    "PRAGMA enable_profiling",
    "PRAGMA profile_output = '{new}'",
    "SET log_query_path = '{new}'",
    "CALL enable_logging(storage = 'file', storage_config = {{'path': '{new}'}})",
    "INSTALL httpfs",
    "INSTALL spatial FROM community",
    "LOAD httpfs",
    "LOAD '{file}'",
    "FORCE INSTALL httpfs",
    "FORCE INSTALL sqlite",
    "INSTALL httpfs FROM 'http://127.0.0.1'",
    "UPDATE EXTENSIONS",
    "LOAD sqlite",
    "LOAD postgres",
    "USE memory",
    "DETACH tables",
]
NOT_ONE_SELECT = [  # the lock itself lets these pass
    "CREATE TEMP TABLE z AS SELECT * FROM t0",
    "CREATE TEMP VIEW z AS SELECT 1",
    "CREATE TEMP MACRO z(x) AS x",
    "SELECT 1; SELECT 2",
    "SELECT 1; SET threads = 1",
    "SET VARIABLE z = 1",
    "SET search_path = 'temp'",
    "PRAGMA table_info('t0')",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "ATTACH '{own}' AS other",
    "COPY (SELECT 1) TO '{own}' (FORMAT csv, USE_TMP_FILE false)",  # the file of the tables is always within reach,
    "COPY (SELECT 1) TO '{own}.wal' (FORMAT csv)",  # to be written over too: it is this check alone that stops it
    "COPY (SELECT 1 AS x, 2 AS y) TO '{own}' (FORMAT csv, PARTITION_BY (x), OVERWRITE true)",
    "BEGIN",
    "PREPARE z AS SELECT 1",
    "EXPLAIN ANALYZE SELECT count(*) FROM t0",
    "",
]
FAILS = [  # each has a value, a name or a place in its reason
    "SELECT error(c1) FROM t0",
    "SELECT error('{secret}')",
    "SELECT CAST(c1 AS BIGINT) FROM t0",
    "SELECT CAST(c4 AS DATE) FROM t0",
    "SELECT 9223372036854775807 + c0 FROM t0",
    "SELECT c0 // 0 FROM t0",
    "SELECT no_such_column FROM t0",
    "SELECT * FROM no_such_table",
    "SELECT no_such_function(c0) FROM t0",
    "SELECT (SELECT c0 FROM t0)",
    "SELECT nonsense nonsense nonsense",
    "SELECT '",
    "SELECT * FROM read_text('{file}')",
    "SELECT repeat('x', 2000000000) FROM t0",
    "SELECT c0 FROM t0, range(300000)",  # too many rows
    "SELECT unnest(range(1000000000))",
    "SELECT len(list(repeat('x', 1000000))) FROM range(100000)",
    "SELECT length(string_agg(repeat('x', 1000000), '')) FROM range(100000)",
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> lc.sql.Catalog:
    folder = tmp_path_factory.mktemp("engine")
    (folder / "beside.csv").write_text(f"secret\n{SECRET}\n")
    (folder / "link.csv").symlink_to(folder / "beside.csv")
    return registered(folder / "tables.duckdb")


@pytest.fixture(scope="module")
def worker(catalog: lc.sql.Catalog) -> Iterator[WorkerEngine]:
    engine = WorkerEngine(catalog.path, SMALL)
    yield engine
    engine.close()


def filled(sql: str, catalog: lc.sql.Catalog) -> str:
    folder = catalog.path.parent
    places = {"own": catalog.path, "file": folder / "beside.csv", "link": folder / "link.csv", "new": folder / "new"}
    return sql.format(folder=folder, secret=SECRET, **places)


@pytest.mark.parametrize("listed", [READS, WRITES, SETTINGS], ids=["reads", "writes", "settings"])
def test_the_lock_alone_stops_files_writes_and_settings(catalog: lc.sql.Catalog, listed: list[str]) -> None:
    """Past the check for one SELECT too."""
    before = catalog.path.stat().st_mtime_ns, sorted(catalog.path.parent.iterdir())
    file = locked(catalog.path, SMALL)
    try:
        for sql in listed:
            with pytest.raises(duckdb.Error) as caught:
                file.execute(filled(sql, catalog)).fetchall()
            assert SECRET not in str(caught.value)
    finally:
        file.close()
    assert (catalog.path.stat().st_mtime_ns, sorted(catalog.path.parent.iterdir())) == before


def test_an_unlocked_engine_would_read_the_file(catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above cannot pass by accident."""
    monkeypatch.setattr("leakcap.sql.worker.SETTINGS", {})
    file = locked(catalog.path, SMALL)
    try:
        assert SECRET in str(file.execute(filled(READS[0], catalog)).fetchall())
    finally:
        file.close()


@pytest.mark.parametrize("rewritten", [False, True], ids=["as it is", "planted: rewritten by what values there are"])
def test_no_value_decides_how_a_question_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewritten: bool
) -> None:
    """DuckDB 2.0.0 fails on this where nobody's value is below 1, once it knows the least one."""
    if rewritten:
        rest = {name: value for name, value in process.SETTINGS.items() if name != "disabled_optimizers"}
        monkeypatch.setattr(process, "SETTINGS", rest)
    plans = []
    for least in (0, 5):
        path = tmp_path / str(least) / "tables.duckdb"
        path.parent.mkdir()
        with duckdb.connect(str(path)) as file:
            file.execute(f"CREATE TABLE t0 AS SELECT x FROM range({least}, 9) r(x)")
        file = locked(path, SMALL)
        try:
            sql = "SELECT (CASE WHEN x < 1 THEN 'yes' END) = 'a' AS y FROM t0"
            try:
                assert file.sql(sql).to_arrow_table().num_rows == 9 - least
                plans.append(re.sub(r"~?\d+ rows?", "", str(file.sql(f"EXPLAIN {sql}").fetchall())))
            except duckdb.Error:
                plans.append("failed")
        finally:
            file.close()
    assert (plans[0] == plans[1] != "failed") is not rewritten


def test_only_one_select_runs(catalog: lc.sql.Catalog) -> None:
    before = catalog.path.stat().st_mtime_ns
    engine = LocalEngine(catalog.path, SMALL)
    try:
        for sql in [*NOT_ONE_SELECT, *WRITES, *SETTINGS]:
            with pytest.raises(Exception, match=r"error 6|Parser Error|not a valid StatementType"):
                engine.run(filled(sql, catalog), {})
        assert engine.run("SELECT 1 AS x", {}).to_pylist() == [{"x": 1}]
    finally:
        engine.close()
    assert catalog.path.stat().st_mtime_ns == before


def test_without_that_check_the_tables_would_be_written_over(tmp_path: Path) -> None:
    """What the test above cannot pass by accident."""
    catalog = registered(tmp_path / "tables.duckdb")
    before = catalog.path.read_bytes()
    file = locked(catalog.path, SMALL)
    try:
        file.execute(filled("COPY (SELECT 1) TO '{own}' (FORMAT csv, USE_TMP_FILE false)", catalog))
    finally:
        file.close()
    assert catalog.path.read_bytes() != before
    with pytest.raises(InputError, match="changed"):
        catalog.refuse_changed()


def test_what_fails_in_the_worker_has_a_number_and_no_reason(catalog: lc.sql.Catalog, worker: WorkerEngine) -> None:
    values = {str(one) for name in ("people", "stays") for column in tables()[name] for one in tables()[name][column]}
    private = {one for one in values if len(one) > 3 and not one.isdigit()}
    private |= {SECRET, "no_such", "nonsense", "c0", "c1", "t0"}
    sentence = re.escape(FAILED).replace(r"\{number\}", r"\d")
    for sql in [*FAILS, *READS, *WRITES, *SETTINGS, *NOT_ONE_SELECT]:
        with pytest.raises(EngineError) as caught:
            worker.run(filled(sql, catalog), {})
        assert re.fullmatch(sentence, str(caught.value)), sql
        assert caught.value.__cause__ is None
        shown = texts_of(caught.value).split("EngineError:", 1)[1]
        assert not any(one in shown for one in private), sql
    assert worker.run("SELECT count(*) AS n FROM t0", {}).to_pylist() == [{"n": catalog.people}]


def test_nothing_is_heard_of_a_failure(
    catalog: lc.sql.Catalog, worker: WorkerEngine, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for sql in FAILS:
        with pytest.raises(EngineError):
            worker.run(filled(sql, catalog), {})
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


ENDLESS = {
    "a join": "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = -1",
    "a text": "SELECT count(*) FROM range(100000) WHERE length(repeat('ab', 40000000 + range::INT)) = 7",
    "a recursion": "WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q) SELECT max(n) FROM q",
    "a list": "SELECT count(*) FROM range(100000) WHERE len(range(40000000 + range)) = 7",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_has_no_end_is_killed_at_its_limit_and_the_one_who_asks_lives(catalog: lc.sql.Catalog, kind: str) -> None:
    engine = WorkerEngine(catalog.path, EngineLimits(seconds=60.5, memory="200MB", threads=1))
    engine.run("SELECT 1", {})
    engine.left = 0.5  # for the question alone, however long the process took to start
    process = engine.process
    try:
        with pytest.raises((NotAnswered, EngineError), match=r"took longer than 60.5 seconds|error [19]"):
            engine.run(ENDLESS[kind], {})
    finally:
        engine.close()
    assert process.poll() is not None
    assert not Path(f"/proc/{process.pid}").exists()
    with WorkerAgain(catalog) as again:
        assert again.run("SELECT 1 AS x", {}).to_pylist() == [{"x": 1}]


class WorkerAgain:
    """Another question of the same process."""

    def __init__(self, catalog: lc.sql.Catalog) -> None:
        self.engine = WorkerEngine(catalog.path, SMALL)

    def __enter__(self) -> WorkerEngine:
        return self.engine

    def __exit__(self, *_: object) -> None:
        self.engine.close()


def test_however_a_worker_dies_it_is_the_same_error(catalog: lc.sql.Catalog) -> None:
    said = set()
    for how in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
        with WorkerAgain(catalog) as engine:
            engine.process.send_signal(how)
            engine.process.wait()
            with pytest.raises(EngineError, match="error 9") as caught:
                engine.run("SELECT 1", {})
            said.add(texts_of(caught.value).split("EngineError:", 1)[1])
    assert len(said) == 1


@pytest.mark.parametrize("planted", [False, True], ids=["honest", "planted"])
def test_what_a_worker_says_as_it_dies_is_not_heard(
    tmp_path: Path, planted: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The planted fault: its errors go where ours go."""
    if planted:
        monkeypatch.setattr("leakcap.sql.processes.subprocess.DEVNULL", None)
    engine = WorkerEngine(tmp_path / "sesame.duckdb", SMALL)
    engine.process.wait()
    engine.close()
    heard = capfd.readouterr()
    assert ("sesame" in heard.err) == planted and heard.out == ""


@pytest.mark.parametrize("planted", [False, True], ids=["honest", "planted"])
def test_the_worker_loads_its_engine_and_nothing_of_ours_or_of_the_folder_it_is_started_in(
    catalog: lc.sql.Catalog, tmp_path: Path, planted: bool
) -> None:
    """The planted fault: it is started as a module, as Python does by itself."""
    (tmp_path / "duckdb.py").write_text("raise SystemExit('a file that lies about')")
    told = json.dumps({"path": str(catalog.path), "memory": "200MB", "threads": 1})
    how = ["-m", "leakcap.sql.worker"] if planted else list(map(str, started(catalog)[1:-1]))
    found = subprocess.run(
        [sys.executable, "-X", "importtime", *how, told],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in found.stderr.splitlines() if line.startswith("import time:")}
    ours = {one for one in loaded if one.split(".")[0] in ("leakcap", "numpy", "numba", "scipy", "sqlglot", "pandas")}
    assert (not ours and found.returncode == 0 and "duckdb" in loaded) != planted


def started(catalog: lc.sql.Catalog) -> list[str]:
    """The command of a worker."""
    with WorkerAgain(catalog) as engine:
        return list(map(str, engine.process.args))  # type: ignore[arg-type]


def test_a_file_that_is_gone_is_an_error_with_a_number(tmp_path: Path) -> None:
    engine = WorkerEngine(tmp_path / "sesame.duckdb", SMALL)
    try:
        with pytest.raises(EngineError, match="error 9") as caught:
            engine.run("SELECT 1", {})
        assert "sesame" not in texts_of(caught.value).split("EngineError:", 1)[1]
    finally:
        engine.close()
