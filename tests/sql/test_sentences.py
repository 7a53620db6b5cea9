"""What is wrong with tables, item by item, and the one sentence that each of them ends in, to the letter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import LeakcapError
from tests.sql.test_bad_input import ONE, PEOPLE, a_full_disk

MANY = pd.DataFrame({"who": np.r_[np.zeros(100_000, int), np.arange(1, 1001)], "x": 1.0})
LARGE = pd.DataFrame({"who": np.arange(200_000), "x": np.random.default_rng(0).random(200_000)})
LINK = {"stays.person": "people.id"}
ASK = "select count(*) from data"


def asked(text: str, cap: Any = 0.6, given: pd.DataFrame = ONE, **settings: Any) -> Any:
    return lc.Session(lc.sql.register(given, unit="who", **settings), cap=cap, seed=1).sql(text)


def on_a_full_disk(_: Path) -> Any:
    with a_full_disk(600_000):
        return lc.sql.register(LARGE, unit="who")


def changed(folder: Path) -> Any:
    catalog = lc.sql.register(ONE, unit="who", rows_per_unit=2, path=folder / "kept.duckdb")
    session = lc.Session(catalog, cap=0.6, seed=1)
    with duckdb.connect(str(catalog.path)) as file:
        file.execute("DELETE FROM t0 WHERE unit = 0")
    return session.sql(ASK)


def with_another_key(folder: Path) -> Any:
    for key in ("first", "second"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LEAKCAP_KEY", str(folder / key / "key"))
            catalog = lc.sql.register(ONE, unit="who", rows_per_unit=2, path=folder / f"{key}.duckdb")
            lc.Session(catalog, cap=0.6, ledger=f"sqlite:///{folder}/ledger.db", name="one")


SENTENCES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no unit": (
        lambda _: lc.sql.register(ONE, unit="patient"),
        "unit: there is no column 'patient': there are data.who, data.x, data.n, data.s",
    ),
    "a unit that is missing": (
        lambda _: lc.sql.register(ONE.assign(who=[1, 2, None, 3]), unit="who"),
        "rows of 'data' do not say whose they are (1 of 4): fill in or drop them first",
    ),
    "a link without a partner": (
        lambda _: lc.sql.register(
            {"people": PEOPLE, "stays": pd.DataFrame({"person": [1, 9]})}, unit="people.id", links=LINK
        ),
        "rows of 'stays' have no partner along their link, so that nobody owns them (1 of 2): mend the link, or drop "
        "these rows first",
    ),
    "a key that repeats in a public table": (
        lambda _: lc.sql.register(
            {"who": ONE, "wards": pd.DataFrame({"n": [1, 1]})},
            unit="who.who",
            links={"who.n": "wards.n"},
            public=["wards"],
        ),
        "wards.n is the target of a link and repeats, or is missing: drop rows that repeat, or link to a key",
    ),
    "a column without a range": (
        lambda _: asked("select sum(x) from data", rows_per_unit=2),
        "at `SUM(x)`: what is added up needs a range: give bounds={'column': (low, high)} when registering, or cut it "
        "with least(greatest(value, low), high)",
    ),
    "an empty table": (
        lambda _: lc.sql.register(ONE.iloc[:0], unit="who"),
        "table 'data' has no rows: there is nobody to ask about",
    ),
    "a person with very many rows and no bound": (
        lambda _: asked(ASK, lc.pool_membership(0.55), MANY),
        "how many rows of one person this question counts is not known: register with rows_per_unit=, and join public "
        "tables on their keys, or say with rows= how many are enough",
    ),
    "a name that is nearly one": (
        lambda _: lc.sql.register(ONE.rename(columns={"x": "ünï 😀"}), unit="who", bounds={"ünï 😁": (0, 1)}),
        "bounds: there is no column 'ünï 😁': there are data.who, data.ünï 😀, data.n, data.s",
    ),
    "a changed file": (
        changed,
        "the file of the registered tables was changed, replaced or taken away: register the tables again, and open "
        "the session on the new catalog. In its ledger, under its name, everybody's clock goes on as it is",
    ),
    "a full disk": (
        on_a_full_disk,
        "the file of the tables could not be written: make room on the disk, or give another path=",
    ),
    "a wrong key": (
        with_another_key,
        "the ledger {folder}/ledger.db was made with another key: set LEAKCAP_KEY to that, or bring the key file back "
        "from its latest copy",
    ),
}


@pytest.mark.parametrize("item", SENTENCES)
def test_each_mistake_ends_in_its_own_sentence(item: str, tmp_path: Path) -> None:
    does, sentence = SENTENCES[item]
    with pytest.raises(LeakcapError) as caught:
        does(tmp_path)
    assert str(caught.value) == sentence.replace("{folder}", str(tmp_path))


def test_what_is_no_mistake_ends_in_no_sentence() -> None:
    """A person with very many rows is cut, odd names are names, and a table of people may be empty beside others."""
    cut = lc.sql.register(MANY, unit="who", rows_per_unit=10)
    assert cut.report == ("data: 99,990 of 101,000 rows left out, beyond 10 of one person (1 person has more)",)
    empty = {"people": PEOPLE, "stays": pd.DataFrame({"person": [1]}).iloc[:0]}
    assert lc.sql.register(empty, unit="people.id", links=LINK).people == 3
    odd = ONE.rename(columns={"x": "ünï 😀"})
    found = asked('select sum("ünï 😀") as total from data', given=odd, bounds={"ünï 😀": (0, 5)}, rows_per_unit=2)
    assert list(found.frame.columns) == ["total", "total low", "total high"]
