"""The best attacker against an answer that left without noise: what the noise is measured against."""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Bools, Floats

__all__ = ["exact_success"]


def exact_success(outputs: Floats, masks: Bools) -> float:
    """Membership success against the most exposed unit if a world's answer left without noise.

    The attacker knows every world's answer: what is left to guess is which of the worlds with this very answer.
    """
    _, group = np.unique(outputs, axis=0, return_inverse=True)
    inside = np.zeros((group.max() + 1, masks.shape[1]))
    np.add.at(inside, group.ravel(), masks)
    sizes = np.bincount(group.ravel())[:, None]
    return float((np.maximum(inside, sizes - inside).sum(axis=0) / len(masks)).max())
