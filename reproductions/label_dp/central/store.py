"""Weights and features as files below 16 MiB, in half precision: a later call goes on from them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

MOST_BYTES = 2**24 - 2**16  # in a file
LARGEST = 6e4  # in half precision


def write_json(path: Path, record: dict[str, Any]) -> None:
    """All of the file or none of it."""
    half = path.with_suffix(f".{os.getpid()}.half")
    half.write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.replace(half, path)


def save_weights(folder: Path, name: str, net: nn.Module, **facts: Any) -> None:
    """A network's state in parts, and then the file that says they are whole."""
    values = [value.detach().float().cpu().numpy().ravel() for value in net.state_dict().values()]
    flat = np.clip(np.concatenate(values), -LARGEST, LARGEST).astype(np.float16)
    each = MOST_BYTES // flat.itemsize
    parts = -(-len(flat) // each)
    for part in range(parts):
        save_array(folder / f"{name}-{part}.npy", flat[part * each : (part + 1) * each])
    write_json(folder / f"{name}.json", {"parts": parts, "size": len(flat), **facts})


def load_weights(folder: Path, name: str, net: nn.Module) -> dict[str, Any] | None:
    """The facts saved with a network's state, which is put into `net`; None where there is none that fits."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    files = [folder / f"{name}-{part}.npy" for part in range(facts["parts"])]
    state = net.state_dict()
    if sum(value.numel() for value in state.values()) != facts["size"] or not all(file.is_file() for file in files):
        return None
    flat = torch.from_numpy(np.concatenate([np.load(file) for file in files]).astype(np.float32))
    place = 0
    for key, value in state.items():
        part = flat[place : place + value.numel()].view(value.shape)
        state[key] = part.to(device=value.device, dtype=value.dtype)
        place += value.numel()
    net.load_state_dict(state)
    return facts


def save_array(path: Path, array: np.ndarray) -> None:
    """All of the file or none of it."""
    half = path.with_suffix(f".{os.getpid()}.half")
    with half.open("wb") as file:
        np.save(file, array)
    os.replace(half, path)
