"""The truth for pools so small that every sample, mixing and order of rows can be listed: the oracle of all bounds.

One column of one or two released rows, so that densities are integrated on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np
from scipy import sparse

from leakcap.obfuscation.information import log_det_nats, trace_nats
from leakcap.obfuscation.pairs import AddedNoise, SwapFactors, products, swap_factors
from leakcap.obfuscation.sampled import MixedDraw
from leakcap.obfuscation.whole import relative_covariances, whole_trace_nats

POINTS = {1: 6001, 2: 261}
REACH = 7.5


def samples(law):
    """Every sample, class by class."""
    classes = [np.flatnonzero(law.labels == one) for one in range(law.classes)]
    return [
        np.concatenate([np.array(rows, dtype=np.intp) for rows in chosen])
        for chosen in product(*(combinations(rows, law.sampled) for rows in classes))
    ]


def mixings(law):
    """Every mixing: `(m, n)` tables, all equally likely."""
    kinds = [
        [(law.sampled * i + np.array(a), law.sampled * j + np.array(b)) for a, b in product(parts(law), repeat=2)]
        for i, j in law.pairs
    ]
    tables = []
    for rows in product(*kinds):
        table = np.zeros((len(law.pairs), law.members))
        for row, chosen in enumerate(rows):
            for columns in chosen:
                table[row, columns] += 1 / (2 * law.mix)
        tables.append(table)
    return tables


def parts(law):
    return list(combinations(range(law.sampled), law.mix))


def orders(law):
    """Every order of rows within the same pair of classes, as lists of rows."""
    kinds = [tuple(kind) for kind in law.pairs]
    return [list(order) for order in permutations(range(len(kinds))) if [kinds[place] for place in order] == kinds]


@dataclass
class Truth:
    """What the best attacker gets: `tv`, `nats` and hockey sticks of every unit, and nats about the whole sample."""

    tv: np.ndarray
    nats: np.ndarray
    whole: float
    sticks: dict


def densities(pool, law, noise):
    """`(samples, points)` of the release, given each sample, on a grid; and the volume of a cell of the grid."""
    assert law.columns == 1
    m, everyone = len(law.pairs), samples(law)
    tables = [table[order] for table in mixings(law) for order in orders(law)]
    covariances = [[(t @ pool[rows]) @ (t @ pool[rows]).T + noise**2 * np.eye(m) for t in tables] for rows in everyone]
    widest = np.sqrt(max(np.diag(c).max() for some in covariances for c in some))
    axis = np.linspace(-REACH * widest, REACH * widest, POINTS[m])
    grid = np.stack([g.ravel() for g in np.meshgrid(*[axis] * m, indexing="ij")], axis=1)
    cell = (axis[1] - axis[0]) ** m
    density = np.array([mixture_density(some, grid) for some in covariances])
    assert abs(density.sum(axis=1) * cell - 1).max() < 1e-7
    return density, cell


def truth(pool, law, noise, weights=()):
    """By quadrature of the mixture's density for each sample."""
    density, cell = densities(pool, law, noise)
    everyone = samples(law)
    inside = np.array([np.isin(np.arange(len(pool)), rows) for rows in everyone])
    tv, nats, sticks = [], [], {weight: [] for weight in weights}
    mean = density.mean(axis=0)
    for unit in range(len(pool)):
        p, q = density[inside[:, unit]].mean(axis=0), density[~inside[:, unit]].mean(axis=0)
        rate = inside[:, unit].mean()
        tv.append(np.abs(p - q).sum() * cell / 2)
        nats.append(rate * kl(p, mean) * cell + (1 - rate) * kl(q, mean) * cell)
        for weight, found in sticks.items():
            found.append(np.maximum(p - weight * q, 0).sum() * cell)
    whole = float(np.mean([kl(p, mean) * cell for p in density]))
    return Truth(np.array(tv), np.array(nats), whole, {weight: np.array(found) for weight, found in sticks.items()})


def mixture_density(covariances, grid):
    unique, counts = np.unique(np.round(np.array(covariances), 12), axis=0, return_counts=True)
    total = np.zeros(len(grid))
    for covariance, count in zip(unique, counts, strict=True):
        form = np.einsum("ij,jk,ik->i", grid, np.linalg.inv(covariance), grid)
        total += count * np.exp(-form / 2) / np.sqrt(np.linalg.det(2 * np.pi * covariance))
    return total / counts.sum()


def kl(p, q):
    return float(np.where(p > 0, p * (np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300))), 0).sum())


def every_swap(pool, law, noise, unit, *, outsiders=None, sides="both"):
    """Factors of the unit's swaps over all samples with it, all mixings and all outsiders: all equally likely.

    `outsiders(rows)` may plant another choice of partners than everybody of the class outside of the sample.
    """
    mates = np.flatnonzero(law.labels == law.labels[unit])
    wider, narrower = [], []
    for rows in samples(law):
        if unit not in rows:
            continue
        joins = np.setdiff1d(mates, rows) if outsiders is None else outsiders(rows)
        place = int(np.flatnonzero(rows == unit)[0])
        for table in mixings(law):
            mixed = MixedDraw(rows, sparse.csr_matrix(table))
            found = products(pool, mixed, AddedNoise(noise**2, law.columns))
            places = np.full(len(joins), place)
            factors = swap_factors(pool, mixed, found, places=places, joins=joins, columns=law.columns)
            wider.append(factors.wider)
            narrower.append(factors.narrower)
    return SwapFactors(np.concatenate(wider), np.concatenate(narrower))


def every_outside_swap(pool, law, noise, unit):
    """The same from samples without the unit: it takes the place of everybody of its class."""
    wider, narrower = [], []
    for rows in samples(law):
        if unit in rows:
            continue
        places = np.flatnonzero(law.labels[rows] == law.labels[unit])
        for table in mixings(law):
            mixed = MixedDraw(rows, sparse.csr_matrix(table))
            found = products(pool, mixed, AddedNoise(noise**2, law.columns))
            joins = np.full(len(places), unit)
            factors = swap_factors(pool, mixed, found, places=places, joins=joins, columns=law.columns)
            turned = factors.turned(np.ones(len(places), dtype=bool))
            wider.append(turned.wider)
            narrower.append(turned.narrower)
    return SwapFactors(np.concatenate(wider), np.concatenate(narrower))


def nats_of(found, rate):
    rates, found = np.full(len(found.wider), rate), SwapFactors(found.wider[:, None], found.narrower[:, None])
    return log_det_nats(found, rates, 1).mean(), trace_nats(found, rates, 1).mean()


def mixtures_of(obfuscated):
    """All mixtures: by mixing, then by sample."""
    rules = obfuscated.law
    return [[table @ obfuscated.pool[rows] for rows in samples(rules)] for table in mixings(rules)]


def relative(obfuscated, mixture):
    return relative_covariances(obfuscated, [mixture], [obfuscated.noise_std**2])[0]


def whole_bounds(obfuscated):
    """Type I and Type II by listing everything, orders of rows included."""
    trace = np.mean(
        [
            whole_trace_nats(1, [relative(obfuscated, a)], [relative(obfuscated, b)])
            for mixtures in mixtures_of(obfuscated)
            for a in mixtures
            for b in mixtures
        ]
    )
    every = [
        relative(obfuscated, mixture[order])
        for mixtures in mixtures_of(obfuscated)
        for mixture in mixtures
        for order in orders(obfuscated.law)
    ]
    det = np.linalg.slogdet(np.mean(every, axis=0))[1] - np.mean(np.linalg.slogdet(every)[1])
    return float(trace), float(det) / 2
