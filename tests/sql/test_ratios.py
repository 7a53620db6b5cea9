"""Arithmetic on released numbers: ratios with their intervals, and how a number of too few people reads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.sql.compile import compiled
from leakcap.sql.intervals import LEVEL
from leakcap.sql.ratios import Ratio
from tests.sql.hospital import registered, tables
from tests.sql.kept_engine import kept_engine
from tests.sql.plain import Plain

RATES = (
    "select ward, 100.0 * sum(case when urgent then 1 else 0 end) / nullif(count(*), 0) as rate, "
    "sum(cost) / sum(days) as daily, count(*) / 12 as monthly from stays group by ward"
)


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return registered(given=tables(people=900))


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", kept_engine)


def coverage(catalog: lc.sql.Catalog) -> float:
    truth = Plain(catalog, np.ones(catalog.people, dtype=bool)).run(RATES).set_index("ward").sort_index()
    inside = []
    for seed in range(15):
        found = lc.Session(catalog, cap=0.7, seed=seed).sql(RATES, share=0.9).frame.set_index("ward").sort_index()
        for name in truth.columns:
            inside.append(((found[f"{name} low"] <= truth[name]) & (truth[name] <= found[f"{name} high"])).to_numpy())
    return float(np.mean(inside))


def test_ratios_lie_within_their_intervals(catalog: lc.sql.Catalog) -> None:
    assert coverage(catalog) > 0.9  # 180 of 95 %


def test_a_narrower_interval_is_seen(catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(self, values, ends):
        value, low, high = true(self, values, ends)
        return value, (low + 3 * value) / 4, (high + 3 * value) / 4

    from leakcap.sql.ratios import Ratio

    true = Ratio.with_ends
    monkeypatch.setattr(Ratio, "with_ends", halved)
    assert coverage(catalog) < 0.9


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("sum(days) / count(*)", True),
        ("-2 * count(*)", False),
        ("2.5 * (sum(days) / 7)", True),
        ("avg(days) / 24", True),
        ("cast(sum(days) as double) / nullif(sum(cost), 0) * 100", True),
        ("median(days) * 24", True),
        ("avg(days) / avg(cost)", False),
        ("sum(days) + count(*)", False),
        ("sum(days) / (count(*) + 1)", False),
        ("sum(days) / 0", False),
        ("1 / count(*)", False),
        ("sum(days) / count(*) / count(*)", False),
    ],
)
def test_which_arithmetic_has_an_interval(catalog: lc.sql.Catalog, asked: str, known: bool) -> None:
    assert (compiled(f"select {asked} as x from stays", catalog).outputs[0].ratio is not None) == known


def test_a_ratio_to_what_may_be_nothing_has_no_ends() -> None:
    """A count of 1.5 deviations is not below its noise, and yet may be 0; of one far from 0 the ends are Fieller's."""
    one = Ratio("r", 2.0, "total", "n")
    values = {"n": np.array([15.0, 1000.0]), "total": np.array([30.0, 500.0])}
    ends = {name: (each - LEVEL * 10, each + LEVEL * 10) for name, each in values.items()}
    value, low, high = one.with_ends(values, ends)
    assert value.tolist() == [4.0, 1.0]
    assert low[0] == -np.inf and high[0] == np.inf
    for end in (low[1] / 2, high[1] / 2):  # neither sum contradicts it, just about
        assert abs(500 - end * 1000) == pytest.approx(LEVEL * np.hypot(10, 10 * end), rel=1e-9)
    assert low[1] < 1 < high[1]


def test_too_few_reads_so(catalog: lc.sql.Catalog) -> None:
    text = (
        "select ward, avg(cost) as c, sum(cost) / count(*) as r, count(*) as n from stays where days > 58 group by ward"
    )
    answer = lc.Session(catalog, cap=0.6, seed=0).sql(text, share=0.005)
    assert answer.numbers == ("c", "r", "n") and list(answer.too_few) == ["c", "r", "n"]
    few = answer.too_few.to_numpy()
    assert few[:, 0].any() and (few[:, 0] == few[:, 1]).all() and not few[:, 2].any()
    with pd.option_context("display.max_columns", None, "display.width", 300):
        printed = repr(answer), answer._repr_html_()
    for shown in printed:
        assert shown.count("too few") == few.sum() and "nan" not in shown.lower()
    assert answer.frame["c low"].isna().tolist() == few[:, 0].tolist()
