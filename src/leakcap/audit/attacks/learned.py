"""Somebody who has seen many releases, was told who took part in each, and looks for a direction for everybody.

It knows neither worlds nor noise: what it finds, any newspaper reader with the same memory would find.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks.membership import Scorer, Units
from leakcap.audit.trials import Trials
from leakcap.ground.arrays import Floats

__all__ = ["directions"]

SLIGHT = 1e-6  # of the spread of a direction: keeps numbers that hang together from deciding by their rounding


def directions(learn: Trials) -> Scorer | None:
    """Linear discriminants of all units at once, from releases with known participants."""
    seen = learn.seen
    spread = seen.std(axis=0)
    varying = spread > 1e-12 * np.abs(seen).max(axis=0, initial=0.0)
    if not varying.any():
        return None
    centre, spread = seen[:, varying].mean(axis=0), spread[varying]
    table = (seen[:, varying] - centre) / spread
    size, turn = np.linalg.eigh(table.T @ table / len(table)) if table.shape[1] <= len(table) else _thin(table)
    whiten = turn / np.sqrt(np.maximum(size, SLIGHT * size.max()))
    white = table @ whiten
    inside = learn.inside()
    count = inside.sum(axis=0)
    within = white.T @ inside.astype(np.float64)
    others = white.sum(axis=0)[:, None] - within
    apart = within / np.maximum(count, 1) - others / np.maximum(len(learn) - count, 1)

    def score(trials: Trials, rows: slice, units: Units = slice(None)) -> npt.NDArray[Any]:
        return np.asarray(((trials.seen[rows][:, varying] - centre) / spread) @ whiten @ apart[:, units])

    return score


def _thin(table: Floats) -> tuple[Floats, Floats]:
    """The same where there are more numbers than releases."""
    _, sizes, directions = np.linalg.svd(table, full_matrices=False)
    return sizes**2 / len(table), directions.T
