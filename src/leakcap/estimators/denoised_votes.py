"""What noised votes about public rows say, when rows that are alike are heard together.

One row's votes drown in noise; thousands of rows do not. All of it is made of released votes and public rows, so that
it costs nothing: a linear fit and forests with large leaves, each as smooth as the noise asks for, and together as
rows show that none of them has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import nnls
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.preprocessing import StandardScaler

from leakcap.ground.arrays import Floats

__all__ = ["soft_labels"]

Smoother = Callable[[Floats, Floats, Floats], Floats]  # public rows, what is said of them, and other rows
STRENGTHS = np.logspace(-6, 3, 28)  # of ridges, beside the largest eigenvalue
LEAVES = (3.0, 8.0)  # rows of a leaf, as multiples of the noise, squared
TREES, SPLITS = 50, 32  # features that a split is chosen from
FOLDS = 3


def soft_labels(rows: Floats, votes: Floats, noise: float) -> Floats:
    """`(rows, classes)` shares of the classes, positive and of sum 1.

    Args:
        rows: public.
        votes: noised shares of the votes, `(rows, classes)`.
        noise: its deviation in each.
    """
    classes = votes.shape[1]
    said = votes - (votes.sum(axis=1, keepdims=True) - 1) / classes  # one vote for each row: the rest is noise
    noise = noise * np.sqrt(1 - 1 / classes)
    scaled = StandardScaler().fit_transform(rows)
    ways: list[Smoother] = [partial(_ridge, noise)]
    ways += [partial(_forest, _leaf(noise * times, len(rows))) for times in LEAVES]
    middle = said.mean(axis=0)
    weights = _weights(ways, scaled, said - middle)
    together = sum(weight * way(scaled, said - middle, scaled) for weight, way in zip(weights, ways, strict=True))
    shares = np.clip(middle + together, 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / classes)


def _weights(ways: list[Smoother], rows: Floats, said: Floats) -> Floats:
    """How much of each, by what they make of rows that they have not seen."""
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    seen = np.zeros((len(ways), *said.shape))
    for number in range(FOLDS):
        rest, own = fold != number, fold == number
        for place, way in enumerate(ways):
            seen[place, own] = way(rows[rest], said[rest], rows[own])
    return np.asarray(nnls(seen.reshape(len(ways), -1).T, said.ravel())[0])


def _ridge(noise: float, rows: Floats, said: Floats, other: Floats) -> Floats:
    """A linear fit of the strength with the least risk, by Stein's estimate of it: the noise is known."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    kept = values > values[-1] * 1e-9
    values, vectors = values[kept], vectors[:, kept]
    along = vectors.T @ (rows.T @ said) / np.sqrt(values)[:, None]
    kept_shares = values / (values + STRENGTHS[:, None] * values[-1])
    squares = (along**2).sum(axis=1)
    risks = ((1 - kept_shares) ** 2) @ squares + 2 * noise**2 * said.shape[1] * kept_shares.sum(axis=1)
    best = kept_shares[int(np.argmin(risks))]
    return np.asarray(other @ (vectors @ (best[:, None] * along / np.sqrt(values)[:, None])))


def _forest(leaf: int, rows: Floats, said: Floats, other: Floats) -> Floats:
    """Averages over the rows of a leaf, of many trees."""
    features = min(1.0, SPLITS / rows.shape[1])
    made = ExtraTreesRegressor(TREES, min_samples_leaf=leaf, max_features=features, random_state=0).fit(rows, said)
    return np.asarray(made.predict(other)).reshape(len(other), -1)


def _leaf(size: float, rows: int) -> int:
    return int(np.clip(size**2, 1, max(1, rows // 8)))
