"""What a trained network knows: of pictures it never saw, and of the labels it was trained on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy.stats import beta
from torch import Tensor, nn

from reproductions.label_dp.augment import Album
from reproductions.label_dp.evidence import Canaries
from reproductions.label_dp.train import autocast

THRESHOLDS = (0.5, 0.9)  # fixed before any score is seen; the paper reports the best of many
CHUNK = 1000


@torch.no_grad()
def recalibrate(net: nn.Module, album: Album, device: torch.device) -> None:
    """Batch-norm statistics of these weights on training pictures as they are (public: no label is used)."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches
    net.train()
    size = min(500, len(album.pixels))
    with autocast(device):
        for start in range(0, min(len(album.pixels), 10_000) - size + 1, size):
            net(album.plain(slice(start, start + size)))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    net.eval()


@torch.no_grad()
def predict(net: nn.Module, album: Album, device: torch.device, *, flip: bool = True) -> Tensor:
    """Log-probabilities of the classes, averaged over a picture and its mirror image if asked."""
    net.eval()
    found = []
    for start in range(0, len(album.pixels), CHUNK):
        x = album.plain(slice(start, start + CHUNK))
        with autocast(device):
            views = [net(x), net(x.flip(3))] if flip else [net(x)]
        found.append(torch.stack([view.float().softmax(1) for view in views]).mean(0).clamp_min(1e-30).log())
    return torch.cat(found)


def accuracy(scores: Tensor, truth: Tensor) -> float:
    """Share of rows whose largest entry is the true class."""
    return float((scores.argmax(1) == truth).double().mean())


def likelihood_gain(scores: Tensor, log_prior: Tensor) -> float:
    """How much likelier the network makes privatised labels than chance does, in nats a label. Costs no privacy."""
    scores = scores.double()
    even = scores - math.log(scores.shape[1])
    return float(((scores + log_prior.double()).logsumexp(1) - even.logsumexp(1)).mean())


def memorisation(log_probabilities: Tensor, canaries: Canaries) -> list[dict[str, Any]]:
    """The attacker of Appendix B against planted labels: for each threshold, how often it guesses and is right.

    It is shown the planted label and a decoy, guesses the one the network believes more, and stays silent if it
    believes neither. One decoy a canary, so that guesses may be counted as a binomial. `epsilon_lower`,
    `epsilon_upper`: the 95 % Clopper-Pearson interval of the success a, as log(a / (1 - a)).
    Differs from the paper: its `1 - log(...)` contradicts its Theorem B.1.
    """
    confidence = log_probabilities.exp().cpu().numpy()
    planted = confidence[canaries.rows, canaries.planted]
    decoy = confidence[canaries.rows, canaries.decoy]
    return [
        attack(int(speaks.sum()), int((speaks & (planted > decoy)).sum()), threshold)
        for threshold in THRESHOLDS
        for speaks in [np.maximum(planted, decoy) >= threshold]
    ]


def attack(guesses: int, right: int, threshold: float) -> dict[str, Any]:
    """Counts of an attacker's guesses as an interval for its success and for epsilon."""
    low = float(beta.ppf(0.025, right, guesses - right + 1)) if right else 0.0
    high = float(beta.ppf(0.975, right + 1, guesses - right)) if right < guesses else 1.0
    return {
        "threshold": threshold,
        "guesses": guesses,
        "right": right,
        "success": right / guesses if guesses else None,
        "success_lower": low,
        "success_upper": high,
        "epsilon_lower": _epsilon(low),
        "epsilon_upper": _epsilon(high),
    }


def _epsilon(success: float) -> float | None:
    """Theorem B.1; None stands for no upper end."""
    return None if success >= 1 else max(0.0, math.log(success / (1 - success)) if success > 0 else 0.0)
