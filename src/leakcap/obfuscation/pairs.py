"""How much one swapped row changes the law of an obfuscation: two factors for every swap, by one factorisation.

Given the sample and the mixing, columns of the release are independent `N(0, S)`, `S = (MX)(MX)'/d + noise`. A swap of
the row at one place changes `S` by rank two. All swaps of a draw share one Cholesky factorisation of `S`: no swap
solves a system of its own. Proof page: obfuscation-pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_solve, cholesky, lapack, qr, solve_triangular, svd

from leakcap.errors import InputError, NumericalError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.obfuscation.sampled import MixedDraw

__all__ = ["AddedNoise", "DrawProducts", "SwapFactors", "factors", "products", "swap_factors"]

SLACK = 1e-7  # relative; the factorisation is looked at and refused when it is off by a hundredth of it
COLUMNS_AT_ONCE = SWAPS_AT_ONCE = 4096
NARROW = 2  # released rows for every column, from which nothing of their number squared is made
FEW = 1  # columns beside released rows, for which no inverse is made


@dataclass(frozen=True, eq=False)
class SwapFactors:
    """Logarithms of the two factors by which a swap changes variances: `wider` and `narrower`, both at least 0.

    They are those of the law *without* the unit beside the law with it, rounded away from 0.
    """

    wider: Floats
    narrower: Floats

    def turned(self, where: Bools) -> SwapFactors:
        """The two laws exchanged where it says so."""
        return SwapFactors(np.where(where, self.narrower, self.wider), np.where(where, self.wider, self.narrower))


@dataclass(frozen=True, eq=False)
class AddedNoise:
    """What is added to masked rows: noise of one variance, and means `(m, D)` of public rows, masked too, if there are.

    `columns` are those that are released: a mask has variance `1 / columns`.
    """

    variance: float
    columns: int
    public: Floats | None = None

    @cached_property
    def covariance(self) -> float | Floats:
        """Of a released column: the variance, or a table `(m, m)`."""
        if self.public is None:
            return self.variance
        return np.asarray(self.public @ self.public.T / self.columns + self.variance * np.eye(len(self.public)))


@dataclass(frozen=True, eq=False)
class DrawProducts:
    """What one factorisation gives all swaps of a draw; `S` is the covariance of a released column.

    Attributes:
        turn: `(D, r)` coordinates `x turn` in which `|.|^2` is `x (MX)' S^-1 (MX) x'`.
        across: `(n, D)` `M' S^-1 (MX)`.
        weight: `(n,)` the diagonal of `M' S^-1 M`.
    """

    turn: Floats
    across: Floats
    weight: Floats


def products(pool: Floats, mixed: MixedDraw, noise: AddedNoise, *, places: Ints | None = None) -> DrawProducts:
    """One factorisation.

    Where `places` are given, only these columns of the mixing are looked at, and the rest is not a number.
    """
    mixture = np.asarray(mixed.weights @ pool[mixed.rows])
    if NARROW * mixture.shape[1] * (1 if noise.public is None else 2) <= len(mixture):
        return _narrow_products(mixture, mixed, noise)
    added = noise.covariance
    covariance = mixture @ mixture.T / noise.columns + (added * np.eye(len(mixture)) if np.ndim(added) == 0 else added)
    try:
        root = cholesky(covariance, lower=True, check_finite=False)
    except LinAlgError:
        raise NumericalError("the covariance of a release is singular: noise of full rank is needed") from None
    _look(covariance, root)
    half = solve_triangular(root, mixture, lower=True, check_finite=False)
    turn = qr(half, mode="r", check_finite=False)[0][: min(half.shape)].T if len(half) > half.shape[1] else half.T
    solved = solve_triangular(root, half, lower=True, trans="T", check_finite=False)
    weights = mixed.weights.tocsc()
    chosen = np.arange(weights.shape[1]) if places is None else np.unique(places)
    across, weight = np.full((weights.shape[1], pool.shape[1]), np.nan), np.full(weights.shape[1], np.nan)
    some = weights[:, chosen]
    across[chosen] = some.T @ solved
    weight[chosen] = _lengths(some, root) if len(chosen) <= FEW * len(root) else _diagonal(some, root)
    return DrawProducts(turn, across, weight)


def _narrow_products(mixture: Floats, mixed: MixedDraw, noise: AddedNoise) -> DrawProducts:
    """The same for rows of few columns: nothing as large as `S` is made.

    With `C` the masked rows, those of public rows beside them, and its right singular vectors `V`:
    `S^-1 C = C V diag(1 / size) V'` and `S^-1 = (I - C V diag(1 / size) V' C' / columns) / v`, where `v` is the
    variance of the noise and `size` is `length^2 / columns + v`.
    """
    v, columns = noise.variance, noise.columns
    masked = mixture if noise.public is None else np.hstack([mixture, noise.public])
    _, lengths, axes = svd(qr(masked, mode="r", check_finite=False)[0][: masked.shape[1]], check_finite=False)
    size = lengths**2 / columns + v
    turned, ours = masked @ axes.T, axes[:, : mixture.shape[1]]
    probe = _probe(len(masked))
    solved = (probe - turned @ ((turned.T @ probe) / (columns * size)[:, None])) / v
    _refuse_far(masked @ (masked.T @ solved) / columns + v * solved, probe)
    own = mixed.weights.T.tocsr()
    along = own @ turned
    squares = np.asarray(own.multiply(own).sum(axis=1)).ravel()
    weight = (squares - (along**2) @ (1 / (columns * size))) / v
    return DrawProducts(ours.T * (lengths / np.sqrt(size)), (along / size) @ ours, weight)


def _look(covariance: Floats, root: Floats) -> None:
    """Refuse a factorisation that does not solve, by what it makes of three vectors."""
    probe = _probe(len(covariance))
    _refuse_far(covariance @ cho_solve((root, True), probe, check_finite=False), probe)


def _probe(size: int) -> Floats:
    return np.cos(np.outer(np.arange(size), [1.0, 2.0, 3.0]) ** 2)


def _refuse_far(found: Floats, probe: Floats) -> None:
    if not np.abs(found - probe).max() < SLACK / 100:
        raise NumericalError("the covariance of a release is too near a singular one: more noise is needed")


def _lengths(weights: sparse.csc_matrix, root: Floats) -> Floats:
    """The diagonal of `M' S^-1 M` for few columns of `M`."""
    moved = solve_triangular(root, weights.toarray(), lower=True, check_finite=False)
    return np.asarray((moved**2).sum(axis=0))


def _diagonal(weights: sparse.csc_matrix, root: Floats) -> Floats:
    """The same for many columns, of a sparse `M`, by the inverse."""
    inverse, _ = lapack.dpotri(root, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    found = np.empty(weights.shape[1])
    for start in range(0, len(found), COLUMNS_AT_ONCE):
        some = weights[:, start : start + COLUMNS_AT_ONCE].T.tocsr()
        found[start : start + COLUMNS_AT_ONCE] = np.asarray(some.multiply(some @ inverse).sum(axis=1)).ravel()
    return found


def swap_factors(
    pool: Floats, mixed: MixedDraw, found: DrawProducts, *, places: Ints, joins: Ints, columns: int
) -> SwapFactors:
    """SwapFactors of swaps: at each of the `places` the row of the pool there is replaced by that of `joins`.

    The law after the swap stands beside the one before it.
    """
    step, cross, squared = np.empty((3, len(places)))
    for start in range(0, len(places), SWAPS_AT_ONCE):
        some = slice(start, start + SWAPS_AT_ONCE)
        change = pool[joins[some]] - pool[mixed.rows[places[some]]]
        moved = change @ found.turn
        step[some], squared[some] = (np.einsum("ij,ij->i", values, values) for values in (moved, change))
        cross[some] = np.einsum("ij,ij->i", found.across[places[some]], change)
    return factors(step, cross, found.weight[places], squared, columns=columns)


@proves("obfuscation-pairs")
def factors(step: Floats, cross: Floats, weight: Floats, squared: Floats, *, columns: int) -> SwapFactors:
    """Logarithms of the eigenvalues of `S^-1 S'` that are not 1, rounded away from 0.

    With `a = MX delta` and `mu` the column of the mixing: `step = a' S^-1 a`, `cross = a' S^-1 mu`,
    `weight = mu' S^-1 mu`, `squared = |delta|^2`, and `S' = S + (a mu' + mu a' + squared mu mu') / columns`.
    """
    if not all(np.isfinite(values).all() for values in (step, cross, weight, squared)):
        raise InputError("rows of the pool must be finite")
    half = (2 * cross + squared * weight) / (2 * columns)
    product = np.maximum(step * weight - cross**2, 0.0) / columns**2
    root = np.sqrt(half**2 + product)
    # The two roots of t^2 - 2 half t - product: the larger in size first, the other without cancellation.
    large = np.abs(half) + root
    small = np.divide(product, large, out=np.zeros_like(large), where=large > 0)
    up, down = np.where(half >= 0, large, small), np.where(half >= 0, small, large)
    error = SLACK / 100 * (np.sqrt(step * weight) + np.abs(cross) + squared * weight) / columns
    up, down = up * (1 + SLACK) + error, down * (1 + SLACK) + error
    with np.errstate(divide="ignore", invalid="ignore"):
        narrower = np.where(down < 1, -np.log1p(-np.minimum(down, 1.0)), np.inf)
    return SwapFactors(np.log1p(up), narrower)
