"""Products of columns, two by two: what second moments are sums of."""

from __future__ import annotations

from leakcap.ground.compiled import compiled

__all__ = ["products_of"]


@compiled({"contract"})
def products_of(rows, out):  # type: ignore[no-untyped-def]
    """For each row the products of its columns two by two: the upper triangle, line by line."""
    n, d = rows.shape
    for i in range(n):
        at = 0
        for a in range(d):
            for b in range(a, d):
                out[i, at] = rows[i, a] * rows[i, b]
                at += 1
