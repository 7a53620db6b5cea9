"""Exact laws of a single random world over a few units, as `{code: probability}`; bit i of a code is unit i.

Written from the description of the designs, sharing no code with the library.
"""

from __future__ import annotations

import itertools
from math import comb

import numpy as np


def sets(n, *sizes):
    """The codes of all sets of these sizes."""
    return [sum(1 << i for i in chosen) for size in sizes for chosen in itertools.combinations(range(n), size)]


def uniform(codes):
    return {code: 1 / len(codes) for code in codes}


def halves(n):
    """All halves, or for odd pools both nearest sizes."""
    return uniform(sets(n, n // 2) if n % 2 == 0 else sets(n, n // 2, n // 2 + 1))


def stratified_halves(strata):
    """Split each stratum evenly, leave one unit over where its size is odd, and split what is left over."""
    blocks = [[u for u, one in enumerate(strata) if one == name] for name in sorted(set(strata))]
    law = {}
    for left in itertools.product(*[block if len(block) % 2 else [None] for block in blocks]):
        rest = [u for u in left if u is not None]
        even = [[u for u in block if u != gone] for block, gone in zip(blocks, left, strict=True)]
        choices = [list(itertools.combinations(block, len(block) // 2)) for block in even]
        sizes = {len(rest) // 2, -(-len(rest) // 2)}
        choices.append([chosen for size in sizes for chosen in itertools.combinations(rest, size)])
        weight = 1 / np.prod([len(block) for block in blocks if len(block) % 2]) / np.prod([len(c) for c in choices])
        for chosen in itertools.product(*choices):
            code = sum(1 << u for u in itertools.chain(*chosen))
            law[code] = law.get(code, 0.0) + weight
    assert abs(sum(law.values()) - 1) < 1e-12
    return law


def thirds(n):
    """One of three parts; sizes differ by one where three does not divide the number of units."""
    low, high = n // 3, -(-n // 3)
    if low == high:
        return uniform(sets(n, low))
    more = n % 3 / 3  # share of parts that are larger
    return {c: (1 - more) / comb(n, low) for c in sets(n, low)} | {c: more / comb(n, high) for c in sets(n, high)}


def table(law, n):
    """`(worlds, n)` masks and their probabilities."""
    codes = np.array(list(law))
    return (codes[:, None] >> np.arange(n)) & 1 == 1, np.array(list(law.values()))
