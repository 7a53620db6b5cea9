"""What the custodian does with a ledger: look, verify, export, set budgets, forget."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.caps import as_caps
from leakcap.custody import keys
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.operations import account_named, export, forget, set_budget, show, verify
from leakcap.sessions.clock import TICKS
from tests.refusals import refusal
from tests.unit.custody.ledger.places import Place

ROWS = np.random.default_rng(1).normal(size=(40, 1))
SAID: dict[str, str] = {"who": "the custodian", "why": "as agreed"}


def session(place: Place, **more: Any) -> lc.Session:
    return lc.Session(ROWS, cap=0.6, ledger=place.url, name="rows", **more)


def test_an_account_is_shown_with_what_everybody_has_used(place: Place) -> None:
    assert show(open_book(place.url)) == []
    one = session(place)
    one.count(share=0.01)
    session(place, analyst="ann").count(share=0.02)
    set_budget(one._desk.account, **SAID, analysts={"bob": 5, "ann": TICKS}, day=TICKS // 2, groups={"east": ["eve"]})
    (found,) = show(open_book(place.url))
    assert (found.name, found.design, found.answers, found.forgotten) == ("rows", "bits", 2, False)
    assert found.caps == (lc.membership(0.6).describe(),)
    assert (found.allowance, found.day_budget, found.groups) == (TICKS, TICKS // 2, {"east": ("eve",)})
    assert found.analysts["bob"] == (0, 5)
    assert found.analysts["ann"][1] == TICKS
    assert found.declared[""] == sum(used for used, _ in found.analysts.values()) == sum(found.days.values())
    assert found.declared[""] == pytest.approx(0.03 * TICKS)
    assert found.latest


def test_budgets_are_kept_and_written_down(place: Place) -> None:
    own = session(place)
    account = own._desk.account
    set_budget(account, **SAID, analysts={"ann": TICKS // 100}, day=TICKS // 50)
    ann, bob = session(place, analyst="ann"), session(place, analyst="bob")
    ann.count(share=0.009)
    refusal(lambda: ann.count(share=0.002), "left of your budget", lc.BudgetError)
    bob.count(share=0.002)
    refusal(lambda: bob.count(share=0.01), "left for today", lc.BudgetError)
    set_budget(account, who="another", why="a longer day", analysts={"ann": None}, day=None)
    ann.count(share=0.011)
    set_budget(account, who="another", why="too long", analysts={"ann": 0})
    refusal(lambda: ann.count(share=0.012), "left of your budget", lc.BudgetError)
    rows = [row for row in export(account) if row["kind"] == "budget"]
    assert [(row["who"], row["why"]) for row in rows] == [
        ("the custodian", "as agreed"),
        ("another", "a longer day"),
        ("another", "too long"),
    ]
    assert rows[2]["text"] == {"analysts": {"ann": 0}}


def test_a_raised_cap_is_a_longer_clock(place: Place) -> None:
    own = session(place, retire=False)
    own.count(share=0.9)
    refusal(lambda: own.count(share=0.2), "cannot pay", lc.BudgetError)
    account = own._desk.account
    set_budget(account, **SAID, allowance=TICKS * 3 // 2, caps=as_caps(0.7))
    own.count(share=0.2)
    assert own.remaining.share == pytest.approx(0.4)
    (found,) = show(open_book(place.url))
    assert (found.allowance, found.raised, found.caps) == (
        TICKS * 3 // 2,
        (as_caps(0.7)[0].describe(),),
        (own.caps[0].describe(),),
    )
    refusal(lambda: set_budget(account, **SAID, allowance=TICKS, caps=as_caps(0.55)), "never lowered")
    for other in (0.65, lc.pool_membership(0.9), lc.true_positive_rate(0.01, 0.5), [0.9, 0.9]):
        refusal(lambda other=other: set_budget(account, **SAID, allowance=9 * TICKS, caps=as_caps(other)), "own kind")
    refusal(lambda: set_budget(account, **SAID, allowance=2 * TICKS), "name the caps")
    session(place).count(share=0.1)


def test_groups_have_clocks_of_their_own_and_stay(place: Place) -> None:
    own = session(place, retire=False)
    account = own._desk.account
    own.count(share=0.9)
    set_budget(account, **SAID, groups={"east": ["eve"]})
    session(place, analyst="eve", retire=False).count(share=0.8)
    refusal(lambda: set_budget(account, **SAID, groups={}), "nobody leaves")
    refusal(lambda: set_budget(account, **SAID, groups={"east": []}), "nobody leaves")
    refusal(lambda: set_budget(account, **SAID, groups={"east": ["eve"], "west": ["eve"]}), "in one group")
    refusal(lambda: set_budget(account, **SAID, groups={"east": ["eve"], "": ["x"]}), "need names")
    session(place, analyst="ann").count(share=0.01)
    refusal(lambda: set_budget(account, **SAID, groups={"east": ["eve", "ann"]}), "has asked already")
    set_budget(account, **SAID, groups={"east": ["eve", "joe"], "west": ["kim"]})


def test_with_a_list_of_worlds_there_are_no_groups_and_no_longer_clocks(file: Place) -> None:
    account = open_book(file.url).account("worlds")
    with account.writing() as now:
        now.title, now.state = {"name": "worlds", "design": "worlds", "caps": []}, {"allowance": TICKS}
        now.append("opened", {})
    refusal(lambda: set_budget(account, **SAID, groups={"east": ["eve"]}), "list of worlds")
    refusal(lambda: set_budget(account, **SAID, allowance=2 * TICKS, caps=as_caps(0.7)), "list of worlds")
    set_budget(account, **SAID, day=1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"analysts": {"ann": -1}}, "not below 0"),
        ({"analysts": {"ann": 0.5}}, "whole number"),
        ({"day": True}, "whole number"),
        ({}, "name a budget"),
        ({"who": "", "day": 1}, "who sets a budget and why"),
        ({"why": "", "day": 1}, "who sets a budget and why"),
    ],
)
def test_budgets_that_make_no_sense(how: dict[str, Any], words: str, file: Place) -> None:
    account = session(file)._desk.account
    refusal(lambda: set_budget(account, **(SAID | how)), words)
    assert [row["kind"] for row in export(account)] == ["opened"]


def test_what_is_exported_goes_into_json_and_csv(place: Place) -> None:
    own = session(place)
    answers = [float(own.count(share=share)) for share in (0.01, 0.02)]
    rows = list(export(account_named(open_book(place.url), "rows")))
    assert [row["numbers"] for row in json.loads(json.dumps(rows)) if row["kind"] == "answer"] == [[a] for a in answers]
    assert len({tuple(row) for row in rows}) == 1
    table = csv.DictWriter(io.StringIO(), list(rows[0]))
    table.writerows(rows)
    with own._desk.account.reading() as now:
        assert now.title is not None
        assert now.title["secret"] not in json.dumps(rows)
    refusal(lambda: account_named(open_book(place.url), "nobody's"), "has no account")


def test_a_whole_ledger_is_verified(place: Place) -> None:
    own = session(place)
    own.count(share=0.01)
    found = verify(open_book(place.url))
    assert found.whole
    assert (found.accounts, found.entries) == (2, 3)  # which data have which name is an account, too


WRONG = {
    "a clock": "UPDATE beside SET content = content || content WHERE name = 'clocks/'",
    "an entry": "DELETE FROM entries WHERE number = 2 AND charge > 0",
    "a charge": "UPDATE entries SET charge = charge + 1 WHERE number = 2",
}


@pytest.mark.parametrize("statement", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found(statement: str, place: Place) -> None:
    own = session(place)
    own.count(share=0.01)
    own.count(share=0.02)
    place.edit(statement)
    found = verify(open_book(place.url))
    assert not found.whole
    assert len(found.faults) == 1
    assert re.search("does not open|is damaged", found.faults[0])


@pytest.mark.parametrize("sealed", [True, False])
def test_what_is_forgotten_is_gone_and_the_account_closed(sealed: bool, file: Place, monkeypatch: Any) -> None:
    if not sealed:
        monkeypatch.setattr(keys, "can_seal", lambda: False)
    own = session(file)
    own.count(share=0.01, request="a request")
    account = own._desk.account
    with sqlite3.connect(file.path) as database:
        stored = [content for (content,) in database.execute("SELECT content FROM beside WHERE name <> 'state'")]
        bodies = [body for (body,) in database.execute("SELECT body FROM entries WHERE charge > 0")]
        ours = (open_book(file.url).account("\0contents").mark,)  # which data have which name stays
        kept = database.execute("SELECT content FROM beside WHERE account = ? AND name = 'title'", ours).fetchall()
    database.close()
    with account.reading() as now:
        assert now.title is not None
        secret = now.title["secret"].encode()
    forget(account, who="the custodian", why="the study is over")
    on_disk = b"".join(path.read_bytes() for path in Path(file.path.parent).glob("ledger.db*"))
    for content in [*stored, *bodies]:
        assert (content,) in kept or content[:60] not in on_disk, "what was erased is still there"
    assert secret not in on_disk
    attempts = [lambda: own.count(share=0.01), lambda: own.history, lambda: session(file)]
    for attempt in (*attempts, lambda: forget(account, **SAID)):
        refusal(attempt, "forgotten")
    (found,) = show(open_book(file.url))
    assert (found.forgotten, found.answers, found.name) == (True, 1, "rows")
    assert verify(open_book(file.url)).whole
    rows = list(export(account))
    assert [row["charge"] > 0 for row in rows] == [False, True, False]
    assert rows[-1]["why"] == "the study is over"


def test_forgetting_in_a_database(database: str) -> None:
    place = Place(database)
    own = session(place)
    own.count(share=0.01)
    forget(own._desk.account, **SAID)
    refusal(lambda: session(place), "forgotten")
    assert verify(open_book(place.url)).whole
    refusal(lambda: forget(open_book(place.url).account("nobody's"), **SAID), "nothing to forget")
