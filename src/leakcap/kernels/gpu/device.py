"""Torch, a device of it, and the masks of worlds there. Torch is loaded where it is used and nowhere else."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, MissingExtra
from leakcap.worlds import Worlds

__all__ = ["Tensor", "dense", "drawn", "fused", "load", "on", "send", "sizes", "tile_bytes"]

Tensor: TypeAlias = Any  # torch.Tensor, which need not be installed


def load() -> Any:
    """The module torch."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("networks and kernels on a GPU need torch: pip install 'leakcap[torch]'") from None
    return torch


def on(device: str) -> Any:
    """The device of that name; refused if it is not there."""
    torch = load()
    try:
        found = torch.device(device)
    except RuntimeError:
        raise InputError(f'{device!r} is no device: choose "cuda" or "cpu"') from None
    if found.type not in {"cuda", "cpu"}:
        raise InputError(f'kernels run on "cuda" or "cpu", not on {device!r}')
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InputError(f"torch sees no device {device!r} on this machine: choose another backend")
    return found


def send(array: npt.ArrayLike, device: Any, dtype: Any = None) -> Tensor:
    """An array as a tensor on the device; f64 unless said otherwise."""
    torch = load()
    # Torch refuses arrays that may not be written to, and warns; masks and memory-mapped data are such.
    source = np.require(array, requirements=["C", "W"])
    return torch.from_numpy(source).to(device=device, dtype=dtype or torch.float64)


def drawn(worlds: Worlds, device: Any) -> Tensor:
    """The packed masks of the worlds that were drawn: of complementary pairs, the first of each."""
    some = worlds.packed[: worlds.m // 2] if worlds.paired else worlds.packed
    return send(some, device, load().uint8)


def sizes(worlds: Worlds, device: Any) -> Tensor:
    """`(m,)`: how many rows each world has."""
    return send(worlds.sizes(), device)


def dense(packed: Tensor, start: int, stop: int, dtype: Any) -> Tensor:
    """`(worlds, stop - start)`: masks of some rows as 0 and 1; `start` is a multiple of 8."""
    torch = load()
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    bits = (packed[:, start // 8 : -(-stop // 8), None] >> shifts) & 1
    return bits.reshape(len(packed), -1)[:, : stop - start].to(dtype)


def tile_bytes(device: Any) -> int:
    """How large one intermediate table may be."""
    return 2**30 if device.type == "cuda" else 2**26


def fused(device: Any) -> bool:
    """Whether kernels written in Triton run there; elsewhere plain torch does the same work.

    They need tensor descriptors (Triton 3.4, which torch 2.8 brings) and a GPU of compute capability 9 or more.
    """
    try:
        from triton import knobs  # type: ignore[import-not-found,unused-ignore]
        from triton.tools.tensor_descriptor import (  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
            TensorDescriptor,
        )
    except ImportError:
        return False
    if device.type == "cuda":
        return bool(load().cuda.get_device_capability(device) >= (9, 0))
    return bool(knobs.runtime.interpret)
