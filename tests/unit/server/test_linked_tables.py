"""Several tables that refer to each other are registered by pages, and asked about together."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.server.asking import SqlQuestion
from leakcap.server.refusals import Refusal
from leakcap.server.register_forms import facts_of, tables_of
from tests.unit.server.running import Running, form_word

FIELDS = {"unit": "people.person", "cap": "70", "design": "bits", "table": "people", "table1_": "visits", "rows": "1"}
FIELDS |= {"table2_": "towns", "public2_": "yes", "rows1_": "2", "rows2_": "1", "link1_0": "people.person"}
FIELDS |= {"link0_1": "", "link1": "towns.town", "low1_1": "0", "high1_1": "50"}


def bring(running: Running, browser: Any, word: str, table: pd.DataFrame, **before: str) -> str:
    content = table.to_csv(index=False).encode()
    sent = browser.post(
        "/custody/register", data={"form_word": word, **before}, files={"file": ("table.csv", content, "text/csv")}
    )
    assert sent.status_code == 303, sent.text
    return running.place(sent)


def test_three_tables_are_registered_with_their_links_and_the_loss_of_each_bound(running: Running) -> None:
    browser = running.browser("carla")
    word = form_word(browser)
    rng = np.random.default_rng(0)
    person = np.arange(200) + 700_000
    people = pd.DataFrame({"person": person, "town": rng.integers(0, 3, 200)})
    visits = pd.DataFrame({"person": np.repeat(person, 3), "cost": rng.integers(0, 100, 600)})
    towns = pd.DataFrame({"town": range(3), "name": ["A", "B", "C"]})
    first = bring(running, browser, word, people).rsplit("/", 1)[1]
    also = bring(running, browser, word, visits, first=first).split("also=")[1]
    place = bring(running, browser, word, towns, first=first, also=also)
    form = browser.get(place).text
    assert "3 tables" in form and form.count("refers to") == 6
    also = re.search(r'name="also" value="([^"]+)"', form)[1]  # type: ignore[index]
    given = {"form_word": word, "also": also, "name": "linked", **FIELDS}
    cost = running.shown(browser, browser.post(f"/custody/register/{first}", data={**given, "what": "check"}))
    assert cost.status_code == 200, cost.text
    assert "visits.cost" in cost.text and "200 of 600 rows left out" in cost.text.replace(",", "")
    kept = browser.post(f"/custody/register/{first}", data={**given, "what": "register"})
    assert running.place(kept) == "/custody/data/linked"
    assert "linked" in running.state.datasets.names()
    running.state.accounts.allow("ann", frozenset(("clinic", "school", "linked")))
    sql = (
        "select t.name, sum(v.cost) as cost from visits v join people p on v.person = p.person "
        "join towns t on p.town = t.town group by t.name order by t.name"
    )
    facts = running.state.asking.answer("linked", "ann", SqlQuestion(sql, share=0.2)).facts
    assert [row[0] for row in facts["rows"]] == ["A", "B", "C"] and all(row[1] > 0 for row in facts["rows"])


HELD = {"rows": 3, "columns": [{"name": "person", "kind": "int"}, {"name": "cost", "kind": "float"}]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"table": "a", "table1_": "A"}, "Two tables have one name"),
        ({"table": "a", "table1_": "b", "unit": "person"}, "whose row it is"),
        ({"table": "a", "table1_": "b", "unit": "a.person", "rows": "1"}, "rows of one person in b"),
        (
            {"table": "a", "table1_": "b", "unit": "a.person", "rows": "1", "rows1_": "1", "link1_0": "c.person"},
            "column of another table",
        ),
        ({"table": "a", "table1_": "b", "unit": "a.person", "rows": "1", "low1": "x", "high1": "2"}, "two numbers"),
    ],
)
def test_what_is_missing_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(Refusal) as refused:
        facts_of(given, tables_of(given, [("1", HELD), ("2", HELD)]))
    assert words in refused.value.words
