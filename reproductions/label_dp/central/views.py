"""Views for contrastive learning: crops, mirror images and colours, a whole batch in a few operations."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from reproductions.label_dp.augment import Album

# Brightness and two directions of colour (YIQ); a hue is an angle in the plane of the last two.
_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
_BACK = torch.linalg.inv(_YIQ)
_GREY = _BACK @ torch.diag(torch.tensor([1.0, 0.0, 0.0])) @ _YIQ
_COLOUR = _BACK @ torch.diag(torch.tensor([0.0, 1.0, 1.0])) @ _YIQ
_TURN = _BACK @ torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]) @ _YIQ

CHANGE, HUE = 0.4, 0.1  # of brightness, contrast and saturation; of the colour circle
CHANGED, GREY_SHARE = 0.8, 0.2  # shares of pictures


def contrastive_view(album: Album, rows: Tensor, smallest: float) -> Tensor:
    """A crop, perhaps mirrored, in other colours."""
    return _ready(album, recoloured(cropped(album, rows, smallest)))


def crop_view(album: Album, rows: Tensor, smallest: float) -> Tensor:
    """A crop, perhaps mirrored, in its own colours."""
    return _ready(album, cropped(album, rows, smallest))


def cropped(album: Album, rows: Tensor, smallest: float) -> Tensor:
    """A rectangle of `smallest` to 1 of the area, stretched to the whole picture, `(n, 3, size, size)` in [0, 1]."""
    x = album.pixels[rows].permute(0, 3, 1, 2).float() / 255
    n, device = len(x), x.device
    area = torch.empty(n, device=device).uniform_(smallest, 1)
    shape = torch.empty(n, device=device).uniform_(-1, 1).mul_(0.5 * math.log(4 / 3)).exp_()
    wide, high = (area.sqrt() * shape).clamp(max=1), (area.sqrt() / shape).clamp(max=1)
    right, down = torch.empty(2, n, device=device).uniform_(-1, 1)
    mirrored = torch.where(torch.rand(n, device=device) < 0.5, -1.0, 1.0)
    none = torch.zeros_like(wide)
    matrix = torch.stack((mirrored * wide, none, right * (1 - wide), none, high, down * (1 - high)), 1).view(-1, 2, 3)
    grid = functional.affine_grid(matrix, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def recoloured(x: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue changed at random, some pictures without colour: one matrix each."""
    n, device = len(x), x.device
    change = 1 + torch.empty(3, n, device=device).uniform_(-CHANGE, CHANGE)
    angle = torch.empty(n, device=device).uniform_(-HUE, HUE) * 2 * math.pi
    plain = torch.rand(n, device=device) >= CHANGED
    light, contrast, colour = torch.where(plain, 1.0, change)
    angle = torch.where(plain, 0.0, angle)
    colour = torch.where(torch.rand(n, device=device) < GREY_SHARE, 0.0, colour)
    grey, own, turn, yiq = _parts(device)
    matrix = grey + (colour * angle.cos())[:, None, None] * own + (colour * angle.sin())[:, None, None] * turn
    pixels = x.flatten(2)
    middle = (pixels.mean(2) @ yiq[0])[:, None, None]
    found = torch.bmm((light * contrast)[:, None, None] * matrix, pixels)
    found = found + (light * (1 - contrast))[:, None, None] * middle
    return found.clamp(0, 1).view_as(x)


@cache
def _parts(device: torch.device) -> tuple[Tensor, ...]:
    """The constants, sent to a device once."""
    return tuple(part.to(device) for part in (_GREY, _COLOUR, _TURN, _YIQ))


def _ready(album: Album, x: Tensor) -> Tensor:
    centred = (x - album.mean[:, None, None]) / album.deviation[:, None, None]
    return centred.contiguous(memory_format=torch.channels_last)
