"""Some worlds at a time, so that what is made on the way to their answers stays within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, threads
from leakcap.kernels.moments.entry import Moments, moments
from leakcap.worlds import Units, Worlds

__all__ = ["bytes_a_world", "from_moments", "in_blocks"]


def in_blocks(worlds: Worlds, size: int) -> Iterator[tuple[npt.NDArray[np.intp], Worlds]]:
    """The numbers of up to `size` worlds, and these worlds; complementary ones stay together."""
    drawn = worlds.m // 2 if worlds.paired else worlds.m
    step = max(1, size // 2 if worlds.paired else size)
    for start in range(0, drawn, step):
        first = np.arange(start, min(start + step, drawn))
        numbers = np.concatenate([first, first + drawn]) if worlds.paired else first
        yield numbers, worlds if len(numbers) == worlds.m else worlds.some(numbers)


def from_moments(
    work: Callable[[Moments], Floats],
    table: Floats,
    worlds: Worlds,
    units: Units | None = None,
    *,
    memory: int = Machine().memory,
) -> Floats:
    """What `work` makes of the second moments of worlds, a row for each world.

    Moments take the square of the columns in each world. So many worlds are taken together as `memory` has bytes for,
    and at least a pair; nothing is kept of them but the rows.
    """
    found: Floats | None = None
    for numbers, some in in_blocks(worlds, memory // bytes_a_world(table.shape[1])):
        rows = work(moments(table, some, units))
        if found is None:
            found = np.empty((worlds.m, *rows.shape[1:]))
        found[numbers] = rows
    if found is None:
        raise InputError("there are no worlds to fit")
    return found


def bytes_a_world(columns: int) -> int:
    """Bytes that the second moments of one world take while they are made and used."""
    return 8 * (columns * (columns + 3) // 2 * (threads() + 3) + 4 * columns**2) + 1
