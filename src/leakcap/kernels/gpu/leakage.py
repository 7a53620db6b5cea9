"""How likely each unit took part, given each release, reduced to sums over releases: membership on a GPU.

Posteriors are f64. Their product with the masks is exact: a posterior (the difference of a pair's, where worlds come
in pairs) becomes a whole number of 24 bits, in three signed digits to base 256, and masks are +1 and -1; tensor cores
multiply such bytes and add in 32 bits without rounding. What remains is rounding to 24 bits, which is measured, and f32
sums of 128 releases, which has a bound: together with the posteriors' own it is `UnitSums.rounding`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, NumericalError
from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import Tensor, dense, drawn, fused, load, on, send, tile_bytes
from leakcap.worlds import Worlds

__all__ = ["UnitCapitals", "UnitSums", "unit_capitals", "unit_sums"]

DIGITS = 127 * (2**16 + 2**8 + 1)  # the largest number of three digits between -128 and 127
TILE = 128  # units, releases and worlds come in tiles
GROUP, WARPS, STAGES = 16, 4, 3  # what was fastest on an H200
WORLDS = 2**14  # products of more worlds might not fit 32 bits


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums over releases of a = q_u - rate, q_u being the probability that unit u took part.

    `total` of |a| and `squares` of a^2, `(units,)`; `stick_total` of (q_u - t)_+ and `stick_squares`,
    `(thresholds, units)`; `naming` of the largest q_u of a release and of its square. `rounding` bounds the arithmetic
    error of each single a, and of each mean over releases.
    """

    total: Floats
    squares: Floats
    stick_total: Floats
    stick_squares: Floats
    naming: Floats
    draws: int
    rounding: float


def unit_sums(
    releases: Iterable[Floats],
    points: Floats,
    worlds: Worlds,
    thresholds: Floats = np.zeros(0),  # noqa: B008
    chosen: npt.NDArray[np.intp] | None = None,
    *,
    device: str = "cuda",
) -> UnitSums:
    """Sums over sampled releases for all units, or for the `chosen` ones.

    `releases`: blocks `(k, r)` of whitened releases (noise of unit variance), all of equal weight; `points`
    `(m, r)`: the whitened outputs of the worlds.
    """
    torch = load()
    where = on(device)
    units = worlds.n if chosen is None else len(chosen)
    if not units:
        raise InputError("choose at least one unit")
    places = send(points, where)
    signs = _signs(worlds, chosen, where)
    cuts = torch.as_tensor(thresholds - worlds.rate, dtype=torch.float64, device=where)
    shift = 0.0 if worlds.paired else worlds.rate
    reduce = _reduce_fused if fused(where) and signs.shape[1] <= WORLDS else _reduce_plain
    sums = torch.zeros((2 + 2 * len(thresholds), units), dtype=torch.float64, device=where)
    naming = torch.zeros(2, dtype=torch.float64, device=where)
    rounding, draws = 0.0, 0
    step = _rows_at_once(worlds.m, units, len(cuts), where)
    for block in releases:
        for start in range(0, len(block), step):
            some = send(block[start : start + step], where)
            found = _evidence(some, places, worlds.paired)
            part, best, error = reduce(found.table, signs, cuts, shift, units)
            sums += part
            best = best.double() + worlds.rate
            naming += torch.stack([best.sum(), (best**2).sum()])
            rounding = max(rounding, found.rounding + error)
            draws += len(some)
    result = sums.cpu().numpy()
    sticks = len(thresholds)
    return UnitSums(
        total=result[0],
        squares=result[1],
        stick_total=result[2 : 2 + sticks],
        stick_squares=result[2 + sticks :],
        naming=naming.cpu().numpy(),
        draws=draws,
        rounding=rounding,
    )


@dataclass(frozen=True, eq=False)
class UnitCapitals:
    """What releases have left of wagers: logarithms. `units` of |a| and then of (q_u - t)_+, `(1 + thresholds, units)`;
    `naming` of the largest q_u. `rounding` bounds the arithmetic error of each single a."""

    units: Floats
    naming: Floats
    draws: int
    rounding: float


def unit_capitals(
    releases: Iterable[Floats],
    points: Floats,
    worlds: Worlds,
    thresholds: Floats,
    chosen: npt.NDArray[np.intp] | None = None,
    *,
    units: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
    naming: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
    device: str = "cuda",
) -> UnitCapitals:
    """Sums over sampled releases of `log(base - stake X)`; `units` and `naming` are pairs of bases and stakes.

    In f64 throughout: few releases are drawn for everybody.
    """
    torch = load()
    where = on(device)
    places, signs = send(points, where), _signs(worlds, chosen, where)
    base, stake = (send(one.astype(np.float64), where) for one in units)
    cuts = torch.as_tensor(thresholds - worlds.rate, dtype=torch.float64, device=where)
    shift = 0.0 if worlds.paired else worlds.rate
    capital, name = torch.zeros_like(base), 0.0
    rounding, draws = 0.0, 0
    step = max(1, tile_bytes(where) // (8 * worlds.m))
    for block in releases:
        for start in range(0, len(block), step):
            some = send(block[start : start + step], where)
            found = _evidence(some, places, worlds.paired)
            best = _wager(found.table, signs, cuts, shift=shift, base=base, stake=stake, capital=capital)
            name += np.log(naming[0].astype(float) - naming[1].astype(float) * (best[:, None] + worlds.rate)).sum(
                axis=0
            )
            rounding = max(rounding, found.rounding + (found.table.shape[1] + 4) * 2.0**-52)
            draws += len(some)
    return UnitCapitals(capital.cpu().numpy(), np.asarray(name), draws, rounding)


def _wager(
    table: Tensor, signs: Tensor, cuts: Tensor, *, shift: float, base: Tensor, stake: Tensor, capital: Tensor
) -> Floats:
    """Add to `capital` what these releases do to it; the largest deviation of every release."""
    torch = load()
    units = base.shape[1]
    best = table.new_full((len(table),), -float("inf"))
    step = max(1, tile_bytes(table.device) // (8 * max(len(table), table.shape[1])))
    for start in range(0, units, step):
        tile = slice(start, min(start + step, units))
        a = table @ signs[tile, : table.shape[1]].T.double() - shift
        best = torch.maximum(best, a.amax(dim=1))
        capital[0, tile] += torch.log(base[0, tile] - stake[0, tile] * a.abs()).sum(dim=0)
        for k, cut in enumerate(cuts, start=1):
            capital[k, tile] += torch.log(base[k, tile] - stake[k, tile] * (a - cut).clamp(min=0)).sum(dim=0)
    return np.asarray(best.cpu().numpy())


def _rows_at_once(m: int, units: int, cuts: int, device: object) -> int:
    """Releases of a block: their f64 posteriors, and their sums in tiles, must fit."""
    room = 2 * tile_bytes(device)
    return max(TILE, min(room // (8 * m), TILE * (room // (4 * (2 + 2 * cuts) * units))) // TILE * TILE)


def _signs(worlds: Worlds, chosen: npt.NDArray[np.intp] | None, device: object) -> Tensor:
    """`(units, worlds)` int8: +1 or -1 for a pair of complementary worlds, else 1 or 0; both padded with zeros."""
    torch = load()
    packed = drawn(worlds, device)
    if chosen is not None:
        units = torch.as_tensor(chosen, device=packed.device)
        packed = _packed_columns(packed, units)
    n = worlds.n if chosen is None else len(chosen)
    signs = torch.zeros((_up(n, TILE), _up(len(packed), TILE)), dtype=torch.int8, device=packed.device)
    step = max(8, tile_bytes(packed.device) // len(packed) // 64 * 8)
    for start in range(0, n, step):
        stop = min(start + step, n)
        bits = dense(packed, start, stop, torch.int8)
        signs[start:stop, : len(packed)] = (2 * bits - 1 if worlds.paired else bits).T
    return signs


def _packed_columns(packed: Tensor, units: Tensor) -> Tensor:
    """The bits of some units, packed again."""
    torch = load()
    bits = (packed[:, units >> 3] >> (7 - (units & 7)).to(torch.uint8)) & 1
    bits = torch.nn.functional.pad(bits, (0, -len(units) % 8)).view(len(packed), -1, 8)
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    return (bits << shifts).sum(dim=2, dtype=torch.uint8)


def _up(size: int, to: int) -> int:
    return -(-size // to) * to


@dataclass(frozen=True, eq=False)
class DeviceEvidence:
    """Posteriors of some releases, f64: `table @ signs = q_u - rate` for pairs of worlds, else q_u."""

    table: Tensor
    rounding: float


def _evidence(seen: Tensor, points: Tensor, paired: bool) -> DeviceEvidence:
    torch = load()
    half = 0.5 * (points**2).sum(dim=1)
    logits = torch.addmm(-half, seen, points.T)
    # Rounding of a log-likelihood: inner products of length r, a common factor of |y||z|.
    size = float(((seen**2).sum(dim=1).max() * 2 * half.max()).sqrt() + half.max())
    slip = (points.shape[1] + 3) * 2.0**-52 * size
    if not slip < 1e-3:  # NaN fails too
        raise NumericalError(
            "the outputs are too far apart for their noise (over a million noise deviations): "
            "the posterior cannot be computed safely. Choose a tighter cap or bound the outputs with clip="
        )
    table = torch.softmax(logits, dim=1)
    if paired:
        first, second = table.chunk(2, dim=1)
        table = (first - second).mul_(0.5)
    # As in leakage.posterior, with f64 in place of f32: in total variation, times two.
    return DeviceEvidence(table, 2 * slip + (np.log(len(points)) + len(points) + 48) * 2.0**-52)


def _reduce_plain(table: Tensor, signs: Tensor, cuts: Tensor, shift: float, units: int) -> tuple[Tensor, Tensor, float]:
    """Sums for all units, the largest of every release, and what rounding may have done: f64 throughout."""
    torch = load()
    parts = []
    best = table.new_full((len(table),), -float("inf"))
    step = max(1, tile_bytes(table.device) // (8 * max(len(table), table.shape[1])))
    for start in range(0, units, step):
        a = table @ signs[start : min(start + step, units), : table.shape[1]].T.double() - shift
        best = torch.maximum(best, a.amax(dim=1))
        sums = [a.abs().sum(dim=0), (a**2).sum(dim=0)]
        over = [(a - cut).clamp(min=0) for cut in cuts]
        parts.append(torch.stack([*sums, *(x.sum(dim=0) for x in over), *((x**2).sum(dim=0) for x in over)]))
    return torch.cat(parts, dim=1), best, (table.shape[1] + len(table)) * 2.0**-52


def _reduce_fused(table: Tensor, signs: Tensor, cuts: Tensor, shift: float, units: int) -> tuple[Tensor, Tensor, float]:
    """The same on tensor cores: exact products, sums of 128 releases in f32, then f64."""
    from leakcap.kernels.gpu._fused_leakage import DEPTH, RELEASES, UNITS, reduce_products
    from leakcap.kernels.gpu._triton import TensorDescriptor

    torch = load()
    width = signs.shape[1]
    limbs, unscale, lost = _digits(table, width)
    unit_tiles, release_tiles = len(signs) // UNITS, len(limbs) // RELEASES
    sums = torch.empty((release_tiles, 2 + 2 * len(cuts), len(signs)), dtype=torch.float32, device=table.device)
    best = torch.empty((unit_tiles, len(limbs)), dtype=torch.float32, device=table.device)
    reduce_products[(unit_tiles * release_tiles,)](
        TensorDescriptor.from_tensor(signs, [UNITS, DEPTH]),
        TensorDescriptor.from_tensor(limbs, [RELEASES, DEPTH]),
        unscale,
        cuts.float(),
        sums,
        best,
        unit_tiles,
        release_tiles,
        units,
        width,
        shift,
        CUTS=len(cuts),
        UNITS=UNITS,
        RELEASES=RELEASES,
        DEPTH=DEPTH,
        GROUP=GROUP,
        num_warps=WARPS,
        num_stages=STAGES,
    )
    # Seven roundings of a value of at most 1 (a pair's: 1/2) in f32, and 127 additions, in whatever order; all releases
    # of a tile may add to the error, those that only fill it too.
    error = 134 * 2.0**-24 * (1.0 if shift else 0.5) * len(limbs) / len(table)
    total = sums.sum(dim=0, dtype=torch.float64)[:, :units]
    # Releases that only fill the last tile have a = -shift.
    blank = torch.cat([cuts.new_tensor([shift]), (-shift - cuts).clamp(min=0)])
    blank = torch.cat([blank[:1], blank[:1] ** 2, blank[1:], blank[1:] ** 2])
    total -= (len(limbs) - len(table)) * blank[:, None]
    return total, best.amax(dim=0)[: len(table)], lost + error


def _digits(table: Tensor, width: int) -> tuple[Tensor, Tensor, float]:
    """Each row as whole numbers of three digits, what one is worth, and the most that rounding took from a row.

    A row's unit is as small as three digits and 32-bit sums allow: the sum of a row, each number rounded up to its
    first digit, stays below 2^31.
    """
    torch = load()
    rows, k = table.shape
    size = table.abs()
    scale = torch.minimum(
        (DIGITS - 1) / size.amax(dim=1).clamp(min=1e-30), (2**31 - 2**16 * (k + 1)) / size.sum(dim=1).clamp(min=1e-30)
    )
    scaled = table * scale[:, None]
    whole = scaled.round()
    lost = float(((scaled - whole).abs_().sum(dim=1) / scale).max())
    number = whole.to(torch.int32)
    limbs = torch.zeros((_up(rows, TILE), 3, width), dtype=torch.int8, device=table.device)
    for digit in (2, 1):
        low = ((number + 128) & 255) - 128
        limbs[:rows, digit, :k] = low
        number = (number - low) >> 8
    limbs[:rows, 0, :k] = number
    unscale = torch.zeros(len(limbs), dtype=torch.float32, device=table.device)
    unscale[:rows] = 1 / scale
    return limbs.view(len(limbs), 3 * width), unscale, lost
