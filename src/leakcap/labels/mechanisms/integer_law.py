"""Exact chances: whole numbers out of 2^64, drawn from the operating system's bits and nothing else.

A label mechanism is a finite list of outcomes, each with a whole-number weight. What is drawn has exactly these
probabilities, so epsilon is a statement about integers and can be checked as one: there is no floating-point hole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from leakcap.ground.proofs import proves

__all__ = ["ONE", "Chances", "below", "count_up", "system_words"]

ONE = 2**64  # the weight of certainty
_AT_ONCE = 1 << 22  # draws in a block: bounds the memory beside the result


def system_words(dtype: type[np.unsignedinteger], size: int) -> npt.NDArray[np.unsignedinteger]:
    """Uniform random words from the operating system."""
    return np.frombuffer(os.urandom(np.dtype(dtype).itemsize * size), dtype=dtype)


def count_up(probability: float) -> int:
    """A weight of at least this probability, whatever the last digits of the float: rounding towards more noise."""
    return min(ONE, int(probability * (1 + 2.0**-48) * ONE) + 1)


class Chances:
    """A law on 0, 1, ..., K-1 with whole-number weights that sum to 2^64.

    >>> coin = Chances([ONE // 2, ONE // 2])
    >>> sorted(set(coin.draw(200).tolist()))
    [0, 1]
    """

    def __init__(self, weights: Sequence[int]) -> None:
        self.weights = tuple(int(weight) for weight in weights)
        if min(self.weights) < 0 or sum(self.weights) != ONE:
            raise AssertionError("weights must be whole numbers that sum to 2^64")

    @classmethod
    def rounded(cls, probabilities: Sequence[float]) -> Chances:
        """A law near these probabilities: all are rounded up but the likeliest, which takes what the others leave."""
        weights = [count_up(float(p)) for p in probabilities]
        top = int(np.argmax(probabilities))
        weights[top] = ONE - sum(weights[:top]) - sum(weights[top + 1 :])
        return cls(weights)

    def mirrored(self) -> Chances:
        """The same weights in the opposite order."""
        return Chances(self.weights[::-1])

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        return np.array([weight / ONE for weight in self.weights])

    @proves("label-mechanisms")
    def draw(self, size: int) -> npt.NDArray[np.uint16]:
        """Independent outcomes, exactly by the weights.

        The first 16 bits of a uniform 64-bit number settle nearly every draw; the other draws get their 48 further
        bits.
        """
        found = np.empty(size, dtype=np.uint16)
        sure, ends = self._by_first_bits
        for start in range(0, size, _AT_ONCE):
            first = system_words(np.uint16, min(_AT_ONCE, size - start))
            block = sure[first]
            (open_ones,) = np.nonzero(block == len(self.weights))
            rest = system_words(np.uint64, len(open_ones)) >> np.uint64(16)
            whole = (first[open_ones].astype(np.uint64) << np.uint64(48)) | rest
            block[open_ones] = np.searchsorted(ends, whole, side="left")
            found[start : start + len(block)] = block
        return found

    @cached_property
    def _by_first_bits(self) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint64]]:
        """Outcome by the first 16 bits (K where they do not settle it), and the last number of every outcome."""
        sums, total = [], 0
        for weight in self.weights:
            total += weight
            sums.append(total)
        # Outcome k owns the numbers from sums[k-1] to sums[k] - 1; an outcome without weight owns none.
        cells = 1 << 48
        sure = np.full(1 << 16, len(self.weights), dtype=np.uint16)
        low = 0
        for k, high in enumerate(sums):
            sure[-(-low // cells) : high // cells] = k
            low = high
        ends = np.array([max(end - 1, 0) for end in sums], dtype=np.uint64)
        if self.weights[0] == 0:
            raise AssertionError("the first outcome must have some weight")
        return sure, ends


@proves("label-mechanisms")
def below(n: int, size: int) -> npt.NDArray[np.int64]:
    """Exactly uniform whole numbers from 0 to n - 1: draws from an incomplete last round are thrown away."""
    words = np.uint16 if n <= 1 << 8 else np.uint32 if n <= 1 << 16 else np.uint64
    limit = 2 ** (8 * np.dtype(words).itemsize) // n * n
    found = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        drawn = system_words(words, min(_AT_ONCE, size - done))
        kept = drawn[drawn <= words(limit - 1)] % words(n)
        found[done : done + len(kept)] = kept
        done += len(kept)
    return found
