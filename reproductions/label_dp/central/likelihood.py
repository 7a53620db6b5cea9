"""A schooled network trained further by labels privatised one by one: post-processing of what was observed.

The loss is the likelihood of the observations, `-log sum_c p(c|x) p(o|c)`, by the loop of `label_dp.train` with the
network's own belief as prior: no target is fixed. Only while steps are largest the belief it began with takes part, so
that no class is forgotten before the observations speak. What keeps a network from learning wrong observations by heart
is the loop's own pace: large steps and fast decay of weights.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import torch
from torch import Tensor

from reproductions.label_dp.augment import Album
from reproductions.label_dp.central.encoder import PictureClassifier
from reproductions.label_dp.central.settings import Settings
from reproductions.label_dp.recipe import Recipe
from reproductions.label_dp.train import Fitted, Lesson, Say, fit

LARGEST_GRADIENT = 5.0
POWERS = tuple(2.0 ** (place / 4) for place in range(-16, 5))  # of a belief: a sixteenth to 2
SCALE = 2.0  # of logits: large steps would move those of a head at its first scale too far
BELIEF_UNTIL = 0.4  # of all steps
TRIED = 12  # batches, to see how long one takes


def as_sure_as_right(chances: Tensor, scores: Tensor) -> float:
    """The power of a belief, made without these observations, that makes them likeliest.

    `chances`: log-probabilities of the training pictures; `scores`: log-likelihoods of their observations.
    """
    beliefs = ((power * chances).log_softmax(1) for power in POWERS)
    gains = [(scores + belief).logsumexp(1).double().mean() for belief in beliefs]
    return POWERS[int(torch.stack(gains).argmax())]


def tempered(net: PictureClassifier, chances: Tensor, scores: Tensor) -> Tensor:
    """Make the network as sure as it is right; returns its belief `chances`, which is made so too."""
    best = as_sure_as_right(chances, scores)
    with torch.no_grad():
        net.head.weight.mul_(best)
        net.head.bias.mul_(best)
    return (best * chances).log_softmax(1)


def recipe(settings: Settings, epsilon: float) -> Recipe:
    """The recipe of `ours` for a network that knows something already."""
    return Recipe(
        "ours",
        epsilon,
        settings.seed,
        width=settings.width,
        epochs=settings.response_epochs,
        batch=settings.school_batch,
        peak_lr=settings.response_lr,
        weight_decay=settings.response_decay,
        strength=settings.strength,
        balance=True,
    )


def observed(scores: Tensor, belief: Tensor, shares: Tensor) -> Lesson:
    """Log-likelihoods of every picture's observation under each class, and the belief that gives way to the network's.

    `shares`: how frequent the classes are, by what was released.
    """
    return Lesson(scores=scores, first_prior=belief, first_until=BELIEF_UNTIL, shares=shares)


def taught(
    net: PictureClassifier,
    album: Album,
    lesson: Lesson,
    chosen: Recipe,
    *,
    seconds: float = math.inf,
    compiled: bool = False,
    say: Say = print,
) -> tuple[Fitted, int]:
    """The network trained in place, in so many seconds at most; and its epochs."""
    classes, device = net.head.out_features, album.pixels.device

    def train(chosen: Recipe, net: PictureClassifier, album: Album, say: Say) -> Fitted:
        return fit(
            chosen,
            album,
            lesson,
            classes,
            device,
            start=net,
            largest_gradient=LARGEST_GRADIENT,
            compiled=compiled,
            say=say,
        )

    if seconds < math.inf:
        few = Album.of(album.pixels[: TRIED * chosen.batch], like=album)
        batches = max(1, len(few.pixels) // chosen.batch)
        trial = [train(replace(chosen, epochs=1), copy.deepcopy(net), few, lambda line: None) for _ in range(2)][1]
        fits = (seconds - 2 * trial.seconds) * batches / (1.03 * trial.seconds * (len(album.pixels) / chosen.batch))
        chosen = replace(chosen, epochs=max(1, min(chosen.epochs, int(fits))))
    return train(chosen, net, album, say), chosen.epochs
