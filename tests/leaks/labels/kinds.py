"""Labels of several kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.unsignedinteger[Any]]
Labels = npt.NDArray[np.int64]
