"""The best attacker against an answer that left without noise: what the noise is measured against."""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Bools, Floats

__all__ = ["exact_success"]


def exact_success(outputs: Floats, masks: Bools) -> float:
    """Membership success against the most exposed unit if a world's answer left without noise.

    The attacker knows every world's answer: what is left to guess is which of the worlds with this very answer.
    """
    _, group, sizes = np.unique(outputs, axis=0, return_inverse=True, return_counts=True)
    together = masks[np.argsort(group.ravel())]  # worlds with one answer follow each other
    inside = np.add.reduceat(together, np.cumsum(sizes) - sizes, axis=0, dtype=np.int64)
    return float((np.maximum(inside, sizes[:, None] - inside).sum(axis=0) / len(masks)).max())
