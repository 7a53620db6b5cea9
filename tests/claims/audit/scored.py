"""Tables of scores, and the attacks on them."""

from __future__ import annotations

import math

import numpy as np

from leakcap.audit.shadow.lira import EmpiricalLira, Lira
from leakcap.audit.shadow.threshold import Threshold

ATTACKS = [
    Lira("online", "unit"),
    Lira("online", "pooled"),
    Lira("offline", "unit"),
    Lira("offline", "pooled"),
    EmpiricalLira("online"),
    EmpiricalLira("offline"),
    Threshold("none"),
    Threshold("outside"),
]
ONLINE = [Lira("online", "unit"), Lira("online", "pooled"), EmpiricalLira("online")]


def tables(s: int, n: int, t: int, seed: int = 0, shift: float = 0.7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of units of different level and scale, higher for members; some are missing."""
    rng = np.random.default_rng(seed)
    inside = rng.random((s, n)) < 0.5
    inside[:4] = [[True], [True], [False], [False]]
    level, scale = rng.normal(size=n) * 5, np.exp(rng.normal(size=n))
    shadow = level + scale * (rng.normal(size=(s, n)) + shift * inside)
    target = level + scale * rng.normal(size=(t, n))
    shadow[5:][rng.random((s - 5, n)) < 0.03] = np.nan
    shadow[7, ::5], shadow[8, ::7] = np.inf, -np.inf
    return shadow, inside, target


def clean(values: np.ndarray) -> list[float]:
    return [float(v) for v in values if math.isfinite(v)]


def auc(statistics: np.ndarray, member: np.ndarray) -> float:
    order = np.argsort(np.argsort(statistics))
    k = member.sum()
    return float((order[member].sum() - k * (k - 1) / 2) / (k * (~member).sum()))
