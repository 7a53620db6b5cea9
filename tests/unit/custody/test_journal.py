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
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.operations import verify
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


def closed(journal: Journal) -> Path:
    """The file alone, as it is on the disk."""
    journal.account.book.store.close()
    return journal_file()


def test_what_was_entered_first_stays(journal: Journal) -> None:
    assert journal.enter(RUNS[3], ONE) == ONE
    assert journal.enter(RUNS[3], OTHER) == ONE
    assert [journal.entry(run) for run in RUNS] == [ONE, ONE, ONE, ONE, None]
    assert Journal.open().name == Journal.named(journal.name).name == journal.name
    assert [Journal.open().entry(run) for run in RUNS] == [ONE, ONE, ONE, ONE, None]
    refused(lambda: journal.enter(b"short", ONE))


@pytest.mark.usefixtures("_umask")
def test_it_lies_beside_the_key_for_its_owner_alone(tmp_path: Path) -> None:
    made = Journal.open()
    made.enter(RUNS[0], ONE)
    assert closed(made) == tmp_path / "keys" / "key.ledger"
    assert mode(journal_file()) == 0o600
    assert mode(journal_file().parent) == 0o700
    assert sorted(os.listdir(journal_file().parent)) == ["key", "key.ledger", "key.ledger.lock"]


@pytest.mark.parametrize("sealed", [True, False])
def test_checkpoints_of_many_projects_share_it(sealed: bool, tmp_path: Path, monkeypatch: Any) -> None:
    from leakcap.custody.checkpoint import Checkpoint

    for project in ("one", "another"):
        with monkeypatch.context() as patch:
            if not sealed and project == "another":  # the extra is not needed for what another installation has made
                patch.setattr(keys, "can_seal", lambda: False)
            stored = Checkpoint.open(tmp_path / project)
            stored.begin({})
            assert stored.released() is None
            assert stored.commit(vector=[len(project)])["vector"] == stored.released()["vector"]  # type: ignore[index]
    with Journal.open().account.reading() as now:
        assert [entry.kind for entry in now.entries()] == ["release", "release"]


def test_it_is_verified_with_the_sessions_in_the_ledger(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAKCAP_LEDGER")
    place = f"sqlite:///{journal_file()}"
    lc.Session([[1.0]] * 20, cap=0.6, ledger=place).count(share=0.01)
    found = verify(open_book(None))
    assert found.whole
    assert (found.accounts, found.entries) == (3, 6)
    assert journal.enter(RUNS[3], ONE) == ONE


def test_a_missing_journal_and_another_in_its_place_are_told(journal: Journal, tmp_path: Path) -> None:
    path, kept = closed(journal), journal_file().with_name("kept")
    path.rename(kept)
    calls = (lambda: Journal.named(journal.name), lambda: journal.entry(ONE), lambda: journal.enter(ONE, ONE))
    for call in (*calls, Journal.open):
        assert "copy" in refused(call)
    assert not path.exists(), "none was made in its place"
    with pytest.MonkeyPatch.context() as patch:  # the ledger of another key, put in its place
        patch.setenv("LEAKCAP_KEY", str(tmp_path / "others" / "key"))
        shutil.copy(closed(Journal.open()), path)
    for call in (*calls, Journal.open):
        refused(call)
    os.replace(kept, path)
    assert Journal.named(journal.name).entry(RUNS[0]) == ONE
    assert "not the journal" in refused(lambda: Journal.named(bytes(32)))


def test_an_older_one_that_is_brought_back_is_refused(journal: Journal) -> None:
    kept = journal_file().with_name("kept")
    shutil.copy(closed(journal), kept)
    journal.enter(RUNS[3], ONE)
    os.replace(kept, closed(journal))
    assert "not the latest" in refused(lambda: Journal.open().entry(RUNS[3]))


DAMAGES = {
    "an entry less": "DELETE FROM entries WHERE number = 3",
    "all entries less": "DELETE FROM entries",
    "other releases": "UPDATE beside SET content = zeroblob(120) WHERE name = 'spent'",
    "a text": "UPDATE beside SET content = 'text' WHERE name = 'spent'",
    "no releases": "DELETE FROM beside WHERE name = 'spent'",
    "no state": "DELETE FROM beside WHERE name = 'state'",
    "nothing at all": "DELETE FROM beside",
    "no header": "DELETE FROM ledger",
    "two headers": "INSERT INTO ledger SELECT * FROM ledger",
    "another table": "CREATE TABLE more (number)",
    "no table": "DROP TABLE beside",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_told_and_nothing_is_taken_for_unspent(name: str, journal: Journal) -> None:
    closed(journal)
    edit(DAMAGES[name])
    for call in (lambda: journal.entry(RUNS[4]), lambda: Journal.open().enter(RUNS[4], ONE)):
        message = refused(call)
        assert "damaged" in message or "latest" in message


def test_no_byte_can_be_changed_so_that_a_spent_run_is_unspent(journal: Journal) -> None:
    """What is changed is damage, or it is where nothing is stored."""
    content = closed(journal).read_bytes()
    changed = 0
    stored = [place for place in range(len(content)) if content[place] and place % 7 == 0]
    for place in stored[:: max(1, len(stored) // 150)]:
        journal_file().write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            found = Journal.open()
            entries = [found.entry(run) for run in RUNS]
        except lc.InputError:
            changed += 1
        else:
            assert entries == [ONE, ONE, ONE, None, None]
            found.account.book.store.close()
    assert changed > 10


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + bytes(4000)])
def test_what_is_no_journal_is_refused_and_left_alone(content: bytes, journal: Journal) -> None:
    closed(journal).write_bytes(content)
    refused(Journal.open)
    refused(lambda: journal.enter(ONE, ONE))
    assert journal_file().read_bytes() == content


def test_files_that_others_may_have_written_are_refused(journal: Journal, tmp_path: Path) -> None:
    closed(journal).chmod(0o666)
    assert "0600" in refused(lambda: journal.enter(RUNS[0], OTHER))
    shutil.move(journal_file(), tmp_path / "moved")
    journal_file().symlink_to(tmp_path / "moved")
    refused(Journal.open)


def test_an_entry_that_could_not_be_stored_is_an_error_and_no_entry(journal: Journal, monkeypatch: Any) -> None:
    for statement in ("BEGIN IMMEDIATE", "INSERT INTO entries", "INSERT INTO beside", "COMMIT"):
        closed(journal)
        with monkeypatch.context() as patch:
            failing(patch, statement)
            assert "No space left" in refused(lambda: journal.enter(RUNS[3], ONE))
            closed(journal)
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
    from leakcap.custody.journal import _write

    with journal.account.writing() as now:
        _write(now, {os.urandom(32): os.urandom(32) for _ in range(20_000)}, "many")
    journal.enter(RUNS[4], ONE)
    assert journal.entry(RUNS[4]) == ONE
    journal.account.book.store.scrub()
    assert journal_file().stat().st_size < 20_000 * 160
