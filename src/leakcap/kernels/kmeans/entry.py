"""K-Means in all worlds at once.

Worlds that start from the same centres stay close to each other: their centres differ by what halving the rows does to
means. So they run in lockstep around an anchor, and a world looks only at the few rows that could be nearer to another
centre than the anchor's is. A world that drifts away goes on alone, and looks only at rows whose nearest centre may
have changed. Nothing is approximate. Where rounding would decide, and where a cluster runs empty, scikit-learn itself
fits the world.
"""

from __future__ import annotations

import warnings
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import on_all_cores, one_blas_thread, threads
from leakcap.kernels.kmeans.lockstep import advance, alone, pool_of, start_group
from leakcap.kernels.kmeans.state import PLAIN, AnchoredGroup
from leakcap.kernels.moments.sums import masked_sums
from leakcap.kernels.rows import table_of
from leakcap.worlds import Worlds

__all__ = ["Weights", "kmeans"]

Worlds_ = npt.NDArray[np.intp]  # numbers of worlds
MIN_THREAD_WORLDS = 16  # worlds for which a thread of their own pays


class Weights(NamedTuple):
    """What rows weigh: rows of one group alike, in every world by its own factor for that group."""

    groups: npt.NDArray[np.int64]  # (n,), from 0 on
    factors: Floats  # (m, groups)


def kmeans(
    features: Floats,
    worlds: Worlds,
    start: Floats,
    *,
    iterations: int = 300,
    tolerance: float = 1e-4,
    weights: Weights | None = None,
) -> Floats:
    """`(m, k, d)`: the centres that Lloyd's algorithm reaches in every world from the `start` centres `(k, d)`.

    They are those of scikit-learn's `KMeans(k, init=start, n_init=1, max_iter=iterations, tol=tolerance)` on the rows
    of the world, with its rule for stopping and its way with empty clusters: a world where a cluster runs empty, or
    where a decision is within rounding (two centres equally near to a row), is left to scikit-learn on one thread, at
    its speed. Start centres that are rows of whole numbers may tie in many worlds; a small shift of them helps. Every
    world needs at least `k` rows.
    """
    checks.count(at_least=1, iterations=iterations)
    checks.nonnegative(tolerance=tolerance)
    centred, mean = _checked(features, worlds, start)
    limits = _limits(centred, worlds, tolerance)
    given = weights or Weights(np.zeros(worlds.n, np.int64), np.ones((worlds.m, 1)))
    found, plain = _lockstep(centred, worlds, start=start - mean, limits=limits, weights=given, iterations=iterations)
    found += mean
    if len(plain):
        found[plain] = _plain(
            features, worlds, some=plain, start=start, weights=given, iterations=iterations, tolerance=tolerance
        )
    return found


def _checked(features: Floats, worlds: Worlds, start: Floats) -> tuple[Floats, Floats]:
    """The rows around their mean, and the mean."""
    table = table_of(features, worlds)
    if np.ndim(start) != 2 or table.shape[1] != np.shape(start)[1] or not len(start):
        raise InputError("start must have a row for each cluster, with as many columns as the features")
    if worlds.sizes().min() < len(start):
        raise InputError(f"every world needs as many rows as there are clusters, {len(start)}: ask for fewer clusters")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.mean(table, axis=0)
        centred = table - mean
        if not (np.isfinite(centred**2).all() and np.isfinite((start - mean) ** 2).all()):
            raise NumericalError(
                "features and start centres must be finite, and so must their squares: scale the columns"
            )
    return centred, mean


def _limits(centred: Floats, worlds: Worlds, tolerance: float) -> Floats:
    """When a world stops: its tolerance is relative to the mean variance of its columns."""
    d = centred.shape[1]
    sums = masked_sums(np.column_stack([centred, np.einsum("ij,ij->i", centred, centred)]), worlds)
    rows = worlds.sizes()
    spread = sums[:, d] / rows - np.einsum("ij,ij->i", sums[:, :d], sums[:, :d]) / rows**2
    return np.asarray(tolerance * np.maximum(spread, 0.0) / d)


def _lockstep(
    centred: Floats, worlds: Worlds, start: Floats, limits: Floats, weights: Weights, iterations: int
) -> tuple[Floats, Worlds_]:
    """The centres in all worlds, and the numbers of the worlds for which they mean nothing."""
    pool = pool_of(centred, weights.groups)
    found, plain = np.empty((worlds.m, *start.shape)), np.zeros(worlds.m, dtype=np.bool_)
    drawn = worlds.m // 2 if worlds.paired else worlds.m
    shares = np.array_split(np.arange(drawn), max(1, min(threads(), drawn // MIN_THREAD_WORLDS)))

    def first(some: Worlds_) -> AnchoredGroup:
        members = np.concatenate([some, some + drawn]) if worlds.paired else some
        return start_group(
            members, len(some) if worlds.paired else 0, start=start, limits=limits, factors=weights.factors
        )

    def run(group: AnchoredGroup) -> list[AnchoredGroup]:
        others: list[AnchoredGroup] = []
        if len(group.members) == 1:
            alone(pool, worlds.packed, group, iterations)
        else:
            others = advance(pool, worlds.packed, group, iterations)
        found[group.members] = group.centres
        plain[group.members] = group.state == PLAIN
        return others

    with ThreadPoolExecutor(threads()) as workers:
        running = {workers.submit(run, first(some)) for some in shares}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {workers.submit(run, group) for job in finished for group in job.result()}
    return found, np.flatnonzero(plain)


def _plain(
    features: Floats,
    worlds: Worlds,
    some: Worlds_,
    start: Floats,
    weights: Weights,
    iterations: int,
    tolerance: float,
) -> Floats:
    """Some worlds by scikit-learn."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    def fit(world: int) -> Floats:
        model = KMeans(len(start), init=start, n_init=1, algorithm="lloyd", max_iter=iterations, tol=tolerance)
        with one_blas_thread():  # rounding decides here, and depends on the number of threads
            here = worlds.mask(world)
            weight = weights.factors[world, weights.groups[here]]
            return np.asarray(model.fit(features[here], sample_weight=weight).cluster_centers_)

    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        return np.stack(on_all_cores(fit, some.tolist()))
