"""A cell that Python cannot hold, such as a date after the year 9999: nobody but its own person is without it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.ground.slices import take_own
from leakcap.kernels.blocks import InBlocks
from leakcap.sessions import desk
from leakcap.worlds import Units

PEOPLE, BLOCKS = 24, 4
DAYS = np.append(np.array(["2026-01-01"] * (PEOPLE - 1), dtype="datetime64[us]"), np.datetime64("12026-01-01", "us"))
FIRST = datetime.datetime(2026, 1, 1)


def of_polars(**columns: Any) -> Any:
    return pytest.importorskip("polars").DataFrame({"id": np.arange(PEOPLE), **columns})


def long_times() -> Any:
    polars = pytest.importorskip("polars")
    return of_polars(day=polars.Series([1] * (PEOPLE - 1) + [2**62]).cast(polars.Duration("ms")))


def of_arrow() -> Any:
    arrow = pytest.importorskip("pyarrow")
    days = pd.Series(arrow.array(DAYS), dtype=pd.ArrowDtype(arrow.timestamp("us")))
    return pd.DataFrame({"id": np.arange(PEOPLE), "day": days})


class Nowhere(datetime.tzinfo):
    """A zone that does not say where it is."""


def of_objects() -> Any:
    days = [FIRST] * (PEOPLE - 1) + [FIRST.replace(tzinfo=Nowhere())]
    return pd.DataFrame({"id": np.arange(PEOPLE), "day": pd.Series(days, dtype=object)})


TABLES: dict[str, Callable[[], Any]] = {
    "polars": lambda: of_polars(day=DAYS),
    "a long time": long_times,
    "arrow": of_arrow,
    "objects": of_objects,
}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Any:
    return TABLES[request.param]()


def test_the_cell_is_missing_and_the_others_are_as_they_would_be_without(table: Any) -> None:
    alone, beside = take_own(table, np.arange(PEOPLE - 1)), take_own(table, np.arange(PEOPLE))
    assert list(beside["day"])[: PEOPLE - 1] == list(alone["day"])
    assert pd.isna(list(beside["day"])[-1])
    assert list(beside["id"]) == list(range(PEOPLE))
    column = take_own(table["day"], np.arange(PEOPLE))
    assert list(column)[: PEOPLE - 1] == list(alone["day"])


def test_labels_of_rows_may_be_such_cells() -> None:
    labelled = of_arrow().set_index("day")
    assert list(take_own(labelled, np.arange(PEOPLE)).index)[:-1] == [FIRST] * (PEOPLE - 1)
    unnamed = take_own(labelled.rename_axis(None), np.arange(PEOPLE))
    assert list(unnamed["id"]) == list(range(PEOPLE))


def test_no_block_is_without_an_answer(table: Any) -> None:
    made = lc.blocks(lambda rows: 1.0, blocks=BLOCKS, bounds=(0, 1))
    units = Units(PEOPLE, PEOPLE)
    for hidden in (False, True):
        cut = InBlocks(made, (table,), units, made.of_rows(units), hidden=hidden)
        assert (cut.answers() == 0.5).all()


class Unsliced:
    """Rows that cannot be cut where somebody is among them."""

    shape = (PEOPLE, 1)

    def __getitem__(self, rows: Any) -> Any:
        if 3 in rows:
            raise ValueError("a cell")
        return np.zeros(len(rows))


def test_rows_that_cannot_be_taken_cost_their_own_block_its_answer() -> None:
    made = lc.blocks(lambda rows: 1.0, blocks=BLOCKS, bounds=(0, 1))
    units = Units(PEOPLE, PEOPLE)
    of_row = made.of_rows(units)
    for hidden in (False, True):
        answers = InBlocks(made, (Unsliced(),), units, of_row, hidden=hidden).answers()
        assert (answers[:, 0] == np.where(np.arange(BLOCKS) == of_row[3], 0.0, 0.5)).all()
    assert made.of_all((Unsliced(),), PEOPLE) is None


ASKED: dict[str, Callable[[lc.Session], Any]] = {
    "blocks": lambda session: session.blocks(lambda rows: 1.0, blocks=BLOCKS, bounds=(0, 1)),
    "linear": lambda session: session.linear(lambda rows: 1.0, bounds=(0, 1)),
    "where": lambda session: session.count(where=lambda rows: True),
}


@pytest.mark.parametrize(("ask", "total"), [("blocks", BLOCKS / 2), ("linear", PEOPLE), ("where", PEOPLE)])
def test_sums_of_a_session_hold_everybody(ask: str, total: float, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, real = [], desk.with_noise

    def listening(sums: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        seen.append((np.asarray(sums) / grains / 16 * deviations).round(6).tolist())
        return real(sums, grains, deviations, randomness)

    monkeypatch.setattr(desk, "with_noise", listening)
    ASKED[ask](lc.Session(table, unit="id", rows_per_unit=1, cap=lc.pool_membership(0.6)))
    assert seen == [[total]]


@pytest.mark.parametrize(
    ("fn", "declared"),
    [
        (lc.blocks(lambda rows: 1.0, blocks=BLOCKS, bounds=(0, 1)), {}),
        (lc.additive(lambda rows: 1.0), {"bounds": (0, 1)}),
    ],
    ids=["blocks", "sums"],
)
def test_plans_under_a_pool_cap_do_not_stumble_over_it(fn: Any, declared: dict[str, Any], table: Any) -> None:
    assert np.isfinite(lc.plan(fn, table, cap=lc.pool_membership(0.9), **declared).release().value)
