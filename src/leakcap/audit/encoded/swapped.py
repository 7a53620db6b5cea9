"""How likely a release is when one row takes another's place: for all swaps of one mixing by one factorisation.

Given the mixing `M` and the rows `X`, released columns are independent `N(0, S)`, `S = (MX)(MX)'/d + noise`: the mask
is integrated out, and nothing of it is left to guess. A swap changes `S` by rank two.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats

__all__ = ["rank_two_gains", "swapped_likelihoods"]

SWAPS_AT_ONCE = 128


def swapped_likelihoods(
    mixture: Floats, released: Floats, weights: Floats, change: Floats, *, columns: int, variance: float
) -> tuple[Floats, Floats]:
    """Log-likelihoods of releases under one mixing, `(releases,)`, and by how much each swap changes them.

    Args:
        mixture: `(m, D)` the means.
        released: `(m, releases * columns)` released columns, release after release.
        weights: `(m, swaps)` columns of the mixing at the places that are swapped.
        change: `(swaps, D)` the row that comes less the one that goes.
        columns: released columns of one release.
        variance: of the noise.

    Returns:
        The log-likelihoods but for a constant, and `(releases, swaps)` differences to them.
    """
    covariance = mixture @ mixture.T / columns
    covariance.flat[:: len(covariance) + 1] += variance
    try:
        root = cholesky(covariance, lower=True, check_finite=False)
    except LinAlgError:
        raise NumericalError("the law of a release is singular without noise: this attack needs some") from None
    half = solve_triangular(root, released, lower=True, check_finite=False)
    by_release = (half**2).sum(axis=0).reshape(-1, columns).sum(axis=1)
    base = -columns * np.log(np.diag(root)).sum() - by_release / 2
    gains = np.empty((len(by_release), len(change)))
    for start in range(0, len(change), SWAPS_AT_ONCE):
        some = slice(start, start + SWAPS_AT_ONCE)
        both = mixture @ change[some].T, weights[:, some]
        moved, placed = (solve_triangular(root, one, lower=True, check_finite=False) for one in both)
        gains[:, some] = _gains(moved, placed, half, (change[some] ** 2).sum(axis=1), columns=columns)
    return np.asarray(base), gains


def _gains(moved: Floats, placed: Floats, half: Floats, squared: Floats, *, columns: int) -> Floats:
    """By the matrix determinant lemma and Woodbury's identity, with the swap's two directions whitened."""
    step, cross, weight = (np.einsum("mt,mt->t", *pair) for pair in ((moved, moved), (moved, placed), (placed, placed)))
    seen = [(one.T @ half).reshape(len(squared), -1, columns) for one in (moved, placed)]
    first, both, second = (
        np.einsum("trz,trz->tr", *pair) for pair in ((seen[0], seen[0]), (seen[0], seen[1]), (seen[1], seen[1]))
    )
    grams, fits = np.stack([step, cross, weight]), np.stack([first, both, second])
    return rank_two_gains(grams, fits, squared, columns=columns)


def rank_two_gains(grams: Floats, fits: Floats, squared: Floats, *, columns: int) -> Floats:
    """`(releases, swaps)` log-likelihoods gained by swaps, by the determinant lemma and Woodbury's identity.

    Args:
        grams: `(3, swaps)` of a swap's two directions `a` (how its means move) and `b` (its column of the mixing):
            `a'S^-1 a`, `a'S^-1 b` and `b'S^-1 b`.
        fits: `(3, swaps, releases)` of released columns: sums of `(a'S^-1 z)^2`, of products, of `(b'S^-1 z)^2`.
        squared: `(swaps,)` squared lengths of the change.
        columns: released columns of one release.
    """
    step, cross, weight = grams
    first, both, second = fits
    # S' = S + U K U', U = (a, mu), d K = ((0, 1), (1, s)); K^-1 + U' S^-1 U = ((step - d s, cross + d), (., weight)).
    top, side = step - columns * squared, cross + columns
    determinant = top * weight - side**2
    grown = np.log(-determinant / columns**2)
    fit = (weight[:, None] * first - 2 * side[:, None] * both + top[:, None] * second) / determinant[:, None]
    return np.asarray((fit - columns * grown[:, None]).T / 2)
