"""What is released, as far as its leakage depends on it: the pool, the public rules and the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.pairs import SwapFactors, products, swap_factors
from leakcap.obfuscation.sampled import MixingLaw, draw_mixed, draw_swaps

__all__ = ["Obfuscated"]


@dataclass(frozen=True, eq=False)
class Obfuscated:
    """`Z = P M X W + B`: rows sampled and mixed by `law`, a mask of variance `1/columns`, noise of one deviation.

    Attributes:
        pool: `(N, D)` rows of all units, sampled or not, in the unit ball.
        law: the public rules.
        noise_std: deviation of the noise on every released number.
    """

    pool: Floats
    law: MixingLaw
    noise_std: float

    def __post_init__(self) -> None:
        checks.positive(noise_std=self.noise_std)
        if self.pool.ndim != 2 or len(self.pool) != len(self.law.labels):
            raise InputError("the pool must have one row for every label")
        if not np.isfinite(self.pool).all():
            raise InputError("rows of the pool must be finite")
        if self.longest > 1 + 1e-9:
            raise InputError("rows of the pool must lie in the unit ball")

    @property
    def longest(self) -> float:
        return float(np.sqrt((self.pool**2).sum(axis=1).max()))

    def with_noise(self, noise_std: float) -> Obfuscated:
        return replace(self, noise_std=noise_std)

    def draw_factors(self, rng: np.random.Generator, *, swaps: int, units: Ints | None = None) -> SwapFactors:
        """`(swaps, units)`: the law without each unit beside the law with it, in one draw of sample and mixing."""
        law = self.law
        mixed = draw_mixed(law, rng)
        swapped = draw_swaps(law, mixed, swaps, rng)
        chosen = np.arange(len(self.pool)) if units is None else units
        found = products(self.pool, mixed, law.columns, self.noise_std**2)
        places, joins = swapped.places[:, chosen], swapped.joins[:, chosen]
        factors = swap_factors(
            self.pool, mixed, found, places=places.ravel(), joins=joins.ravel(), columns=law.columns
        )
        shaped = SwapFactors(factors.wider.reshape(places.shape), factors.narrower.reshape(places.shape))
        # Who is in the sample leaves it by the swap, who is not joins.
        return shaped.turned(np.broadcast_to(~swapped.inside[chosen], places.shape))
