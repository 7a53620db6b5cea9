"""Pools of up to eight rows and rules of one or two released rows, which `brute_force` can list."""

from __future__ import annotations

import numpy as np

from leakcap.obfuscation.sampled import MixingLaw

ONE_ROW, TWO_ROWS = np.array([[0, 0]]), np.array([[0, 0], [0, 0]])


def rows(units, width, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(units, width))
    return table / np.linalg.norm(table, axis=1)[:, None] * rng.uniform(0.3, 1, (units, 1))


def law(sizes, sampled, mix, pairs, columns=1):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return MixingLaw(labels, sampled, mix, np.asarray(pairs, dtype=np.intp), columns)


CASES = {
    "two units, one row": (rows(2, 2, 0), law([2], 1, 1, ONE_ROW)),
    "eight units, one row": (rows(8, 3, 1), law([8], 2, 1, ONE_ROW)),
    "five units, two rows": (rows(5, 2, 2), law([5], 2, 1, TWO_ROWS)),
    "two classes, one row": (rows(8, 2, 3), law([4, 4], 2, 1, [[0, 1]])),
    "two classes, two rows": (rows(6, 2, 4), law([3, 3], 1, 1, [[0, 1], [1, 0]])),
    "classes of unequal size": (rows(7, 2, 5), law([4, 3], 2, 2, [[0, 1], [1, 1]])),
}
SMALL = [case for case in CASES if case != "five units, two rows"]  # whose pairs of samples can be listed, too
NOISES = (0.1, 0.5, 1.5)


def one_swap():
    """The other class is known to the attacker, so that there is one swap and its bound is attained: two factors."""
    pool = rows(4, 3, 17)
    pool[3] = pool[2]
    return pool, law([2, 2], 1, 1, [[0, 0], [0, 1]])
