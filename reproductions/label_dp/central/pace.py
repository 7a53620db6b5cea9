"""How many epochs fit: measured on the device before the first step counts."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

WARM_UP, TIMED = 8, 12  # steps


def clock(device: torch.device) -> float:
    """Seconds, once everything asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def epochs_in(seconds: float, most: int, per_epoch: int, *, step: Callable[[], object], device: torch.device) -> int:
    """Epochs that fit into `seconds`, at least 1 and at most `most`; `step` is tried out, and must change nothing."""
    if seconds == float("inf"):
        return most
    began = clock(device)
    for _ in range(WARM_UP):
        step()
    warm = clock(device)
    for _ in range(TIMED):
        step()
    one = (clock(device) - warm) / TIMED
    left = seconds - (clock(device) - began)
    return max(1, min(most, int(left / (1.02 * one * per_epoch))))
