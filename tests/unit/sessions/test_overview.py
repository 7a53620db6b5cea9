"""A ledger at a glance: by whom, when and from which clock, read off its entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.ledger import AccountAt, open_book
from leakcap.custody.ledger.accounts import TICKS, record_alone
from leakcap.custody.ledger.operations import account_named, forget, set_budget, show
from leakcap.sessions.clock import Clock, told_after
from leakcap.sessions.overview import AccountOverview, overview

ROWS = np.random.default_rng(1).normal(size=(40, 1))
CAPS = (lc.membership(0.6),)


@pytest.fixture
def place(tmp_path: Path, own_key: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def session(place: str, **more: Any) -> lc.Session:
    return lc.Session(ROWS, cap=0.6, ledger=place, name="rows", **more)


def seen(place: str, name: str = "rows") -> AccountOverview:
    (found,) = overview(place, name).accounts
    return found


def test_shares_add_up_by_clock_by_analyst_and_by_day(place: str) -> None:
    session(place).count(share=0.01)
    session(place, analyst="ann").count(share=0.02)
    groups = {"east": ["eve"]}
    set_budget(account_named(open_book(place), "rows"), who="me", why="as agreed", groups=groups, analysts={"bob": 5})
    session(place, analyst="eve").count(share=0.04)
    found = seen(place)
    assert found.by_group == pytest.approx({"": 0.03, "east": 0.04})
    assert found.by_analyst == pytest.approx({"": 0.01, "ann": 0.02, "eve": 0.04, "bob": 0.0})
    assert list(found.by_day.values()) == pytest.approx([0.07])
    assert [json.loads(one.question)["kind"] for one in found.answers] == ["count"] * 3
    (change,) = found.changes
    assert (change.who, change.why, change.what["groups"]) == ("me", "as agreed", groups)
    (standing,) = show(open_book(place))
    assert {name: spent * TICKS for name, spent in found.by_group.items()} == pytest.approx(dict(standing.declared))


def test_what_was_given_so_far_is_told_by_what_was_taken_and_no_more_than_there_is(place: str) -> None:
    session(place).count(share=0.25)
    clock = Clock.of(CAPS)
    so_far = seen(place).together.so_far
    assert so_far == pytest.approx(told_after(0.25 * clock.square, clock.distance), abs=1e-9)
    retiring = session(place, retire=True)
    for share in (0.5, 0.51, 0.52):
        retiring.count(share=share)
    found = seen(place)
    assert found.by_group[""] > found.whole
    assert found.together.so_far == pytest.approx(found.success, abs=1e-9)


def test_what_is_not_counted_is_told_and_claims_are_narrowed(place: str) -> None:
    lc.release(lambda x: float(np.median(x)), ROWS, cap=0.6, worlds=16, draws=256, ledger=place, name="rows")
    assert seen(place).words.endswith("there is no other.")
    assert seen(place).own[0][1] == "50 %"
    record_alone(open_book(place), "rows", "x", "the mean, once more")
    found = seen(place)
    assert [one.what for one in found.uncounted] == ["the mean, once more"]
    assert "no other" not in found.words and "Nothing bounds" in found.words


def test_one_content_under_two_names_is_seen(place: str) -> None:
    lc.Session(ROWS, cap=0.6, ledger=AccountAt(place, "a", "v1"))
    record_alone(open_book(place), "b", "v1", "besides")
    record_alone(open_book(place), "c", "v2", "another file")
    assert [one.same_data for one in overview(place).accounts] == [("b",), ("a",), ()]


def test_numbers_of_listed_worlds_are_one_answer(place: str) -> None:
    rows = np.random.default_rng(2).normal(size=(30, 2))
    asked = lc.Session(rows, cap=0.7, design="worlds", worlds=16, ledger=place, name="rows")
    answer = asked.mean(["0", "1"], share=0.2)
    (standing,) = show(open_book(place))
    assert standing.answers == 2, "each number was charged for"
    (found,) = seen(place).answers
    assert found.share == pytest.approx(answer.share)
    assert seen(place).success is None and "70 %" in seen(place).words


def test_a_forgotten_account_tells_when_and_why_and_nothing_that_was_asked(place: str) -> None:
    session(place).count(share=0.01)
    forget(account_named(open_book(place), "rows"), who="me", why="the study has ended")
    found = seen(place)
    assert found.closed is not None and found.closed.why == "the study has ended"
    assert [one.question for one in found.answers] == [""] and found.by_day == {}


def test_others_are_named_and_who_is_not_there_is_refused(place: str) -> None:
    session(place)
    record_alone(open_book(place), "other", "v2", "a file")
    found = overview(place, "rows")
    assert found.others == ("other",) and found.findings.whole
    assert [one.standing.name for one in overview(place).accounts] == ["other", "rows"]
    with pytest.raises(lc.InputError, match="no account"):
        overview(place, "nobody")
