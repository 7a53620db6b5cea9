"""Quantiles, and keys found by a noised count of people, on a list of worlds: right in each, and paid for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import CapError
from leakcap.sql import asking, in_worlds
from leakcap.sql.compile import compiled
from leakcap.sql.noised_keys import NoisedKeys
from leakcap.stats.on_grid import CELLS, quantiles_on_grid
from tests.sql.hospital import BOUNDS, registered, tables
from tests.sql.kept_engine import kept_engine
from tests.sql.test_worlds import COHORTS, Listed

QUANTILE = "select ward, quantile_cont(cost, 0.31) as q from stays group by ward order by ward"
TOWNS = "select town, count(*) as n, max(age) as oldest from people group by town"
THRESHOLD = 60


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "WorkerEngine", kept_engine)


def catalog() -> lc.sql.Catalog:
    """Three towns of many people, people of no town, and forty hamlets of one person each."""
    given = tables(people=900)
    given["people"].loc[100:139, "town"] = [f"hamlet {at}" for at in range(40)]
    return registered(given=given, keys={"people.town": NoisedKeys(THRESHOLD)})


@pytest.fixture(scope="module", params=[None, COHORTS], ids=["people", "cohorts"])
def listed(request: pytest.FixtureRequest) -> Listed:
    return Listed(catalog(), request.param)


def quantiles_differ(listed: Listed) -> bool:
    """From those of each world's own rows on the sessions' grid, and from DuckDB's by more than a cell."""
    cuts = np.linspace(*BOUNDS["stays.cost"], CELLS + 1)
    for frame, plain in listed.answers(QUANTILE):
        rows = plain.run("select ward, cost from stays where cost is not null")
        exact = plain.run(QUANTILE.replace("_cont", "_disc"))["q"]
        for ward, found, disc in zip(frame.iloc[:, 0], frame.iloc[:, 1], exact, strict=True):
            own = rows.cost[rows.ward == ward].to_numpy()
            grid = float(quantiles_on_grid(own, np.array(0.31), cuts))
            if abs(found - grid) > 1e-9 * grid or abs(found - disc) > cuts[1] - cuts[0]:
                return True
    return False


def test_every_world_has_the_quantiles_of_its_people(listed: Listed) -> None:
    assert not quantiles_differ(listed)


def test_quantiles_of_other_people_are_seen(listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "looked_at", (listed.looked_at[1], listed.looked_at[0]))  # with each other's rows
    assert quantiles_differ(listed)


def test_every_world_has_the_keys_of_enough_of_its_people(listed: Listed) -> None:
    shown = []
    for frame, plain in listed.answers(TOWNS):
        expected = plain.run(f"{TOWNS} having count(*) >= {THRESHOLD} order by town nulls last")
        frame.columns = expected.columns
        ours = frame.sort_values("town", na_position="last")
        assert ours.astype(object).fillna("none").to_numpy().tolist() == (
            expected.astype(object).fillna("none").to_numpy().tolist()
        )
        shown.append(len(ours))
    assert min(shown) > 0 and max(shown) < 44


def test_what_is_counted_is_the_pools_whichever_world_and_nobody_is_left_out_of_the_charge(listed: Listed) -> None:
    """Everybody counts once for the town they have, hamlets too: the desk prices this very table."""
    release = compiled(TOWNS, listed.catalog, worlds=True).releases[0]
    known = in_worlds.in_worlds(release, listed.catalog, listed.engine, {}, listed.cohort_of)
    assert known.made.groups == 44 and sorted(known.made.units.tolist()) == list(range(listed.catalog.people))
    found = known.table(listed.worlds)[:, :, 0]
    for world in range(listed.worlds.m):
        mask = listed.worlds.mask(world)
        mask = mask if listed.cohort_of is None else mask[listed.cohort_of]
        assert (found[world] == known.made.totals(mask)[:, 0]).all()


@pytest.mark.parametrize("text", [TOWNS, QUANTILE])
def test_a_session_charges_every_step(text: str) -> None:
    session: Any = lc.Session(catalog(), cap=0.9, design="worlds", worlds=128, seed=1)
    before = session.remaining.share
    answer = session.sql(text, share=0.9)
    steps = [one.share for one in session.history]
    assert len(steps) == (2 if text == TOWNS else 1) and all(one > 0 for one in steps)
    assert answer.share == pytest.approx(sum(steps)) and session.remaining.share < before
    if text == TOWNS:
        assert [len(one.numbers) for one in session.history] == [44, 2 * len(answer.frame)]
        assert not answer.frame["town"].astype(str).str.startswith("hamlet").any()
        assert session.sql(text, share=0.9).again and len(session.history) == 2  # the second time from what is stored


def test_a_list_of_worlds_promises_nothing_about_the_pool() -> None:
    """The values that are counted are the pool's: under a pool cap neither design finds keys."""
    with pytest.raises(CapError, match="use a session with design='bits'"):
        lc.Session(catalog(), cap=lc.pool_membership(0.6), design="worlds", worlds=32, seed=1)
