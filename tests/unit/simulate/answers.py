"""Answers of many forms."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(5)
X = rng.normal(size=(60, 3))
Y = X @ [1.0, 2.0, 3.0] + rng.normal(size=60)
C = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
