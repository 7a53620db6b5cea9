"""Modules that can be trained row by row, and what tells one from another."""

from __future__ import annotations

from typing import Any

from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.kernels.gpu.device import load

__all__ = ["module_print", "refuse_module"]


def refuse_module(module: Any) -> None:
    """Those that look at several rows at once or at chance, and those that have nothing to learn."""
    torch = load()
    nn = torch.nn
    if not isinstance(module, nn.Module):
        raise InputError(f"a NeuralNetwork is made of a torch.nn.Module, not of {type(module).__name__}")
    norms, drops = nn.modules.batchnorm, nn.modules.dropout
    for layer in module.modules():
        name = type(layer).__name__
        if isinstance(layer, norms._BatchNorm) or (isinstance(layer, norms._NormBase) and layer.track_running_stats):
            raise InputError(
                f"{name} makes one person's outputs of other people's rows: take GroupNorm or LayerNorm, which look at "
                "one row at a time"
            )
        by_chance = isinstance(layer, (drops._DropoutNd, nn.RNNBase, nn.MultiheadAttention))
        if isinstance(layer, nn.RReLU) or (by_chance and getattr(layer, "p", getattr(layer, "dropout", 0)) > 0):
            raise InputError(
                f"{name} drops by chance: leave that out, or set it to 0. Noise does its work in a session"
            )
    learnt = [value for value in module.parameters() if value.requires_grad]
    if any(nn.parameter.is_lazy(value) for value in learnt):
        raise InputError("the module does not know its own shapes yet: use it once, on zeros, before it is trained")
    if not learnt:
        raise InputError("no weight of the module needs a gradient: there is nothing to learn")
    if not all(value.is_floating_point() and bool(value.isfinite().all()) for value in learnt):
        raise InputError("the weights that the module starts from must be finite floating-point numbers")


def module_print(module: Any) -> str:
    """Equal, in every process, for modules with the same layers, weights and code."""
    state = {name: value.detach().cpu() for name, value in module.state_dict().items()}
    weights = [(name, str(value.dtype), value.double().numpy()) for name, value in state.items()]
    learnt = [name for name, value in module.named_parameters() if value.requires_grad]
    code = [type(layer).forward for layer in module.modules()]
    return fingerprint(repr(module), weights, learnt, *code)[:16]
