"""The secret mask, and the noise: columns become random combinations of columns, and leave on a grid."""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Floats, Ints
from leakcap.noise.entropy import Randomness
from leakcap.obfuscation.design import MixingDesign

__all__ = ["BARE_STEP", "STEP", "masked", "masks", "on_grid"]

STEP = 2.0**-6  # of the grid, in deviations of the noise: rounding adds a fifty-thousandth to its variance
BARE_STEP = 2.0**-30  # without noise
AT_ONCE = 4096  # rows


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
        return np.asarray(np.rint(values / BARE_STEP) * BARE_STEP)
    drawn = randomness.normals(values.size).reshape(values.shape)
    return np.asarray(np.rint((values / noise + drawn) / STEP) * (STEP * noise))
