"""Two outputs with standard normal noise: all figures of the finite game by plain quadrature, for brute-force tests.

Shares no code with the library. Every figure is an integral over releases of a functional of the joint densities
`p(w, y)`; the kinks of these functionals cost an error of the order of the squared step (`test_coverage.py` checks it).
"""

from __future__ import annotations

import itertools

import numpy as np
from threadpoolctl import threadpool_limits

one_thread = threadpool_limits.wrap(limits=1)  # tall, thin products are much slower with several


class Plane:
    """`points` are `(m, 2)` outputs in units of the noise; `masks` says who is in which world."""

    def __init__(self, points, masks, step=0.06, reach=6.0):
        self.masks = np.asarray(masks, dtype=bool)
        self.m, self.n = self.masks.shape
        self.rate = self.masks[:, 0].mean()
        axes = [np.arange(z.min() - reach, z.max() + reach, step) for z in points.T]
        scale = step / np.sqrt(2 * np.pi)
        parts = [scale * np.exp(-0.5 * (y[:, None] - z) ** 2) for y, z in zip(axes, points.T, strict=True)]
        # (releases, worlds): the mass of a small square around each release, in each world
        self.joint = (parts[0][:, None, :] * parts[1][None, :, :]).reshape(-1, self.m) / self.m
        self.joint = self.joint[self.joint.sum(axis=1) > 1e-14]

    @one_thread
    def deviations(self):
        """E|q_u - q| for every unit."""
        return np.abs(self.joint @ (self.masks - self.rate)).sum(axis=0)

    def membership(self):
        return 0.5 + self.deviations() / (4 * self.rate * (1 - self.rate))

    @one_thread
    def sticks(self, thresholds):
        """`(thresholds, units)`: E(q_u - t)_+."""
        inside = self.joint @ self.masks.astype(float)
        total = self.joint.sum(axis=1)[:, None]
        return np.array([np.maximum(inside - t * total, 0).sum(axis=0) for t in thresholds])

    @one_thread
    def naming(self):
        return (self.joint @ self.masks.astype(float)).max(axis=1).sum()

    def curve(self, priors):
        ordered = np.sort(self.joint, axis=1)[:, ::-1].sum(axis=0)
        whole = np.concatenate([[0.0], np.cumsum(ordered)])
        return np.interp(np.asarray(priors, dtype=float) * self.m, np.arange(self.m + 1), whole)

    def information(self):
        total = self.joint.sum(axis=1, keepdims=True)
        safe = np.maximum(self.joint, 1e-300)
        return float((self.joint * (np.log(self.m) + np.log(safe / total))).sum())

    @one_thread
    def task(self, wins):
        return (self.joint @ wins).max(axis=1).sum()

    @one_thread
    def known(self, k):
        """Balanced success against each unit by an attacker told the memberships of `k` others, chosen at random."""
        total, sets = np.zeros(self.n), np.zeros(self.n)
        by_world = np.ascontiguousarray(self.joint.T)
        weight = by_world.sum(axis=1)
        for told in itertools.combinations(range(self.n), k):
            others = np.setdiff1d(np.arange(self.n), told)
            # Worlds with equal answers stay possible together; one that is alone is known.
            answers = self.masks[:, told] @ (1 << np.arange(k))
            _, group, sizes = np.unique(answers, return_inverse=True, return_counts=True)
            lean = self.masks[:, others] - self.rate
            alone = sizes[group] == 1
            total[others] += weight[alone] @ np.abs(lean[alone])
            for number in np.flatnonzero(sizes > 1):
                these = group == number
                total[others] += np.abs(lean[these].T @ by_world[these]).sum(axis=1)
            sets[others] += 1
        return 0.5 + total / sets / (4 * self.rate * (1 - self.rate))
