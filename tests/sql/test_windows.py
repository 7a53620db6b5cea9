"""Windows, and sums of one person, hang on that person's rows alone, in whatever order the engine meets them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.sql.aggregates import Aggregate
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.expressions import WRITTEN
from leakcap.sql.refusals import NotAnswered
from tests.sql.harmless import HARMLESS
from tests.sql.hospital import registered, tables
from tests.sql.others import Hospitals, brought

TIES = (
    "select ward, count(*), sum(least(greatest(v, 0), 99)) from (select s.ward, {one} as v from (select *, 0 as z from "
    "stays) s) q group by ward"
)


OWN_SUM = "select count(*) from (select who, sum(x) as s from data group by who) q where s > 5"
CUT = 122_880  # rows that the engine's threads take at once


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Hospitals:
    """The same hospital with its rows in other orders."""
    folder, given = tmp_path_factory.mktemp("turned"), tables()
    rng = np.random.default_rng(3)
    catalogs = [registered(folder / "as it is", given, order="as given")]
    for at in range(2):
        mixed = {name: one.sample(frac=1, random_state=rng) for name, one in given.items()}
        catalogs.append(registered(folder / f"mixed {at}", mixed, order="as given"))
    return Hospitals(catalogs, [LocalEngine(one.path) for one in catalogs], frozenset(range(60)))


def differs(turned: Hospitals, text: str) -> bool:
    first, *rest = (brought(text, *pair) for pair in zip(turned.catalogs, turned.engines, strict=True))
    return any(one != first for one in rest)


@pytest.mark.parametrize("text", HARMLESS["windows"])
def test_the_order_of_rows_changes_nothing(turned: Hospitals, text: str) -> None:
    assert not differs(turned, text)


SENSITIVE = [
    "lag(s.ward) over (partition by person order by z)",
    "row_number() over (partition by person order by z) ",
    "first_value(s.ward) over (partition by person order by urgent)",
    "sum(s.days) over (partition by person order by z rows 1 preceding)",
]


@pytest.mark.parametrize("one", SENSITIVE)
def test_an_order_with_ties_is_refused_and_would_tell(
    turned: Hospitals, one: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotAnswered, match="could come in any order: add a key of the rows to ORDER BY, such as stay"):
        compiled(TIES.format(one=one), turned.catalogs[0])
    monkeypatch.setattr("leakcap.sql.select_list.check_order", lambda *_: None)
    assert differs(turned, TIES.format(one=one))


UNMATCHED = (
    "select ward, sum(days) from (select s.ward, s.days, row_number() over (partition by s.person order by {by}) as k "
    "from stays s left join (select distinct stay, drug from tests) d on d.stay = s.stay) q where k = 1 group by ward"
)


def test_rows_without_a_partner_are_alike_in_its_keys(turned: Hospitals, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the right side tells rows of LEFT JOIN apart only together with one of the left side."""
    assert not differs(turned, UNMATCHED.format(by="d.stay nulls first, d.drug, s.stay"))
    with pytest.raises(NotAnswered, match="could come in any order: add a key of the rows to ORDER BY"):
        compiled(UNMATCHED.format(by="d.stay nulls first, d.drug"), turned.catalogs[0])
    monkeypatch.setattr("leakcap.sql.select_list.check_order", lambda *_: None)
    assert differs(turned, UNMATCHED.format(by="d.stay nulls first, d.drug"))


def test_a_window_over_others_is_refused_and_would_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "select count(*) from (select rank() over (partition by ward order by cost) as k from stays) q where k < 3"
    hospitals = Hospitals.built(tmp_path)
    with pytest.raises(NotAnswered, match=r"stays with one person: PARTITION BY the person's key, as in OVER"):
        compiled(text, hospitals.catalogs[0])
    monkeypatch.setattr("leakcap.sql.windows._refuse_others", lambda *_: None)
    assert hospitals.differences(text)


# Numbers whose last digit the order of rows would decide, and texts that tell -0 from 0.
ROUNDED = {
    "select count(*) from (select person, {one} as s from stays group by 1) q where cast(s as varchar) like '%1'": (
        "sum(cost)",
        "avg(cost)",
        "sum(cost / 7) filter (where days > 2)",
        "sum(cost * level)",
        "var_samp(cost)",
        "stddev_pop(days)",
        "covar_pop(cost, days)",
        "corr(cost, days)",
        "sum(distinct cost)",
        "sum(least(cost, 1e18 / days))",
    ),
    "select count(*) from (select person, {one} as s from stays group by 1) q where cast(s as varchar) = '-0.0'": (
        "max((days - 9) * 0e0)",
        "min((days - 9) * 0e0)",
    ),
}


@pytest.mark.parametrize(("text", "one"), [(text, one) for text, many in ROUNDED.items() for one in many])
def test_the_order_of_a_persons_rows_rounds_nothing(turned: Hospitals, text: str, one: str) -> None:
    text = text.format(one=one)
    assert not differs(
        turned, text.replace("from stays", "from stays join tests using (stay)") if "level" in one else text
    )


@pytest.mark.parametrize("one", ["sum(cost)", "corr(cost, days)", "max((days - 9) * 0e0)"])
def test_an_order_that_rounds_is_seen(turned: Hospitals, one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: sums of a person as the engine makes them."""
    monkeypatch.setattr(Aggregate, "sql", property(lambda own: f"{own.name}({', '.join(x.safe for x in own.args)})"))
    monkeypatch.setitem(WRITTEN, "cast", lambda own: f"TRY_CAST({own.args[0].safe} AS {own.value})")
    assert any(differs(turned, text.format(one=one)) for text, many in ROUNDED.items() if one in many)


@pytest.fixture(scope="module")
def cut() -> list[lc.sql.Catalog]:
    """Somebody with 40 rows, few and many people before them."""
    made = []
    for before in (1000, CUT - 20):
        who = np.concatenate([np.arange(before), np.full(40, before), np.arange(before + 1, before + CUT)])
        given = pd.DataFrame({"who": who, "x": np.where(who == before, 1.0, 0.0)})
        given.loc[given.who == before, "x"] = np.random.default_rng(0).random(40)
        made.append(lc.sql.register(given, unit="who", bounds={"x": (0, 1)}, rows_per_unit=40))
    return made


@pytest.mark.parametrize("planted", [False, True], ids=["honest", "planted"])
def test_a_sum_of_one_person_is_the_same_wherever_the_engine_cuts_their_rows(
    cut: list[lc.sql.Catalog], planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cuts after so many rows of anybody's: with other people before them, somebody's rows are added up in parts."""
    if planted:
        monkeypatch.setattr(Aggregate, "sql", property(lambda own: f"{own.name}({own.args[0].safe})"))
    found = set()
    for catalog in cut:
        base = compiled(OWN_SUM, catalog).releases[0].base
        rows = LocalEngine(catalog.path).run(f"SELECT {base.columns[-1].value.value} AS s FROM ({base.sql})", {})
        found.add(rows.column("s").to_pylist()[0])
    assert (len(found) == 1) != planted and 15 < min(found) < 25


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("select sum(days) from (select * from stays qualify row_number() over (partition by person order by stay) = 1)"
         " q", 1),
        ("select sum(days) from (select days, row_number() over (partition by person order by stay) k from stays) q "
         "where k <= 2 and days > 3", 2),
        ("select sum(days) from (select days, row_number() over (partition by stay order by stay) k from stays) q "
         "where k = 1", 6),
        ("select sum(days) from (select days, rank() over (partition by person order by days) k from stays) q "
         "where k = 1", 6),
        ("select count(*) from people p left join stays s on p.id = s.person left join tests t on t.stay = s.stay", 25),
        ("select count(*) from stays s left join (select distinct stay, drug from tests) d on d.stay = s.stay and "
         "d.stay = d.stay and d.drug = d.drug", 25),
        ("select sum(q.days) from (select days, k, d.price from (select *, row_number() over (partition by "
         "person order by stay) k from stays) s, drugs d) q where k = 1", None),
    ],
)  # fmt: skip
def test_the_first_few_rows_of_a_person_are_few(turned: Hospitals, text: str, most: float | None) -> None:
    """So that there is less noise; a number that is there several times, or is equal to itself, bounds nothing."""
    assert compiled(text, turned.catalogs[0]).releases[0].base.most == most
