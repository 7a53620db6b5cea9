"""The secret mask, and the noise: columns become random combinations of columns, and leave on a grid."""

from __future__ import annotations

import math

import numpy as np

from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.noise.entropy import Randomness, sampler_distance
from leakcap.obfuscation.design import MixingDesign

__all__ = ["BARE_STEP", "STEP", "encoding_distance", "masked", "masks", "on_grid"]

STEP = 2.0**-3  # of the grid, in deviations of the noise: rounding adds a thousandth to its variance
BARE_STEP = 2.0**-30  # without noise
AT_ONCE = 4096  # rows
_REACH = 8.3  # a normal exceeds this with probability below 2^-53


def masks(columns: tuple[Ints, ...], design: MixingDesign, randomness: Randomness) -> tuple[Floats, ...]:
    """A mask for every block, with entries of variance 1 / (its released columns): lengths are kept on average."""
    wide = design.block_dim
    return tuple(randomness.normals(len(block) * wide).reshape(len(block), wide) / np.sqrt(wide) for block in columns)


def masked(rows: Floats, columns: tuple[Ints, ...], mask: tuple[Floats, ...]) -> Floats:
    """Rows times the mask, block after block. A row gives the same, whichever others come with it."""
    wide = [one.shape[1] for one in mask]
    ends = np.cumsum([0, *wide])
    found = np.empty((len(rows), int(ends[-1])))
    for block, one, start, end in zip(columns, mask, ends[:-1], ends[1:], strict=True):
        for first in range(0, len(rows), AT_ONCE):
            found[first : first + AT_ONCE, start:end] = rows[first : first + AT_ONCE][:, block] @ one
    return found


def on_grid(values: Floats, noise: float, randomness: Randomness) -> Floats:
    """The values with noise of this deviation, on a grid: a whole number times one step, which the noise alone sets."""
    if noise == 0:
        return _whole(values / BARE_STEP) * BARE_STEP
    drawn = randomness.normals(values.size).reshape(values.shape)
    return _whole((values / noise + drawn) / STEP) * (STEP * noise)


def _whole(steps: Floats) -> Floats:
    """Whole numbers; 0 for -0.0, whose sign would tell on which side of the grid point a value was."""
    return np.asarray(np.rint(steps) + 0.0)


@proves("obfuscation-sampler")
def encoding_distance(design: MixingDesign, noise: float, products: int = 1) -> float:
    """Total variation between what leaves and the ideal law: exact normals, exact sums, then the same grid.

    Guarantee: whatever was sampled and mixed, the law of the encoded set differs from that of `P M X W + B`, rounded to
    the grid, by at most this much: it is added to every certified success, and twice to every true positive rate.

    Args:
        design: the sizes.
        noise: standard deviation of the noise, above 0.
        products: 2 where masked public rows are added, 1 otherwise.
    """
    columns, wide, unit = design.columns // design.blocks, design.block_dim, 2.0**-53
    mask = 32 * math.sqrt(columns)  # 16 units in the last place of every normal
    sums = (columns + 2) * math.sqrt(columns)  # of products, in whichever order they are added
    means = 2 * design.mix + 2
    error = products * (mask + sums + means) * unit / (math.sqrt(wide) * noise)
    cells = design.rows_released * design.mask_dim
    reach = products * _REACH * math.sqrt(columns / wide) / noise
    return cells * error * (1 / STEP + 1) + sampler_distance(cells, reach, STEP) + 2.0**-52 * columns * design.mask_dim
