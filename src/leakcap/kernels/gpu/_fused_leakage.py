"""The product of posteriors and masks, reduced over releases before it leaves the chip. Triton."""

from __future__ import annotations

from leakcap.kernels.gpu._triton import jit, tl

__all__ = ["DEPTH", "RELEASES", "UNITS", "reduce_products"]

UNITS, RELEASES = 128, 128  # of a tile
DEPTH = 128  # worlds that a step of the product takes


@jit
def reduce_products(  # type: ignore[no-untyped-def]
    signs,  # (units, width) int8, in tiles: +1 and -1, or 1 and 0
    limbs,  # (releases, 3 * width) int8, in tiles: high, middle, low digits to base 256
    unscale,  # (releases,) f32: what one unit of the last digit is worth; 0 for those that only fill a tile
    cuts,  # (CUTS,) f32
    sums,  # (tiles of releases, 2 + 2 * CUTS, units) f32: |a|, a^2, then (a - cut)_+ and its squares
    best,  # (tiles of units, releases) f32: the largest a
    unit_tiles,
    release_tiles,
    units,  # those that are not there only to fill a tile
    width,
    shift,
    CUTS: tl.constexpr,
    UNITS: tl.constexpr,
    RELEASES: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile: units x releases. The whole numbers of the product are exact; `a` is them in f32, less `shift`.

    Releases run along the rows of a tile, where a thread holds many of each row: most of a sum is then its own work.
    """
    # Tiles that run at the same time share their factors in the cache.
    program = tl.program_id(0)
    first = program // (GROUP * unit_tiles) * GROUP
    beside = tl.minimum(release_tiles - first, GROUP)
    column = first + program % (GROUP * unit_tiles) % beside
    row = program % (GROUP * unit_tiles) // beside
    product = tl.zeros((UNITS, RELEASES), tl.int32)
    for limb in tl.static_range(3):
        product = product * 256
        for k in range(0, width, DEPTH):
            left = signs.load([row * UNITS, k])
            right = limbs.load([column * RELEASES, limb * width + k])
            product = tl.dot(left, right.T, product, out_dtype=tl.int32)
    places = row * UNITS + tl.arange(0, UNITS)
    releases = column * RELEASES + tl.arange(0, RELEASES)
    worth = tl.load(unscale + releases)[None, :]
    a = product.to(tl.float32) * worth - shift
    padded = unit_tiles * UNITS
    out = sums + column.to(tl.int64) * (2 + 2 * CUTS) * padded + places
    tl.store(out, tl.sum(tl.abs(a), axis=1))
    tl.store(out + padded, tl.sum(a * a, axis=1))
    for c in tl.static_range(CUTS):
        over = tl.maximum(a - tl.load(cuts + c), 0.0)
        tl.store(out + (2 + c) * padded, tl.sum(over, axis=1))
        tl.store(out + (2 + CUTS + c) * padded, tl.sum(over * over, axis=1))
    largest = tl.max(tl.where((places < units)[:, None], a, -float("inf")), axis=0)
    tl.store(best + row.to(tl.int64) * release_tiles * RELEASES + releases, largest)
