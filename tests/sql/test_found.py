"""Questions that were answered wrongly once, or broke something: each with what it should give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sql.compile import compiled
from leakcap.sql.domains import domain
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import in_world
from leakcap.sql.refusals import NotAnswered
from tests.sql.hospital import registered
from tests.sql.plain import Plain, rows_of

TWICE = "with q as (select s.person, w.name as n from stays s, wards w where s.ward = w.ward)"
AS_PLAIN = {  # by how many columns are keys
    f"{TWICE} select a.n, b.n, count(*) from q a, q b where a.person = b.person group by a.n, b.n": 2,
    "with q as (select id, exists (select 1 from stays where person = id and urgent) as e from people) "
    "select a.e, b.e, count(*) from q a, q b where a.id = b.id group by a.e, b.e": 2,
    f"select sum({' + '.join(['days'] * 40)}), count(*) from stays": 0,
    "select year(day + cast(days as int)), count(*) from stays group by 1": 1,
    "select date_trunc('month', day + 5), count(*) from stays group by 1": 1,
    "select days, count(*) from stays where days in (1.5, 5) group by days": 1,
    "select cast(days as decimal(3, 1)), count(*) from stays where cast(days as decimal(3, 1)) in (9, 5) group by 1": 1,
    "select count(*) from people where cast(abs(income) / 10000 as decimal(38, 30)) < age * 1000000": 0,
    "select sum(least(greatest(days - 5, 0), 3)), sum(greatest(least(exp(days / 10), 10), 0)) from stays": 0,
    "select count(*) from people where try_cast(town as timestamp) is null": 0,
    "select 5 + 1, count(*) from stays group by 5 + 1": 1,
    "select count(*) from people p where (select count(*) from stays s where s.person = p.id) = 0": 0,
}


@dataclass
class Both:
    catalog: lc.sql.Catalog
    engine: LocalEngine
    world: np.ndarray
    plain: Plain


@pytest.fixture(scope="module")
def both() -> Both:
    catalog = registered()
    world = np.random.default_rng(2).random(catalog.people) < 0.5
    return Both(catalog, LocalEngine(catalog.path), world, Plain(catalog, world))


@pytest.mark.parametrize("text", AS_PLAIN)
def test_as_in_the_world_itself(both: Both, text: str) -> None:
    answer = in_world(compiled(text, both.catalog), both.catalog, both.engine, both.world)
    ours, theirs = (rows_of(one, AS_PLAIN[text]) for one in (answer.to_pandas(), both.plain.run(text)))
    assert set(theirs) <= set(ours)
    for key, row in theirs.items():
        assert np.allclose(ours[key], row, rtol=1e-12), key
    assert not any(any(row) for key, row in ours.items() if key not in theirs)


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from people p where exists (select count(*) from stays s where s.person = p.id)",
        "select w.* exclude (beds) from wards w",
        "select count(*) from people p where p.age > (select count(*) from stays s where s.ward = p.town)",
        "select count(*) from stays s where s.days > (select max(w.beds) from wards w where w.ward = s.ward limit 1)",
        "select count(*) from stays s where s.days > (select max(w.beds) from wards w where w.ward = s.ward "
        "having max(w.beds) > 30)",
        "select count(*) from people p where (select count(*) + 1 from stays s where s.person = p.id) = 1",
    ],
)
def test_refused_rather_than_answered_wrongly(both: Both, text: str) -> None:
    with pytest.raises(NotAnswered):
        compiled(text, both.catalog)


def steps(count: int, first: str, step: str) -> str:
    """Queries each of which is about the one before; `x` is what they hand on."""
    named = ", ".join(f"q{at + 1} as (select {step} as x from q{at})" for at in range(count))
    return f"with q0 as (select {first} as x from people), {named} select {{}} from q{count}"


def test_a_text_beside_itself_again_and_again_fills_no_memory(both: Both) -> None:
    """Two to the power of 35 letters, of whoever has one: whether it failed would tell of them."""
    text = steps(35, "case when age > 50 then 'x' else '' end", "x || x").format("count(*)")
    answer = in_world(compiled(f"{text} where length(x) > 1000", both.catalog), both.catalog, both.engine, both.world)
    assert answer.to_pandas().iloc[0, 0] == both.plain.run("select count(*) from people where age > 50").iloc[0, 0]


@pytest.mark.parametrize("word", ["like", "ilike"])
def test_a_pattern_goes_through_a_text_once(both: Both, word: str) -> None:
    """Earlier engines tried every place for each % of ILIKE, and with _, within one another: of one text for years."""
    text = f"select count(*) from people where case when age > 50 then '{'a' * 999}' else '' end {word} '{'%a' * 40}%b'"
    program = compiled(text, both.catalog)
    assert in_world(program, both.catalog, both.engine, both.world).to_pandas().iloc[0, 0] == 0
    assert " ILIKE " not in program.releases[0].base.sql
    with pytest.raises(NotAnswered, match="has one % before its end"):
        compiled(f"select count(*) from people where town {word} '%a_%b%'", both.catalog)


def test_a_key_made_in_very_many_steps_is_refused(both: Both) -> None:
    text = steps(25, "age % 2", "least(" * 20 + "x" + " + 1, 9)" * 20).format("x, count(*)") + " group by x"
    with pytest.raises(NotAnswered, match="too many steps"):
        domain(compiled(text, both.catalog).releases[0], both.catalog)
    with pytest.raises(NotAnswered, match="queries of queries"):
        compiled(steps(300, "age", "abs(abs(x + 1) + 1)").format("count(*)"), both.catalog)


def test_rows_without_a_partner_count_beside_all_pairs(both: Both) -> None:
    """Somebody whose tests are all of one stay has their other stays too: 20 pairs, and 5 rows without."""
    for text, most in (
        ("select count(*) from stays s left join tests t on t.stay = s.stay", 25),
        ("select count(*) from tests t left join stays s on t.stay = s.stay", 20),
        ("select count(*) from people p left join stays s on s.person = p.id", 6),
        ("select count(*) from stays s left join wards w on w.ward = s.ward", 6),
    ):
        assert compiled(text, both.catalog).releases[0].base.most == most, text


def small(**more: Any) -> lc.sql.Catalog:
    people = pd.DataFrame(
        {"id": [f"P{at}" for at in range(6)], "boss": [f"P{(at + 1) % 6}" for at in range(6)], "pay": 1.0}
    )
    return lc.sql.register({"people": people}, unit="people.id", bounds={"pay": (0.0, 9.0)}, rows_per_unit=1, **more)


def test_a_link_from_people_to_people_would_join_a_person_to_another() -> None:
    with pytest.raises(InputError, match="who may be others"):
        small(links={"people.boss": "people.id"})


@pytest.mark.parametrize("key", ["upper(id)", "id || 'x'", "case when pay > 0 then id end", "substring(id, 1, 2)"])
def test_names_of_few_people_are_no_public_list(key: str) -> None:
    with pytest.raises(NotAnswered):
        compiled(f"select {key}, count(*) from people group by 1", small())


def test_the_most_rows_of_a_person_are_told_apart_from_those_of_another_key() -> None:
    stays = pd.DataFrame({"stay": range(6), "person": [0, 0, 0, 1, 1, 2], "cost": 5.0})
    tests = pd.DataFrame({"stay": [0, 0, 1, 2, 3, 4, 5], "level": 1.0})
    catalog = lc.sql.register(
        {"stays": stays, "tests": tests},
        unit="stays.person",
        links={"tests.stay": "stays.stay"},
        bounds={"cost": (0.0, 9.0)},
        rows_per_unit={"stays": 4, "tests": 9},
    )
    for key, most in (("stay", 4), ("person", 1)):
        inner = f"select {key}, max(cost) as m from stays group by {key}"
        assert compiled(f"select sum(m) from ({inner}) q", catalog).releases[0].base.most == most
