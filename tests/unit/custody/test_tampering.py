"""Values of a vault are never taken for something they are not, whoever has changed the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import keys, sealing
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import FILE, Vault
from leakcap.errors import MissingExtra
from leakcap.planning.entry import stored_plan
from tests.unit.custody.rows import SECRET, edit, put, refused, row, stored, take_away


def test_no_byte_of_a_value_can_be_changed(made: Vault) -> None:
    before = stored(made, "one")
    for place in range(len(before)):
        for bit in (0x01, 0x80):
            put(made, "one", before[:place] + bytes([before[place] ^ bit]) + before[place + 1 :])
            refused(lambda: made.read("one"))
    put(made, "one", before)
    assert made.read("one") == SECRET


def test_a_value_can_be_neither_cut_nor_lengthened(made: Vault) -> None:
    before = stored(made, "one")
    for length in range(len(before)):
        if made.key is None or not NONCE[0] <= length < NONCE[1]:
            put(made, "one", before[:length])
            refused(lambda: made.read("one"))
    for more in (b"\0", b"\n", before):
        put(made, "one", before + more)
        refused(lambda: made.read("one"))


NONCE = len(sealing.SEALED), len(sealing.SEALED) + 8


@pytest.mark.parametrize("length", NONCE)
def test_a_sealed_value_cut_inside_its_nonce_is_a_clear_error(length: int, tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    put(made, "one", stored(made, "one")[: min(length, NONCE[1] - 1)])
    refused(lambda: made.read("one"))


def test_two_values_cannot_be_exchanged(made: Vault) -> None:
    first, second = stored(made, "one"), stored(made, "two")
    put(made, "one", second)
    put(made, "two", first)
    refused(lambda: made.read("one"))
    refused(lambda: made.read("two"))


def test_two_rows_cannot_be_exchanged_with_their_titles(made: Vault) -> None:
    one, two = row(made, "one"), row(made, "two")
    assert one and two
    change = "UPDATE entries SET title = ?, content = ? WHERE mark = ?"
    edit(made, change, *two, made._mark("one"))
    edit(made, change, *one, made._mark("two"))
    refused(lambda: made.read("one"))
    refused(lambda: made.read("two"))


def test_two_names_cannot_be_exchanged(made: Vault) -> None:
    one, two = made._mark("one"), made._mark("two")
    for before, after in ((one, b"meanwhile"), (two, one), (b"meanwhile", two)):
        edit(made, "UPDATE entries SET mark = ? WHERE mark = ?", after, before)
    refused(lambda: made.read("one"))
    refused(lambda: made.read("two"))


def absences(made: Vault) -> list[Callable[[], Any]]:
    """Calls that would go on as if nothing were there."""
    return [
        lambda: made.read("one"),
        lambda: made.read("three"),
        made.names,
        lambda: made.write("one", b"another release", exclusive=True),
    ]


def test_a_row_that_was_taken_away_is_missed(made: Vault) -> None:
    """A release whose row is deleted is not made again."""
    take_away(made, "one")
    for call in (*absences(made), lambda: made.read("two")):
        refused(call)


def test_a_row_under_another_mark_is_missed(made: Vault) -> None:
    edit(made, "UPDATE entries SET mark = ? WHERE mark = ?", bytes(32), made._mark("one"))
    refused(lambda: made.read("one"))
    with pytest.raises(FileExistsError):
        made.write("one", b"another release", exclusive=True)


def test_a_sealed_row_of_an_earlier_moment_cannot_be_brought_back(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    earlier = row(made, "one")
    assert earlier
    made.write("one", b"later")
    put(made, "one", earlier[1])
    refused(lambda: made.read("one"))
    edit(made, "UPDATE entries SET title = ?, content = ? WHERE mark = ?", *earlier, made._mark("one"))
    refused(made.names)
    refused(lambda: made.read("one"))
    refused(lambda: made.read("three"))
    refused(lambda: list(made.contents(["one"])))


def test_rows_that_cancel_in_the_count_hide_no_earlier_one(tmp_path: Path) -> None:
    """The sum has no carry: a title that stands there twice is not in it."""
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    earlier = row(made, "one")
    made.write("one", b"later")
    later = row(made, "one")
    assert earlier and later
    edit(made, "UPDATE entries SET title = ?, content = ? WHERE mark = ?", *earlier, made._mark("one"))
    edit(made, "INSERT INTO entries VALUES (?, ?, ?)", bytes(32), *earlier)
    edit(made, "INSERT INTO entries VALUES (?, ?, ?)", bytes(31), *later)
    for call in absences(made):
        refused(call)


def test_values_are_read_one_after_the_other_while_others_are_written(made: Vault) -> None:
    reading = made.contents(["one", "two"])
    assert next(reading) == SECRET
    made.write("two", b"later")
    assert list(reading) == [b"later"]


def test_a_row_that_was_added_by_hand_is_seen(made: Vault) -> None:
    one = row(made, "one")
    assert one
    edit(made, "INSERT INTO entries VALUES (?, ?, ?)", made._mark("three"), *one)
    for call in (lambda: made.read("three"), made.names, lambda: made.write("four", b"", exclusive=True)):
        refused(call)


def test_an_earlier_count_of_the_rows_does_not_hide_a_later_one(made: Vault) -> None:
    ((before,),) = edit(made, "SELECT titles FROM vault")
    made.write("release", SECRET)
    take_away(made, "release")
    assert edit(made, "SELECT count(*) FROM entries") == [(2,)]
    refused(lambda: made.read("release"))
    edit(made, "UPDATE vault SET titles = ?", before)
    assert made.read("release") is None, "the whole file of an earlier moment: only a copy elsewhere could tell"


STRANGE: dict[str, str] = {
    "a number": "UPDATE entries SET content = 5",
    "nothing": "UPDATE entries SET content = ''",
    "a text": "UPDATE entries SET content = 'who'",
    "a title of text": "UPDATE entries SET title = 'one'",
    "a title that is a number": "UPDATE entries SET title = 5",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    "a view": "CREATE VIEW v AS SELECT * FROM entries",
    "no entries": "DROP TABLE entries",
    "no header": "DROP TABLE vault",
    "no rows in the header": "DELETE FROM vault",
    "two rows in the header": "INSERT INTO vault SELECT * FROM vault",
    "a strange count": "UPDATE vault SET titles = 5",
}


@pytest.mark.parametrize("statement", STRANGE.values(), ids=list(STRANGE))
def test_strange_rows_and_tables_are_a_clear_error(statement: str, made: Vault) -> None:
    edit(made, statement)
    refused(lambda: [Vault.open(made.folder).read(name) for name in ("one", "two", "three")])


def test_no_byte_of_the_file_can_be_changed_so_that_something_else_is_read(made: Vault) -> None:
    """Pages, pointers and keys included: either nothing changes or it is an error, and never a second release.

    The last of the bits makes texts that are no UTF-8, which SQLite quotes in its errors.
    """
    path = made.folder / FILE
    before = path.read_bytes()
    places = [place for place, byte in enumerate(before) if byte or place < 100]
    assert len(places) > 500
    errors = 0
    for place in places:
        bit = (0x04, 0x80)[place % 2]
        path.write_bytes(before[:place] + bytes([before[place] ^ bit]) + before[place + 1 :])
        try:
            again = Vault.existing(made.folder)
            found = again.read("one"), again.read("two"), again.read("three"), again.names()
            assert found == (SECRET, SECRET[::-1], None, ["one", "two"])
            with pytest.raises(FileExistsError):
                again.write("one", b"another release", exclusive=True)
        except lc.InputError:
            errors += 1
    assert errors > 0.7 * len(places)
    path.write_bytes(before)
    assert made.read("one") == SECRET


def test_a_file_that_was_cut_is_a_clear_error(made: Vault) -> None:
    path = made.folder / FILE
    made.write("three", os.urandom(50_000))
    before = path.read_bytes()
    for length in (0, 1, 50, 100, 4095, 4096, 8192, len(before) // 2, len(before) - 4096, len(before) - 1):
        path.write_bytes(before[:length])
        refused(lambda: [Vault.open(made.folder).read(name) for name in ("one", "two", "three")])


FOREIGN: dict[str, Callable[[Path], Any]] = {
    "text": lambda path: path.write_text("SQLite format 3, or so it says"),
    "noise": lambda path: path.write_bytes(os.urandom(8192)),
    "another database": lambda path: (
        sqlite3.connect(path).execute("CREATE TABLE people (name TEXT)").connection.close()
    ),
    "an empty file": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=list(FOREIGN))
def test_what_is_no_vault_is_refused_and_left_alone(make: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder / FILE)
    with suppress(IsADirectoryError, PermissionError):
        (folder / FILE).chmod(0o600)
    before = (folder / FILE).read_bytes() if (folder / FILE).is_file() else b""
    refused(lambda: Vault.open(folder))
    refused(lambda: Vault.existing(folder))
    assert before == ((folder / FILE).read_bytes() if (folder / FILE).is_file() else b"")


# Keys and salts


def test_a_sealed_value_of_another_folder_does_not_open(tmp_path: Path) -> None:
    here, there = Vault.open(tmp_path / "here"), Vault.open(tmp_path / "there")
    assert here.key != there.key
    here.write("one", SECRET)
    there.write("one", b"other")
    put(here, "one", stored(there, "one"))
    refused(lambda: here.read("one"))


def test_a_file_of_another_folder_is_no_file_of_an_open_vault(made: Vault, tmp_path: Path) -> None:
    """Begun anew in the same place while somebody still has the old one: that one reads and stores nothing."""
    there = Vault.open(tmp_path / "there")
    shutil.copy2(there.folder / FILE, made.folder / FILE)
    for call in (*absences(made), lambda: made.write("five", b"")):
        refused(call)


def test_a_file_that_was_bound_to_no_key_is_refused_unread(tmp_path: Path, monkeypatch: Any) -> None:
    """As earlier versions made it without the extra, and as anybody can make it."""
    made = Vault.open(tmp_path / "folder")
    edit(made, "UPDATE vault SET titles = ?", sealing.PLAIN_BEFORE + bytes(64))
    for sealed in (True, False):
        monkeypatch.setattr(keys, "can_seal", lambda sealed=sealed: sealed)
        for call in (Vault.open, Vault.existing):
            assert "with that version" in refused(lambda call=call: call(tmp_path / "folder"))  # type: ignore[misc]


def test_a_plain_file_of_somebody_else_in_the_place_of_a_sealed_one_runs_nothing(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """What a checkpoint holds is unpickled: whoever could write it could run code."""
    Checkpoint.open(tmp_path / "mine").begin({"the data": "x"})
    with monkeypatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(tmp_path / "theirs" / "key"))
        patch.setattr(keys, "can_seal", lambda: False)
        planted = Checkpoint.open(tmp_path / "planted")
        planted.begin({"the data": "x"})
        planted.keep("request", Pickled())
        planted.kept("request")
        assert RAN.pop() == "ran", "where the key is theirs, it runs"
    shutil.copy(tmp_path / "planted" / FILE, tmp_path / "mine" / FILE)
    refused(lambda: stored_plan(tmp_path / "mine"))
    refused(lambda: Checkpoint(Vault.existing(tmp_path / "mine")).kept("request"))
    refused(lambda: Checkpoint.open(tmp_path / "mine").begin({"the data": "x"}))
    assert RAN == []


RAN: list[str] = []


def run(word: str) -> None:
    RAN.append(word)


class Pickled:
    def __reduce__(self) -> Any:
        return run, ("ran",)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_value_does_not_open_with_another_key(sealed: bool, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(keys, "can_seal", lambda: sealed)
    Vault.open(tmp_path / "folder").write("one", SECRET)
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "other" / "key"))
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_sealed_values_do_not_show_what_they_hold(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET * 100)
    assert SECRET not in stored(made, "one")
    assert SECRET not in (made.folder / FILE).read_bytes()


def test_sealed_files_show_neither_names_nor_what_was_there_before(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    names = [f"a name that could be read {i}" for i in range(50)]
    old = []
    for name in names:
        made.write(name, SECRET * 300)
        old.append(stored(made, name))
        made.write(name, b"")
    content = (made.folder / FILE).read_bytes()
    assert b"a name that" not in content
    assert SECRET not in content
    assert len(content) > 300 * len(SECRET), "pages were freed"
    for sealed in old:
        assert not any(sealed[at : at + 64] in content for at in range(0, len(sealed) - 64, 512)), "not overwritten"
    assert b"CUSTODIAN ONLY" in content


def test_a_plain_value_is_no_sealed_one_and_a_sealed_no_plain_one(tmp_path: Path, monkeypatch: Any) -> None:
    sealed = Vault.open(tmp_path / "sealed")
    sealed.write("one", SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(keys, "can_seal", lambda: False)
        plain = Vault.open(tmp_path / "plain")
        plain.write("one", SECRET)
        patch.undo()
    swapped = stored(plain, "one"), stored(sealed, "one")
    put(sealed, "one", swapped[0])
    put(plain, "one", swapped[1])
    refused(lambda: Vault.open(tmp_path / "sealed").read("one"))
    refused(lambda: Vault.open(tmp_path / "plain").read("one"))


def test_a_folder_begun_without_the_extra_stays_readable_with_it(tmp_path: Path, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(keys, "can_seal", lambda: False)
        Vault.open(tmp_path / "folder").write("one", SECRET)
    assert Vault.open(tmp_path / "folder").read("one") == SECRET


def test_sealed_files_without_the_extra_name_it(tmp_path: Path, monkeypatch: Any) -> None:
    Vault.open(tmp_path / "folder").write("one", SECRET)
    monkeypatch.setattr(keys, "can_seal", lambda: False)
    with pytest.raises(MissingExtra, match=r"leakcap\[vault\]"):
        Vault.open(tmp_path / "folder")


HEADERS: dict[str, tuple[str, Any]] = {
    "cut": ("UPDATE vault SET salt = substr(salt, 1, ?)", 20),
    "empty": ("DELETE FROM vault WHERE ? = 1", 1),
    "a list": ("INSERT INTO vault SELECT * FROM vault WHERE ? = 1", 1),
    "a number": ("UPDATE vault SET salt = ?", 5),
    "no salt": ("UPDATE vault SET salt = ?", None),
    "another salt": ("UPDATE vault SET salt = ?", b"\xab" * 32),
    "an empty salt": ("UPDATE vault SET salt = ?", b""),
    "no bytes": ("UPDATE vault SET salt = ?", "zz" * 32),
    "a fraction for salt": ("UPDATE vault SET salt = ?", 5.5),
}


@pytest.mark.parametrize("damage", HEADERS.values(), ids=list(HEADERS))
def test_a_damaged_header_is_a_clear_error(damage: Any, tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    edit(made, *damage)
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_a_header_that_says_plain_does_not_open_sealed_files(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    edit(made, "UPDATE vault SET salt = NULL")
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_no_nonce_is_used_twice(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    start = len(sealing.SEALED)
    nonces = {made._seal.closed(b"", b"one")[start : start + 12] for _ in range(20_000)}
    assert len(nonces) == 20_000
