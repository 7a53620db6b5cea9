"""A fixed set of worlds as bit-packed masks: one bit says whether a unit takes part in a world."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bits
from leakcap.worlds.units import Units

__all__ = ["Worlds"]


@dataclass(frozen=True, eq=False, repr=False)
class Worlds:
    """`m` worlds over `n` units. When `paired`, world `i + m/2` is the complement of world `i`.

    Custodian side: whoever knows the masks and a few participants knows the rest (docs/threat-model.md).
    """

    packed: Bits = field()
    n: int
    share: Fraction
    paired: bool
    design: str

    def __post_init__(self) -> None:
        # Compiled loops read the bits as they lie in memory.
        object.__setattr__(self, "packed", np.ascontiguousarray(self.packed))

    @staticmethod
    def everybody(n: int) -> Worlds:
        """One world, of all units: in it a kernel gives what a plain fit gives."""
        return Worlds(
            packed=np.packbits(np.ones((1, n), dtype=np.bool_), axis=1),
            n=n,
            share=Fraction(1),
            paired=False,
            design="everybody",
        )

    @property
    def m(self) -> int:
        return len(self.packed)

    @property
    def rate(self) -> float:
        """Probability that a given unit takes part, the same for every unit."""
        return float(self.share)

    @property
    def shares(self) -> None:
        """The chance of each world, where they differ."""
        return None

    @property
    def proof(self) -> str:
        """The page that says why they are balanced: parts of the pool drawn uniformly, or any other balanced list."""
        uniform = self.design.startswith(("random halves", "random partitions"))
        return "uniform-halves" if uniform else "designed-worlds"

    def mask(self, world: int) -> npt.NDArray[np.bool_]:
        """Who takes part in one world."""
        return np.unpackbits(self.packed[world], count=self.n).view(np.bool_)

    def masks(self) -> npt.NDArray[np.bool_]:
        """The dense `(m, n)` table; a million units make it large: prefer `columns`."""
        return np.unpackbits(self.packed, axis=1, count=self.n).view(np.bool_)

    def listed(self) -> Any:
        """What a task that is a function is asked about: who takes part in each world."""
        return self.masks()

    def sizes(self) -> npt.NDArray[np.int64]:
        """How many units take part in each world."""
        packed = self.packed[: self.m // 2] if self.paired else self.packed
        whole = packed.shape[1] // 8 * 8  # bytes that make words, which are counted faster
        words = np.ascontiguousarray(packed[:, :whole]).view(np.uint64)
        found = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        found += np.bitwise_count(packed[:, whole:]).sum(axis=1, dtype=np.int64)
        return np.concatenate([found, self.n - found]) if self.paired else found

    def columns(self, units: slice | npt.NDArray[np.intp], rows: int | None = None) -> Bits:
        """Dense 0/1 columns of some units, for all worlds or the first `rows` of them."""
        packed = self.packed[:rows]
        if isinstance(units, slice):
            start, stop, step = units.indices(self.n)
            if step != 1:
                raise InputError("units must be a slice of step 1 or an array of positions")
            first = start // 8
            bits = np.unpackbits(packed[:, first : -(-stop // 8)], axis=1)
            return bits[:, start - 8 * first : stop - 8 * first]
        shift = (7 - (units & 7)).astype(np.uint8)
        return (packed[:, units >> 3] >> shift) & np.uint8(1)

    def some(self, numbers: npt.NDArray[np.intp]) -> Worlds:
        """Some of the worlds: of paired ones, the first half of the numbers names the mates of the second."""
        return replace(self, packed=self.packed[numbers])

    def of_units(self, units: npt.NDArray[np.intp]) -> Worlds:
        """The same worlds, with some of the units alone."""
        return replace(self, packed=np.packbits(self.columns(units), axis=1), n=len(units))

    def over_rows(self, units: Units) -> Worlds:
        """The same worlds, with a bit for each row of the data instead of each unit."""
        if units.of_row is None:
            return self
        packed = np.empty((self.m, -(-units.rows // 8)), dtype=np.uint8)
        for w in range(self.m):
            packed[w] = np.packbits(self.mask(w)[units.of_row])
        return Worlds(packed=packed, n=units.rows, share=self.share, paired=self.paired, design=self.design)

    def __repr__(self) -> str:
        return f"Worlds(m={self.m}, n={self.n}, rate={self.share}, design={self.design!r})"
