"""Brute force for small pools, sharing no code with the library: a fine quadrature in one dimension, and plain
Monte Carlo in double precision otherwise."""

from __future__ import annotations

import itertools

import numpy as np


def all_halves(n):
    """Every subset of size n/2, complements in the second half of the list."""
    rows = []
    for chosen in itertools.combinations(range(n), n // 2):
        row = np.zeros(n, dtype=bool)
        row[list(chosen)] = True
        rows.append(row)
    table = np.array(rows)
    first = table[table[:, 0]]
    return np.concatenate([first, ~first])


def density(x):
    """Of the standard normal law; `scipy.stats.norm` takes several times as long."""
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


class Line:
    """One output with Gaussian noise: the trapezoidal rule on a grid so fine that kinks cost below 1e-8."""

    def __init__(self, outputs, deviation, points=2**14):
        z = np.asarray(outputs, dtype=float) / deviation
        self.y, self.step = np.linspace(z.min() - 9, z.max() + 9, points, retstep=True)
        self.joint = density(self.y[:, None] - z) / len(z)

    def expectation(self, values):
        """Integral over releases of a functional of the joint densities, given at the grid points."""
        return float(values.sum() * self.step)

    def membership(self, mask):
        return self.expectation(np.maximum(self.joint[:, mask].sum(axis=1), self.joint[:, ~mask].sum(axis=1)))

    def curve(self, sizes):
        """Success of naming so many worlds, for each of the sizes."""
        ordered = np.sort(self.joint, axis=1)
        return [self.expectation(ordered[:, -k:].sum(axis=1)) for k in sizes]

    def task(self, wins):
        return self.expectation((self.joint @ wins).max(axis=1))

    def information(self):
        joint = np.maximum(self.joint, 1e-300)
        total = joint.sum(axis=1, keepdims=True)
        return self.expectation((joint * (np.log(joint.shape[1]) + np.log(joint / total))).sum(axis=1))


class Cloud:
    """Several outputs: independent releases in double precision, mean and standard error of any functional."""

    def __init__(self, points, games, rng):
        secret = rng.integers(len(points), size=games)
        seen = points[secret] + rng.standard_normal((games, points.shape[1]))
        score = seen @ points.T - (points**2).sum(axis=1) / 2  # but for what all worlds share
        likely = np.exp(score - score.max(axis=1, keepdims=True))
        self.posterior = likely / likely.sum(axis=1, keepdims=True)

    def estimate(self, value):
        found = value(self.posterior)
        return found.mean(), found.std(ddof=1) / np.sqrt(len(found))
