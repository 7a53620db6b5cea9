"""Nats that an obfuscation carries about the whole sample, by traces and by log-determinants, with confidence.

Type I and II of Theorem 4 of the paper on learnable obfuscation. Differs from the paper: the log-determinant of a mean
is bounded from above by a tangent that other draws have fixed; put in place of the mean, an estimate is too small.
Proof page: obfuscation-information.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import MeanEstimate, Wagers, log_term, upper
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.sampled import MixedDraw, draw_mixed

__all__ = ["Tangent", "WholeBounds", "certify_whole", "mixtures_of", "relative_covariances", "whole_trace_nats"]

SLIP = 1e-13


@dataclass(frozen=True, eq=False)
class WholeBounds:
    """Nats about the sample that hold together with probability `1 - gamma`: by traces, by log-determinants."""

    trace_nats: float
    log_det_nats: float
    estimates: tuple[float, float]  # without confidence
    draws: int
    gamma: float

    @property
    def nats(self) -> float:
        return min(self.trace_nats, self.log_det_nats)


@dataclass(frozen=True, eq=False)
class Tangent:
    """`log det A <= log det C + Tr(C^-1 A) - m` for every positive `A`; `C` is fixed beforehand, and at least 1.

    `value` is of a single draw; the mean, `level` added, is never below `log det E[A] - E log det A`.
    """

    inverse: Floats
    level: float

    @classmethod
    def at(cls, centre: Floats) -> Tangent:
        """At a positive matrix `C`."""
        root = cho_factor(centre, lower=True)
        level = 2 * float(np.log(np.diag(root[0])).sum()) - len(centre)
        return cls(cho_solve(root, np.eye(len(centre))), level)

    def value(self, relative: Floats) -> float:
        """`Tr(C^-1 A) - log det A` of one draw."""
        return float((self.inverse * relative).sum() - np.linalg.slogdet(relative)[1])


def relative_covariances(obfuscated: Obfuscated, mixtures: list[Floats], noises: list[float | Floats]) -> list[Floats]:
    """`A = S/noise_std^2` of every block: a released column's covariance, public rows included, beside its noise."""
    variance, found = obfuscated.noise_std**2, []
    for mixture, noise in zip(mixtures, noises, strict=True):
        beside = np.eye(len(mixture)) if np.ndim(noise) == 0 else np.asarray(noise) / variance
        found.append(beside + mixture @ mixture.T / (obfuscated.law.columns * variance))
    return found


def mixtures_of(obfuscated: Obfuscated, mixed: MixedDraw, rows: Ints) -> list[Floats]:
    """`MX` of every block, with the mixing of a draw and some sample."""
    return [np.asarray(mixed.weights @ part[rows]) for part in obfuscated.parts]


def tangents_of(obfuscated: Obfuscated, draws: int, rng: np.random.Generator) -> list[Tangent]:
    """At every block's mean of some draws, evened out over rows of the same classes: their order is random."""
    law = obfuscated.law
    total = [np.zeros((len(law.pairs), len(law.pairs)))] * obfuscated.blocks
    for _ in range(draws):
        mixed = draw_mixed(law, rng)
        mixtures = mixtures_of(obfuscated, mixed, mixed.rows)
        relative = relative_covariances(obfuscated, mixtures, obfuscated.noise_covariances(rng))
        total = [some + one for some, one in zip(total, relative, strict=True)]
    kinds = law.pairs[:, 0] * law.classes + law.pairs[:, 1]
    return [Tangent.at(_evened(some / draws, kinds)) for some in total]


def _evened(matrix: Floats, kinds: Ints) -> Floats:
    """The mean over all orders of rows of the same kind: equal diagonals, equal entries off it."""
    names, where = np.unique(kinds, return_inverse=True)
    share = (where[:, None] == np.arange(len(names))).astype(np.float64)
    count = share.sum(axis=0)
    diagonal = (share.T @ np.diag(matrix)) / count
    sums = share.T @ (matrix - np.diag(np.diag(matrix))) @ share
    pairs = np.outer(count, count) - np.diag(count)
    means = np.divide(sums, pairs, out=np.zeros_like(sums), where=pairs > 0)
    evened = means[np.ix_(where, where)]
    np.fill_diagonal(evened, diagonal[where])
    return np.asarray(evened)


@proves("obfuscation-information")
def whole_trace_nats(columns: int, ones: list[Floats], others: list[Floats]) -> float:
    """`columns/4 (Tr S^-1 S' + Tr S'^-1 S - 2 m)` for two samples mixed alike: relative covariances of the blocks.

    Guarantee: its mean over two independent samples is at least the information of the release about the sample.
    """
    total = 0.0
    for one, other in zip(ones, others, strict=True):
        total += sum(float(np.trace(np.linalg.solve(a, b))) for a, b in ((one, other), (other, one))) - 2 * len(one)
    return columns / 4 * total


@proves("obfuscation-information", "wagers")
def certify_whole(
    obfuscated: Obfuscated,
    *,
    draws: int,
    gamma: float,
    rng: np.random.Generator,
    pilot: int = 8,
    tick: Callable[[int, int], None] | None = None,
) -> WholeBounds:
    """Bounds on the information about the whole sample; tangents and wagers are placed by other draws.

    Guarantee: the release carries at most `nats` about the sample, with probability `1 - gamma` over the draws.
    """
    checks.fraction(gamma=gamma)
    checks.count(2, pilot=pilot)
    law, m = obfuscated.law, len(obfuscated.law.pairs)
    tangents = tangents_of(obfuscated, max(draws // 2, 2), rng)

    def value() -> Floats:
        mixed, other = draw_mixed(law, rng), draw_mixed(law, rng)
        noises = obfuscated.noise_covariances(rng)
        first, second = (
            relative_covariances(obfuscated, mixtures_of(obfuscated, mixed, rows), noises)
            for rows in (mixed.rows, other.rows)
        )
        det = sum(tangent.value(one) for tangent, one in zip(tangents, first, strict=True))
        return np.array([whole_trace_nats(law.columns, first, second), law.columns / 2 * det])

    size = (obfuscated.longest / obfuscated.noise_std) ** 2
    # Tr S^-1 (S' - S_B) <= Tr (S' - S_B) / noise^2, and C >= 1; public rows are no longer than 1.
    public = 0.0 if obfuscated.public is None else obfuscated.noise_std**-2
    trace = m * (obfuscated.blocks + (size + public) / law.columns)
    most = np.array([m * size / 2, law.columns / 2 * trace]) * (1 + 1e-9)
    seen = np.array([value() for _ in range(pilot)])
    term = log_term(gamma, 2)
    centre = np.minimum(seen.mean(axis=0), most)
    wagers = Wagers.placed(centre, seen.var(axis=0, ddof=1), most, draws, log_term=term)
    base, stake = wagers.base.astype(np.float64), wagers.stake.astype(np.float64)
    capital, total = np.zeros(2), np.zeros(2)
    for made in range(draws):
        told = value()
        capital += np.log(base - stake * told)
        total += told
        if tick is not None:
            tick(made + 1, draws)
    mean = MeanEstimate.from_wagers(
        capital, wagers, variance=seen.var(axis=0, ddof=1), draws=draws, rounding=0.0, slip=SLIP
    )
    shift = np.array([0.0, law.columns / 2 * sum(tangent.level for tangent in tangents)])
    bounds = np.minimum(upper(mean, term), most) + shift
    estimates = total / draws + shift
    by_trace, by_det = bounds.tolist()
    first, second = estimates.tolist()
    return WholeBounds(by_trace, by_det, estimates=(first, second), draws=draws, gamma=gamma)
