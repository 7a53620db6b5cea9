"""Tables of an older version become those of today, or stay as they are; sealed contents are not touched."""

from __future__ import annotations

import pytest

from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.migrations import STEPS, steps_after
from leakcap.custody.ledger.store import VERSION
from leakcap.custody.ledger.tables import STATEMENTS
from tests.refusals import refusal
from tests.unit.custody.ledger.places import Place, charge, filled, untouched

INDEX = next(statement for statement in STATEMENTS if statement.startswith("CREATE INDEX"))


@pytest.fixture
def older(place: Place) -> Place:
    """A ledger of a made-up version 0, which looked for questions without an index."""
    filled(place).book.store.close()
    place.edit("DROP INDEX questions")
    place.edit("UPDATE ledger SET version = 0")
    return place


def test_it_goes_on_as_todays(older: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, 0, (INDEX,))
    account = older.account()
    assert account.book.header.version == VERSION
    untouched(account)
    assert charge(account, "after")
    book = open_book(older.url)
    assert book.store.header() == book.header == account.book.header


def test_a_version_that_nobody_knows_is_refused_and_stays(older: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal(lambda: open_book(older.url), "damaged, or no ledger")
    monkeypatch.setitem(STEPS, 0, (INDEX,))
    untouched(older.account())


def test_steps_that_fail_leave_everything_as_it_was(older: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, 0, ("DELETE FROM entries", INDEX, "CREATE TABLE ledger (version WHOLE)"))
    refusal(lambda: open_book(older.url))
    monkeypatch.setitem(STEPS, 0, (INDEX,))
    untouched(older.account())


def test_all_versions_between_are_needed() -> None:
    assert steps_after(VERSION, {}) == []
    assert steps_after(VERSION - 1, {}) is None
    assert steps_after(VERSION - 2, {VERSION - 2: ("a", "b"), VERSION - 1: ("c",)}) == ["a", "b", "c"]
