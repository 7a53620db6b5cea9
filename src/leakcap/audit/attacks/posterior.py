"""What an attacker believes about the secret world after seeing a release: the ground of all Bayesian attacks.

Two of them. One takes the certificate's word for the noise. The other looks at releases whose secrets it was told, and
takes the noise as it finds it: numbers without noise, or with less, or only in some directions, are its prey.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.audit.trials import Known, Trials
from leakcap.ground.arrays import Floats

__all__ = ["Belief", "as_claimed", "as_seen", "blocks"]

BLOCK = 512  # releases at a time
KEPT = 2**26  # posterior probabilities that are kept
EXACT = 1e-9  # share of an answer's spread below which a number has no noise worth the name
ROUNDING = 2.0**-48  # of a number, by all that was computed with it
PER_DIRECTION = 8  # releases that a direction's noise is learnt from, at least


def as_claimed(known: Known) -> Belief | None:
    """By the claimed noise; None where it is not known for the numbers that are seen."""
    if known.answers is None or known.factor is None:
        return None
    directions, sizes, _ = np.linalg.svd(known.factor, full_matrices=False)
    kept = sizes > 1e-10 * sizes.max(initial=0.0)
    return Belief(known.answers, directions[:, kept] / sizes[kept])


def as_seen(known: Known, learn: Trials) -> Belief | None:
    """By the noise that releases with known secrets show."""
    if known.answers is None or learn.secret is None:
        return None
    answers = known.answers
    off = learn.seen - answers[learn.secret]
    rounded = ROUNDING * np.abs(answers).max(axis=0)
    varying = np.ptp(answers, axis=0) > 8 * rounded
    # Un-noised numbers: rounding is all that keeps them from naming the world.
    bare = varying & (np.abs(off).max(axis=0) <= EXACT * answers.std(axis=0))
    noisy = np.flatnonzero(varying & ~bare)
    whiten = np.zeros((answers.shape[1], int(bare.sum())))
    whiten[np.flatnonzero(bare), np.arange(whiten.shape[1])] = 1 / np.maximum(np.abs(off).max(axis=0), rounded)[bare]
    if len(noisy):
        found = _whitened(answers[:, noisy], off[:, noisy], rounded[noisy])
        rest = np.zeros((answers.shape[1], found.shape[1]))
        rest[noisy] = found
        whiten = np.hstack([whiten, rest])
    return Belief(answers, whiten)


def _whitened(answers: Floats, off: Floats, rounded: Floats) -> Floats:
    """`(d, r)`: combinations of numbers in which the noise `off` has size one, as far as it can be learnt."""
    scale = answers.std(axis=0)
    table = (answers - answers.mean(axis=0)) / scale
    # Directions in which worlds differ at all; the smallest that can be told from rounding count, too.
    _, sizes, directions = np.linalg.svd(table, full_matrices=False)
    directions = directions[sizes > 1e-14 * sizes[0]].T
    noise = (off / scale) @ directions
    few = max(1, len(off) // PER_DIRECTION)
    if noise.shape[1] > few:  # in too many directions noise cannot be learnt: those where worlds differ most for it
        gain = (table @ directions).std(axis=0) / np.maximum(noise.std(axis=0), 1e-300)
        chosen = np.argsort(-gain)[:few]
        directions, noise = directions[:, chosen], noise[:, chosen]
    own = np.maximum(noise.std(axis=0), 1e-300)
    # Singular values, not eigenvalues of a covariance: a direction with a millionth of the noise keeps its digits.
    _, size, turn = np.linalg.svd(noise / own, full_matrices=False)
    combined = (directions / own) @ turn.T / scale[:, None]
    # What numbers are rounded by is no knowledge of the world: nothing is told apart by less.
    with np.errstate(over="ignore"):  # a direction without a trace of noise: infinite, and left out by the division
        least = np.sqrt((combined**2 * rounded[:, None] ** 2).sum(axis=0))
    return np.asarray(combined / np.maximum(size / np.sqrt(len(noise)), least))


class Belief:
    """Posteriors over worlds, of releases by the block; those of a part that is asked for again are kept."""

    def __init__(self, answers: Floats, whiten: Floats, prior: Floats | None = None) -> None:
        self._answers, self._centre, self._whiten = answers, answers.mean(axis=0), whiten
        self._points = (answers - self._centre) @ whiten
        self._lengths = 0.5 * np.einsum("ij,ij->i", self._points, self._points)
        if prior is not None:
            self._lengths = self._lengths - np.log(prior)
        self._kept: tuple[Trials, npt.NDArray[np.float32]] | None = None

    def with_prior(self, prior: Floats) -> Belief:
        """The same for worlds that are not equally likely before the release."""
        return Belief(self._answers, self._whiten, prior)

    def __call__(self, seen: Floats) -> npt.NDArray[np.float32]:
        score = (seen - self._centre) @ self._whiten @ self._points.T - self._lengths
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        score /= score.sum(axis=1, keepdims=True)
        return score.astype(np.float32)

    def block(self, trials: Trials, rows: slice) -> npt.NDArray[np.float32]:
        """`(rows, m)`; not to be changed."""
        if len(trials) * len(self._points) > KEPT:
            return self(trials.seen[rows])
        if self._kept is None or self._kept[0] is not trials:
            parts = [self(trials.seen[some]) for some in blocks(len(trials))]
            self._kept = trials, np.concatenate(parts)
        return self._kept[1][rows]


def blocks(k: int) -> list[slice]:
    """All of `k` releases, some at a time."""
    return [slice(first, min(first + BLOCK, k)) for first in range(0, k, BLOCK)]
