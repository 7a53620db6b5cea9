"""What one swap can tell at most: above every swap that can be listed, but for columns that are as rare as said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from leakcap.obfuscation import obfuscated
from leakcap.obfuscation.chi_squares import told_apart
from leakcap.obfuscation.limits import FullColumn, full_column, most_told
from leakcap.obfuscation.obfuscated import Obfuscated, farthest
from leakcap.obfuscation.pairs import AddedNoise, products, swap_factors
from leakcap.obfuscation.sampled import MixedDraw
from leakcap.obfuscation.several_blocks import blocks_told_apart
from tests.claims.obfuscation.brute_force import mixings, samples
from tests.claims.obfuscation.cases import CASES, law, rows


def told(pool, rules, noise, unit, longest, weight):
    """What every swap of a unit tells whose column is no longer than that; both ways round."""
    found = []
    for sample in samples(rules):
        if unit not in sample:
            continue
        place = int(np.flatnonzero(sample == unit)[0])
        joins = np.setdiff1d(np.flatnonzero(rules.labels == rules.labels[unit]), sample)
        for table in mixings(rules):
            if (table[:, place] ** 2).sum() > longest + 1e-12:
                continue
            mixed = MixedDraw(sample, sparse.csr_matrix(table))
            places = np.full(len(joins), place)
            parts = products(pool, mixed, AddedNoise(noise**2, rules.columns))
            swaps = swap_factors(pool, mixed, parts, places=places, joins=joins, columns=rules.columns)
            found.append(told_apart(swaps.wider, swaps.narrower, rules.columns, weight=weight))
    return np.concatenate(found)


@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("weight", [1.0, 2.0])
@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize("case", ["two units, one row", "five units, two rows", "two classes, two rows"])
def test_no_swap_tells_more_than_the_limit(case, noise, weight, columns):
    pool, rules = CASES[case]
    rules = replace(rules, columns=columns)
    for squared in (rules.heaviest, full_column(rules, 0.4).squared):
        limit = most_told(Obfuscated(pool, rules, noise), FullColumn(squared, 0.0), weight, farthest(pool, rules))
        assert told(pool, rules, noise, 0, squared, weight).max() <= limit[0] + 1e-9


def test_a_planted_limit_of_a_shorter_distance_is_caught():
    """Two rows in one direction: a quarter of their distance is too little."""
    pool, rules = np.array([[0.0, 0.4], [0.0, 1.0]]), law([2], 1, 1, [[0, 0]], columns=5)
    found = told(pool, rules, 0.5, 0, rules.heaviest, 1.0).max()
    column, apart = FullColumn(rules.heaviest, 0.0), np.linalg.norm(pool[0] - pool[1]) * np.ones(2)
    limits = [most_told(Obfuscated(pool, rules, 0.5), column, 1.0, share * apart)[0] for share in (1.0, 0.25)]
    assert limits[1] < found <= limits[0]


def told_in_blocks(pool, rules, noise, blocks):
    """The same for the first unit and several blocks, by listing; no column of the mixing is too long."""
    found = []
    for sample in samples(rules):
        if 0 not in sample:
            continue
        places = np.repeat(int(np.flatnonzero(sample == 0)[0]), len(rules.labels))
        joins = np.setdiff1d(np.flatnonzero(rules.labels == rules.labels[0]), sample)
        for table in mixings(rules):
            mixed, logs = MixedDraw(sample, sparse.csr_matrix(table)), []
            for part in np.array_split(pool, blocks, axis=1):
                made = products(part, mixed, AddedNoise(noise**2, rules.columns))
                where = {"places": places[: len(joins)], "joins": joins}
                logs.append(swap_factors(part, mixed, made, **where, columns=rules.columns))
            wider, narrower = (np.stack([getattr(one, n) for one in logs], axis=1) for n in ("wider", "narrower"))
            found.append(blocks_told_apart(wider, narrower, rules.columns))
    return np.concatenate(found)


@pytest.mark.parametrize(("columns", "noise"), [(1, 0.5), (5, 2.0), (20, 6.0), (400, 30.0)])
@pytest.mark.parametrize("blocks", [2, 3])
def test_no_swap_of_blocks_tells_more_than_the_limit(blocks, columns, noise):
    pool, rules = rows(5, 3, 2), law([5], 2, 1, [[0, 0], [0, 0]], columns=columns)
    release, column = Obfuscated(pool, rules, noise, blocks=blocks), FullColumn(rules.heaviest, 0.0)
    seen = told_in_blocks(pool, rules, noise, blocks).max()
    limit = most_told(release, column, 1.0, farthest(pool, rules))[0]
    assert seen <= limit + 1e-9
    assert limit < 0.85 or noise == 0.5  # less than everything


def test_a_planted_limit_of_one_column_is_caught():
    """The twin: columns are forgotten."""
    pool, rules = np.array([[0.0, 0.0], [0.0, 1.0]]), law([2], 1, 1, [[0, 0]], columns=50)
    seen = told_in_blocks(pool, rules, 0.2, 2).max()
    column, apart = FullColumn(rules.heaviest, 0.0), farthest(pool, rules)
    right, planted = (
        most_told(Obfuscated(pool, replace(rules, columns=some), 0.2, blocks=2), FullColumn(squared, 0.0), 1.0, apart)[
            0
        ]
        for some, squared in ((50, column.squared), (1, column.squared / 50))
    )
    assert planted < seen <= right


@pytest.mark.parametrize("pairs", [0, 20_000])
def test_everybody_is_within_the_distance_said(monkeypatch, pairs):
    monkeypatch.setattr(obfuscated, "PAIRS", pairs)
    pool, rules = rows(30, 4, 1), law([10, 20], 3, 1, [[0, 1]])
    bound = farthest(pool, rules)
    for one in (0, 1):
        members = np.flatnonzero(rules.labels == one)
        distances = np.linalg.norm(pool[members][:, None] - pool[members][None], axis=2)
        assert (bound[members] >= distances.max(axis=1)).all()
        assert pairs == 0 or bound[members] == pytest.approx(distances.max(axis=1), abs=1e-4)


@pytest.mark.parametrize("rare", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("mix", [1, 2])
def test_rare_columns_are_counted_right(mix, rare):
    """Against listing all mixings: how often a column is longer, and that no shorter one would do."""
    rules = law([4], 3, mix, [[0, 0], [0, 0]])
    lengths = np.array([(table[:, 0] ** 2).sum() for table in mixings(rules)])
    found = full_column(rules, rare)
    assert (lengths > found.squared + 1e-12).mean() == pytest.approx(found.rare, abs=1e-9)
    assert found.rare <= rare * (1 + 1e-8)
    shorter = found.squared - 1 / (2 * mix) ** 2
    assert shorter < -1e-12 or (lengths > shorter + 1e-12).mean() > rare
