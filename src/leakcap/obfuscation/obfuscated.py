"""What is released, as far as its leakage depends on it: the pool, the public rules and the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.gpu.device import Tensor
from leakcap.kernels.gpu.mixed_rows import MixedRows
from leakcap.obfuscation.pairs import AddedNoise, SwapFactors, factors, products, swap_factors
from leakcap.obfuscation.sampled import MixedDraw, MixingLaw, draw_mixed, draw_rows, draw_swaps, starts_of

__all__ = ["Obfuscated", "farthest"]

PAIRS = 20_000  # units of a class whose distances are looked at pair by pair
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Obfuscated:
    """`Z = P M X W + B`: rows sampled and mixed by `law`, a mask of variance `1/columns`, noise of one deviation.

    Attributes:
        pool: `(N, D)` rows of all units, sampled or not, in the unit ball.
        law: the public rules.
        noise_std: deviation of the noise on every released number.
        public: the mixtures `(m, D)` of public rows that are masked and added (learnable noise), in the unit ball; or
            what draws them, by a law that does not look at the sample; None: there are none.
        blocks: parts that the columns are cut into, each with a mask of its own and `law.columns` released columns.
        backend: "torch:cuda" computes on a GPU; None here.
    """

    pool: Floats
    law: MixingLaw
    noise_std: float
    public: Floats | Callable[[np.random.Generator], Floats] | None = None
    blocks: int = 1
    backend: str | None = None

    def __post_init__(self) -> None:
        checks.positive(noise_std=self.noise_std)
        if self.backend is not None and not self.backend.startswith("torch:"):
            raise InputError("backend must be None or a device of torch such as 'torch:cuda'")
        checks.count(blocks=self.blocks)
        if self.pool.ndim != 2 or len(self.pool) != len(self.law.labels):
            raise InputError("the pool must have one row for every label")
        if not np.isfinite(self.pool).all():
            raise InputError("rows of the pool must be finite")
        if self.blocks > self.pool.shape[1]:
            raise InputError("there are more blocks than columns")
        if self.longest > 1 + 1e-9:
            raise InputError("rows of the pool must lie in the unit ball")

    @cached_property
    def longest(self) -> float:
        return float(np.sqrt((self.pool**2).sum(axis=1).max()))

    @cached_property
    def reach(self) -> Floats:
        """`(N,)`: how far a swap can move the row of each unit, at most."""
        return farthest(self.pool, self.law)

    def with_noise(self, noise_std: float) -> Obfuscated:
        """The same with other noise; the pool stays where it is."""
        other = replace(self, noise_std=noise_std)
        for name in ("longest", "reach", "parts", "_device"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @cached_property
    def parts(self) -> tuple[Floats, ...]:
        """The pool's columns, block by block."""
        return tuple(np.ascontiguousarray(part) for part in np.array_split(self.pool, self.blocks, axis=1))

    @cached_property
    def _device(self) -> tuple[MixedRows, ...]:
        """The blocks on a GPU, where that was asked for."""
        if self.backend is None:
            return ()
        return tuple(MixedRows(part, device=self.backend.removeprefix("torch:")) for part in self.parts)

    def draw_factors(self, rng: np.random.Generator, *, swaps: int, units: Ints | None = None) -> SwapFactors:
        """`(swaps, units, blocks)`: the law without each unit beside the law with it, in one draw."""
        chosen = np.arange(len(self.pool)) if units is None else units
        mixed = draw_mixed(self.law, rng) if self.backend is None else None
        rows = draw_rows(self.law, rng) if mixed is None else mixed.rows
        swapped = draw_swaps(self.law, rows, swaps, rng)
        places, joins = swapped.places[:, chosen].ravel(), swapped.joins[:, chosen].ravel()
        noises = self._noises(rng)
        if mixed is not None:
            both_of = zip(self.parts, noises, strict=True)
            found = [self._here(part, mixed, places, joins, noise=noise) for part, noise in both_of]
        else:
            found = self._there(rows, places, joins, noises=noises, seed=int(rng.integers(2**63)))
        shape = (swaps, len(chosen), self.blocks)
        both = (np.stack(logs, axis=-1) for logs in zip(*((one.wider, one.narrower) for one in found), strict=True))
        # Who is in the sample leaves it by the swap, who is not joins.
        outside = np.broadcast_to(~swapped.inside[chosen][:, None], shape)
        return SwapFactors(*(logs.reshape(shape) for logs in both)).turned(outside)

    def noise_covariances(self, rng: np.random.Generator) -> list[float | Floats]:
        """Of every block: the variance of the noise, or its covariance with that of public rows in a draw."""
        return [noise.covariance for noise in self._noises(rng)]

    def _noises(self, rng: np.random.Generator) -> list[AddedNoise]:
        return self._noises_of(self.public(rng)) if callable(self.public) else self._fixed_noises

    @cached_property
    def _fixed_noises(self) -> list[AddedNoise]:
        """Without public rows, or with those whose mixtures are the same in every draw."""
        if self.public is None:
            return [AddedNoise(self.noise_std**2, self.law.columns)] * self.blocks
        assert not callable(self.public)
        return self._noises_of(self.public)

    @cached_property
    def _fixed_there(self) -> list[Tensor]:
        """The same, kept on the GPU."""
        both = zip(self._device, self._fixed_noises, strict=True)
        return [block.kept(np.asarray(noise.covariance)) for block, noise in both]

    def _noises_of(self, mixtures: Floats) -> list[AddedNoise]:
        if mixtures.shape != (len(self.law.pairs), self.pool.shape[1]) or not np.isfinite(mixtures).all():
            raise InputError("public rows must be mixed to one finite row for every released row")
        if (mixtures**2).sum(axis=1).max() > 1 + 1e-9:
            raise InputError("mixtures of public rows must lie in the unit ball")
        parts = np.array_split(mixtures, self.blocks, axis=1)
        return [AddedNoise(self.noise_std**2, self.law.columns, part) for part in parts]

    def _here(self, part: Floats, mixed: MixedDraw, places: Ints, joins: Ints, *, noise: AddedNoise) -> SwapFactors:
        found = products(part, mixed, noise, places=places)
        return swap_factors(part, mixed, found, places=places, joins=joins, columns=noise.columns)

    def _there(
        self, rows: Ints, places: Ints, joins: Ints, *, noises: list[AddedNoise], seed: int
    ) -> list[SwapFactors]:
        law, first = self.law, self._device[0]
        fixed = self.public is not None and not callable(self.public)
        known = self._fixed_there if fixed else [noise.covariance for noise in noises]
        picks = first.picks(starts_of(law), law.sampled, law.mix, seed=seed)
        return [
            factors(
                *block.swap_products(rows, picks, places=places, joins=joins, columns=law.columns, noise=noise),
                columns=law.columns,
            )
            for block, noise in zip(self._device, known, strict=True)
        ]


def farthest(pool: Floats, law: MixingLaw) -> Floats:
    """`(N,)`: no unit of the class is farther than this from each.

    Classes of up to `PAIRS` units pair by pair, in single precision, whose rounding is added; larger ones by way of
    the class's mean.
    """
    found = np.empty(len(pool))
    for one in range(law.classes):
        of_class = law.labels == one
        rows = pool[of_class]
        away = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
        found[of_class] = away + away.max()
        if len(rows) <= PAIRS:
            found[of_class] = np.minimum(found[of_class], _pair_by_pair(rows))
    return found * (1 + 1e-9)


def _pair_by_pair(rows: Floats) -> Floats:
    """The largest distance from each row to any other. Rows are no longer than 1, so products are off by little."""
    single, squares, found = rows.astype(np.float32), (rows**2).sum(axis=1), np.empty(len(rows))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        products = (single[some] @ single.T).astype(np.float64)
        found[some] = squares[some] + (squares - 2 * products).max(axis=1)
    error = 4 * (rows.shape[1] + 4) * 2.0**-24
    return np.sqrt(np.maximum(found, 0.0) + error)
