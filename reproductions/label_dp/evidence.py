"""From secret labels to what training may use: the log-likelihood of each picture's observation under every class.

The only place of this folder that sees true labels and an epsilon together. All later steps are post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import leakcap as lc
from leakcap.errors import InputError
from reproductions.label_dp.recipe import Recipe

Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int64]

AS_RUN = {3.7: (1.75, 1.97), 7.7: (0.93, 1.01), 19.0: (0.45, 0.47)}  # deviations by epsilon, least and most


class GaussianAsRun:
    """The noise that the paper's public code adds, and how it reads it. To compare with: its draws are not ours.

    Its accountant asks for a little more than (epsilon, delta = 1e-5) needs, and scores are divided by the deviation,
    where the log-likelihood has the variance: too sure of what it saw above 1, too little below.
    """

    def __init__(self, epsilon: float, n_classes: int) -> None:
        if epsilon not in AS_RUN:
            raise InputError(f"deviations are known for epsilon {', '.join(map(str, AS_RUN))} alone")
        self.sigma, self.n_classes = float(np.mean(AS_RUN[epsilon])), n_classes

    def privatize(self, y: Whole) -> npt.NDArray[np.float64]:
        return np.eye(self.n_classes)[y] + np.random.default_rng().normal(0, self.sigma, (len(y), self.n_classes))

    def scores(self, observed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return observed / self.sigma


def mechanism(recipe: Recipe, n_classes: int) -> Any:
    """The label mechanism a recipe names."""
    assert recipe.epsilon is not None
    if recipe.mechanism == "auto":
        return lc.labels.auto(recipe.epsilon, n_classes)
    if recipe.mechanism == "gaussian":
        return lc.labels.Gaussian(epsilon=recipe.epsilon, n_classes=n_classes, delta=recipe.delta)
    if recipe.mechanism == "gaussian-as-run":
        return GaussianAsRun(recipe.epsilon, n_classes)
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
