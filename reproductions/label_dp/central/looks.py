"""What the network sees in pictures, averaged over many crops of each; and what its neighbours say of a picture."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reproductions.label_dp.augment import Album
from reproductions.label_dp.central.encoder import Encoder
from reproductions.label_dp.central.views import crop_view
from reproductions.label_dp.train import autocast

CHUNK = 2000
SINKHORN = 10  # rounds of balancing


@torch.no_grad()
def features(encoder: Encoder, album: Album, crops: int, smallest: float) -> Tensor:
    """Features of every picture, averaged over itself, its mirror image and random crops; `(pictures, size)`."""
    encoder.eval()
    device, found = album.pixels.device, []
    for start in range(0, len(album.pixels), CHUNK):
        rows = torch.arange(start, min(start + CHUNK, len(album.pixels)), device=device)
        plain = album.plain(rows)
        with autocast(device):
            total = encoder(plain).float() + encoder(plain.flip(3)).float()
            for _ in range(crops):
                total += encoder(crop_view(album, rows, smallest)).float()
        found.append(total / (2 + crops))
    return torch.cat(found)


@torch.no_grad()
def nearest(seen: Tensor, neighbours: int) -> Tensor:
    """Numbers of every row itself and of its nearest neighbours by angle: `(rows, neighbours + 1)`."""
    turned = functional.normalize(seen - seen.mean(0), dim=1)
    if turned.device.type == "cuda":
        turned = turned.half()
    some = min(neighbours + 1, len(turned))
    parts = range(0, len(turned), CHUNK)
    return torch.cat([(turned[start : start + CHUNK] @ turned.T).topk(some, dim=1).indices for start in parts])


def smoothed(table: Tensor, seen: Tensor, neighbours: int) -> Tensor:
    """Rows of `table`, each averaged with those of its nearest neighbours in `seen`."""
    return averaged(table, nearest(seen, neighbours))


@torch.no_grad()
def averaged(table: Tensor, near: Tensor) -> Tensor:
    """Means of the rows of `table` that each row of `near` names."""
    return torch.cat([table[some].mean(1) for some in near.split(CHUNK)])


def balanced(chances: Tensor, shares: Tensor) -> Tensor:
    """Chances of the classes, brought to these shares on average."""
    for _ in range(SINKHORN):
        chances = chances * (shares / chances.mean(0).clamp_min(1e-9))
        chances = chances / chances.sum(1, keepdim=True)
    return chances


def anchors(chances: Tensor, surest: float) -> Tensor:
    """1 at the class of the surest rows of every class, 0 elsewhere: `(rows, classes)`."""
    top = chances.topk(2, dim=1)
    named, margin = top.indices[:, 0], top.values[:, 0] - top.values[:, 1]
    found = torch.zeros_like(chances)
    for c in range(chances.shape[1]):
        rows = torch.nonzero(named == c)[:, 0]
        best = rows[margin[rows].argsort(descending=True)[: int(surest * len(rows))]]
        found[best, c] = 1.0
    return found
