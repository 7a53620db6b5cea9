"""Random views of pictures, whole batches at once, on the device where the bytes lie.

A *weak* view is mirrored and shifted. A *strong* view is also turned, stretched, sheared, re-coloured and partly
covered: about as strong as RandAugment, but made of one affine resampling and a few products. Nothing here waits for
the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leakcap.kernels.gpu.device import Tensor, load

__all__ = ["Album"]

GREY = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class Album:
    """Square pictures as bytes `(n, size, size, 3)` on a device, and the mean and deviation that centre them."""

    pixels: Tensor
    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, pixels: Tensor, like: Album | None = None) -> Album:
        """Pictures with their own mean, or with that of `like`. Pictures are public here: only labels are secret."""
        if like is not None:
            return cls(pixels, like.mean, like.deviation)
        some = pixels[:10_000].float() / 255
        return cls(pixels, some.mean((0, 1, 2)), some.std((0, 1, 2)))

    def plain(self, rows: Tensor | slice) -> Tensor:
        """The pictures as they are, centred, `(n, 3, size, size)` with channels last in memory."""
        return self._centred(self.pixels[rows].float() / 255).permute(0, 3, 1, 2)

    def weak(self, rows: Tensor) -> Tensor:
        """Mirrored at random and shifted by up to an eighth (four pixels on CIFAR); the edge is mirrored in."""
        return self._centred(self._shifted(rows).float() / 255).permute(0, 3, 1, 2)

    def strong(self, rows: Tensor, strength: float = 1.0) -> Tensor:
        """A weak view that is also turned, sheared, stretched, re-coloured and partly covered."""
        torch = load()
        x = (self._shifted(rows).float() / 255).permute(0, 3, 1, 2)
        x = _recoloured(_bent(x, strength), strength).permute(0, 2, 3, 1)
        covered = _covered(len(rows), x.shape[1], x.device, strength)
        return torch.where(covered, 0.0, self._centred(x)).contiguous().permute(0, 3, 1, 2)

    def _centred(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation

    def _shifted(self, rows: Tensor) -> Tensor:
        """Mirroring and shifting are one gather of bytes."""
        torch = load()
        n, size, device = len(rows), self.pixels.shape[1], rows.device
        line = torch.arange(size, device=device)
        down, across = torch.randint(-(size // 8), size // 8 + 1, (2, n, 1), device=device)
        mirrored = torch.rand(n, 1, device=device) < 0.5
        i = _reflected(line + down, size)
        j = _reflected(torch.where(mirrored, size - 1 - line, line) + across, size)
        return self.pixels[rows[:, None, None], i[:, :, None], j[:, None, :]]


def _reflected(line: Tensor, size: int) -> Tensor:
    """Positions outside the picture, mirrored at its edge."""
    return (size - 1) - ((size - 1) - line.abs()).abs()


def _spread(n: int, count: int, device: Any) -> Tensor:
    """`(count, n)` numbers in [-1, 1]; about half of them 0, so that a picture sees a few changes, not all."""
    torch = load()
    values = torch.rand(count, n, device=device) * 2 - 1
    return values * (torch.rand(count, n, device=device) < 0.6)


def _bent(x: Tensor, strength: float) -> Tensor:
    """Turned (30 degrees at most), sheared (0.3), stretched (25 %) and moved (an eighth), in one resampling."""
    torch = load()
    turn, shear_x, shear_y, wide, high, right, down = _spread(len(x), 7, x.device) * strength
    angle = turn * (torch.pi / 6)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    wide, high = torch.exp(0.25 * wide), torch.exp(0.25 * high)
    # turn @ shear @ stretch, written out: small matrix products would each be a launch
    a = wide * (cosine - 0.3 * sine * shear_y)
    b = high * (0.3 * cosine * shear_x - sine)
    c = wide * (sine + 0.3 * cosine * shear_y)
    d = high * (0.3 * sine * shear_x + cosine)
    matrix = torch.stack((a, b, 0.25 * right, c, d, 0.25 * down), 1).view(-1, 2, 3)
    grid = torch.nn.functional.affine_grid(matrix, list(x.shape), align_corners=False)
    return torch.nn.functional.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def _recoloured(x: Tensor, strength: float) -> Tensor:
    """Brightness, contrast, saturation, colour cast, inverted highlights."""
    torch = load()
    n, device = len(x), x.device
    light, contrast, colour, red, green, blue = _spread(n, 6, device).view((6, n, 1, 1, 1)) * strength
    grey = sum(part * x[:, k : k + 1] for k, part in enumerate(GREY))
    x = grey + (x - grey) * torch.exp(0.9 * colour)
    middle = grey.mean((2, 3), keepdim=True)
    x = middle + (x - middle) * torch.exp(0.7 * contrast)
    cast = torch.cat((red, green, blue), 1)
    x = (x * torch.exp(0.5 * light + 0.15 * cast)).clamp(0, 1)
    turned = torch.rand(n, 1, 1, 1, device=device) < 0.1 * strength
    above = 0.5 + 0.5 * torch.rand(n, 1, 1, 1, device=device)
    return torch.where(turned & (x > above), 1 - x, x)


def _covered(n: int, size: int, device: Any, strength: float) -> Tensor:
    """A square of up to half the picture's side in each picture, `(n, size, size, 1)`."""
    torch = load()
    half = torch.rand(n, 1, device=device) * (strength * size / 4)
    centre = torch.rand(2, n, 1, device=device) * size
    line = torch.arange(size, device=device) + 0.5
    down, across = (line - centre).abs() < half
    return (down[:, :, None] & across[:, None, :])[..., None]
