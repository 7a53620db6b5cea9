"""The journal of an earlier version is taken over once, whole, whatever stops it; damage is told."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from leakcap.custody import keys
from leakcap.custody.journal import Journal
from leakcap.custody.old_journal import SCHEMA, OldJournal, old_journal_file
from tests.unit.custody.rows import refused

NAME, ONE, OTHER = b"n" * 32, b"1" * 32, b"2" * 32
RUNS = [bytes([i]) * 32 for i in range(4)]


def write(spent: dict[bytes, bytes], name: bytes = NAME) -> Path:
    """As earlier versions wrote it."""
    keys.own_key()
    total = 0
    for run, release in spent.items():
        total ^= int.from_bytes(hashlib.sha256(len(run).to_bytes(8, "big") + run + release).digest(), "big")
    with closing(sqlite3.connect(old_journal_file())) as database, database:
        for statement in SCHEMA:
            database.execute(statement)
        database.execute("INSERT INTO journal VALUES ('note', ?, ?)", (name, total.to_bytes(32, "big")))
        database.executemany("INSERT INTO spent VALUES (?, ?)", spent.items())
    old_journal_file().chmod(0o600)
    return old_journal_file()


def test_it_is_taken_over_with_its_name_and_put_aside() -> None:
    path = write({RUNS[0]: ONE, RUNS[1]: OTHER})
    found = Journal.named(NAME)
    assert [found.entry(run) for run in RUNS[:3]] == [ONE, OTHER, None]
    assert found.enter(RUNS[0], OTHER) == ONE
    assert not path.exists()
    assert path.with_name(path.name + ".imported").exists()
    assert Journal.named(NAME).name == Journal.open().name != NAME
    with found.account.reading() as now:
        assert [entry.kind for entry in now.entries()] == ["taken over"]


@pytest.mark.parametrize("stop", ["before", "between"])
def test_stopped_in_the_middle_it_is_done_again(stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write({RUNS[0]: ONE})

    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        if stop == "before":
            patch.setattr("leakcap.custody.journal._take_over", stopped)
        else:
            patch.setattr(OldJournal, "put_aside", staticmethod(stopped))
        with pytest.raises(KeyboardInterrupt):
            Journal.open()
    assert path.exists()
    assert Journal.open().entry(RUNS[0]) == ONE
    assert not path.exists()
    with Journal.open().account.reading() as now:
        assert len(list(now.entries())) == 1


def test_what_is_known_stays_and_a_second_one_is_added() -> None:
    write({RUNS[0]: ONE})
    Journal.open().enter(RUNS[1], ONE)
    write({RUNS[1]: OTHER, RUNS[2]: OTHER}, name=b"m" * 32)
    found = Journal.named(b"m" * 32)
    assert [found.entry(run) for run in RUNS] == [ONE, ONE, OTHER, None]
    assert Journal.named(NAME).names == found.names


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM spent",
        "UPDATE spent SET release = zeroblob(32)",
        "UPDATE spent SET release = 5",
        "DELETE FROM journal",
        "UPDATE journal SET total = zeroblob(32)",
        "CREATE TABLE more (number)",
        "DROP TABLE spent",
    ],
)
def test_a_damaged_one_is_told_and_left_alone(statement: str) -> None:
    path = write({RUNS[0]: ONE})
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)
    assert "damaged" in refused(Journal.open)
    assert path.exists()


def test_one_of_somebody_else_is_refused() -> None:
    path = write({RUNS[0]: ONE})
    path.chmod(0o666)
    assert "0600" in refused(Journal.open)
    path.unlink()
    path.symlink_to(os.devnull)
    refused(Journal.open)
