"""Leading directions of 50,000 pictures of 3,072 numbers in 1,024 halves, on two cores in minutes.

Every world's covariance is solved in the pool's 192 leading directions (pool-public); then one step of the power
method with the world's own rows adds what lies outside of them. Inside, the first solution is exact, and the step
leaves it as it is. Outside, what remains is a share of `variance outside / leading variance` of a lean that is itself
small: `accuracy` measures it against plain fits. Whatever it is, the mechanism is this computation, and it is this
that is calibrated.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import eigsh

from leakcap import kernels
from leakcap.kernels.moments import aligned, means, moments
from leakcap.worlds import Units, Worlds, draw_worlds
from reproductions.pac_private_algorithms.data import Split
from reproductions.pac_private_algorithms.pca import Frame, components
from reproductions.pac_private_algorithms.series import Study

__all__ = ["accuracy", "leading", "pictures"]

Floats = npt.NDArray[np.float64]
_known: dict[bytes, Floats] = {}
BASIS = 192  # of the pool's directions, in which a world's covariance is solved
ROWS = 1000  # that are multiplied at a time


def pictures(split: Split, k: int, basis: int = BASIS) -> Study:
    """`k` directions and the mean of the pictures."""
    frame = Frame.of(split.x, k)
    print(f"{split.name}, {k} directions: {accuracy(split, frame, basis)}", flush=True)
    answer = functools.partial(_described, frame=frame, basis=basis)
    return components(split, k, frame, answer, (f"The pool's {basis} leading directions, to start from.",))


def leading(x: Floats, worlds: Worlds, frame: Frame, basis: int) -> tuple[Floats, Floats]:
    """`(m, d)` means and `(m, k, d)` orthonormal directions of all worlds."""
    chosen = frame.directions[:basis]
    start = np.concatenate([some @ chosen.T for _, some in _parts(x)])
    found = moments(start, worlds)
    size, turned = np.linalg.eigh(found.scatter)
    inside = turned[:, :, : -frame.k - 1 : -1].transpose(0, 2, 1) @ chosen
    lean = _one_step(x, worlds, inside, np.einsum("wkb,wb->wk", inside @ chosen.T, found.mean))
    lean -= (lean @ chosen.T) @ chosen
    left, _, right = np.linalg.svd(inside + lean / size[:, : -frame.k - 1 : -1, None], full_matrices=False)
    return means(x, worlds), left @ right


def _one_step(x: Floats, worlds: Worlds, inside: Floats, middle: Floats) -> Floats:
    """What each world's scatter makes of its directions; `middle` is where its mean lies along them."""
    m, k, d = inside.shape
    flat = np.ascontiguousarray(inside.reshape(m * k, d).T)
    pulled = np.zeros((m * k, d))
    for rows, some in _parts(x):
        along = (some @ flat).reshape(len(some), m, k) - middle
        along *= worlds.columns(rows).T[:, :, None]
        # Deviations add up to zero along every direction, so the mean need not be taken off on this side.
        pulled += along.reshape(len(some), m * k).T @ some
    return pulled.reshape(m, k, d)


def _parts(x: Floats) -> Iterator[tuple[slice, Floats]]:
    """Some rows at a time, in f64: low variances would drown in the rounding of f32."""
    for first in range(0, len(x), ROWS):
        rows = slice(first, min(first + ROWS, len(x)))
        yield rows, x[rows].astype(np.float64)


def accuracy(split: Split, frame: Frame, basis: int, trials: int = 1) -> str:
    """How far directions are from those of plain fits in a few worlds, beside how far worlds are from the pool."""
    worlds = draw_worlds(len(split.x), 2 * trials, np.random.default_rng(0))
    found = leading(split.x, worlds, frame, basis)[1]
    ours, plain = aligned(found, frame.inside), np.empty_like(found)
    for world in range(2 * trials):
        plain[world] = aligned(_plain(split.x[worlds.mask(world)], frame.k)[None], frame.inside)[0]
    apart = np.linalg.norm(ours - plain, axis=(1, 2)).max()
    spread = np.linalg.norm(plain - frame.inside, axis=(1, 2)).mean()
    return f"directions differ from plain fits by {apart:.1e} at most; those of a world from the pool's by {spread:.1e}"


def _plain(rows: Floats, k: int) -> Floats:
    """The leading directions of some rows, from their whole covariance in f64."""
    scatter = np.zeros((rows.shape[1], rows.shape[1]))
    mean = rows.mean(axis=0, dtype=np.float64)
    for _, some in _parts(rows):
        scatter += (some - mean).T @ (some - mean)
    return np.asarray(eigsh(scatter, k, tol=1e-12)[1][:, ::-1].T)


def _all(data: tuple[Any, ...], units: Units, worlds: Worlds, *, frame: Frame, basis: int) -> Floats:
    # Two plans, one for each kind of cap, ask about the same worlds: minutes are saved by remembering.
    key = hashlib.sha256(worlds.packed.tobytes()).digest() + bytes([frame.k])
    if key not in _known:
        _known.clear()
        _known[key] = frame.encode(*leading(data[0], worlds, frame, basis))
    return _known[key].copy()


@kernels.offers(_all, tolerance=1e-6)
def _described(x: Floats, *, frame: Frame, basis: int) -> Floats:
    return np.asarray(frame.encode(*leading(x, Worlds.everybody(len(x)), frame, basis))[0])
