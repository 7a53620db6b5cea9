"""Small pools of two and three classes that a line can tell apart, and a model for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

import leakcap as lc

NAMES = np.array(["ash", "birch", "cedar"])
FEW = {"mix": 3, "rows_released": 180}


def pool(classes: int = 3, each: int = 60, columns: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(classes), each)
    return rng.normal(size=(len(codes), columns)) + 4 * np.eye(classes, columns)[codes], NAMES[codes]


def accuracy(encoder: lc.obfuscation.Encoder, encoded: tuple[Any, Any], penalty: float = 0.01) -> float:
    X, y = pool()
    return float(np.mean(encoder.predict(Ridge(penalty).fit(*encoded), X) == y))
