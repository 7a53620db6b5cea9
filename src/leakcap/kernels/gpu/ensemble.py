"""Any small torch module, trained many times together by full-batch gradient descent: `vmap` over worlds, or parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats
from leakcap.ground.checks import count, positive
from leakcap.kernels.gpu.device import Tensor, dense, load, on, send
from leakcap.worlds import Worlds

__all__ = ["ensemble", "ensemble_apart"]


def ensemble(
    module: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    features: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    worlds: Worlds,
    *,
    steps: int,
    rate: float,
    together: int = 64,
    device: str = "cuda",
) -> Floats:
    """`(m, parameters)`: the module's parameters after training in each world, in the order of `module.parameters()`.

    All worlds start from the module's own parameters, which must not depend on the data (or be declared
    pool-public). `loss(outputs, targets)` gives one loss per row; a world minimises the mean over its rows, and one
    without rows stays at the start. `together` worlds share the memory at a time. Features keep their type; the
    module's parameters say the precision. `mlp` is faster for plain networks of dense layers.
    """
    count(steps=steps)
    positive(rate=rate)
    torch = load()
    where = on(device)
    model = _copied(module).to(where)
    start = {name: value.detach() for name, value in model.named_parameters()}
    rows = send(features, where, torch.as_tensor(features[:0]).dtype)
    answers = send(targets, where, torch.as_tensor(targets[:0]).dtype)
    packed = send(worlds.packed, where, torch.uint8)

    def objective(parameters: dict[str, Tensor], weight: Tensor) -> Tensor:
        losses = loss(torch.func.functional_call(model, parameters, (rows,)), answers)
        return (losses * weight).sum()

    slope = torch.func.vmap(torch.func.grad(objective))
    found = []
    for first in range(0, worlds.m, together):
        masks = dense(packed[first : first + together], 0, worlds.n, torch.float64)
        masks /= masks.sum(dim=1, keepdim=True).clamp(min=1)
        values = {name: value.expand(len(masks), *value.shape).clone() for name, value in start.items()}
        weights = masks.to(next(iter(values.values())).dtype)
        for _ in range(steps):
            slopes = slope(values, weights)
            for name, value in values.items():
                value.sub_(slopes[name], alpha=rate)
        found.append(torch.cat([value.flatten(1) for value in values.values()], dim=1).double().cpu().numpy())
    result = np.concatenate(found)
    if not np.isfinite(result).all():
        raise NumericalError("training diverged in some world: choose a smaller rate")
    return result


def ensemble_apart(
    module: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    features: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    *,
    start: Mapping[str, npt.NDArray[Any]],
    steps: int,
    rate: float,
    together: int = 64,
    device: str = "cuda",
) -> dict[str, Floats]:
    """Each parameter of the module, `(networks, ...)`, after training of networks that have rows of their own.

    As `ensemble`, for parts that share no row: a network costs its own rows, not all of them. `features` is
    `(networks, rows, ...)`, `targets` `(networks, rows)`, and `start` has a value of every parameter, by its name, for
    every network; its type is the precision.

    No network sees another's rows. One that diverges has values that are not finite, and the others are as without it.
    """
    count(steps=steps)
    positive(rate=rate)
    torch = load()
    where = on(device)
    model = _copied(module).to(where)

    def objective(parameters: dict[str, Tensor], rows: Tensor, answers: Tensor) -> Tensor:
        return loss(torch.func.functional_call(model, parameters, (rows,)), answers).mean()

    every, found = torch.func.vmap(objective), []
    for first in range(0, len(features), together):
        some = slice(first, first + together)
        values = {name: torch.tensor(value[some], device=where, requires_grad=True) for name, value in start.items()}
        rows, answers = (torch.tensor(part[some], device=where) for part in (features, targets))
        for _ in range(steps):
            # The gradient of a sum: each network's own, as no other term depends on its parameters.
            slopes = torch.autograd.grad(every(values, rows, answers).sum(), list(values.values()))
            with torch.no_grad():
                for value, slope in zip(values.values(), slopes, strict=True):
                    value.sub_(slope, alpha=rate)
        found.append({name: value.detach().double().cpu().numpy() for name, value in values.items()})
    return {name: np.concatenate([one[name] for one in found]) for name in start}


def _copied(module: Any) -> Any:
    """So that a user's own module stays where it is."""
    import copy

    return copy.deepcopy(module)
