"""Products of columns two by two, their sums and the number of rows: what covariances and least squares are made of.

Under a pool cap columns are in half-widths about the middle of their bounds, so that no number of a row exceeds 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Floats

__all__ = ["ProductTotals", "product_rows", "split_products", "symmetric", "upper"]


@dataclass(frozen=True, eq=False)
class ProductTotals:
    """Totals over rows, of `d` columns and `t` targets."""

    products: Floats  # (d, d)
    cross: Floats  # (d, t)
    sums: Floats  # (d,)
    targets: Floats  # (t,)
    count: float


def product_rows(columns: Floats, targets: Floats) -> Floats:
    """What every row adds: each pair of columns once, columns times targets, columns, targets, and 1."""
    i, j = np.triu_indices(columns.shape[1])
    cross = (columns[:, :, None] * targets[:, None]).reshape(len(columns), columns.shape[1] * targets.shape[1])
    return np.hstack([columns[:, i] * columns[:, j], cross, columns, targets, np.ones((len(columns), 1))])


def split_products(total: Floats, d: int, t: int) -> ProductTotals:
    """The parts of a sum of `product_rows`."""
    pairs, cross, sums, targets = np.split(total[:-1], np.cumsum([d * (d + 1) // 2, d * t, d]))
    return ProductTotals(
        products=symmetric(pairs), cross=cross.reshape(d, t), sums=sums, targets=targets, count=float(total[-1])
    )


def upper(products: Floats) -> Floats:
    """Upper triangles of symmetric matrices, row by row."""
    return products[(..., *np.triu_indices(products.shape[-1]))]


def symmetric(above: Floats) -> Floats:
    """The symmetric matrix with this upper triangle."""
    d = int((np.sqrt(8 * len(above) + 1) - 1) / 2)
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = above
    return matrix + np.triu(matrix, 1).T
