"""Second moments of one world after the other, by matrix products: for wide tables, and where worlds are few.

Sums over tables of the products of columns (`sums_of`) make every product once for all worlds, which pays where worlds
are many and columns few. A matrix product makes them anew in each world, at the full rate of the machine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores, one_blas_thread
from leakcap.worlds import Units, Worlds

__all__ = ["by_products", "moments_cost", "products_are_cheaper"]

TILE_NUMBERS = 2**20  # numbers of the table from which a world's rows are taken together
# Nanoseconds of one core, seen on tables of 16 to 784 columns. They are written down here because a clock would decide
# otherwise on a busy day, and the last digits of the answers depend on how they were made.
MAKE_PRODUCT, ADD_PRODUCT = 8.0, 0.075  # a product of two columns of a row: made for all worlds, and added to one
TAKE_ROW, TAKE_NUMBER, MULTIPLY = 90.0, 2.2, 0.1  # a row of a world, its numbers, and their products two by two
MIN_NANOSECONDS = 1e6  # below, nothing is worth another way


def moments_cost(rows: int, columns: int, worlds: Worlds) -> tuple[float, float]:
    """Nanoseconds of one core that second moments of all worlds take: by sums, and by matrix products.

    Counted and not measured, so the same in every run.
    """
    drawn = worlds.m // 2 if worlds.paired else worlds.m
    pairs = columns * (columns + 3) / 2
    by_sums = rows * pairs * (MAKE_PRODUCT + ADD_PRODUCT * drawn)
    return by_sums, drawn * worlds.rate * rows * (TAKE_ROW + TAKE_NUMBER * columns + MULTIPLY * pairs)


def products_are_cheaper(rows: int, columns: int, worlds: Worlds) -> bool:
    """Whether matrix products, world by world, cost less than sums for all worlds at once."""
    by_sums, by_matrices = moments_cost(rows, columns, worlds)
    return by_matrices < by_sums > MIN_NANOSECONDS


def by_products(table: Floats, centre: Floats, worlds: Worlds, units: Units | None = None) -> tuple[Floats, Floats]:
    """`(m, d)` and `(m, d, d)`: sums of deviations from the centre in every world, and of their products two by two.

    Complementary worlds cost nothing: theirs is what is left of the total. The same on every run.
    """
    drawn, d = worlds.m // 2 if worlds.paired else worlds.m, table.shape[1]
    sums, products = np.empty((worlds.m, d)), np.empty((worlds.m, d, d))

    def rows_of(world: int) -> npt.NDArray[np.bool_]:
        mask = worlds.mask(world)
        return mask if units is None or units.of_row is None else mask[units.of_row]

    def add(world: int) -> None:
        sums[world], products[world] = _of_rows(table, centre, rows_of(world))
        if worlds.paired:
            sums[drawn + world], products[drawn + world] = total[0] - sums[world], total[1] - products[world]

    with one_blas_thread():
        total = _of_rows(table, centre, np.ones(len(table), np.bool_)) if worlds.paired else (sums[0], products[0])
        on_all_cores(add, range(drawn))
    return sums, products


def _of_rows(table: Floats, centre: Floats, chosen: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    d = table.shape[1]
    step = max(1, TILE_NUMBERS // d)
    sums, products = np.zeros(d), np.zeros((d, d))
    for start in range(0, len(table), step):
        apart = table[start : start + step][chosen[start : start + step]] - centre
        sums += apart.sum(axis=0)
        products += apart.T @ apart
    return sums, products
