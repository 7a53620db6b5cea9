"""The networks: a nine-layer residual net that trains in seconds, and the wide residual net of the paper."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LOGIT_SCALE = 0.125  # the largest feature of each channel is large: without it the first steps are wild


class Layer(nn.Module):
    """3x3 convolution, batch norm, ReLU, and half the size if asked."""

    def __init__(self, inputs: int, outputs: int, pool: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        x = self.convolution(x)
        if self.pool:  # before the norm: a quarter of the memory traffic
            x = functional.max_pool2d(x, 2)
        return functional.relu(self.norm(x), inplace=True)


class Residual(nn.Module):
    """Two layers and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = Layer(channels, channels), Layer(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(self.first(x))


class ResNet9(nn.Module):
    """Nine weighted layers; `width` 1 has 64 to 512 channels and 6.6 million weights."""

    def __init__(self, n_classes: int, width: float = 1.0) -> None:
        super().__init__()
        a, b, c, d = (max(8, 8 * round(width * channels / 8)) for channels in (64, 128, 256, 512))
        self.features = nn.Sequential(
            Layer(3, a),
            Layer(a, b, pool=True),
            Residual(b),
            Layer(b, c, pool=True),
            Layer(c, d, pool=True),
            Residual(d),
        )
        self.head = nn.Linear(d, n_classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return LOGIT_SCALE * self.head(self.features(x).amax((2, 3)))


class WideBlock(nn.Module):
    """Norm and ReLU before each of two convolutions; a 1x1 convolution goes around where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.convolution_1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.convolution_2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        same = inputs == outputs and stride == 1
        self.around = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        ready = functional.relu(self.norm_1(x), inplace=self.around is not None)
        around = x if self.around is None else self.around(ready)
        return around + self.convolution_2(functional.relu(self.norm_2(self.convolution_1(ready)), inplace=True))


class WideResNet(nn.Module):
    """Wide residual network of 16 layers: three groups of two blocks, `width` times as wide as the narrow one."""

    def __init__(self, n_classes: int, width: float = 4.0) -> None:
        super().__init__()
        sizes = [16, *(max(8, round(width * channels)) for channels in (16, 32, 64))]
        blocks: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
        for group in range(3):
            blocks.append(WideBlock(sizes[group], sizes[group + 1], 1 if group == 0 else 2))
            blocks.append(WideBlock(sizes[group + 1], sizes[group + 1], 1))
        self.features = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(sizes[-1])
        self.head = nn.Linear(sizes[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(functional.relu(self.norm(self.features(x)), inplace=True).mean((2, 3)))


NETWORKS = {"resnet9": ResNet9, "wide16": WideResNet}


def network(kind: str, n_classes: int, width: float, device: torch.device) -> nn.Module:
    """A fresh network in the memory layout that convolutions like best."""
    net = NETWORKS[kind](n_classes, width)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net.to(device=device, memory_format=torch.channels_last)
