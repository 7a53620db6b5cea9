"""Samples, mixings and swaps are drawn by the law that is written, and rules that make no sense are refused."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.errors import InputError
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import UnitEffort
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs, draw_mixed, draw_rows, draw_swaps

LABELS = np.repeat([0, 1, 2], [5, 6, 7])
LAW = MixingLaw(LABELS, 4, 2, all_class_pairs(3, 2), 5)


def test_every_ordered_pair_of_classes_has_its_rows():
    assert all_class_pairs(2, 2).tolist() == [[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1], [1, 1]]


def test_every_unit_is_sampled_at_its_rate():
    """False alarm: below 1e-8 for each of 18 units, by six deviations."""
    rng, times = np.random.default_rng(1), 4000
    counts = np.zeros(len(LABELS))
    for _ in range(times):
        sample = draw_rows(LAW, rng)
        assert (LABELS[sample] == np.repeat([0, 1, 2], 4)).all() and len(set(sample.tolist())) == 12
        counts[sample] += 1
    spread = np.sqrt(times * LAW.rates * (1 - LAW.rates))
    assert (np.abs(counts - times * LAW.rates) < 6 * spread).all()


def test_rows_are_means_of_both_classes():
    mixed = draw_mixed(LAW, np.random.default_rng(2))
    weights = mixed.weights.toarray()
    for row, (i, j) in enumerate(LAW.pairs):
        shares = [weights[row, 4 * one : 4 * one + 4] for one in range(3)]
        if i == j:
            assert set(np.round(shares[i] * 4).astype(int)) <= {0, 1, 2} and shares[i].sum() == pytest.approx(1)
        else:
            assert sorted(shares[i]) == sorted(shares[j]) == [0, 0, 0.25, 0.25]
        assert weights[row].sum() == pytest.approx(1)


def test_every_place_is_mixed_in_as_often_as_any_other():
    """False alarm: below 1e-8 for each of 12 places, by six deviations of a binomial law."""
    rng, times = np.random.default_rng(3), 600
    total = sum(np.asarray(draw_mixed(LAW, rng).weights.sum(axis=0)).ravel() * 4 for _ in range(times))
    sides = 12 * times  # of a class
    assert (np.abs(total - sides / 2) < 6 * np.sqrt(sides / 4)).all()


def test_everybody_is_swapped_with_a_uniform_partner_on_the_other_side():
    rng, seen = np.random.default_rng(4), {}
    for _ in range(1500):
        sample = draw_rows(LAW, rng)
        swaps = draw_swaps(LAW, sample, 2, rng)
        for unit in (0, 17):
            place, join = swaps.places[0, unit], swaps.joins[0, unit]
            partner = int(join) if swaps.inside[unit] else int(sample[place])
            assert (sample[place] == unit) if swaps.inside[unit] else (join == unit)
            assert (partner in sample) != swaps.inside[unit] and LABELS[partner] == LABELS[unit]
            seen.setdefault(unit, []).append(partner)
    for unit, partners in seen.items():
        counts = np.unique(partners, return_counts=True)[1]
        others = np.count_nonzero(LABELS[unit] == LABELS) - 1
        assert len(counts) == others and np.abs(counts - 1500 / others).max() < 6 * np.sqrt(1500 / others)


def test_the_fullest_column_is_as_heavy_as_said():
    assert LAW.heaviest == pytest.approx((8 * 1 + 2 * 4) / 16)


@pytest.mark.parametrize(
    "change",
    [
        {"sampled": 5},
        {"sampled": 0},
        {"mix": 5},
        {"columns": 0},
        {"pairs": np.array([[0, 3]])},
        {"pairs": np.array([0, 1])},
        {"labels": np.array([0, 0, 2, 2])},
    ],
)
def test_rules_that_make_no_sense_are_refused(change):
    given = {"labels": LABELS, "sampled": 4, "mix": 2, "pairs": all_class_pairs(3, 1), "columns": 5} | change
    with pytest.raises(InputError):
        MixingLaw(**given)


@pytest.mark.parametrize(
    ("pool", "change"),
    [
        (np.ones((18, 2)), {}),
        (np.full((18, 2), np.nan), {}),
        (np.zeros((17, 2)), {}),
        (np.zeros((18, 2)), {"noise_std": 0.0}),
        (np.zeros((18, 2)), {"blocks": 3}),
        (np.zeros((18, 2)), {"backend": "numpy"}),
    ],
)
def test_pools_that_nothing_can_be_said_about_are_refused(pool, change):
    with pytest.raises(InputError):
        Obfuscated(**({"pool": pool, "law": LAW, "noise_std": 0.1} | change))


@pytest.mark.parametrize("change", [{"pilot": 1}, {"draws": 0}, {"again": -1}, {"swaps": 0}])
def test_efforts_that_certify_nothing_are_refused(change):
    with pytest.raises(InputError):
        UnitEffort(**change)
