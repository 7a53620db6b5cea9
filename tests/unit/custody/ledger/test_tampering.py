"""Whoever changes a ledger by hand, without the key, is found out: nothing is answered from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import keys
from leakcap.custody.ledger import open_book
from tests.refusals import refusal
from tests.unit.custody.ledger.places import Place, charge, filled, untouched, walked

CHANGED = "does not open with this key"
CHANGES = {
    "the last charge": ("UPDATE entries SET charge = 7 WHERE number = 5", "charge"),
    "an earlier charge made smaller": ("UPDATE entries SET charge = 0 WHERE number = 2", "walk"),
    "a body": ("UPDATE entries SET body = digest WHERE number = 3", "walk"),
    "a body taken away": ("UPDATE entries SET body = NULL WHERE number = 3", "walk"),
    "a request": ("UPDATE entries SET request = NULL WHERE number = 3", "walk"),
    "a question": ("UPDATE entries SET question = digest WHERE number = 3", "walk"),
    "a head": ("UPDATE entries SET head = digest WHERE number = 3", "walk"),
    "the last but one head": ("UPDATE entries SET head = digest WHERE number = 4", "charge"),
    "an entry deleted": ("DELETE FROM entries WHERE number = 3", "walk"),
    "the first entry deleted": ("DELETE FROM entries WHERE number = 1", "walk"),
    "an entry moved to the end": ("UPDATE entries SET number = 9 WHERE number = 3", "charge"),
    "the state of before": ("UPDATE beside SET content = ? WHERE name = 'state'", "charge"),
    "a state deleted": ("DELETE FROM beside WHERE name = 'state'", "charge"),
    "the title": ("UPDATE beside SET content = ? WHERE name = 'title'", "charge"),
    "a value": ("UPDATE beside SET content = ? WHERE name = 'value'", "walk"),
    "a value deleted": ("DELETE FROM beside WHERE name = 'value'", "walk"),
    "a value put in": ("UPDATE beside SET name = 'more' WHERE name = 'value'", "walk"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_hand_is_found(change: str, place: Place) -> None:
    account = filled(place)
    statement, seen_by = CHANGES[change]
    place.edit(statement, *([b"leakcap sealed 1" + bytes(60)] if "?" in statement else []))
    for one in (account, place.account()):
        refusal(lambda one=one: walked(one), CHANGED)  # type: ignore[misc]
        if seen_by == "charge":
            refusal(lambda one=one: charge(one, "another"), CHANGED)  # type: ignore[misc]


def test_two_entries_that_change_places(place: Place) -> None:
    account = filled(place)
    for before, after in ((2, 900), (3, 2), (900, 3)):
        place.edit("UPDATE entries SET number = ? WHERE number = ?", after, before)
    refusal(lambda: walked(account), CHANGED)


def test_the_last_entries_cut_off_with_the_state_of_that_time(file: Place, tmp_path: Path) -> None:
    """Everything fits, but the key file knows better."""
    import sqlite3

    account = filled(file)
    with sqlite3.connect(file.path) as database:
        before = database.execute("SELECT name, content FROM beside").fetchall()
    charge(account, "later")
    file.edit("DELETE FROM entries WHERE number = 6")
    for name, content in before:
        file.edit("UPDATE beside SET content = ? WHERE name = ?", content, name)
    refusal(lambda: charge(file.account(), "once more"), "not the latest")


def test_a_copy_brought_back_is_refused_and_the_latest_goes_on(file: Place, tmp_path: Path) -> None:
    account = filled(file)
    account.book.store.close()
    shutil.copy(file.path, tmp_path / "copy.db")
    charge(file.account(), "later")
    older = Place(f"sqlite:///{tmp_path}/copy.db").account()
    refusal(lambda: charge(older, "from the copy"), "not the latest")
    refusal(lambda: walked(older), "not the latest")
    charge(file.account(), "and on")


def test_of_two_copies_used_at_once_one_goes_on(file: Place, tmp_path: Path) -> None:
    account = filled(file)
    account.book.store.close()
    shutil.copy(file.path, tmp_path / "copy.db")
    copy = Place(f"sqlite:///{tmp_path}/copy.db").account()

    def slower() -> None:
        with account.writing() as now:  # it has begun before the other has ended
            now.append("charge", {}, charge=1)
            charge(copy, "b")

    refusal(slower, "not the latest")
    refusal(lambda: charge(account, "a"), "not the latest")
    charge(copy, "c")


def test_two_copies_write_the_same_entry(file: Place, tmp_path: Path) -> None:
    account = filled(file)
    account.book.store.close()
    shutil.copy(file.path, tmp_path / "copy.db")
    copy = Place(f"sqlite:///{tmp_path}/copy.db").account()
    charge(copy, "b")
    refusal(lambda: charge(file.account(), "a"), "not the latest")
    charge(copy, "c")


def test_another_key_opens_nothing_and_spoils_nothing(place: Place, tmp_path: Path, monkeypatch: Any) -> None:
    account = filled(place)
    own = keys.key_file()
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "another" / "key"))
    refusal(lambda: charge(account, "without a key"), "cannot read the key file")
    keys.own_key()
    refusal(lambda: charge(account, "with the key of another"), "another key")
    refusal(lambda: open_book(place.url), "was made with another key")
    monkeypatch.setenv("LEAKCAP_KEY", str(own))
    untouched(place.account())


def test_a_ledger_of_another_place_put_in_its_place(file: Place, tmp_path: Path) -> None:
    filled(file).book.store.close()
    other = Place(f"sqlite:///{tmp_path}/other.db")
    filled(other).book.store.close()
    shutil.copy(file.path, tmp_path / "kept.db")
    account = file.account()
    shutil.copy(other.path, tmp_path / "swap.db")
    (tmp_path / "swap.db").chmod(0o600)
    (tmp_path / "swap.db").rename(file.path)
    refusal(lambda: charge(account, "while it is in use"), "another ledger was put in the place|damaged|does not open")
    refusal(lambda: open_book(file.url), "not the ledger that was there before")


@pytest.mark.parametrize("changed", ["name", "salt", "version"])
def test_a_changed_header(changed: str, place: Place) -> None:
    filled(place).book.store.close()
    place.edit(f"UPDATE ledger SET {changed} = {'99' if changed == 'version' else 'salt'}")
    if changed == "salt":
        place.edit("UPDATE ledger SET salt = name")
    words = "later version" if changed == "version" else "made with another key"
    refusal(lambda: open_book(place.url), words, lc.InputError)
