"""What a server learns from encoded sets: a network of three dense layers, and ridge regression; all sets at once.

Differs from the paper: it names no widths, rates or epochs. Those here were chosen once, on test rows of even places;
accuracies are told on those of odd places, and so is the penalty of the ridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.encoded import EncodedSets

__all__ = ["Schooling", "network_accuracy", "ridge_accuracy"]

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
QUERIES_AT_ONCE = 500
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Schooling:
    """How the network is trained: Adam, the rate falling to 0 along a cosine."""

    wide: int = 512
    epochs: int = 60
    batch: int = 200
    rate: float = 2e-3
    decay: float = 3.0
    dropout: float = 0.5


def network_accuracy(
    sets: EncodedSets, data: Embedded, schooling: Schooling, *, seed: int = 0, turn: int = 1
) -> Floats:
    """`(sets,)`: accuracy on test rows of odd places (`turn` 1) or even places (0)."""
    import torch  # noqa: PLC0415

    weights = _trained(sets, schooling, seed)
    with torch.no_grad():
        return _told(sets, data, turn, lambda rows, which: _scores([w[which] for w in weights], rows))


def ridge_accuracy(sets: EncodedSets, data: Embedded) -> Floats:
    """`(sets,)`: on test rows of odd places, with the penalty that did best on even ones."""
    import torch  # noqa: PLC0415

    rows, labels = sets.rows.double(), sets.labels.double()
    middle, answers = rows.mean(dim=1, keepdim=True), labels.mean(dim=1, keepdim=True)
    gram = (rows - middle).transpose(1, 2) @ (rows - middle)
    cross = (rows - middle).transpose(1, 2) @ (labels - answers)
    best = np.full(len(rows), -1.0)
    found = np.empty(len(rows))
    for penalty in PENALTIES:
        lifted = gram + penalty * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        slopes = torch.linalg.solve(lifted, cross)
        starts = answers - middle @ slopes
        layer = [slopes.float(), starts.float()]
        chosen, told = (
            _told(sets, data, turn, lambda some, which, layer=layer: some @ layer[0][which] + layer[1][which])
            for turn in (0, 1)
        )
        found = np.where(chosen > best, told, found)
        best = np.maximum(chosen, best)
    return found


def _trained(sets: EncodedSets, schooling: Schooling, seed: int) -> list[Any]:
    """Weights and biases of three layers, a network for every set, trained side by side."""
    import torch  # noqa: PLC0415

    rows, labels = sets.rows, sets.labels
    count, m, d = rows.shape
    middle = rows.mean(dim=1, keepdim=True)
    spread = (rows - middle).flatten(1).std(dim=1)[:, None, None]
    generator = torch.Generator(device=rows.device)
    generator.manual_seed(seed)
    sizes = (d, schooling.wide, schooling.wide, labels.shape[-1])
    weights = []
    for inside, out in pairwise(sizes):
        start = torch.randn((count, inside, out), generator=generator, device=rows.device) * (2 / inside) ** 0.5
        weights += [start, torch.zeros((count, 1, out), device=rows.device)]
    for weight in weights:
        weight.requires_grad_(True)
    steps = schooling.epochs * max(1, m // schooling.batch)
    groups = [
        {"params": weights[0::2], "weight_decay": schooling.decay},
        {"params": weights[1::2], "weight_decay": 0.0},
    ]
    learner = torch.optim.AdamW(groups, lr=schooling.rate)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(learner, steps)
    done = 0
    while done < steps:
        order = torch.randperm(m, generator=generator, device=rows.device)
        for start in range(0, m - schooling.batch + 1, schooling.batch):
            some = order[start : start + schooling.batch]
            inputs = (rows[:, some] - middle) / spread
            scores = _scores(weights, inputs, dropout=schooling.dropout, generator=generator)
            loss = 0.0
            for part in scores.split(scores.shape[-1] if sets.voters is None else scores.shape[-1] // 2, dim=-1):
                place = slice(0, part.shape[-1]) if isinstance(loss, float) else slice(part.shape[-1], None)
                loss = loss - (labels[:, some, place] * torch.log_softmax(part, dim=-1)).sum(dim=-1).mean(dim=1).sum()
            learner.zero_grad(set_to_none=True)
            loss.backward()
            learner.step()
            rates.step()
            done += 1
            if done >= steps:
                break
    trained = [weight.detach() for weight in weights]
    # Centring and scaling belong to the first layer.
    first = trained[0] / spread
    return [first, trained[1] - middle @ first, *trained[2:]]


def _scores(weights: list[Any], rows: Any, *, dropout: float = 0.0, generator: Any = None) -> Any:
    import torch  # noqa: PLC0415

    found = rows
    for place in range(0, len(weights), 2):
        if place:
            found = torch.relu(found)
            if dropout:
                kept = torch.rand(found.shape, generator=generator, device=found.device) >= dropout
                found = found * kept / (1 - dropout)
        found = found @ weights[place] + weights[place + 1]
    return found


def _told(sets: EncodedSets, data: Embedded, turn: int, scores: Any) -> Floats:
    """Accuracy of every set on test rows of odd or even places; with public rows their votes decide."""
    import torch  # noqa: PLC0415

    right = torch.as_tensor(data.test_labels[turn::2], device=sets.rows.device)
    classes = int(data.labels.max()) + 1
    found = np.empty(len(sets.rows))
    for which in range(len(sets.rows)):
        trial = which % sets.trials
        queries = sets.test[trial, turn::2]
        hits = 0
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            some = queries[start : start + QUERIES_AT_ONCE]
            if sets.voters is None:
                answer = scores(some, which)[:, :classes]
            else:
                many = some[:, None] + sets.voters[trial][None]
                each = scores(many.flatten(0, 1), which)[:, :classes].softmax(dim=-1)
                answer = each.reshape(len(some), -1, classes).mean(dim=1)
            hits += int((answer.argmax(dim=-1) == right[start : start + QUERIES_AT_ONCE]).sum())
        found[which] = hits / len(queries)
    return found
