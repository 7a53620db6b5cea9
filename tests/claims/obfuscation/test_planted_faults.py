"""Faults in the bounds themselves, beside the truth by listing everything: each must show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from leakcap.obfuscation.chi_squares import told_apart
from leakcap.obfuscation.pairs import AddedNoise, products, swap_factors
from leakcap.obfuscation.sampled import MixedDraw
from tests.claims.obfuscation.brute_force import every_swap, mixture_density, nats_of, samples, truth
from tests.claims.obfuscation.cases import TWO_ROWS, law, one_swap


def test_nats_are_attained_for_close_pairs_and_planted_columns_for_half_of_them_are_caught():
    """Where there is one swap and much noise the truth is the second-order term, which `d/2` has and `d` doubles."""
    pool, rules = one_swap()
    ratio = nats_of(every_swap(pool, rules, 2.0, 0), 0.5)[0] / truth(pool, rules, 2.0).nats[0]
    assert 1 <= ratio < 1.25
    assert 2 * ratio > 1.25  # planted: d for d/2
    assert ratio / 2 < 1  # planted: d/4 for d/2


# A pool of three of which two rows leave unmixed. The first and the last are alike, so that swapping them at their
# place tells nothing; in the order of the pool everybody moves up by one.
ORDERED_POOL = np.array([[1.0, 0.0], [0.0, 0.1], [1.0, 0.0]])
ORDERED_LAW = law([3], 2, 1, TWO_ROWS)


def unmixed_truth(noise, *, permuted):
    """Total variation about the first unit, of two rows that leave as they are, in a random order or the pool's."""
    every = [(1, 0), (0, 1)] if permuted else [(0, 1)]
    axis = np.linspace(-7.5, 7.5, 401) * np.sqrt(1 + noise**2)
    grid = np.stack([g.ravel() for g in np.meshgrid(axis, axis, indexing="ij")], axis=1)

    def density(rows):
        orders = [ORDERED_POOL[rows[list(order)]] for order in every]
        return mixture_density([some @ some.T + noise**2 * np.eye(2) for some in orders], grid)

    inside, outside = (
        np.mean([density(np.sort(rows)) for rows in samples(ORDERED_LAW) if (0 in rows) == there], axis=0)
        for there in (True, False)
    )
    return np.abs(inside - outside).sum() * (axis[1] - axis[0]) ** 2 / 2


def unmixed_bound(noise):
    """The mean over closest pairs: the first unit's place is taken by everybody else outside."""
    found = []
    for rows in samples(ORDERED_LAW):
        if 0 not in rows:
            continue
        mixed = MixedDraw(rows, sparse.csr_matrix(np.eye(2)))
        joins = np.setdiff1d(np.arange(3), rows)
        places = np.full(len(joins), np.flatnonzero(rows == 0)[0])
        parts = products(ORDERED_POOL, mixed, AddedNoise(noise**2, 1))
        factors = swap_factors(ORDERED_POOL, mixed, parts, places=places, joins=joins, columns=1)
        found.append(told_apart(factors.wider, factors.narrower, 1, cells=1024))
    return float(np.mean(found))


@pytest.mark.parametrize("noise", [0.2, 0.4])
def test_a_forgotten_permutation_is_caught(noise):
    """Rows that leave in the order of the pool tell more than closest pairs say; in a random order they do not."""
    bound = unmixed_bound(noise)
    assert unmixed_truth(noise, permuted=True) <= bound + 1e-5
    assert unmixed_truth(noise, permuted=False) > bound + 0.1
