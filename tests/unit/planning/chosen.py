"""Plans whose number of worlds is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

import leakcap as lc
from leakcap.planning.doubling import Stage

rng = np.random.default_rng(77)
X = np.column_stack([2.0 ** np.arange(40), rng.normal(size=(40, 2))])  # the first column says which rows took part
CAP = lc.mutual_information(0.3)
AUTO: dict[str, Any] = {"cap": CAP, "worlds": "doubling", "draws": 256, "seed": 7}
CALLS: list[int] = []
STOP: list[int] = []  # calls after which `counted` fails


def counted(x: np.ndarray) -> np.ndarray:
    CALLS.append(int(x[:, 0].sum()))
    if STOP and len(CALLS) > STOP[0]:
        raise ValueError
    return x[:, 1:].mean(axis=0)


def stages(*noise: float) -> list[Stage]:
    return [Stage(one, 0.01) for one in noise]
