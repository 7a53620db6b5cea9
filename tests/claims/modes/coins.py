"""Randomness that can be looked at: the coins of releases under `design="bits"`."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakcap.noise import Seeded

__all__ = ["Watched"]


class Watched(Seeded):
    """Seeded randomness that remembers the coins it gave."""

    coins: np.ndarray

    def bits(self) -> Any:
        return self

    def integers(self, *args: Any, **options: Any) -> Any:
        found = super().bits().integers(*args, **options)
        self.coins = np.unpackbits(found, axis=1)[0]
        return found
