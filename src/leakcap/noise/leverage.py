"""A noise shape that looks at people: more noise where somebody's participation moves the answer.

To first order an attacker's success against unit `u` grows with `a_u' S^-1 a_u`, where `a_u` is how far the mean
answer moves when `u` takes part. The cheapest covariance that keeps this equal for all exposed units is
`S ~ (sum_u mu_u a_u a_u')^(1/2)` for weights `mu` on the units, found by multiplicative updates.
Differs from the papers, whose shapes see only the total variance. A shape promises nothing: whatever is chosen is
certified afterwards.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import one_blas_thread
from leakcap.leakage.membership import TILE, unit_columns
from leakcap.worlds import Worlds

__all__ = ["leverage", "leverage_shape", "moves_of", "spectrum"]

WORK = 3e10  # flops worth spending on a shape
MAX_ROUNDS = 300
CARRIERS = 3000  # units that may carry weight, the most exposed ones after two rounds over all
AGAIN, SLACK = 5, 1.01  # how often others are looked at who turn out to be more exposed than these, and by how much


def leverage_shape(moves: Floats) -> Floats | None:
    """An `(r, r)` covariance of trace 1 for `moves` of units, or None where finding it would cost too much."""
    moves = _distinct(moves)
    n, r = moves.shape
    rounds = int(min(MAX_ROUNDS, WORK / (4.0 * n * r**2 + 20.0 * r**3)))
    if rounds < 10:
        return None
    most = max(CARRIERS, 8 * r)
    with one_blas_thread():  # products are small: threads of the linear algebra would wait for each other
        if n <= most:
            return _balanced(moves, rounds)
        first = _balanced(moves, 2)
        exposed = _exposed(moves, first)
        carriers = np.argpartition(exposed, n - most)[n - most :]
        for _ in range(AGAIN):
            shape = _balanced(moves[carriers], rounds)
            exposed = _exposed(moves, shape)
            worse = np.flatnonzero(exposed > SLACK * exposed[carriers].max())
            if not len(worse):
                break
            # Somebody was left out who is more exposed than all that were looked at.
            carriers = np.union1d(carriers, worse[np.argsort(-exposed[worse], kind="stable")[:most]])
    return shape


def spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    LAPACK's fast way now and then fails to converge on matrices that have nothing wrong with them; its plain way does.
    """
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        from scipy.linalg import eigh

        values, vectors = eigh(matrix, driver="ev")
    return values, vectors


def _balanced(moves: Floats, rounds: int) -> Floats:
    """The shape after so many updates of the weights of these units."""
    r = moves.shape[1]
    weight = np.full(len(moves), 1 / len(moves))
    for number in range(rounds):
        size, turn = spectrum((moves * weight[:, None]).T @ moves)
        size = np.sqrt(np.maximum(size, size[-1] * 1e-12))
        weight *= _squares(moves @ (turn / np.sqrt(size)))
        weight /= weight.sum()
        if number % 10 == 9 and len(moves) > 4 * r:  # most units carry no weight soon, and never again
            kept = weight > 1e-6 * weight.max()
            moves, weight = moves[kept], weight[kept]
    shape = (turn * size) @ turn.T
    return np.asarray(shape / np.trace(shape))


def _exposed(moves: Floats, shape: Floats) -> Floats:
    size, turn = spectrum(shape)
    return leverage(moves, turn, np.maximum(size, size[-1] * 1e-12))


def _distinct(moves: Floats) -> Floats:
    """Units that move the answer alike count once: weight would be spread over them, however exposed they are."""
    some = moves[:: max(1, len(moves) // 1024)]
    if len(np.unique(some, axis=0)) > len(some) / 2:
        return moves
    return np.unique(moves, axis=0)


def leverage(moves: Floats, turn: Floats | None, shape: Floats) -> Floats:
    """To first order, how exposed each unit is under noise of this shape."""
    root = np.sqrt(shape)
    return _squares(moves / root if turn is None else moves @ (turn / root))


def _squares(whitened: Floats) -> Floats:
    return np.asarray(np.einsum("ur,ur->u", whitened, whitened))


def moves_of(coordinates: Floats, worlds: Worlds) -> Floats:
    """How far each unit's participation moves the mean answer, `(n, r)`, up to a common factor."""
    if worlds.paired:
        half = worlds.m // 2
        pull = coordinates[:half] - coordinates[half:]
    else:
        pull = coordinates - coordinates.mean(axis=0)
    moves = np.empty((worlds.n, coordinates.shape[1]))
    for start in range(0, worlds.n, TILE):
        tile = slice(start, min(start + TILE, worlds.n))
        moves[tile] = unit_columns(worlds, tile, np.float64).T @ pull
    return moves
