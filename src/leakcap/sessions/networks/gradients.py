"""Gradients of a torch module, row by row, by `torch.func`: the module never sees two rows at once.

What a linear layer learns from a row is the product of what goes into the layer and what comes back to it. These two
are made in place of the whole gradient, wherever made-up rows show that it is the same.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import Tensor, load
from leakcap.sessions.networks.sums import Pairs
from leakcap.simulate.silence import hushed

__all__ = ["RowGradients", "Weights"]

LEVEL = 0.2  # scale of biases, and of other weights that stand alone
MADE_UP = 3  # rows
AGREE = 1e-3  # relative: what single precision loses
Weights = Mapping[str, Tensor]
Rows = npt.NDArray[Any]


class RowGradients:
    """Gradients of the loss of single rows, in units in which all layers learn alike.

    A weight counts in units of its `scale`: one over the root of the number of inputs that are added up with it.

    Attributes:
        start: the module's own trainable weights, by name.
        scale: of each of them.
        shapes: numbers of both factors of every product that a gradient is made of.
        outputs: shape of what the module makes of one row.
        kind: of the numbers that the module is given.
    """

    def __init__(self, module: Any, loss: Callable[[Tensor, Tensor], Tensor], columns: int, codes: bool) -> None:
        """For rows of so many numbers, and targets that are codes of classes or numbers."""
        torch = load()
        self._loss, self._plain = loss, copy.deepcopy(module).cpu().eval()
        self._model = copy.deepcopy(self._plain)  # with hooks of ours
        learnt = ((name, value) for name, value in self._model.named_parameters() if value.requires_grad)
        self.start: dict[str, Tensor] = {name: value.detach().clone() for name, value in learnt}
        self.scale = {name: _scale(value) for name, value in self.start.items()}
        self._type = next(iter(self.start.values())).dtype
        self.kind = np.dtype(np.float64 if self._type == torch.float64 else np.float32)
        self._target_type = torch.int64 if codes else self._type
        self._heard: dict[str, list[Tensor]] = {}
        self._taps: Weights = {}
        self._layers: tuple[str, ...] = ()
        self.outputs = self._tried(columns)
        self._layers = self._products(columns)
        self.shapes = tuple(self._shape(layer) for layer in self._layers)
        if self._others:
            self.shapes += ((1, sum(self.start[name].numel() for name in self._others)),)

    @property
    def numbers(self) -> int:
        """Of a whole gradient."""
        return sum(first * second for first, second in self.shapes)

    def at(self, weights: Weights) -> Callable[[Rows, Rows], Pairs]:
        """Gradients of the rows of a block, for these weights."""
        return lambda rows, targets: self._pairs(weights, rows, targets)

    def moved(self, weights: Weights, numbers: Floats) -> dict[str, Tensor]:
        """Weights, each moved by its number among those of a gradient."""
        part = {name: value * self.scale[name] for name, value in self._by_name(numbers).items()}
        return {name: value + part[name].to(value.dtype) for name, value in weights.items()}

    def module(self, weights: Weights) -> Any:
        """A copy of the module with these weights."""
        made = copy.deepcopy(self._plain)
        made.load_state_dict(dict(weights), strict=False)
        return made

    def _tried(self, columns: int) -> tuple[int, ...]:
        """What is refused here is refused whatever the data are: the row is made of zeros."""
        torch = load()
        for name, layer in self._model.named_modules():
            if type(layer) is torch.nn.Linear and f"{_inside(name)}weight" in self.start:
                layer.register_forward_hook(self._hook(name))
        before = {name: value.clone() for name, value in self._model.named_buffers()}
        row = torch.zeros((1, columns), dtype=self._type)
        try:
            with hushed():
                found = torch.func.functional_call(self._model, self.start, (row,))
                self._calls = {name: [tuple(one.shape) for one in given] for name, given in self._heard.items()}
                self._pairs(self.start, np.zeros((2, columns)), np.zeros(2))
        except Exception as error:
            # Of zeros: the words are about the module and the loss.
            raise InputError(
                f"the module and its loss must take one row of {columns} numbers at a time, without chance and without "
                f"looking at the numbers in Python: {error}"
            ) from None
        if not isinstance(found, torch.Tensor):
            raise InputError(f"the module must make one tensor of its rows, not a {type(found).__name__}")
        if any(not torch.equal(value, before[name]) for name, value in self._model.named_buffers()):
            raise InputError("the module changes its buffers when it is used: only weights are learnt in a session")
        return tuple(found.shape[1:])

    def _products(self, columns: int) -> tuple[str, ...]:
        """Linear layers that see one row once, and of which the product is the gradient."""
        once = tuple(
            layer for layer, given in self._calls.items() if given == [(1, self.start[self._names(layer)[0]].shape[1])]
        )
        rows, none = np.random.default_rng(0).standard_normal((MADE_UP, columns)), np.zeros(MADE_UP)
        try:
            with hushed():
                whole = self._whole(rows, none)
                self._layers = once
                short = self._whole(rows, none)
        except Exception:  # a module that does not take any number
            return ()
        same = {name: _alike(value, short[name]) for name, value in whole.items()}
        return tuple(layer for layer in once if all(same[name] for name in self._names(layer)))

    def _whole(self, rows: Rows, targets: Rows) -> dict[str, Tensor]:
        """Gradients of some rows added up, by name."""
        pairs = self._pairs(self.start, rows, targets)
        return self._by_name(np.concatenate([(first.T @ second).ravel() for first, second in pairs]))

    def _by_name(self, numbers: Floats) -> dict[str, Tensor]:
        """The numbers of a gradient, in the order of its products."""
        torch, found, start = load(), {}, 0
        for layer in self._layers:
            inputs, outputs = self._shape(layer)
            part = torch.from_numpy(numbers[start : start + inputs * outputs].reshape(inputs, outputs))
            start += inputs * outputs
            weight, *bias = self._names(layer)
            found[weight] = part[: self.start[weight].shape[1]].T
            found.update(dict.fromkeys(bias, part[-1]))
        for name in self._others:
            value = self.start[name]
            found[name] = torch.from_numpy(numbers[start : start + value.numel()].reshape(value.shape))
            start += value.numel()
        return found

    @property
    def _others(self) -> list[str]:
        """Weights whose gradients are made as they are."""
        taken = {name for layer in self._layers for name in self._names(layer)}
        return [name for name in self.start if name not in taken]

    def _names(self, layer: str) -> list[str]:
        """Of a linear layer's weights, and of its biases where they are learnt."""
        names = (f"{_inside(layer)}weight", f"{_inside(layer)}bias")
        return [name for name in names if name in self.start]

    def _shape(self, layer: str) -> tuple[int, int]:
        weight, *bias = self._names(layer)
        outputs, inputs = self.start[weight].shape
        return inputs + len(bias), outputs

    def _pairs(self, weights: Weights, rows: Rows, targets: Rows) -> Pairs:
        torch = load()
        learnt = {name: weights[name] for name in self._others}
        taps = {layer: torch.zeros(self._shape(layer)[1], dtype=self._type) for layer in self._layers}
        slope = torch.func.grad(self._loss_of, argnums=(0, 1), has_aux=True)
        slopes = torch.func.vmap(slope, in_dims=(None, None, None, 0, 0))
        given = torch.from_numpy(rows).to(self._type), torch.from_numpy(targets).to(self._target_type)
        (plain, back), inputs = slopes(learnt, taps, weights, *given)
        found = []
        for layer in self._layers:
            weight, *bias = self._names(layer)
            first = [_numbers(inputs[layer][:, 0]) * self.scale[weight]]
            first += [np.full((len(rows), 1), self.scale[name]) for name in bias]
            found.append((np.hstack(first), _numbers(back[layer])))
        if plain:
            whole = [_numbers(value.flatten(1)) * self.scale[name] for name, value in plain.items()]
            found.append((np.ones((len(rows), 1)), np.hstack(whole)))
        return found

    def _loss_of(self, learnt: Weights, taps: Weights, weights: Weights, row: Tensor, target: Tensor) -> Any:
        """The loss of one row, and what went into the linear layers."""
        self._taps, self._heard = taps, {}
        found = load().func.functional_call(self._model, {**weights, **learnt}, (row[None],))
        return self._loss(found, target[None]).sum(), {layer: self._heard[layer][0] for layer in taps}

    def _hook(self, layer: str) -> Callable[..., Any]:
        """Hears what goes into a layer, and adds to what comes out a 0 of which the gradient is asked for."""

        def hook(_: Any, given: tuple[Tensor, ...], found: Tensor) -> Any:
            self._heard.setdefault(layer, []).extend(given)
            return found + self._taps[layer] if layer in self._taps else None

        return hook


def _scale(value: Tensor) -> float:
    return 1 / math.sqrt(max(1, math.prod(value.shape[1:]))) if value.ndim > 1 else LEVEL


def _inside(layer: str) -> str:
    return f"{layer}." if layer else ""


def _numbers(value: Tensor) -> Floats:
    return np.asarray(value.detach().double().numpy())


def _alike(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).norm() <= AGREE * one.norm())
