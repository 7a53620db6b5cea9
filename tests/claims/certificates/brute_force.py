"""What releases tell, by plain sums over worlds and a fine grid of answers: nothing of leakcap is used here."""

from __future__ import annotations

import itertools

import numpy as np

POINTS = 101  # of the grid along each answer


def posteriors(means: np.ndarray, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(worlds, cells)` joint masses of world and cell of a grid, for answers `means` (worlds, k) with normal noise."""
    axes = []
    for column, deviation in zip(means.T, deviations, strict=True):
        axes.append(np.linspace(column.min() - 6 * deviation, column.max() + 6 * deviation, POINTS))
    cells = np.array(list(itertools.product(*axes)))
    logs = -0.5 * (((cells[None] - means[:, None]) / deviations) ** 2).sum(axis=2)
    masses = np.exp(logs)
    joint = masses / masses.sum(axis=1, keepdims=True) / len(means)
    return joint, joint / joint.sum(axis=0)


def information(means: np.ndarray, deviations: np.ndarray) -> float:
    """Nats that the answers carry about the world."""
    joint, posterior = posteriors(means, deviations)
    seen = joint > 0
    return float((joint[seen] * np.log(posterior[seen] * len(means))).sum())


def membership(means: np.ndarray, deviations: np.ndarray, masks: np.ndarray) -> float:
    """Success of the best guess at whether the most exposed unit took part."""
    joint, _ = posteriors(means, deviations)
    inside = masks.T.astype(float) @ joint
    outside = (~masks).T.astype(float) @ joint
    return float(np.maximum(inside, outside).sum(axis=1).max())


def at_any_task(means: np.ndarray, deviations: np.ndarray, prior: float) -> float:
    """Success of the best guess that succeeds with this chance beforehand: naming one of a share of all worlds."""
    joint, _ = posteriors(means, deviations)
    count = round(prior * len(means))
    return float(np.sort(joint, axis=0)[-count:].sum())
