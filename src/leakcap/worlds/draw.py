"""Drawing balanced worlds fast.

A uniform half needs no permutation: flip a fair coin per unit, then move a uniformly chosen surplus from the
larger side to the smaller. The result is exchangeable and of fixed size, hence exactly uniform
(docs/proofs/uniform-halves.md). Complements make every unit a member of exactly half the worlds.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice, pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bits
from leakcap.ground.proofs import proves
from leakcap.worlds.worldset import Worlds

__all__ = [
    "FAIR_BITS",
    "RandomBits",
    "as_share",
    "complement",
    "draw_worlds",
    "fair_bits",
    "given_worlds",
    "independent_worlds",
]

FAIR_BITS = "independent fair bits"
MAX_DENSE = 2**22  # entries of worlds with a byte for each unit, as long as these are put together
HALF = Fraction(1, 2)  # made once: audits draw coins many thousand times


class RandomBits(Protocol):
    """What drawing worlds asks of a generator: numpy's, or one that reads the operating system."""

    def integers(self, low: int, high: int, /, size: Any = ..., dtype: Any = ...) -> Any: ...

    def permutation(self, x: Any, /) -> Any: ...


def as_share(rate: float) -> Fraction:
    """The rate as 1/k or (k-1)/k: the rates at which partitions give every unit exactly the same share."""
    share = Fraction(checks.fraction(rate=rate)).limit_denominator(10_000)
    if abs(float(share) - rate) > 1e-9 or share.numerator not in (1, share.denominator - 1):
        raise InputError("rate must be 1/2, or of the form 1/k or (k-1)/k such as 1/3, 0.25 or 0.9")
    return share


def draw_worlds(
    n: int,
    m: int,
    rng: RandomBits,
    rate: float = 0.5,
    strata: npt.NDArray[np.intp] | None = None,
) -> Worlds:
    """`m` random worlds over `n` units, balanced by construction."""
    share = as_share(rate)
    parts = share.denominator
    checks.count(at_least=2, worlds=m)
    smallest = n if strata is None else int(np.bincount(strata).min())
    if n < 2 * parts or smallest < parts:
        what = "units" if strata is None else "units in every stratum"
        raise InputError(
            f"too few units: rate {share} needs at least {parts if strata is not None else 2 * parts} {what}"
        )
    if m % parts:
        raise InputError(f"worlds must be a multiple of {parts} at rate {share}: use {m + parts - m % parts}")
    if parts == 2:
        first = _halves(n, m // 2, rng) if strata is None else _stratified_halves(strata, m // 2, rng)
        packed = np.concatenate([first, complement(first, n)])
    else:
        one = np.zeros(n, dtype=np.intp) if strata is None else strata
        chosen = _stratified(one, m // parts, parts, rng).reshape(m, -1)
        packed = chosen if share.numerator == 1 else complement(chosen, n)
    design = "random halves" if parts == 2 else f"random partitions into {parts} parts"
    return Worlds(packed, n, share, paired=parts == 2, design=design + (", stratified" if strata is not None else ""))


def independent_worlds(
    n: int,
    m: int,
    rng: RandomBits,
    rate: float = 0.5,
    strata: npt.NDArray[np.intp] | None = None,
) -> Worlds:
    """`m` independent worlds of the same law: one of each pair or partition."""
    parts = as_share(rate).denominator
    drawn = draw_worlds(n, m * parts, rng=rng, rate=rate, strata=strata)
    chosen = drawn.packed[:m] if drawn.paired else drawn.packed[::parts]
    return Worlds(np.ascontiguousarray(chosen), n, drawn.share, paired=False, design=f"independent {drawn.design}")


@proves("bits")
def fair_bits(n: int, m: int, rng: RandomBits) -> Worlds:
    """`m` worlds in each of which every unit takes part by a fair coin of its own, whatever the others do."""
    packed = rng.integers(0, 256, size=(m, -(-n // 8)), dtype=np.uint8)
    if n % 8:
        packed[:, -1] &= np.uint8(0xFF << (8 - n % 8) & 0xFF)  # bits past the last unit stay 0
    return Worlds(packed, n, HALF, paired=False, design=FAIR_BITS)


def given_worlds(masks: npt.ArrayLike, n: int) -> Worlds:
    """Worlds chosen by the user, as an `(m, n)` bool array; every unit must be in equally many."""
    try:
        table = np.asarray(masks)
    except ValueError:  # ragged
        table = np.empty(0)
    if table.dtype != np.bool_ or table.ndim != 2 or table.shape[1] != n or len(table) < 2:
        raise InputError(f"worlds must be a number, or a bool array with a row per world and {n} columns (units)")
    counts = table.sum(axis=0)
    if counts.min() != counts.max():
        raise InputError(
            "the given worlds are not balanced: every unit must take part in equally many worlds. "
            "Add the complement of each world to balance them"
        )
    if not 0 < counts[0] < len(table):
        raise InputError("the given worlds hide nothing: every unit takes part in all of them or in none")
    half = len(table) // 2
    paired = len(table) % 2 == 0 and bool((table[:half] != table[half:]).all())
    packed = np.packbits(table, axis=1)
    return Worlds(packed, n, Fraction(int(counts[0]), len(table)), paired=paired, design="given by the custodian")


def complement(packed: Bits, n: int) -> Bits:
    """Of each world everybody else."""
    other = ~packed
    if n % 8:
        other[:, -1] &= np.uint8(0xFF << (8 - n % 8) & 0xFF)  # bits past the last unit stay 0
    return other


@proves("uniform-halves")
def _halves(n: int, m: int, rng: RandomBits, larger: npt.NDArray[np.int64] | None = None) -> Bits:
    """`m` exactly uniform subsets of size `n/2`; of odd `n`, the larger half where `larger` is 1 (else a fair coin)."""
    width = -(-n // 8)
    packed = rng.integers(0, 256, size=(m, width), dtype=np.uint8)
    if n % 8:
        packed[:, -1] &= np.uint8(0xFF << (8 - n % 8) & 0xFF)
    sizes = np.bitwise_count(packed).sum(axis=1, dtype=np.int64)
    if larger is None:
        larger = rng.integers(0, 2, size=m)
    targets = n // 2 + (larger if n % 2 else np.zeros(m, dtype=np.int64))
    for row, size, target in zip(packed, sizes, targets, strict=True):
        if size != target:
            mask = np.unpackbits(row, count=n)
            mask[_some_units(mask, inside=bool(size > target), k=abs(int(size - target)), rng=rng)] ^= 1
            row[:] = np.packbits(mask)
    return packed


def _some_units(mask: Bits, inside: bool, k: int, rng: RandomBits) -> npt.NDArray[np.intp]:
    """A uniform choice of `k` units among those whose bit equals `inside`, by rejection."""
    found: dict[int, None] = {}  # by the first time each was hit: uniform
    while len(found) < k:
        tries = rng.integers(0, len(mask), size=3 * (k - len(found)) + 8)
        found.update(dict.fromkeys(tries[mask[tries] == inside].tolist()))
    return np.fromiter(islice(found, k), np.intp, k)


@proves("uniform-halves")
def _stratified_halves(strata: npt.NDArray[np.intp], m: int, rng: RandomBits) -> Bits:
    """`m` uniform subsets that hold half of every stratum; of the odd strata, a random half give the larger half."""
    n = len(strata)
    sizes = np.bincount(strata)
    units = np.split(np.argsort(strata, kind="stable"), np.cumsum(sizes)[:-1])
    odd = np.flatnonzero(sizes % 2)
    larger = np.zeros((m, len(sizes)), dtype=np.int64)
    for gets in larger:
        # An odd number of odd strata leaves one over: a fair coin says which way.
        gets[rng.permutation(odd)[: (len(odd) + int(rng.integers(0, 2, size=1)[0])) // 2]] = 1
    halves = [_halves(int(size), m, rng, larger[:, s]) for s, size in enumerate(sizes)]
    packed = np.empty((m, -(-n // 8)), dtype=np.uint8)
    some = max(1, MAX_DENSE // n)
    for start in range(0, m, some):
        masks = np.empty((min(some, m - start), n), dtype=np.uint8)
        for half, members in zip(halves, units, strict=True):
            masks[:, members] = np.unpackbits(half[start : start + some], axis=1, count=len(members))
        packed[start : start + some] = np.packbits(masks, axis=1)
    return packed


@proves("uniform-halves")
def _stratified(strata: npt.NDArray[np.intp], partitions: int, parts: int, rng: RandomBits) -> Bits:
    """`(partitions, parts, bytes)`: random partitions that split every stratum evenly, up to a remainder.

    What does not divide evenly is pooled over the strata and dealt out the same way, so that world sizes
    differ by one at most.
    """
    n = len(strata)
    by_stratum = np.argsort(strata, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(strata))])
    edges = edges[np.concatenate([[True], np.diff(edges) > 0])]
    packed = np.empty((partitions, parts, -(-n // 8)), dtype=np.uint8)
    part, numbers = np.empty(n, dtype=np.int16), np.arange(parts)[:, None]
    for each in packed:
        rest = []
        for start, stop in pairwise(edges):
            units = by_stratum[start:stop]
            even = (stop - start) // parts * parts
            shuffled = rng.permutation(units)
            part[shuffled[:even]] = np.arange(even) % parts
            rest.append(shuffled[even:])
        leftover = rng.permutation(np.concatenate(rest))
        # Whole rounds of `parts` are dealt evenly; the last, short round goes to random parts.
        whole = len(leftover) // parts * parts
        part[leftover[:whole]] = np.arange(whole) % parts
        part[leftover[whole:]] = rng.permutation(parts)[: len(leftover) - whole]
        each[:] = np.packbits(part == numbers, axis=1)
    return packed
