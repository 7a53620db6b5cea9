"""Keys that are found by a noised count of people: who pays, what is shown, and what it may rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import answered, cell_sums, in_world
from tests.sql.hospital import registered, tables
from tests.sql.plain import Plain

QUESTION = "select town, count(*) as n, sum(age) as years from people group by town"


def with_towns(**more: Any) -> lc.sql.Catalog:
    """A hospital where four towns are of many and forty of one person each."""
    given = tables(people=900)
    given["people"].loc[100:139, "town"] = [f"hamlet {at}" for at in range(40)]
    return registered(given=given, keys={"people.town": lc.sql.noised(threshold=60)}, **more)


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return with_towns()


def test_keys_are_those_of_enough_people_of_the_world(catalog: lc.sql.Catalog) -> None:
    """Without noise: as plain DuckDB finds them, in three worlds."""
    engine, program = LocalEngine(catalog.path), compiled(QUESTION, catalog)
    for seed in range(3):
        world = np.random.default_rng(seed).random(catalog.people) < 0.4
        found = in_world(program, catalog, engine, world).to_pandas()
        plain = Plain(catalog, world)
        expected = plain.run(f"{QUESTION} having count(*) >= 60 order by town nulls last")
        plain.close()
        found.columns = expected.columns
        found = found.sort_values("town", na_position="last")
        assert found.astype(object).fillna("NULL").to_numpy().tolist() == (
            expected.astype(object).fillna("NULL").to_numpy().tolist()
        )
    assert 0 < len(found) < 44


def test_the_values_that_are_counted_do_not_hang_on_who_takes_part(catalog: lc.sql.Catalog) -> None:
    engine, program = LocalEngine(catalog.path), compiled(QUESTION, catalog)
    counted = []
    for seed in range(3):
        world = np.random.default_rng(seed).random(catalog.people) < 0.4
        _, made = answered(program, catalog, engine, lambda one, mask=world: one.totals(mask))
        counted.append(made[0].keys.to_pydict()["v"])
    assert counted[0] == counted[1] == counted[2] and len(counted[0]) == 44
    assert set(program.releases[0].candidates.split()) >= {"DISTINCT", "t0"}  # the whole table of the pool


def test_everybody_pays_for_the_value_they_have_shown_or_not(catalog: lc.sql.Catalog) -> None:
    release = compiled("select t.town, count(*) from people t group by 1", catalog).releases[0]
    made = cell_sums(release, catalog, LocalEngine(catalog.path), {})
    assert sorted(made.units.tolist()) == list(range(catalog.people))  # one value each, hamlets included
    assert (made.values == 1.0).all()


def test_somebody_with_many_values_counts_once_for_each_and_brings_the_root_at_most() -> None:
    catalog = registered(given=tables(people=300), keys={"stays.days": lc.sql.noised(threshold=5)})
    release = compiled("select days, count(*) from stays group by days", catalog).releases[0]
    made = cell_sums(release, catalog, LocalEngine(catalog.path), {})
    plain = Plain(catalog, np.ones(catalog.people, dtype=bool))
    expected = plain.run("select days, count(distinct person) as n from stays group by days order by days nulls last")
    assert np.allclose(made.totals(np.ones(catalog.people, dtype=bool))[:, 0], expected["n"])
    own = np.zeros(catalog.people)
    np.add.at(own, made.units, made.values[:, 0] ** 2)
    most = release.sums[0].in_all(6.0) ** 2
    assert own.max() <= most == pytest.approx(6.0)
    assert own.max() > 1  # a limit of one value would be wrong


def test_a_session_shows_what_is_clear_of_its_noise_and_charges_both_steps(catalog: lc.sql.Catalog) -> None:
    session = lc.Session(catalog, cap=0.6, seed=0)
    answer = session.sql(QUESTION, share=0.4)
    assert answer.share == pytest.approx(0.4, rel=1e-6)
    assert [round(one.share, 6) for one in session.history] == [0.2, 0.2]
    counts = np.array(session.history[0].numbers)
    assert len(counts) == 44 and len(answer.frame) == (counts >= 60).sum() == 4
    assert list(answer.frame.columns)[:4] == ["town", "n", "n low", "n high"]
    quiet = lc.Session(catalog, cap=0.6, seed=0).sql(QUESTION, share=0.001)  # noise of hundreds: nothing is clear of it
    assert len(quiet.frame) < 10


def test_a_list_in_the_condition_needs_no_count(catalog: lc.sql.Catalog) -> None:
    text = "select town, count(*) from people where town in ('A', 'nowhere') group by town"
    assert [one.threshold for one in compiled(text, catalog).releases] == [None]


def test_under_a_pool_cap_nothing_is_found_in_the_data(catalog: lc.sql.Catalog) -> None:
    session = lc.Session(catalog, cap=lc.pool_membership(0.55), seed=1)
    with pytest.raises(InputError, match="which a pool cap does not allow: register with keys="):
        session.sql(QUESTION, share=0.1)
    assert session.spent.share == 0


def test_what_is_declared_is_kept_with_the_file(catalog: lc.sql.Catalog) -> None:
    again = lc.sql.Catalog.load(catalog.path)
    assert again.tables["people"].column("town").noised == 60.0
    assert len(compiled(QUESTION, again).releases) == 2
    with pytest.raises(InputError, match="above 0"):
        lc.sql.noised(threshold=0)
    with pytest.raises(InputError, match="public table"):
        registered(keys={"wards.name": lc.sql.noised(threshold=9)})
