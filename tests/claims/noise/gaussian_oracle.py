"""Best attackers against listed worlds in one and two dimensions, by quadrature: shares no code with the library."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq


def halves(n):
    """All subsets of half the size, as rows."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return bits[bits.sum(axis=1) == n // 2].astype(bool)


def joint(means, covariances, fine=241, reach=7.0):
    """Probabilities of (world, cell) on a grid of midpoints; `covariances` are one for all, or one a world."""
    means = np.asarray(means, dtype=float).reshape(len(means), -1)
    m, d = means.shape
    each = np.broadcast_to(np.asarray(covariances, dtype=float).reshape(-1, d, d), (m, d, d))
    wide = np.sqrt(np.einsum("wii->wi", each)).max(axis=0)
    axes = [
        np.linspace(means[:, i].min() - reach * wide[i], means[:, i].max() + reach * wide[i], fine) for i in range(d)
    ]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    volume = np.prod([axis[1] - axis[0] for axis in axes])
    found = np.empty((m, len(cells)))
    for w in range(m):
        off = cells - means[w]
        density = np.exp(-0.5 * (off @ np.linalg.inv(each[w]) * off).sum(axis=1))
        found[w] = density / np.sqrt(np.linalg.det(2 * np.pi * each[w])) * volume / m
    return found


def membership(table, worlds):
    """Success against the unit that fares worst."""
    return max(
        np.maximum(table[worlds[:, u]].sum(axis=0), table[~worlds[:, u]].sum(axis=0)).sum()
        for u in range(worlds.shape[1])
    )


def information(table):
    safe = np.maximum(table, 1e-300)
    return float((table * np.log(safe / (safe.sum(axis=0) / len(table)))).sum())


def any_inference(table, size):
    """Of the best guess at a set of `size` worlds."""
    return float(np.sort(table, axis=0)[-size:].sum())


def recognised(table, worlds, fpr):
    """Share of participations that the best test recognises, for the worst unit."""
    best = 0.0
    for u in range(worlds.shape[1]):
        inside, outside = 2 * table[worlds[:, u]].sum(axis=0), 2 * table[~worlds[:, u]].sum(axis=0)
        order = np.argsort(-inside / np.maximum(outside, 1e-300))
        best = max(best, float(np.interp(fpr, np.cumsum(outside[order]), np.cumsum(inside[order]))))
    return best


def least(line, figure, limit):
    """The noise variance at which a figure of one number falls to its limit."""
    spread = np.var(line)

    def excess(log_variance):
        variance = spread * np.exp(log_variance)
        return figure(joint(line, [[variance]], fine=4001)) - limit

    return spread * np.exp(brentq(excess, -7, 6, xtol=1e-4))
