"""The networks: an encoder with mean pooling, and a linear classifier on its centred features."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from reproductions.label_dp.network import network

PROJECTED, HIDDEN = 128, 1024
LOGITS = 8.0  # of a feature's whole weight; least squares gives shares, this makes logits of them
RIDGE = 1e-2  # beside a mean square of 1 / features


class Encoder(nn.Module):
    """A nine-layer residual net without labels: pictures to `size` features."""

    def __init__(self, width: float, device: torch.device) -> None:
        super().__init__()
        whole = network("resnet9", 1, width, device)
        self.features, self.size = whole.features, whole.head.in_features

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x).float().mean((2, 3))


def projector(size: int, device: torch.device) -> nn.Module:
    """Where views are compared; it is thrown away."""
    layers = nn.Linear(size, HIDDEN, bias=False), nn.BatchNorm1d(HIDDEN), nn.ReLU(True), nn.Linear(HIDDEN, PROJECTED)
    return nn.Sequential(*layers).to(device)


class PictureClassifier(nn.Module):
    """An encoder, and a linear map of its features, which are centred and scaled to length 1 on average."""

    centre: Tensor
    gain: Tensor
    scale: Tensor

    def __init__(self, encoder: Encoder, n_classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        device = next(encoder.parameters()).device
        self.head = nn.Linear(encoder.size, n_classes, device=device)
        # A step of the bias would count `scale` squared times, the same way for all pictures: whole classes vanish.
        self.head.bias.requires_grad_(False)
        self.register_buffer("centre", torch.zeros(encoder.size, device=device))
        self.register_buffer("gain", torch.ones((), device=device))
        self.register_buffer("scale", torch.tensor(LOGITS, device=device))

    def forward(self, x: Tensor) -> Tensor:
        z = (self.encoder(x) - self.centre) * self.gain
        return self.scale * self.head(z)

    def trainable(self, scale: float | None = None) -> PictureClassifier:
        """A copy whose weights, all but the bias of the head, are to be trained.

        `scale`: of its logits; the same function with heavier weights, so that a step moves the head's logits less.
        """
        net = copy.deepcopy(self).requires_grad_(True)
        net.head.bias.requires_grad_(False)
        if scale is not None:
            with torch.no_grad():
                for part in (net.head.weight, net.head.bias):
                    part.mul_(net.scale / scale)
                net.scale.fill_(scale)
        return net

    @torch.no_grad()
    def start(self, features: Tensor, targets: Tensor) -> None:
        """The head by least squares: features of pictures to the shares of their classes."""
        self.centre.copy_(features.mean(0))
        z = features - self.centre
        self.gain.copy_(z.square().sum(1).mean().rsqrt())
        z = (z * self.gain).double()
        y = targets.double() - targets.double().mean(0)
        gram = z.T @ z / len(z)
        gram += RIDGE / len(gram) * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        found = torch.linalg.solve(gram, z.T @ y / len(z))
        self.head.weight.copy_(found.T)
        self.head.bias.copy_(targets.mean(0) - 1 / targets.shape[1])
