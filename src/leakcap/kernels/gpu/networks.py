"""Small networks of dense layers on rows of their own, all of them at once, and the classes that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.kernels.gpu.device import Tensor, load, on, send, tile_bytes
from leakcap.kernels.gpu.ensemble import ensemble_apart

__all__ = ["DenseLayers", "Networks", "class_scores", "spread_of"]

DenseLayers = list[tuple[Floats, Floats]]  # weights (networks, inputs, outputs) and biases (networks, outputs)
NEVER = -1e30  # score of a class that a network has no row of, at every step


def spread_of(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of every column, `(..., columns)`; 1 where a column is constant."""
    centre, spread = rows.mean(axis=-2), rows.std(axis=-2)
    return centre, np.where(spread > 1e-9 * np.abs(rows).max(axis=-2), spread, 1.0)


@dataclass(frozen=True)
class Networks:
    """How networks learn: neurons of their hidden layers, steps over all of their rows, and on which device.

    ReLU between layers, cross-entropy. The last layer starts at zero, so that classes a network has no row of change
    nothing about the others.
    """

    hidden: tuple[int, ...]
    steps: int
    rate: float
    device: str

    def learnt(
        self,
        rows: Floats,
        codes: Ints,
        draws: Sequence[np.random.RandomState],
        *,
        classes: int,
        spread: tuple[Floats, Floats],
    ) -> tuple[DenseLayers, Bools]:
        """The layers of every network, for rows as they are given, and whether its training stayed finite.

        Args:
            rows: `(networks, rows, columns)`: each network's own.
            codes: `(networks, rows)`, classes as numbers from 0.
            draws: where each network takes its start from.
            classes: how many; a network never names one that it has no row of.
            spread: centre and deviation of the columns, for all networks or each.
        """
        torch = load()
        centre, scale = (part if part.ndim == 2 else part[None] for part in spread)
        held = (codes[:, :, None] == np.arange(classes)).any(axis=1)
        sizes = (rows.shape[2], *self.hidden, classes)
        inner = [part for a, b in pairwise(sizes) for part in (_layer(a, b), torch.nn.ReLU())][:-1]
        found = ensemble_apart(
            torch.nn.Sequential(*inner),
            torch.nn.CrossEntropyLoss(reduction="none"),
            ((rows - centre[:, None]) / scale[:, None]).astype(np.float32),
            codes.astype(np.int64),
            start=_start(sizes, draws, held),
            steps=self.steps,
            rate=self.rate,
            together=self._together(rows.shape[1], sizes),
            device=self.device,
        )
        pairs = [(found[f"{2 * place}.weight"], found[f"{2 * place}.bias"]) for place in range(len(sizes) - 1)]
        layers = [(weight.transpose(0, 2, 1), bias) for weight, bias in pairs]
        with np.errstate(all="ignore"):  # where training diverged
            weight = layers[0][0] / scale[:, :, None]
            layers[0] = weight, layers[0][1] - (centre[:, None] @ weight)[:, 0]
        sound = np.all([np.isfinite(part).all(axis=tuple(range(1, part.ndim))) for pair in layers for part in pair], 0)
        layers[-1][1][~held] = -np.inf
        return layers, np.asarray(sound)

    def _together(self, rows: int, sizes: tuple[int, ...]) -> int:
        """Networks whose rows, activations and slopes fit one table."""
        each = 4 * (3 * rows * sum(sizes) + 3 * sum(a * b for a, b in pairwise(sizes)))
        return max(1, tile_bytes(on(self.device)) // each)


def class_scores(layers: DenseLayers, rows: Floats, device: str) -> Iterator[tuple[slice, Floats]]:
    """Scores of rows, `(networks, some, classes)`, by each network: some rows at a time."""
    where = on(device)
    held = [(send(weight, where), send(bias, where)[:, None]) for weight, bias in layers]
    each = 8 * 2 * sum(weight.shape[0] * weight.shape[2] for weight, _ in layers)
    step = max(1, tile_bytes(where) // max(1, each))
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        yield some, _forwards(held, send(rows[some], where)).cpu().numpy()


def _forwards(layers: list[tuple[Tensor, Tensor]], rows: Tensor) -> Tensor:
    (weight, bias), *others = layers
    found = rows @ weight + bias
    for weight, bias in others:
        found = found.relu_() @ weight + bias
    return found


def _layer(inputs: int, outputs: int) -> Tensor:
    """A layer whose values are never read: drawing them would take from the process's generator."""
    nn = load().nn
    return nn.utils.skip_init(nn.Linear, inputs, outputs)


def _start(sizes: tuple[int, ...], draws: Sequence[np.random.RandomState], held: Bools) -> dict[str, Floats]:
    found, networks = {}, len(held)
    weights = [[draw.standard_normal((b, a)) * np.sqrt(2 / a) for a, b in pairwise(sizes[:-1])] for draw in draws]
    for place, (a, b) in enumerate(pairwise(sizes)):
        last = place == len(sizes) - 2
        found[f"{2 * place}.weight"] = np.zeros((networks, b, a)) if last else np.stack([one[place] for one in weights])
        found[f"{2 * place}.bias"] = np.where(held, 0.0, NEVER) if last else np.zeros((networks, b))
    return {name: value.astype(np.float32) for name, value in found.items()}
