"""Networks of dense layers, trained in all worlds together by full-batch gradient descent.

All worlds share the features, so the first layer of all of them is one matrix product, and its gradient another; at
784 inputs these are nine tenths of the arithmetic. What lies between is fused (`_fused_mlp`), for it would move more
bytes than it computes.

Tables are kept with rows of the data last, `(worlds, neurons, rows)`: both products then read along their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.checks import choice, count, positive
from leakcap.kernels.gpu.descent import Descent, repeat
from leakcap.kernels.gpu.device import Tensor, dense, fused, load, on, send
from leakcap.worlds import Worlds

__all__ = ["mlp", "unflatten"]

Layers = Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]
MAX_NEURONS = 63  # neurons of a layer that the fused kernel takes
PRECISIONS = ("f64", "f32", "tf32", "bf16")


def mlp(
    features: Floats,
    labels: npt.NDArray[np.integer],
    worlds: Worlds,
    start: Layers,
    *,
    steps: int = 1500,
    rate: float = 0.05,
    precision: str = "f32",
    device: str = "cuda",
) -> Floats:
    """`(m, parameters)`: weights and biases of each layer after training in each world, flattened in turn.

    `start` has a `(weight, bias)` for every layer, weights `(inputs, outputs)`: all worlds begin there, so it must be
    public. ReLU between layers; cross-entropy with `labels` 0, 1, ... averaged over a world's rows. A world without
    rows stays at the start. `unflatten` gives the layers back.

    `precision`: "f32" is as accurate as plain f32 training. "tf32" (at least 11 bits in products) and "bf16" (8 bits)
    are faster and need a GPU; sums and weights are f32 there too. "f64" is for reference.
    """
    choice(PRECISIONS, precision=precision)
    count(steps=steps)
    positive(rate=rate)
    layers = _checked(features, labels, start)
    torch = load()
    where = on(device)
    quick = fused(where) and len(layers) == 3 and precision != "f64" and max(len(b) for _, b in layers) <= MAX_NEURONS
    if precision in {"tf32", "bf16"} and where.type != "cuda" and not quick:
        raise InputError(f'precision "{precision}" needs a GPU: choose "f32"')
    if precision == "bf16" and not quick:
        raise InputError('precision "bf16" needs Triton and a network of three layers: choose "tf32"')
    rows = send(features, where, torch.float64 if quick or precision == "f64" else torch.float32)
    classes = send(labels, where, torch.int64)
    packed = send(worlds.packed, where, torch.uint8)
    found, descent = [], Descent(layers, steps, rate, precision)
    train: Callable[..., list[Tensor]] = _train
    if quick:
        from leakcap.kernels.gpu._fused_mlp import train
    for some in _tiles(worlds.m, worlds.n, [weight.shape[1] for weight, _ in layers], where):
        with _tensor_cores(precision == "tf32"):
            parameters = train(rows, classes, packed[some], descent)
        found.append(torch.cat([part.flatten(1) for part in parameters], dim=1).double().cpu().numpy())
    result = np.concatenate(found)
    if not np.isfinite(result).all():
        raise NumericalError("training diverged in some world: choose a smaller rate")
    return result


def unflatten(parameters: Floats, start: Layers) -> list[tuple[Floats, Floats]]:
    """The layers of flattened networks: weights `(..., inputs, outputs)` and biases `(..., outputs)`."""
    found, place = [], 0
    for pair in start:
        parts = []
        for part in pair:
            shape = np.shape(part)
            size = int(np.prod(shape))
            parts.append(parameters[..., place : place + size].reshape(*parameters.shape[:-1], *shape))
            place += size
        found.append((parts[0], parts[1]))
    return found


def _checked(features: Floats, labels: npt.NDArray[np.integer], start: Layers) -> list[tuple[Floats, Floats]]:
    layers = [(np.asarray(w, dtype=np.float64), np.asarray(b, dtype=np.float64)) for w, b in start]
    width = features.shape[1]
    for weight, bias in layers:
        if weight.ndim != 2 or weight.shape[0] != width or bias.shape != weight.shape[1:]:
            raise InputError("start must have a weight (inputs, outputs) and a bias (outputs,) for each layer in turn")
        width = weight.shape[1]
    if not layers:
        raise InputError("start must have at least one layer")
    if len(labels) != len(features) or np.min(labels) < 0 or np.max(labels) >= width:
        raise InputError(f"labels must be 0 to {width - 1}, one for each row")
    return layers


def _tiles(m: int, n: int, widths: list[int], device: object) -> Iterator[slice]:
    """Worlds that fit the memory together: their activations, forwards and backwards, in f32."""
    torch = load()
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 2**30  # type: ignore[attr-defined]
    each = 3 * 4 * n * sum(max(16, 1 << (w - 1).bit_length()) for w in widths)
    step = min(max(1, int(0.8 * free) // each), m)
    step = -(-m // -(-m // step))  # tiles of equal size
    return (slice(first, min(first + step, m)) for first in range(0, m, step))


@contextmanager
def _tensor_cores(use: bool) -> Iterator[None]:
    """Whether torch may take tensor cores for f32 products."""
    flags = load().backends.cuda.matmul
    before = flags.allow_tf32
    flags.allow_tf32 = use
    try:
        yield
    finally:
        flags.allow_tf32 = before


def _train(rows: Tensor, labels: Tensor, packed: Tensor, descent: Descent) -> list[Tensor]:
    """Any number of layers, in plain torch; weight `(worlds, inputs, outputs)` and bias of each layer in turn."""
    torch = load()
    worlds, layers = len(packed), descent.layers
    weights = [send(w.T.copy(), rows.device, rows.dtype).expand(worlds, *w.T.shape).clone() for w, _ in layers]
    biases = [send(b, rows.device, rows.dtype)[:, None].expand(worlds, len(b), 1).clone() for _, b in layers]
    masks = dense(packed, 0, len(rows), rows.dtype)
    share = (descent.rate / masks.sum(dim=1).clamp(min=1))[:, None, None]
    truth = torch.nn.functional.one_hot(labels, len(layers[-1][1])).T.to(rows.dtype)

    def step() -> None:
        outputs = [(weights[0].flatten(0, 1) @ rows.T).view(worlds, -1, len(rows)) + biases[0]]
        for weight, bias in zip(weights[1:], biases[1:], strict=True):
            outputs.append(torch.baddbmm(bias, weight, outputs[-1].relu_()))
        slope = (torch.softmax(outputs[-1], dim=1) - truth) * masks[:, None, :]
        for i in range(len(layers) - 1, -1, -1):
            biases_slope = slope.sum(dim=2, keepdim=True)
            if i:
                below = outputs[i - 1]
                weight_slope = slope @ below.transpose(1, 2)
                slope = (weights[i].transpose(1, 2) @ slope) * (below > 0)
            else:
                weight_slope = (slope.flatten(0, 1) @ rows).view_as(weights[0])
            weights[i].addcmul_(share, weight_slope, value=-1)
            biases[i].addcmul_(share, biases_slope, value=-1)

    repeat(step, descent.steps, rows.device)
    return [part for w, b in zip(weights, biases, strict=True) for part in (w.transpose(1, 2), b)]
