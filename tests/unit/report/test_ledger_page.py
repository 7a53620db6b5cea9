"""The page of a ledger: the figure first, all that was taken, and nothing that is secret."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import LedgerFindings, Standing
from leakcap.report.ledger import page as pages
from leakcap.report.ledger.page import ledger_fragment, ledger_page
from leakcap.report.ledger.spending import bar
from leakcap.sessions.clock import Clock
from leakcap.sessions.overview import (
    AccountOverview,
    BudgetChange,
    CountedAnswer,
    LedgerOverview,
    UncountedRelease,
)
from leakcap.sessions.standing import together
from tests.unit.report.test_page import read, words

EVIL = '"\'><b onclick="x">hostile</b><script>alert("1")</script>'
WHOLE = LedgerFindings(3, 20)


@cache
def a_standing() -> Standing:
    clock = Clock.of((lc.membership(0.6),))
    return Standing(
        name="clinic",
        design="bits",
        caps=("guess who took part: at most 60 %",),
        raised=(),
        answers=3,
        allowance=TICKS,
        groups={"research": ("eve",)},
        declared={"": 3 * TICKS // 10, "research": TICKS // 10},
        analysts={"": (TICKS // 10, None), "ann": (TICKS // 5, TICKS // 4), "eve": (TICKS // 10, None)},
        days={},
        day_budget=TICKS // 2,
        opened="2026-01-01T08:00:00+00:00",
        latest="",
        forgotten=False,
        square=clock.square,
        distance=clock.distance,
    )


def an_account(standing: Standing | None = None, **more: Any) -> AccountOverview:
    standing = standing or a_standing()
    answers = (
        CountedAnswer("2026-01-01T09:30:00+00:00", "", "", question='{"kind": "count", "share": 0.1}', share=0.1),
        CountedAnswer(
            "2026-01-03T10:00:00+00:00", "ann", "", question='{"kind": "mean", "columns": ["age"]}', share=0.2
        ),
        CountedAnswer("2026-01-04T11:00:00+00:00", "eve", "research", question='{"kind": "sum"}', share=0.1),
    )
    what = {"analysts": {"ann": TICKS // 4, "zoe": None}, "day": TICKS // 2, "groups": {"research": ["eve"]}}
    changes = (BudgetChange("2026-01-02T07:00:00+00:00", "root", "a new team", what),)
    return AccountOverview(standing, together(standing), answers, changes, **({"uncounted": ()} | more))


def a_ledger(*accounts: AccountOverview, **more: Any) -> LedgerOverview:
    made = LedgerOverview("/ledger.db", "2026-02-01T12:00:00+00:00", accounts or (an_account(),), (), findings=WHOLE)
    return replace(made, **more)


def test_the_sentence_and_the_figure_come_first() -> None:
    told = words(ledger_page(a_ledger())).replace("\u00a0", " ")
    # Two clocks of .6 each: Phi(sqrt(2) Phi^-1(.6)) = .63994, rounded up.
    place = told.index("All 2 groups together, if they tell each other, allow at most 64 % right guesses")
    assert "CUSTODIAN ONLY" in told[:place] and place < told.index("By clock")
    page = ledger_page(a_ledger())
    assert page.count('class="gain"') == 14 + 1, "64 of 100 and the key"
    # Three and one tenth of a clock: Phi(sqrt(.4) Phi^-1(.6)) = .5637, and what the samplers may be off.
    assert "They allow at most 56.37 % right guesses" in told


def test_all_that_was_taken_is_there_by_clock_analyst_and_day() -> None:
    told = words(ledger_page(a_ledger())).replace("\u00a0", " ")
    for piece in (
        "everybody else 30 % 100 %",
        "research eve 10 % 100 %",
        "ann 20 % 25 %",
        "custodian 10 % -",
        "2026-01-03 20 % 50 %",
        "count custodian 2026-01-01 09:30 10 %",
        "mean of age ann 2026-01-03 10:00 20 %",
        "ann may use 25 % of the clock. zoe has no budget any more. A day may use 50 % of the clock.",
        "The group research has a clock of its own: eve. a new team root 2026-01-02 07:00",
        "Yes: all 20 entries of 3 accounts",
    ):
        assert piece in told, piece


def test_raised_caps_say_by_how_much_and_a_line_is_drawn_for_every_clock() -> None:
    standing = replace(a_standing(), allowance=3 * TICKS // 2, raised=("guess who took part: at most 62 %",))
    raised = {"allowance": 3 * TICKS // 2, "caps": ["guess who took part: at most 62 %"]}
    change = BudgetChange("2026-01-03T00:00:00+00:00", "root", "agreed", raised)
    page = ledger_page(a_ledger(replace(an_account(standing), changes=(change,))))
    told = words(page).replace("\u00a0", " ")
    assert "every clock is 1.5 times the first: guess who took part: at most 62 %." in told
    assert "Opened with guess who took part: at most 60 %" in told
    (cap,) = re.findall(r'<path class="cap" d="([^"]*)"', page.split("Answer by answer")[1].split("</svg>")[0])
    assert len({piece.split()[1] for piece in cap[1:].split("L")}) == 2, "the clock became longer"
    assert page.count('<path class="bound" d="M') >= 1 and page.count('<path class="pool" d="M') >= 1


def test_a_bar_is_as_long_as_it_says_and_more_than_allowed_is_marked() -> None:
    assert 'width="40.00%"' in bar(0.2, 0.5, 0.5) and 'width="100.00%"' in bar(0.2, 0.5, 0.5)
    assert "taken over" in bar(0.6, 0.5, 0.6) and "taken over" not in bar(0.5, 0.5, 0.6)
    assert "taken over" not in bar(0.6, None, 1.0)


def test_what_is_not_counted_and_what_is_not_whole_is_cried_out() -> None:
    besides = (UncountedRelease("2026-01-05T00:00:00+00:00", "Mean of cost"),)
    page = words(ledger_page(a_ledger(an_account(uncounted=besides, same_data=("twin",)), others=("north",))))
    assert "NOT EVERYTHING IS COUNTED" in page and "Mean of cost" in page and "'twin'" in page and "north" in page
    assert "Of what is counted: all 2 groups" in page
    broken = words(ledger_page(a_ledger(findings=LedgerFindings(1, 2, ("'clinic': damaged",)))))
    assert "THE LEDGER IS NOT WHOLE" in broken and "'clinic': damaged" in broken and "Yes: all" not in broken


def test_closed_single_and_listed_accounts_have_their_own_words() -> None:
    closed = BudgetChange("2026-01-09T00:00:00+00:00", "root", "the study has ended", {})
    gone = Standing(**{**vars(a_standing()), "forgotten": True, "allowance": 0, "groups": {}, "analysts": {}})
    told = words(ledger_page(a_ledger(replace(an_account(gone), closed=closed))))
    assert "Closed for ever" in told and "the study has ended" in told and "By clock" not in told
    alone = replace(a_standing(), design="release", groups={})
    told = words(ledger_page(a_ledger(an_account(alone, own=(("guess", "50 %", "60.00 %"),)))))
    assert "What its own certificate says" in told and "60.00 %" in told and "By clock" not in told
    listed = words(ledger_page(a_ledger(an_account(replace(a_standing(), design="worlds", groups={})))))
    assert "All answers together keep: guess who took part" in listed and "By clock" in listed
    assert "cannot pay any more" not in listed, "charges of listed worlds do not add up to a clock"
    raised = BudgetChange("2026-01-09T00:00:00+00:00", "root", "agreed", {"caps": ["at most 62 %"]})
    worlds = replace(an_account(replace(a_standing(), design="worlds", groups={})), changes=(raised,))
    assert "Caps were raised: at most 62 %. agreed root" in words(ledger_page(a_ledger(worlds)))


def test_the_steps_of_a_fit_are_one_line() -> None:
    steps = tuple(
        CountedAnswer(f"2026-01-01T09:3{step}:00+00:00", "ann", "", question=text, share=0.01)
        for step in range(4)
        for text in [f'{{"kind": "fit", "estimator": "KMeans", "step": {step}}}']
    )
    told = words(ledger_page(a_ledger(replace(an_account(), answers=steps)))).replace("\u00a0", " ")
    assert "KMeans, 4 answers ann 2026-01-01 09:30 4 %" in told and told.count("KMeans") == 1


def test_several_accounts_are_one_page_with_a_list_that_leads_to_each() -> None:
    page = ledger_page(
        a_ledger(an_account(), an_account(replace(a_standing(), name="north", design="pool", groups={})))
    )
    told = read(page)
    assert {"account-1", "account-2"} <= set(told.ids)
    links = [value for tag, name, value in told.attributes if (tag, name) == ("a", "href")]
    assert links == ["#account-1", "#account-2"]
    assert "nothing bounds several together" in words(page)
    assert "Nothing was answered yet" in words(ledger_page(replace(a_ledger(), accounts=())))


def test_many_answers_are_cut_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_LISTED", 2)
    told = words(ledger_page(a_ledger()))
    assert "1 earlier questions are in the ledger" in told and "mean of age" in told and "count custodian" not in told


@pytest.mark.parametrize("made", [ledger_page, ledger_fragment])
def test_hostile_names_stay_words(made: Any) -> None:
    page = made(hostile())
    read(page)
    assert "&lt;script&gt;" in page and "<script" not in page and "<b onclick" not in page
    assert not any(name.startswith("on") for _, name, _ in read(page).attributes)
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import", page)


def hostile() -> LedgerOverview:
    """Hostile words wherever the ledger takes words."""
    groups = {EVIL: (EVIL,)}
    analysts = {EVIL: (0, TICKS)}
    standing = replace(a_standing(), name=EVIL, groups=groups, analysts=analysts, caps=(EVIL,), raised=(EVIL,))
    what = {"analysts": {EVIL: 1}, "groups": {EVIL: [EVIL]}, "allowance": TICKS, "caps": [EVIL]}
    account = replace(
        an_account(standing),
        answers=(CountedAnswer("2026-01-01T09:30:00+00:00", EVIL, EVIL, question=EVIL, share=0.1),),
        changes=(BudgetChange("2026-01-01T09:30:00+00:00", EVIL, EVIL, what),),
        uncounted=(UncountedRelease("", EVIL),),
        own=((EVIL, EVIL, EVIL),),
        same_data=(EVIL,),
    )
    return a_ledger(account, place=EVIL, others=(EVIL,), findings=LedgerFindings(1, 1, (EVIL,)))
