"""Dense layers in a file of torch: numbers alone are read, and nothing of the server's is run."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import load

__all__ = ["ENDINGS", "layers_of_torch"]

ENDINGS = (".pt", ".pth")
SAFE_SINCE = (2, 6)  # before, torch's reader of mere weights could be made to run code
NO_LAYERS = (
    "{} holds no dense layers of torch: ask the server for torch.save(network.state_dict(), 'model.pt') of Linear "
    "layers with ReLU between them and nothing else, or for model.npz as network.txt says. Files of other kinds can "
    "run the server's code when they are opened, and this one was not run"
)


def layers_of_torch(path: Path, most_bytes: int) -> dict[str, Floats]:
    """`weight_0` (inputs x outputs), `bias_0`, `weight_1`, ... from the state dict of Linear layers, in their order."""
    torch = load()
    version = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
    if version is None or (int(version[1]), int(version[2])) < SAFE_SINCE:
        raise InputError("this torch can be made to run what a model file says: pip install 'torch>=2.8' first")
    found = _layers(_state(torch, path, most_bytes), most_bytes)
    if not found:
        raise InputError(NO_LAYERS.format(path.name))
    return found


def _state(torch: Any, path: Path, most_bytes: int) -> Any:
    try:
        # Only the form of today, a zip file: older ones are unpacked by other ways, with faults of their own.
        with zipfile.ZipFile(path) as packed:
            compiled = any(name.endswith("constants.pkl") for name in packed.namelist())
            if compiled or sum(one.file_size for one in packed.infolist()) > most_bytes:
                return None
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, RuntimeError, MemoryError):
        return None
    except (pickle.UnpicklingError, zipfile.BadZipFile, NotImplementedError):
        return None


def _layers(state: Any, most_bytes: int) -> dict[str, Floats]:
    """Nothing where anything in it is no weight or bias of a dense layer."""
    if not isinstance(state, dict) or not state:
        return {}
    parts: dict[str, dict[str, Floats]] = {}
    taken = 0
    for name, tensor in state.items():
        layer, _, what = str(name).rpartition(".")
        wanted = {"weight": 2, "bias": 1}.get(what)
        # By its sizes first: a few bytes can stand for any number of repeated ones.
        if wanted is None or not isinstance(tensor, load().Tensor) or tensor.ndim != wanted:
            return {}
        taken += 8 * tensor.numel()
        values = _numbers(tensor) if taken <= most_bytes else None
        if values is None:
            return {}
        parts.setdefault(layer, {})[what] = values
    if not all("weight" in part for part in parts.values()):
        return {}
    found = {}
    for place, part in enumerate(parts.values()):
        found[f"weight_{place}"] = part["weight"].T
        found[f"bias_{place}"] = part.get("bias", np.zeros(len(part["weight"])))
    return found


def _numbers(tensor: Any) -> Floats | None:
    if not (tensor.is_floating_point() and tensor.layout is load().strided):
        return None
    try:
        values = np.asarray(tensor.detach().double().numpy())
    except (RuntimeError, TypeError):  # quantised, or nowhere
        return None
    return values if np.isfinite(values).all() else None
