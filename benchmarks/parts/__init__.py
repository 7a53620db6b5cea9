"""What the table of kernels compares: for each work a plain fit, its kernel, and how closely the two agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.datasets import dry_bean

__all__ = ["Case", "beans"]


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    work: str
    rows: int
    columns: int
    worlds: int
    plain: Callable[[Any], Any]  # a plain fit on some rows: a mask, or a slice for all of them
    kernel: Callable[[], np.ndarray]
    agreement: Callable[[np.ndarray, list[int], list[Any]], float]  # largest relative difference in some worlds
    flops: float | None = None  # arithmetic of the matrix products that would do the work, where that means something
    timed: int = 16  # worlds of the loop that are timed
    passes: Callable[[], Any] | None = None  # one pass of a matrix product over the data


def beans() -> tuple[np.ndarray, np.ndarray]:
    """Dry Bean: standardised columns and class numbers."""
    table = dry_bean()
    columns = table.drop(columns="Class").to_numpy(dtype=np.float64)
    classes = np.unique(table["Class"].to_numpy(dtype=str), return_inverse=True)[1]
    return (columns - columns.mean(axis=0)) / columns.std(axis=0), classes
