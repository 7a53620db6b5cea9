"""However sums by person and group are worked out, they are the same to the last digit, and so is what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow
import pytest

import leakcap as lc
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sessions.cell_rows import Block, CellRows, Making
from leakcap.sessions.linear import FINE, exact_sums
from leakcap.sql import cells, evaluate
from leakcap.sql.cells import numbering
from leakcap.sql.compile import compiled
from leakcap.sql.domains import domain
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import CellSums, cell_sums, to_stream
from leakcap.sql.refusals import NotAnswered
from leakcap.sql.terms import listed_terms
from tests.sql.generated import question
from tests.sql.hospital import registered

QUESTIONS = range(1000, 1018)


class Asked:
    """A catalog, and an engine on its file."""

    def __init__(self, catalog: lc.sql.Catalog) -> None:
        self.catalog, self.engine = catalog, LocalEngine(catalog.path)


@pytest.fixture(scope="module")
def hospital() -> Asked:
    return Asked(registered())


def all_plans(text: str, asked: Any, monkeypatch: pytest.MonkeyPatch) -> list[CellSums]:
    """The first release of a question, worked out in every way that there is."""
    release = compiled(text, asked.catalog).releases[0]
    found = []
    for large in (cells.LARGE, 0):  # keys as codes, and joined
        monkeypatch.setattr(cells, "LARGE", large)
        for few in (10**9, -1):  # streamed where it can be, and grouped
            monkeypatch.setattr(evaluate, "FEW_TERMS", few)
            monkeypatch.setattr(evaluate, "FEW_GROUPS", 10**9)
            found.append(cell_sums(release, asked.catalog, asked.engine, {}))
    monkeypatch.undo()
    return found


def in_one_order(made: CellSums) -> list[Any]:
    units, groups, values = made.rows.entries
    order = np.lexsort((groups, units))
    return [units[order].tolist(), groups[order].tolist(), values[order].tolist()]


def test_all_plans_agree_to_the_last_digit(hospital: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    ways, rng = set(), np.random.default_rng(0)
    for seed in QUESTIONS:
        text, _ = question(seed)
        try:
            found = all_plans(text, hospital, monkeypatch)
        except NotAnswered:
            continue
        first, *others = found
        ways.add(to_stream(listed_terms(first.release.sums), 10**6))
        pays, coins = rng.random((2, hospital.catalog.people)) < 0.5
        sums = [BroughtByCell(one.rows, None, np.ravel, public=False) for one in found]
        deviations = rng.uniform(1e5, 1e6, sums[0].numbers)
        for one, brought in zip(others, sums[1:], strict=True):
            assert in_one_order(one) == in_one_order(first), text
            np.testing.assert_allclose(brought.squares(deviations), sums[0].squares(deviations), rtol=1e-14)
            total, other = (each.totals(deviations, pays, coins, False)[0] for each in (brought, sums[0]))
            assert total.tolist() == other.tolist(), text
    assert ways == {True, False}


@pytest.mark.parametrize("off", [1, 0.5])
def test_agreement_sees_a_row_that_is_counted_otherwise(
    hospital: Asked, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    """A planted fault in one plan: a code too many, or a term that is half as large."""
    text = "select year(day), count(*), sum(days) from stays group by 1"
    right = all_plans(text, hospital, monkeypatch)[0]
    rows = right.rows
    wrong = replace(
        rows,
        cells=np.roll(rows.cells, 1) if off == 1 else rows.cells,
        making=Making(rows.making.parts, rows.making.scales * [1, off, 1]),
    )
    assert in_one_order(replace(right, rows=wrong)) != in_one_order(right)


@pytest.mark.parametrize(
    ("text", "coded"),
    [
        ("select town, count(*) from people group by town", True),
        ("select year(day), urgent, count(*) from stays group by 1, 2", True),
        ("select day, count(*) from stays group by day", True),
        ("select round(days / 3.0, 1), count(*) from stays where days < 4 group by 1", False),
    ],
)
def test_keys_become_codes_where_they_are_few_texts_whole_numbers_or_dates(
    hospital: Asked, text: str, coded: bool
) -> None:
    release = compiled(text, hospital.catalog).releases[0]
    keys = hospital.engine.run(domain(release, hospital.catalog).sql, {})
    found = numbering(release, keys)
    assert (not found.tables) == coded
    assert sorted(found.cells[found.cells >= 0].tolist()) == list(range(keys.num_rows))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pyarrow.array([1, None, -3], pyarrow.int8()), [1, 0, -3]),
        (pyarrow.array(["1.25", None, "-3.00"]).cast(pyarrow.decimal128(30, 2)), [125, 0, -300]),
        (pyarrow.array(["1.25", "7.00", "-3.00"]).cast(pyarrow.decimal128(9, 2))[1:], [700, -300]),
        (pyarrow.array([0.5, 2.0]), [0.5, 2.0]),
    ],
)
def test_columns_are_read_in_their_last_digit(column: Any, expected: list[float]) -> None:
    assert cells.numbers_of(column).tolist() == expected


def test_rows_without_a_code_are_in_no_group() -> None:
    numbered = cells.Numbering("t", "code", least=1, cells=np.arange(2, dtype=np.int32), tables={}, apart=((), "0"))
    found = pyarrow.table(
        {
            "unit": pyarrow.array([0, 0, 1], pyarrow.int32()),
            "code": pyarrow.array([1, None, 2], pyarrow.int8()),
            "s0": pyarrow.array([5, 7, 9], pyarrow.int64()),
        }
    )
    units, groups, values = numbered.of(found, 2, making=Making.plain(1)).entries
    assert (units.tolist(), groups.tolist(), values.ravel().tolist()) == ([0, 1], [0, 1], [5.0, 9.0])


class Drawn:
    """Rows drawn at random, and what everybody brings by a plain loop."""

    def __init__(self, cut: Callable[[np.random.Generator, int], np.ndarray], *, order: bool, groups: int) -> None:
        rng, rows = np.random.default_rng(3), 6000  # more than are worked on together
        self.people, self.groups = 200, groups
        units = rng.integers(0, self.people, rows)
        units = np.sort(units) if order else units
        codes, whole = rng.integers(5, 8 + groups, rows), rng.integers(-50, 1000, rows)  # some are of no group
        edges = [0, *np.sort(cut(rng, rows)), rows]
        whole_block = Block(units.astype(np.int32), codes.astype(np.int32), (whole,))
        self.rows = CellRows.of(
            self.people,
            groups,
            [whole_block[a:b] for a, b in pairwise(edges)],
            least=6,
            cells=np.random.default_rng(1).permutation(groups).astype(np.int32),
            making=Making(np.array([[0, -1], [1, -1], [1, 0]]), np.array([[1.0, 1, 1], [100, 1, 1], [10, 2, -0.5]])),
        )
        self.brought = np.zeros((self.people, groups, 3))
        counts, sums = np.zeros((2, self.people, groups), dtype=int)
        for unit, code, one in zip(units, codes, whole, strict=True):
            if 6 <= code < 6 + groups:
                counts[unit, self.rows.cells[code - 6]] += 1
                sums[unit, self.rows.cells[code - 6]] += one
        self.brought = np.stack([counts, sums / 100, sums / 10 * 2 + -0.5 * counts], axis=2).reshape(self.people, -1)


@pytest.mark.parametrize("groups", [3, 700])
@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize("blocks", [0, 1, 40, 2000])
def test_rows_are_swept_as_a_plain_loop_would(blocks: int, order: bool, groups: int) -> None:
    """Blocks end where they will, also in the middle of a person; rows come in any order."""
    drawn = Drawn(lambda rng, rows: rng.integers(0, rows + 1, blocks), order=order, groups=groups)
    rng = np.random.default_rng(4)
    pays, coins = rng.random((2, drawn.people)) < 0.6
    for deviations in (rng.uniform(1, 9, 3 * groups), np.tile(rng.uniform(1, 9, 3), groups)):
        squares, total = drawn.rows.swept(deviations, pays, coins)
        np.testing.assert_allclose(squares, ((drawn.brought / deviations) ** 2).sum(axis=1), rtol=1e-13)
        assert total.ravel().tolist() == exact_sums(drawn.brought, deviations, pays, coins).tolist()
    units, groups_of, values = drawn.rows.entries
    table = np.zeros((drawn.people, groups, 3))
    table[units, groups_of] = values
    assert np.array_equal(table.reshape(drawn.people, -1), drawn.brought)
    assert FINE * np.abs(total).max() > 1


def test_charges_and_totals_at_one_go_are_those_of_two(hospital: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    made = all_plans("select town, count(*), sum(income) from people group by town", hospital, monkeypatch)[0]
    coins = np.random.default_rng(5).random(hospital.catalog.people) < 0.5
    once = BroughtByCell(made.rows, None, np.ravel, public=False, coins=coins)
    twice = replace(once, coins=None)
    deviations, all_pay = np.full(once.numbers, 30.0), np.ones(hospital.catalog.people, dtype=bool)
    assert once.squares(deviations / 2).tolist() == twice.squares(deviations / 2).tolist()
    for pays in (all_pay, coins):
        found = [one.totals(deviations, pays, coins, False)[0].tolist() for one in (once, twice)]
        assert found[0] == found[1]
    assert once._totals and not twice._totals
    others = once.totals(deviations, all_pay, ~coins, False)[0]  # other coins than were said: worked out again
    assert others.tolist() == twice.totals(deviations, all_pay, ~coins, False)[0].tolist()
