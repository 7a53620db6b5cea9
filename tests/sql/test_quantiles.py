"""Quantiles: read off counts on the grid that sessions use, with intervals that hold and charges as of any counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.noise.bounded import charge
from leakcap.sql.compile import compiled
from leakcap.sql.evaluate import cell_sums, in_world
from leakcap.stats.on_grid import CELLS, quantiles_on_grid
from tests.sql.hospital import BOUNDS, registered, tables
from tests.sql.kept_engine import kept_engine
from tests.sql.plain import Plain

QUESTION = "select ward, quantile_cont(cost, 0.31) as q from stays group by ward order by ward"
SPELLED = [
    "median(cost)",
    "quantile_cont(cost, 0.5)",
    "quantile_disc(cost, 0.5)",
    "quantile(cost, 0.5)",
    "approx_quantile(cost, 0.5)",
    "percentile_cont(0.5) within group (order by cost)",
    "percentile_disc(0.5) within group (order by cost desc)",
]


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions by the dozen: a process for each question is not what is tested here."""
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", kept_engine)


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return registered(given=tables(people=900))


def test_worlds_have_the_quantiles_of_the_sessions_grid_and_duckdbs_to_a_cell(catalog: lc.sql.Catalog) -> None:
    cuts = np.linspace(*BOUNDS["stays.cost"], CELLS + 1)
    for seed in range(3):
        world = np.random.default_rng(seed).random(catalog.people) < 0.5
        ours = in_world(compiled(QUESTION, catalog), catalog, kept_engine(catalog.path), world).to_pandas()
        plain = Plain(catalog, world)
        rows = plain.run("select ward, cost from stays where cost is not null")
        exact = plain.run("select ward, quantile_disc(cost, 0.31) as q from stays group by ward order by ward")
        plain.close()
        for ward, found, disc in zip(ours.iloc[:, 0], ours.iloc[:, 1], exact["q"], strict=True):
            own = rows.cost[rows.ward == ward].to_numpy()
            assert found == pytest.approx(float(quantiles_on_grid(own, np.array(0.31), cuts)), rel=1e-9)
            assert abs(found - disc) <= cuts[1] - cuts[0]


def test_all_spellings_are_one_quantile(catalog: lc.sql.Catalog) -> None:
    everybody = np.ones(catalog.people, dtype=bool)
    engine = kept_engine(catalog.path)
    found = [
        in_world(compiled(f"select {one} as q from stays", catalog), catalog, engine, everybody).to_pandas().iloc[0, 0]
        for one in SPELLED
    ]
    assert np.allclose(found, found[0])


def test_several_quantiles_of_a_number_are_one_release(catalog: lc.sql.Catalog) -> None:
    text = "select ward, median(cost), quantile_cont(cost, 0.9), {} from stays group by ward"
    assert [len(one.value_names) for one in compiled(text.format("1"), catalog).releases] == [2]
    assert [len(one.value_names) for one in compiled(text.format("count(*)"), catalog).releases] == [1, 2]


def test_charges_are_those_of_counts_on_every_level(catalog: lc.sql.Catalog) -> None:
    """Brute force, and nobody brings more than was declared."""
    release = compiled("select median(days) from stays where days > 2", catalog).releases[0]
    made = cell_sums(release, catalog, kept_engine(catalog.path), {})
    assert release.tree is not None and made.groups == release.tree.nodes
    own = np.zeros((catalog.people, made.groups))
    np.add.at(own, (made.units, made.cells), made.values[:, 0])
    rows = Plain(catalog, np.ones(catalog.people, dtype=bool)).file.execute("select unit, c3 from t1 where c3 > 2")
    expected, start = np.zeros_like(own), 0
    for unit, days in rows.fetchall():
        cell = min(CELLS - 1, int(np.floor(days / (60 / CELLS))))
        start = 0
        for size in release.tree.counts.sizes:
            expected[unit, start + cell] += 1
            start, cell = start + size, cell // 4
    np.testing.assert_array_equal(own, expected)
    deviations = np.random.default_rng(0).uniform(1, 2, made.groups)
    assert ((own / deviations) ** 2).sum(axis=1).max() <= charge(release.tree.extent(6.0, 1), deviations)
    assert ((own / deviations) ** 2).sum(axis=1).max() > charge(release.tree.extent(1.0, 1), deviations)


def coverage(catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch, width: float) -> float:
    monkeypatch.setattr("leakcap.sql.quantiles.LEVEL", width)
    text = "select sex, median(age) as low_q, quantile_cont(age, 0.8) as high_q from people group by sex"
    truth = Plain(catalog, np.ones(catalog.people, dtype=bool)).run(text).set_index("sex").sort_index()
    inside = []
    for seed in range(12):
        found = lc.Session(catalog, cap=0.7, seed=seed).sql(text, share=0.9).frame.set_index("sex").sort_index()
        for name in ("low_q", "high_q"):
            inside.append(((found[f"{name} low"] <= truth[name]) & (truth[name] <= found[f"{name} high"])).to_numpy())
    return float(np.mean(inside))


def test_intervals_hold_the_truth_and_narrower_ones_do_not(
    catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """48 intervals of 95 % at least. With a hundredth of the width they are of a cell or two, and fail."""
    assert coverage(catalog, monkeypatch, 1.959964) >= 0.9
    assert coverage(catalog, monkeypatch, 0.02) < 0.9


def test_of_too_few_there_is_no_quantile(catalog: lc.sql.Catalog) -> None:
    """A count of nobody is below its own deviation five times of six."""
    few = 0
    for seed in range(8):
        session = lc.Session(catalog, cap=0.6, seed=seed)
        found = session.sql("select median(age) as m from people where income > 8999", share=0.01).frame
        assert found.isna().all(axis=None) or not found.isna().any(axis=None)
        few += found.isna().all(axis=None)
    assert few >= 4
    with pytest.raises(InputError, match="share="):
        session.sql("select median(age) from people", noise=3.0)


def test_a_quantile_needs_a_range_and_one_level(catalog: lc.sql.Catalog) -> None:
    for text, words in {
        "select median(ward) from stays": "needs a range: give bounds=",
        "select quantile_cont(cost, [0.1, 0.9]) from stays": "one level from 0 to 1",
        "select quantile_cont(cost, 1.5) from stays": "one level from 0 to 1",
        "select median(day) from stays": "median is of numbers",
    }.items():
        with pytest.raises(lc.sql.NotAnswered, match=words):
            compiled(text, catalog)


def test_nobody_has_the_middle_of_the_grid() -> None:
    given = {"data": pd.DataFrame({"who": [1, 2], "x": [1.0, 2.0]})}
    catalog = lc.sql.register(given, unit="who", bounds={"x": (0.0, 9.0)}, rows_per_unit=1)
    program = compiled("select median(x) from data where x > 5", catalog)
    found = in_world(program, catalog, kept_engine(catalog.path), np.ones(2, dtype=bool))
    assert found.to_pandas().iloc[0, 0] == 4.5
