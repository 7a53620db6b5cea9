"""What a release with a secret half and a secret seed tells, by sums over all of them: nothing of leakcap is used here.

`answers` are `(halves, seeds, r)`, all halves and all seeds alike; noise has one deviation along every direction.
"""

from __future__ import annotations

import itertools

import numpy as np

POINTS = 241  # of the grid along each direction


def halves(n: int, size: int | None = None) -> np.ndarray:
    """All halves of a pool, or all parts of another size, as rows of masks."""
    found = np.zeros((0, n), dtype=bool)
    for kept in itertools.combinations(range(n), n // 2 if size is None else size):
        mask = np.zeros(n, dtype=bool)
        mask[list(kept)] = True
        found = np.vstack([found, mask])
    return found


def laws(answers: np.ndarray, deviation: float, points: int = POINTS) -> np.ndarray:
    """`(halves, cells)`: the law of the release given the half, on a fine grid."""
    axes = [
        np.linspace(one.min() - 7 * deviation, one.max() + 7 * deviation, points)
        for one in answers.reshape(-1, answers.shape[2]).T
    ]
    cells = np.array(list(itertools.product(*axes)))
    found = np.zeros((len(answers), len(cells)))
    for seed in range(answers.shape[1]):
        squares = (((cells[None] - answers[:, seed, None]) / deviation) ** 2).sum(axis=2)
        masses = np.exp(-squares / 2)
        found += masses / masses.sum(axis=1, keepdims=True) / answers.shape[1]
    return found


def information_of(law: np.ndarray) -> float:
    """Nats about the half."""
    mean = law.mean(axis=0)
    seen = law > 0
    ratios = np.divide(law, mean, out=np.ones_like(law), where=seen)
    return float((law * np.log(ratios)).sum() / len(law))


def membership_of(law: np.ndarray, masks: np.ndarray) -> float:
    """Success of the best guess at whether the most exposed unit took part."""
    inside, outside = (kept.T.astype(float) @ law / len(law) for kept in (masks, ~masks))
    return float(np.maximum(inside, outside).sum(axis=1).max())


def balanced_of(law: np.ndarray, masks: np.ndarray) -> float:
    """Balanced success: "in" and "out" count alike, however many parts hold the unit."""
    return max(0.5 + np.abs(law[one].mean(axis=0) - law[~one].mean(axis=0)).sum() / 4 for one in masks.T)


def mean_distance(answers: np.ndarray, tau: int) -> float:
    """The expected minimal-permutation distance of two independent halves, over all draws of `tau` seeds."""
    draws = list(itertools.product(range(answers.shape[1]), repeat=tau))
    return sum(_least(answers, drawn) for drawn in draws) / len(draws)


def distance_of_all(answers: np.ndarray) -> float:
    """The same for clouds of all seeds, each once."""
    return _least(answers, tuple(range(answers.shape[1])))


def _least(answers: np.ndarray, drawn: tuple[int, ...]) -> float:
    gaps = ((answers[:, None, :, None] - answers[None, :, None, :]) ** 2).sum(axis=-1)  # (half, half, seed, seed)
    sums = [
        sum(gaps[:, :, one, drawn[place]] for one, place in zip(drawn, order, strict=True)) / len(drawn)
        for order in itertools.permutations(range(len(drawn)))
    ]
    return float(np.min(sums, axis=0).mean())
