"""What is released, as far as its leakage depends on it: the pool, the public rules and the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.gpu.mixed_rows import MixedRows
from leakcap.obfuscation.pairs import SwapFactors, factors, products, swap_factors
from leakcap.obfuscation.sampled import MixingLaw, draw_mixed, draw_rows, draw_swaps, starts_of

__all__ = ["Obfuscated"]


@dataclass(frozen=True, eq=False)
class Obfuscated:
    """`Z = P M X W + B`: rows sampled and mixed by `law`, a mask of variance `1/columns`, noise of one deviation.

    Attributes:
        pool: `(N, D)` rows of all units, sampled or not, in the unit ball.
        law: the public rules.
        noise_std: deviation of the noise on every released number.
        backend: "torch:cuda" computes on a GPU; None here.
    """

    pool: Floats
    law: MixingLaw
    noise_std: float
    backend: str | None = None

    def __post_init__(self) -> None:
        checks.positive(noise_std=self.noise_std)
        if self.backend is not None and not self.backend.startswith("torch:"):
            raise InputError("backend must be None or a device of torch such as 'torch:cuda'")
        if self.pool.ndim != 2 or len(self.pool) != len(self.law.labels):
            raise InputError("the pool must have one row for every label")
        if not np.isfinite(self.pool).all():
            raise InputError("rows of the pool must be finite")
        if self.longest > 1 + 1e-9:
            raise InputError("rows of the pool must lie in the unit ball")

    @cached_property
    def longest(self) -> float:
        return float(np.sqrt((self.pool**2).sum(axis=1).max()))

    def with_noise(self, noise_std: float) -> Obfuscated:
        """The same with other noise; the pool stays where it is."""
        other = replace(self, noise_std=noise_std)
        for name in ("longest", "_device"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @cached_property
    def _device(self) -> MixedRows | None:
        """The pool on a GPU, where that was asked for."""
        return None if self.backend is None else MixedRows(self.pool, device=self.backend.removeprefix("torch:"))

    def draw_factors(self, rng: np.random.Generator, *, swaps: int, units: Ints | None = None) -> SwapFactors:
        """`(swaps, units)`: the law without each unit beside the law with it, in one draw of sample and mixing."""
        law, pool, device = self.law, self.pool, self._device
        chosen = np.arange(len(pool)) if units is None else units
        mixed = draw_mixed(law, rng) if device is None else None
        rows = draw_rows(law, rng) if mixed is None else mixed.rows
        swapped = draw_swaps(law, rows, swaps, rng)
        places, joins = swapped.places[:, chosen].ravel(), swapped.joins[:, chosen].ravel()
        if mixed is not None:
            found = products(pool, mixed, law.columns, self.noise_std**2, places=places)
            both = swap_factors(pool, mixed, found, places=places, joins=joins, columns=law.columns)
        elif device is not None:
            both = self._on_device(device, rows, places, joins, seed=int(rng.integers(2**63)))
        shape = (swaps, len(chosen))
        # Who is in the sample leaves it by the swap, who is not joins.
        outside = np.broadcast_to(~swapped.inside[chosen], shape)
        return SwapFactors(both.wider.reshape(shape), both.narrower.reshape(shape)).turned(outside)

    def _on_device(self, device: MixedRows, rows: Ints, places: Ints, joins: Ints, *, seed: int) -> SwapFactors:
        law = self.law
        m = len(law.pairs)
        starts = device.send(starts_of(law).T.reshape(-1, 1))
        picks = device.choices(2 * m, law.sampled, law.mix, seed=seed) + starts
        picks = device.side_by_side(picks[:m], picks[m:])
        four = device.swap_products(
            rows, picks, places=places, joins=joins, columns=law.columns, noise=self.noise_std**2
        )
        return factors(*four, columns=law.columns)
