"""What networks say of pictures whose responses they have not seen: each half teaches one for the other half.

A network comes to believe the responses that it learns from, wrong ones too; one that never saw a picture's response
cannot. Its prediction and the response together are then evidence that does not change while a network learns from it.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import torch
from torch import Tensor

from reproductions.label_dp.augment import Album
from reproductions.label_dp.central.encoder import PictureClassifier
from reproductions.label_dp.central.likelihood import taught
from reproductions.label_dp.judge import predict, recalibrate
from reproductions.label_dp.recipe import Recipe
from reproductions.label_dp.train import Lesson, Say


def unseen_beliefs(
    net: PictureClassifier,
    album: Album,
    lesson: Lesson,
    chosen: Recipe,
    *,
    seconds: float = math.inf,
    compiled: bool = False,
    say: Say = print,
) -> tuple[Tensor, int]:
    """Log-probabilities of every picture by a network taught on the other half from this one; and its epochs."""
    device = album.pixels.device
    halves = torch.randperm(len(album.pixels), device=device).chunk(2)
    found, epochs = torch.empty_like(_given(lesson.scores)), 0
    for mine, other in (halves, halves[::-1]):
        part = Album.of(album.pixels[mine], like=album)
        some = replace(lesson, scores=_given(lesson.scores)[mine], first_prior=_given(lesson.first_prior)[mine])
        one = copy.deepcopy(net)
        fitted, epochs = taught(one, part, some, chosen, seconds=seconds / 2, compiled=compiled, say=say)
        recalibrate(fitted.averaged, part, device)
        found[other] = predict(fitted.averaged, Album.of(album.pixels[other], like=album), device)
    return found, epochs


def _given(table: Tensor | None) -> Tensor:
    assert table is not None
    return table
