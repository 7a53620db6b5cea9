"""How far an information moves with the law: what a sampler that is a little off may add."""

from __future__ import annotations

import math

__all__ = ["entropy_slack"]


def entropy_slack(distance: float, m: int) -> float:
    """How far the information about one of `m` secrets moves when the law moves by `distance` in total variation."""
    entropy = -distance * math.log(distance) - (1 - distance) * math.log1p(-distance) if distance > 0 else 0.0
    return distance * math.log(m) + entropy
