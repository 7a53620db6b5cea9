"""Where a release gets its randomness: the operating system, and nothing else.

A release draws two things, last of all: the secret world and the noise. Simulations use `Seeded` instead; the
two are different types so that one cannot be passed off as the other.
"""

from __future__ import annotations

import os
import secrets
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from leakcap.ground.proofs import proves
from leakcap.worlds.draw import RandomBits

__all__ = ["GRID", "OperatingSystem", "Randomness", "Seeded", "sampler_distance"]

GRID = 2.0**-10  # release grid, in noise standard deviations
_REACH = 8.3  # a normal exceeds this with probability below 2^-53


class Randomness(Protocol):
    def below(self, n: int) -> int:
        """A uniform whole number from 0 to n - 1."""
        ...

    def normals(self, size: int) -> npt.NDArray[np.float64]:
        """Independent standard normals."""
        ...

    def bits(self) -> RandomBits:
        """A generator for a secret world that is not among the simulated ones."""
        ...


class OperatingSystem:
    """Release randomness. It takes no seed and keeps no state."""

    def below(self, n: int) -> int:
        return secrets.randbelow(n)

    def normals(self, size: int) -> npt.NDArray[np.float64]:
        """By the quantile function, from 64 bits each: a sign and a tail probability."""
        bits = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        sign = np.where(bits >> np.uint64(63), 1.0, -1.0)
        tail = ((bits & np.uint64(2**63 - 1)).astype(np.float64) + 0.5) * 2.0**-64
        return np.asarray(-sign * ndtri(tail))

    def bits(self) -> RandomBits:
        return _SystemBits()


class _SystemBits:
    """The two draws that a world needs, straight from the operating system."""

    def integers(self, low: int, high: int, /, size: Any = 1, dtype: Any = np.int64) -> npt.NDArray[Any]:
        count = int(np.prod(size))
        span = high - low
        limit = 2**64 // span * span - 1  # reject the incomplete last round: exactly uniform
        found = np.empty(0, dtype=np.uint64)
        while len(found) < count:
            bits = np.frombuffer(os.urandom(8 * (count - len(found))), dtype=np.uint64)
            found = np.concatenate([found, bits[bits <= np.uint64(limit)]])
        return (low + (found % np.uint64(span)).astype(np.int64)).astype(dtype).reshape(size)

    def permutation(self, x: Any, /) -> npt.NDArray[Any]:
        items = np.arange(x) if isinstance(x, int) else np.asarray(x)
        while True:
            keys = np.frombuffer(os.urandom(8 * len(items)), dtype=np.uint64)
            order = np.argsort(keys)
            if len(items) < 2 or (np.diff(keys[order]) > 0).all():  # no ties: every order is equally likely
                return items[order]


class Seeded:
    """Repeatable randomness for simulations: whoever knows the seed can undo the noise."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def below(self, n: int) -> int:
        if n < 2**63:
            return int(self._rng.integers(n))
        size = (n.bit_length() + 7) // 8
        while True:
            found = int.from_bytes(self._rng.bytes(size), "big") >> (8 * size - n.bit_length())
            if found < n:  # every number up to n is as likely as any other
                return found

    def normals(self, size: int) -> npt.NDArray[np.float64]:
        return self._rng.standard_normal(size)

    def bits(self) -> RandomBits:
        return self._rng


@proves("sampler")
def sampler_distance(coordinates: int, reach: float, step: float = GRID) -> float:
    """Total variation between what `OperatingSystem` puts on the grid and the ideal rounded normal.

    `reach` bounds the whitened outputs. Guarantee: for every world, the law of the released grid point
    differs from that of the rounded sum of output and ideal noise by at most this much, so it is added to every
    certified success.
    """
    # A value is rounded to the wrong grid point only if it lies within its arithmetic error of a cell's edge:
    # 16 units in the last place for the quantile (tested), one for the sum.
    error = 16 * 2.0**-52 * _REACH + 2.0**-52 * (reach + _REACH)
    edges = 2 * (_REACH + 1) / step
    one = 2 * error * (1 / step + 1) + edges * 2.0**-63 + 2.0**-52
    return coordinates * one
