"""A question for which fewer rows of one person are enough: less noise, and whoever brings more is cut to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import FINE
from leakcap.sql import asking
from leakcap.sql.asking import limits_of
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import CellSums, cell_sums
from leakcap.sql.refusals import NotAnswered
from tests.sql.hospital import registered
from tests.sql.kept_engine import kept_engine

ASKED = "select urgent, count(*), sum(days) from stays group by urgent"
FEWER = 2


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return registered()


@pytest.fixture(scope="module")
def made(catalog: lc.sql.Catalog) -> CellSums:
    engine = LocalEngine(catalog.path)
    return cell_sums(compiled(ASKED, catalog).releases[0], catalog, engine, {})


def brought(made: CellSums, cut: bool = True) -> BroughtByCell:
    return BroughtByCell(made.rows, limits_of(made, FEWER), np.ravel, public=True, cut=cut)


def test_whoever_brings_more_is_charged_for_and_adds_what_they_are_cut_to(made: CellSums) -> None:
    """Beside a plain loop; the planted fault leaves people as they are, and somebody pays more than was declared."""
    clock, sums = Clock.of((lc.membership(0.6),)), brought(made)
    deviations = sums.limits.least(clock.share(1.0))
    most = sums.limits.worst(deviations)
    units, cells, values = made.rows.entries
    table = np.zeros((made.people, made.groups, values.shape[1]))
    table[units, cells] = values
    far = table.reshape(made.people, -1) / deviations
    squares = (far**2).sum(axis=1)
    assert (squares > 1.5 * most).any() and (squares < most).any()

    cost = sums.charges(2 * deviations, clock, False)
    expected = clock.ticks(np.minimum(squares, most))
    assert np.abs(cost - expected).max() <= 1e-9 * expected.max()
    assert cost.max() <= clock.ticks(np.array([most]))[0]
    planted = brought(made, cut=False).charges(2 * deviations, clock, False)
    assert planted.max() > clock.ticks(np.array([1.5 * most]))[0]

    pays, coins = np.random.default_rng(0).random((2, made.people)) < 0.6
    total = sums.totals(2 * deviations, pays, coins, False)[0]
    scale = np.minimum(1, np.sqrt(most / np.maximum(squares, 1e-300)))
    in_it = (far * scale[:, None])[pays & coins]
    np.testing.assert_allclose(total * FINE, in_it.sum(axis=0), atol=FINE * len(in_it), rtol=1e-9)


def test_nobody_brings_more_than_was_declared_for_the_question(made: CellSums) -> None:
    """Person by person: the length of what is added up, whatever their rows are."""
    clock, sums = Clock.of((lc.membership(0.6),)), brought(made)
    deviations = sums.limits.least(clock.share(1.0))
    most, nobody = sums.limits.worst(deviations), np.zeros(made.people, dtype=bool)
    furthest = np.argsort(sums.rows.swept(deviations, nobody, nobody)[0])[-20:]
    for cut in (True, False):  # and not without the cut
        lengths = []
        for person in furthest:
            alone = nobody.copy()
            alone[person] = True
            total = brought(made, cut).totals(2 * deviations, alone, alone, False)[0]
            lengths.append(float(((total * FINE) ** 2).sum()))
        assert (max(lengths) <= most) == cut


def test_noise_is_made_for_these_rows_and_another_number_is_another_question(
    catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WorkerEngine", kept_engine)
    session = lc.Session(catalog, cap=0.6, seed=1)
    declared: Any = session.preview_sql(ASKED, share=0.1)
    fewer: Any = session.preview_sql(ASKED, share=0.1, rows=FEWER)
    most = catalog.tables["stays"].most_rows
    np.testing.assert_allclose(np.asarray(fewer.noise) * most, np.asarray(declared.noise) * FEWER, rtol=1e-9)
    assert fewer.share == pytest.approx(declared.share, rel=1e-6)
    first = session.sql(ASKED, share=0.1, rows=FEWER).frame
    assert session.sql(ASKED, share=0.1, rows=FEWER).frame.equals(first)
    spent = session.spent.share
    assert not session.sql(ASKED, share=0.1, rows=FEWER + 1).frame.equals(first)
    assert session.spent.share > spent


def test_more_rows_than_declared_change_nothing(catalog: lc.sql.Catalog, made: CellSums) -> None:
    whole = BroughtByCell(made.rows, limits_of(made), np.ravel, public=True)
    many = replace(whole, within=limits_of(made, 10**6), cut=True)
    deviations = np.full(whole.numbers, 3.0)
    assert many.limits.worst(deviations) == whole.limits.worst(deviations)
    assert many.squares(deviations).tolist() == whole.squares(deviations).tolist()


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "2"])
def test_rows_are_a_whole_number(catalog: lc.sql.Catalog, rows: Any) -> None:
    with pytest.raises(InputError, match="rows must be"):
        lc.Session(catalog, cap=0.6, seed=1).sql(ASKED, rows=rows)


def test_worlds_have_no_use_for_fewer_rows(catalog: lc.sql.Catalog) -> None:
    with pytest.raises(InputError, match="design='bits'"):
        lc.Session(catalog, cap=0.6, seed=1, design="worlds", worlds=64).sql(ASKED, rows=1)


def test_where_no_rows_are_declared_a_question_may_declare_them(tmp_path: Path, own_key: Any) -> None:
    """To analysts too: all that noise is made for is what was said."""
    ledger = f"sqlite:///{tmp_path}/ledger"
    session = lc.Session(registered(rows_per_unit=None), cap=0.6, ledger=ledger, name="stays", analyst="a")
    text = "select count(*) from stays"
    with pytest.raises(NotAnswered, match="or say with rows="):
        session.sql(text, share=0.1)
    assert session.sql(text, share=0.1, rows=1).frame.shape[0] == 1
