"""What a trained network knows: of pictures it never saw, and of the labels it was trained on."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import leakcap as lc
from leakcap.audit import CanaryKey
from leakcap.audit.attacks.appendix_b import decoy_counts
from reproductions.label_dp.augment import Album
from reproductions.label_dp.train import autocast

THRESHOLDS = (0.5, 0.9)  # of the paper's rule, fixed before any score is seen; the paper reports the best of many
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


def memorisation(log_probabilities: Tensor, key: CanaryKey) -> dict[str, Any]:
    """What a network gives away about planted labels: counts of both exact games, and what the paper's rules need.

    `all_decoys`: for each threshold, right guesses and all guesses about each canary (Appendix B). `believed`: for each
    canary the larger of the two confidences, and whether the guess is right (Figure 1).
    Differs from the paper: its `1 - log(...)` contradicts its Theorem B.1.
    """
    scores = log_probabilities.double().exp().cpu().numpy()[key.rows]
    report = lc.audit.memorised(scores, key)
    each = np.arange(key.count)
    planted, decoy = scores[each, key.planted], scores[each, key.decoys]
    return {
        "canaries": key.count,
        "epsilon_lower": report.epsilon_lower,
        "counts": [asdict(count) for count in report.counts],
        "all_decoys": {
            f"{threshold:g}": np.stack(decoy_counts(scores, key, threshold), axis=1).tolist()
            for threshold in THRESHOLDS
        },
        "believed": [
            [round(float(most), 4), bool(right)]
            for most, right in zip(np.maximum(planted, decoy), planted > decoy, strict=True)
        ],
    }
