"""How well two Gaussian laws are told apart that differ by one swapped row: integrals over two chi-squares, from above.

After turning and scaling, the columns of the two laws differ in two coordinates only: one is wider under the second
law, by the factor `exp(wider)`, one is narrower, by `exp(-narrower)`. The sums of squares of these coordinates over
all columns tell everything. Proof page: obfuscation-pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.special import chdtrc, chdtri, erfc

from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves

__all__ = ["PairTable", "beyond", "pair_table", "told_apart"]

CELLS = 128  # of one chi-square; the error falls with the square of their number
TAIL = 1e-9  # what lies outside of the cells on either side
ROUNDING = 1e-11  # of sums of a few hundred products of distribution functions, each right to 1e-14
AT_ONCE = 2**19  # numbers of one table in memory
STEP = 0.01  # relative step of the table
MANY_TERMS = 256  # degrees of freedom beyond which a sum takes longer than the function of any number
NOTHING_BEYOND = 700.0  # half of a place so far out that less than 1e-140 lies beyond; what is smaller has no digits
LEAST, MOST = 1e-7, 60.0  # logarithms of factors: smaller ones are taken for LEAST, beyond MOST nothing is hidden


@proves("obfuscation-pairs")
def told_apart(wider: Floats, narrower: Floats, columns: int, *, weight: float = 1.0, cells: int = CELLS) -> Floats:
    """The most that `P(A) - weight Q(A)` can be over all events `A`, for every pair of laws: never less.

    Guarantee: with weight 1 this is at least the total variation of the pair, and otherwise its hockey stick. `P` are
    two independent chi-squares with `columns` degrees of freedom; under `Q` the first is `exp(wider)` times larger and
    the second `exp(narrower)` times smaller.

    Args:
        wider: logarithms of the factors above 1, at least 0.
        narrower: logarithms of the inverse factors below 1, at least 0; of the same shape.
        columns: how many independent columns the laws have.
        weight: of the second law, above 0.
        cells: how finely one of the chi-squares is cut; fewer cost tightness, never the bound.

    Returns:
        Bounds from 0 to 1.
    """
    checks.positive(weight=weight)
    wider, narrower = np.broadcast_arrays(np.asarray(wider, dtype=np.float64), np.asarray(narrower, dtype=np.float64))
    shape = wider.shape
    wider, narrower = wider.ravel(), narrower.ravel()
    bound = np.empty(len(wider))
    step = max(1, AT_ONCE // (2 * cells))
    for start in range(0, len(wider), step):
        some = slice(start, start + step)
        # The coordinate that tells less is cut into cells: its evidence varies least within one.
        cut_wider = wider[some] <= narrower[some]
        for chosen, cut, other in ((cut_wider, wider, -narrower), (~cut_wider, -narrower, wider)):
            if chosen.any():
                where = np.flatnonzero(chosen) + start
                bound[where] = _cut(cut[where], other[where], columns, weight=weight, cells=cells)
    return bound.reshape(shape)


def _cut(cut: Floats, other: Floats, columns: int, *, weight: float, cells: int) -> Floats:
    """`cut` and `other`: logarithms of the factors of the coordinate that is cut into cells, and of the other."""
    finite = (np.abs(cut) <= MOST) & (np.abs(other) <= MOST)
    bound = np.ones(len(cut))
    bound[other == 0] = max(0.0, 1.0 - weight)  # and then `cut` is 0 too: the laws are the same
    some = finite & (other != 0)
    if some.any():
        bound[some] = _summed(cut[some][:, None], other[some][:, None], columns, weight=weight, cells=cells)
    return np.asarray(np.minimum(bound, 1.0))


def _summed(cut: Floats, other: Floats, columns: int, *, weight: float, cells: int) -> Floats:
    least, most = (float(chdtri(columns, share)) for share in (1 - TAIL, TAIL))
    # Ends and middles of the cells; cube roots of chi-squares are nearly normal.
    places = np.linspace(np.cbrt(least), np.cbrt(most), 2 * cells + 1) ** 3
    # log(dP/dQ) = half columns (cut + other) - slope_cut A - slope_other B for the two sums of squares A and B.
    slope_cut, slope_other = -np.expm1(-cut) / 2, -np.expm1(-other) / 2
    border = (columns / 2 * (cut + other) - math.log(weight) - slope_cut * places) / slope_other
    border = np.maximum(border, 0.0)
    # "P" is said when B lies above its border, or below: of one call all alike.
    above = bool(other[0, 0] < 0)
    mass_p, mass_q = -np.diff(beyond(columns, places)), -np.diff(beyond(columns, places * np.exp(-cut)), axis=1)
    said_p, said_q = beyond(columns, border), beyond(columns, border * np.exp(-other))
    if not above:
        said_p, said_q = 1 - said_p, 1 - said_q
    middle = slice(1, None, 2)
    told = (mass_p[0::2] + mass_p[1::2]) * said_p[:, middle] - weight * (
        (mass_q[:, 0::2] + mass_q[:, 1::2]) * said_q[:, middle]
    )
    # In half a cell, the border of its middle is wrong between that and the border of the end. Evidence there is at
    # most what it varies within half a cell; where it speaks for P, the loss is counted with P, otherwise with Q.
    width = np.abs(slope_cut) * np.diff(places)
    strip_p, strip_q = np.abs(np.diff(said_p, axis=1)), np.abs(np.diff(said_q, axis=1))
    lost_p, lost_q = width * mass_p * strip_p, weight * width * mass_q * strip_q
    # Borders rise along the cells, so P is missed below the middle if it is said above the border, else above it.
    low, high = (lost_p, lost_q) if above else (lost_q, lost_p)
    lost = low[:, 0::2] + high[:, 1::2]
    return np.asarray((told + lost).sum(axis=1) + 2 * TAIL + (1 + weight) * ROUNDING)


def beyond(columns: int, places: Floats) -> Floats:
    """The probability that a chi-square with so many degrees of freedom lies beyond each place.

    For a whole number of degrees it is a finite sum of terms that are all positive, so that every digit of it is right,
    and a few times faster than the incomplete gamma function of any number.
    """
    if columns > MANY_TERMS:
        return np.asarray(chdtrc(columns, places))
    odd, half = columns % 2, np.minimum(places / 2, NOTHING_BEYOND)
    total = np.full(half.shape, float(columns > 1))  # 1 + x / a (1 + x / (a + 1) (1 + ...)), from within
    for term in range(columns // 2 - 1, 0, -1):
        total *= half / (term + odd / 2)
        total += 1
    total *= np.exp(-half)
    if odd:
        total *= 2 * np.sqrt(half / math.pi)
        total += erfc(np.sqrt(half))
    return total


@dataclass(eq=False)
class PairTable:
    """The same for many pairs of laws: factors are rounded away from 1 to a grid, and every cell is computed once.

    Rounding away from 1 never lowers the bound, for any event (proof page: obfuscation-pairs). It raises it by half of
    `STEP`, relatively, on average.
    """

    columns: int
    weight: float = 1.0
    cells: int = CELLS
    _keys: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)
    _values: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    def __call__(self, wider: Floats, narrower: Floats) -> Floats:
        """Bounds from 0 to 1, of the shape of the factors' logarithms."""
        first, second = _up(wider), _up(narrower)
        keys = first * _STEPS + second
        wanted, where = np.unique(keys, return_inverse=True)
        missing = np.setdiff1d(wanted, self._keys, assume_unique=True)
        if len(missing):
            logs = [LEAST * np.exp(STEP * index) for index in (missing // _STEPS, missing % _STEPS)]
            # At the grid's end nothing is hidden, and at its beginning the exact 0 is not told from LEAST.
            values = told_apart(logs[0], logs[1], self.columns, weight=self.weight, cells=self.cells)
            keys_all, values_all = np.append(self._keys, missing), np.append(self._values, values)
            order = np.argsort(keys_all)
            self._keys, self._values = keys_all[order], values_all[order]
        return np.asarray(self._values[np.searchsorted(self._keys, wanted)][where].reshape(np.shape(wider)))


@lru_cache(maxsize=32)
def pair_table(columns: int, weight: float = 1.0) -> PairTable:
    """One table for everybody who asks for the same columns and weight: its values depend on nothing else."""
    return PairTable(columns, weight)


_STEPS = math.ceil(math.log(MOST / LEAST) / STEP) + 2


def _up(logs: Floats) -> Ints:
    """Numbers of the grid points that are not below."""
    with np.errstate(divide="ignore"):
        index = np.ceil(np.log(np.asarray(logs, dtype=np.float64) * (1 + 1e-9) / LEAST) / STEP)
    return np.asarray(np.clip(index, 0, _STEPS - 1).astype(np.intp))
