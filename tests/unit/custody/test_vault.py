"""The vault: every value whole or not there, in one file whatever it holds."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import sqlite_file, vault
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import FILE, Vault
from tests.unit.custody.rows import SECRET, as_nobody, edit, failing, refused, stored

# Whole or not there


@contextmanager
def no_larger_files(most: int) -> Iterator[None]:
    """What the operating system refuses to write beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "UPDATE vault", "REPLACE INTO entries", "COMMIT"])
def test_a_write_that_fails_leaves_the_old_values_whole_and_nothing_else(
    statement: str, exclusive: bool, made: Vault, monkeypatch: Any
) -> None:
    before, bytes_before = sorted(os.listdir(made.folder)), (made.folder / FILE).read_bytes()
    name = "three" if exclusive else "one"
    with monkeypatch.context() as patch:
        failing(patch, statement)
        with pytest.raises(lc.LeakcapError, match="No space left"):
            made.write(name, b"something else", exclusive=exclusive)
    assert made.read("one") == SECRET
    assert made.read("three") is None
    assert sorted(os.listdir(made.folder)) == before
    assert (made.folder / FILE).read_bytes() == bytes_before


def test_a_full_disk_is_told_in_our_own_words(made: Vault, monkeypatch: Any) -> None:
    """SQLite's own limit: the file may have no page more than it has."""
    monkeypatch.setattr(sqlite_file, "PRAGMAS", (*sqlite_file.PRAGMAS, "max_page_count = 1"))
    with pytest.raises(lc.LeakcapError, match=r"cannot write .*No space left.*make room"):
        made.write("one", os.urandom(50_000))
    assert made.read("one") == SECRET


def test_a_disk_that_cannot_be_written_is_told_in_our_own_words(made: Vault) -> None:
    with no_larger_files((made.folder / FILE).stat().st_size), pytest.raises(lc.LeakcapError, match="cannot write"):
        made.write("one", os.urandom(50_000))
    assert made.read("one") == SECRET
    made.write("one", b"later")
    assert made.read("one") == b"later"


def test_a_read_only_folder_can_be_read_and_says_why_it_cannot_be_written(monkeypatch: Any) -> None:
    with as_nobody() as place:
        monkeypatch.setenv("LEAKCAP_KEY", str(place / "key"))
        folder = place / "plan"
        Checkpoint.open(folder).begin({"the data": "these"}, 5)
        made = Vault.existing(folder)
        folder.chmod(0o500)
        try:
            assert Checkpoint.stored(folder).entropy == 5
            with pytest.raises(lc.InputError, match=r"cannot write .*choose a folder on a local disk"):
                made.write("one", SECRET)
            with pytest.raises(lc.InputError, match=r"cannot write .*Permission denied"), Checkpoint(made).alone():
                pass
            with pytest.raises(lc.InputError, match="Permission denied"):
                Vault.open(folder / "below")
            (folder / FILE).chmod(0o400)
            with pytest.raises(lc.InputError, match=r"cannot write .*Read-only"):
                made.write("one", SECRET)
            assert made.read("one") is None
        finally:
            folder.chmod(0o700)


KILLED = """
import os, signal, sys
from pathlib import Path
from leakcap.custody import sqlite_file, vault
sqlite_file.PRAGMAS += ("cache_size = 1",)  # pages are written before the end of the transaction
made = vault.Vault.existing(Path(sys.argv[1]))
with vault._file(made.folder).writing() as database:
    database.execute("UPDATE entries SET title = x'00', content = zeroblob(100000)")
    database.execute("UPDATE vault SET titles = x'00', salt = x'00'")
    database.execute("INSERT INTO entries VALUES (x'00', x'00', zeroblob(1000000))")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_killed_while_it_writes_leaves_the_values_as_they_were(made: Vault) -> None:
    before = (made.folder / FILE).read_bytes()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(made.folder)], check=False)
    assert killed.returncode == -9
    assert (made.folder / FILE).read_bytes() != before, "it was in the middle"
    assert (made.folder / f"{FILE}-journal").exists()
    again = Vault.existing(made.folder)
    assert [again.read("one"), again.read("two")] == [SECRET, SECRET[::-1]]
    assert os.listdir(made.folder) == [FILE]


def test_what_was_written_survives_a_power_cut(made: Vault) -> None:
    """SQLite's own promise, if it is asked for: flushed in order, the journal's folder included, and no shortcut."""
    with vault._file(made.folder).writing() as database:
        asked = {
            name: database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode", "secure_delete", "fullfsync")
        }
    assert asked == {"synchronous": 3, "journal_mode": b"delete", "secure_delete": 1, "fullfsync": 1}


def test_a_new_folder_survives_a_power_cut(tmp_path: Path, monkeypatch: Any) -> None:
    """Its name is flushed, and those of the folders above that were made for it: else a stored release goes with it."""
    flushed: list[str] = []
    real = os.fsync

    def noted(handle: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", noted)
    above = tmp_path / "a" / "b"
    Vault.open(above / "plan")
    assert {str(folder) for folder in (tmp_path, tmp_path / "a", above, above / "plan")} <= set(flushed)


def test_a_disk_without_locks_is_told_in_our_own_words(made: Vault, monkeypatch: Any) -> None:
    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(lc.InputError, match=r"cannot lock .*No locks.*local disk"), Checkpoint(made).alone():
        pass


def test_a_new_vault_appears_whole(tmp_path: Path, monkeypatch: Any) -> None:
    """Killed before it has its name: nothing is there, and the next run makes another."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", killed)
        with pytest.raises(KeyboardInterrupt):
            Vault.open(tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())
    (tmp_path / "folder" / f".{FILE}.99999999.ab.part").write_bytes(b"half")
    made = Vault.open(tmp_path / "folder")
    made.sweep()
    assert os.listdir(made.folder) == [FILE]


def test_a_value_that_is_too_large_for_the_file_is_a_clear_error(made: Vault, monkeypatch: Any) -> None:
    assert sqlite3.connect(":memory:").getlimit(sqlite3.SQLITE_LIMIT_LENGTH) > vault.LARGEST + 1000
    monkeypatch.setattr(vault, "LARGEST", 100)
    assert "too large for a checkpoint" in refused(lambda: made.write("one", bytes(101)))
    assert made.read("one") == SECRET


# Exclusive


def test_an_exclusive_write_never_replaces(made: Vault) -> None:
    with pytest.raises(FileExistsError):
        made.write("one", b"something else", exclusive=True)
    assert made.read("one") == SECRET


def test_of_many_threads_exactly_one_writes(made: Vault) -> None:
    start = threading.Barrier(8)
    won: list[int] = []

    def race(number: int) -> None:
        start.wait()
        try:
            made.write("release", str(number).encode() * 1000, exclusive=True)
            won.append(number)
        except FileExistsError:
            pass

    racers = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for one in racers:
        one.start()
    for one in racers:
        one.join()
    assert len(won) == 1
    assert made.read("release") == str(won[0]).encode() * 1000
    assert not list(made.folder.glob(".*.part"))


def test_of_many_processes_one_makes_key_and_folder_and_all_can_read(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from leakcap.custody.vault import Vault\n"
        "time.sleep(max(0, float(sys.argv[2]) - time.time()))\n"
        "made = Vault.open(Path(sys.argv[1]))\n"
        "for i in range(20): made.write(sys.argv[3], b'mine' if i == 19 else b'not yet'); made.write(f'all{i}', b'')\n"
    )
    at = str(time.time() + 2.0)
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "folder"), at, f"file{i}"]) for i in range(4)
    ]
    assert [one.wait() for one in running] == [0] * 4
    again = Vault.open(tmp_path / "folder")
    assert [again.read(f"file{i}") for i in range(4)] == [b"mine"] * 4
    assert len(again.names("all")) == 20
    assert sorted(os.listdir(tmp_path / "keys")) == ["key"]


def test_writers_wait_for_each_other_and_then_say_so(made: Vault, monkeypatch: Any) -> None:
    monkeypatch.setattr(sqlite_file, "PATIENCE", 0.05)
    with closing(sqlite3.connect(made.folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "wait for them" in refused(lambda: made.write("one", b"later"))
        assert made.read("one") == SECRET
        other.execute("ROLLBACK")
    made.write("one", b"later")
    assert made.read("one") == b"later"


def test_no_connection_outlives_a_call(made: Vault) -> None:
    """Nothing is there that a fork could share."""
    made.write("three", SECRET)
    made.read("three")
    list(made.contents(made.names()))
    opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert opened
    assert not [name for name in opened if FILE in name]


# Names


def test_missing_values_are_none_and_names_are_in_order(made: Vault) -> None:
    assert made.read("three") is None
    made.write("worlds-0000010", b"")
    made.write("worlds-0000002", b"")
    assert made.names("worlds-") == ["worlds-0000002", "worlds-0000010"]
    assert made.names() == ["one", "two", "worlds-0000002", "worlds-0000010"]


def test_reading_gives_back_exactly_what_was_written(made: Vault) -> None:
    for content in (b"", b"\0", os.urandom(100_000)):
        made.write("three", content)
        assert made.read("three") == content
    assert stored(made, "three") != content


# Forgetting


def test_forgetting_removes_everything_the_salt_first(made: Vault, monkeypatch: Any) -> None:
    for name in (".one.1.ab.part", f"{FILE}-journal", "lock"):
        (made.folder / name).write_bytes(b"half")
    order: list[str] = []
    real = Path.unlink

    def noted(path: Path, missing_ok: bool = False) -> None:
        order.append(path.name)
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", noted)
    made.forget()
    assert order[0] == FILE
    assert not made.folder.exists()


@pytest.mark.parametrize("left", [f"{FILE}-journal", "lock"])
def test_a_forgotten_folder_that_was_left_half_way_opens_nothing(left: str, tmp_path: Path) -> None:
    """Killed after the first step: what is left is noise."""
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    (tmp_path / "folder" / left).write_bytes(b"")
    (tmp_path / "folder" / FILE).unlink()
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_a_vault_that_was_forgotten_is_not_made_again_by_who_has_it_open(made: Vault) -> None:
    made.forget()
    for call in (lambda: made.read("one"), lambda: made.write("one", b""), made.names):
        assert "forgotten" in refused(call)
    assert not made.folder.exists()


def test_forgetting_twice_is_no_error(made: Vault) -> None:
    made.forget()
    made.forget()


def test_the_editor_of_these_tests_edits(made: Vault) -> None:
    """The planted twin of all that is refused: an edit that changes nothing is none."""
    edit(made, "UPDATE entries SET content = content")
    assert made.read("one") == SECRET
