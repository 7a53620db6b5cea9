"""What the table of kernels compares: for each work a plain fit, its kernel, and how closely the two must agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    work: str
    rows: int
    columns: int
    worlds: int
    plain: Callable[[np.ndarray], Any]  # a plain fit on the rows where the mask is true
    kernel: Callable[[], np.ndarray]
    agreement: Callable[[np.ndarray, list[int], list[Any]], float]  # largest relative difference in some worlds
    flops: float | None = None  # arithmetic that the kernel cannot do without, where that means something
    timed: int = 16  # worlds of the loop that are timed
