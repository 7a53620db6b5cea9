"""The kinds of arrays that functions take and return."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Bits", "Bools", "Floats", "Ints"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]
Bits: TypeAlias = npt.NDArray[np.uint8]  # eight memberships a byte
