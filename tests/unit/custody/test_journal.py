"""The journal of releases: once spent, always spent; what is damaged or missing is told, never taken for empty."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import keys
from leakcap.custody.journal import Journal, journal_file
from tests.unit.custody.rows import failing, mode, refused

RUNS = [bytes([i]) * 32 for i in range(5)]
ONE, OTHER = b"1" * 32, b"2" * 32


@pytest.fixture
def journal() -> Journal:
    made = Journal.open()
    for run in RUNS[:3]:
        made.enter(run, ONE)
    return made


def edit(statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(journal_file())) as database, database:
        database.execute(statement, values)


def test_what_was_entered_first_stays(journal: Journal) -> None:
    assert journal.enter(RUNS[3], ONE) == ONE
    assert journal.enter(RUNS[3], OTHER) == ONE
    assert [journal.entry(run) for run in RUNS] == [ONE, ONE, ONE, ONE, None]
    assert Journal.open() == Journal.named(journal.name) == journal


@pytest.mark.usefixtures("_umask")
def test_it_lies_beside_the_key_for_its_owner_alone(tmp_path: Path) -> None:
    made = Journal.open()
    made.enter(RUNS[0], ONE)
    assert made.path == tmp_path / "keys" / "key.journal"
    assert mode(made.path) == 0o600
    assert mode(made.path.parent) == 0o700
    assert os.listdir(made.path.parent) == ["key.journal"], "without a key of its own"


@pytest.mark.parametrize("sealed", [True, False])
def test_checkpoints_of_many_projects_share_it(sealed: bool, tmp_path: Path, monkeypatch: Any) -> None:
    from leakcap.custody.checkpoint import Checkpoint

    monkeypatch.setattr(keys, "can_seal", lambda: sealed)
    for project in ("here", "there"):
        stored = Checkpoint.open(tmp_path / project)
        stored.begin({})
        assert stored.released() is None
        assert stored.commit(vector=[len(project)])["vector"] == stored.released()["vector"]  # type: ignore[index]
    with closing(sqlite3.connect(journal_file())) as database:
        assert database.execute("SELECT count(*) FROM spent").fetchone() == (2,)


def test_a_missing_journal_and_another_in_its_place_are_told(journal: Journal) -> None:
    journal.path.rename(journal.path.with_name("kept"))
    for call in (lambda: Journal.named(journal.name), lambda: journal.entry(ONE), lambda: journal.enter(ONE, ONE)):
        assert "copy" in refused(call)
    assert not journal.path.exists(), "none was made in its place"
    Journal.open()
    for call in (lambda: Journal.named(journal.name), lambda: journal.entry(ONE), lambda: journal.enter(ONE, ONE)):
        assert "copy" in refused(call)
    os.replace(journal.path.with_name("kept"), journal.path)
    assert Journal.named(journal.name).entry(RUNS[0]) == ONE


DAMAGES = {
    "an entry less": "DELETE FROM spent WHERE run = (SELECT min(run) FROM spent)",
    "all entries less": "DELETE FROM spent",
    "another release": "UPDATE spent SET release = zeroblob(32)",
    "another run": "UPDATE spent SET run = zeroblob(31) WHERE run = (SELECT max(run) FROM spent)",
    "a text for a run": "UPDATE spent SET run = 5 WHERE run = (SELECT max(run) FROM spent)",
    "an entry more": "INSERT INTO spent VALUES (zeroblob(30), zeroblob(32))",
    "another sum": "UPDATE journal SET total = zeroblob(32)",
    "no sum": "UPDATE journal SET total = 7",
    "no header": "DELETE FROM journal",
    "two headers": "INSERT INTO journal SELECT * FROM journal",
    "another table": "CREATE TABLE more (number)",
    "no table": "DROP TABLE spent",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_told_and_nothing_is_taken_for_unspent(name: str, journal: Journal) -> None:
    edit(DAMAGES[name])
    for call in (lambda: journal.entry(RUNS[4]), lambda: journal.enter(RUNS[4], ONE)):
        assert "damaged" in refused(call)


def test_no_byte_can_be_changed_so_that_a_spent_run_is_unspent(journal: Journal) -> None:
    """What is changed is damage, or it is where nothing is stored."""
    content = journal.path.read_bytes()
    changed = 0
    for place in range(0, len(content), 13):
        journal.path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            entries = [journal.entry(run) for run in RUNS]
        except lc.InputError:
            changed += 1
        else:
            assert entries == [ONE, ONE, ONE, None, None]
    assert changed > 10


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + bytes(4000)])
def test_what_is_no_journal_is_refused_and_left_alone(content: bytes, journal: Journal) -> None:
    journal.path.write_bytes(content)
    refused(Journal.open)
    refused(lambda: journal.enter(ONE, ONE))
    assert journal.path.read_bytes() == content


def test_files_that_others_may_have_written_are_refused(journal: Journal, tmp_path: Path) -> None:
    journal.path.chmod(0o666)
    assert "0600" in refused(lambda: journal.enter(RUNS[0], OTHER))
    shutil.move(journal.path, tmp_path / "moved")
    journal.path.symlink_to(tmp_path / "moved")
    refused(Journal.open)


def test_an_entry_that_could_not_be_stored_is_an_error_and_no_entry(journal: Journal, monkeypatch: Any) -> None:
    for statement in ("BEGIN IMMEDIATE", "INSERT INTO spent", "UPDATE journal", "COMMIT"):
        with monkeypatch.context() as patch:
            failing(patch, statement)
            assert "LEAKCAP_KEY" in refused(lambda: journal.enter(RUNS[3], ONE))
        assert journal.entry(RUNS[3]) is None


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "file" / "key"))
    assert "LEAKCAP_KEY" in refused(Journal.open)


def test_of_many_threads_one_enters(journal: Journal) -> None:
    entered: list[bytes] = []
    tries = [bytes([i]) * 32 for i in range(6)]
    threads = [threading.Thread(target=lambda t=t: entered.append(journal.enter(RUNS[4], t))) for t in tries]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(entered) == 6
    assert set(entered) == {journal.entry(RUNS[4])}


def test_it_stays_small_over_the_years(journal: Journal) -> None:
    with closing(sqlite3.connect(journal.path)) as database, database:
        rows = [(os.urandom(32), os.urandom(32)) for _ in range(2000)]
        database.executemany("INSERT INTO spent VALUES (?, ?)", rows)
    assert journal.path.stat().st_size < 2000 * 120
