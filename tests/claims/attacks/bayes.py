"""An attacker that shares no code with the library: it reads masks, outputs and the noise factor, nothing else.

It is told the truth about the mechanism and plays the game many times: draw a world, noise its output, compute the
posterior over worlds from scratch in double precision, guess the likelier side for every unit.
"""

from __future__ import annotations

import numpy as np


def membership_successes(masks, outputs, factor, games, rng, block=512):
    """Mean and standard error, per unit, of the optimal attacker's success (conditional on each release)."""
    masks = masks.astype(float)
    m, n = masks.shape
    directions, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    kept = sizes > sizes.max() * 1e-10
    whiten = directions[:, kept] / sizes[kept]  # pseudo-inverse root of the covariance
    points = (outputs - outputs.mean(axis=0)) @ whiten
    total, squares, done = np.zeros(n), np.zeros(n), 0
    while done < games:
        k = min(block, games - done)
        secret = rng.integers(m, size=k)
        seen = points[secret] + rng.standard_normal((k, points.shape[1]))
        score = -0.5 * ((seen**2).sum(1)[:, None] + (points**2).sum(1)[None] - 2 * seen @ points.T)
        score -= score.max(axis=1, keepdims=True)
        likely = np.exp(score)
        likely /= likely.sum(axis=1, keepdims=True)
        share = likely @ masks
        best = np.maximum(share, 1 - share)
        total += best.sum(axis=0)
        squares += (best**2).sum(axis=0)
        done += k
    mean = total / games
    return mean, np.sqrt(np.maximum(squares / games - mean**2, 0) / games)


def success_without_noise(masks, outputs):
    """Exact success per unit when the answer is published as it is: worlds with equal answers stay confused."""
    _, group = np.unique(outputs, axis=0, return_inverse=True)
    members = np.zeros((group.max() + 1, masks.shape[1]))
    np.add.at(members, group.ravel(), masks.astype(float))
    sizes = np.bincount(group.ravel())[:, None]
    return np.maximum(members, sizes - members).sum(axis=0) / len(masks)
