"""From secret labels to what training may use: the log-likelihood of each picture's observation under every class.

The only place of this folder that sees true labels and an epsilon together. All later steps are post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import leakcap as lc
from reproductions.label_dp.recipe import Recipe

Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int64]


def mechanism(recipe: Recipe, n_classes: int) -> Any:
    """The label mechanism a recipe names."""
    assert recipe.epsilon is not None
    if recipe.mechanism == "auto":
        return lc.labels.auto(recipe.epsilon, n_classes)
    if recipe.mechanism == "gaussian":
        return lc.labels.Gaussian(epsilon=recipe.epsilon, n_classes=n_classes, delta=recipe.delta)
    kinds = {
        "krr": lc.labels.KRR,
        "laplace": lc.labels.Laplace,
        "unary": lc.labels.UnaryBits,
        "subset": lc.labels.SubsetSelection,
    }
    return kinds[recipe.mechanism](epsilon=recipe.epsilon, n_classes=n_classes)


def first_scores(recipe: Recipe, y: Whole, n_classes: int) -> tuple[Floats, str]:
    """The log-likelihoods of freshly privatised labels, and the mechanism's name. Called once for each label."""
    chosen = mechanism(recipe, n_classes)
    return np.asarray(chosen.scores(chosen.privatize(y)), dtype=np.float32), type(chosen).__name__


def second_scores(recipe: Recipe, y: Whole, prior: Floats) -> Floats:
    """The same for labels privatised with a prior learned from other people's labels: the second stage of LP-2ST."""
    prior = prior.astype(np.float64)
    chosen = lc.labels.RRWithPrior(recipe.epsilon, prior / prior.sum(1, keepdims=True))
    return np.asarray(chosen.scores(chosen.privatize(y)), dtype=np.float32)


def class_shares(scores: Floats, steps: int = 100) -> Floats:
    """How frequent each class is, from privatised labels alone (EM)."""
    shares = np.full(scores.shape[1], 1 / scores.shape[1])
    likelihood = np.exp(scores - scores.max(1, keepdims=True)).astype(np.float64)
    for _ in range(steps):
        weighted = likelihood * shares
        shares = (weighted / weighted.sum(1, keepdims=True)).mean(0)
    return shares.astype(np.float32)
