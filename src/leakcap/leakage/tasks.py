"""What an attacker can do with the posterior alone: any task, the leakage curve, the information.

A task says which guess wins in which world; its success is one product. The curve bounds all tasks of a
given prior at once, and is attained (docs/proofs/leakage-curve.md, tasks.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.ground.cores import crew
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import MeanEstimate, Wagers
from leakcap.leakage.posterior import Source

__all__ = [
    "NAMING",
    "WorldMeans",
    "as_fraction",
    "default_priors",
    "entropy_of",
    "knapsack",
    "observe_worlds",
    "task_prior",
]


NAMING = np.empty((0, 0))  # the task of naming the world: its table, of one winning guess in each, is not written out


@dataclass(frozen=True, eq=False)
class WorldMeans:
    """`curve`: S(p) at `priors`; `information`: mutual information in nats; `tasks`: success of each task."""

    priors: tuple[Fraction, ...]
    curve: MeanEstimate
    information: MeanEstimate
    tasks: tuple[MeanEstimate, ...]
    wins: tuple[npt.NDArray[np.float64], ...]
    entropy: float | None = None  # of the prior over worlds, which no release exceeds; None: log m

    def wagers(self, draws: int, log_term: float, m: int) -> Wagers:
        """Placed for the means and variances seen here."""
        seen = (self.curve, self.information, *self.tasks)
        most = np.ones(sum(len(mean.estimate) for mean in seen))
        most[len(self.priors)] = np.log(m) if self.entropy is None else self.entropy
        mean, variance = (np.concatenate([getattr(one, of) for one in seen]) for of in ("estimate", "variance"))
        # Arithmetic may lift a value above the largest true one by the stated error.
        return Wagers.placed(mean, variance, most + max(one.rounding for one in seen), draws=draws, log_term=log_term)


def as_fraction(prior: float) -> Fraction:
    """A prior as it was written: 0.57 is 57/100, not the nearest binary float (which times 100 is below 57)."""
    return Fraction(repr(float(prior)))


@cache  # exact fractions are slow to make
def default_priors(m: int) -> tuple[Fraction, ...]:
    """A grid for the leakage curve, from naming the world (1/m) to a coin flip and beyond."""
    decades = [Fraction(a, 10 ** (b + 1)) for b in range(6) for a in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)]
    more = [Fraction(1, m), *(Fraction(a, 20) for a in range(3, 20))]
    return tuple(sorted({p for p in [*decades, *more] if Fraction(1, m) <= p < 1}))


def task_prior(wins: npt.NDArray[np.float64], prior: Floats | None = None) -> float:
    """Success of the best guess without the release."""
    return float((wins.mean(axis=0) if prior is None else prior @ wins).max())


def entropy_of(prior: Floats | None, m: int) -> float:
    """Of a prior over `m` worlds, in nats."""
    return float(np.log(m) if prior is None else -(prior * np.log(prior)).sum())


@proves("given-inputs")
def knapsack(posterior: npt.NDArray[np.floating], prior: Floats, chances: Floats) -> Floats:
    """`(releases, chances)`: the most posterior that is had for a prior of each chance.

    The worlds of the largest ratio of posterior to prior come first, and the last one is taken in part. What sums of
    floats may be off is added to each chance, so that no value is too small.
    """
    from leakcap.leakage._loops import fill_knapsacks

    order = np.argsort(-(posterior / prior), axis=1, kind="stable")
    rising = np.argsort(chances, kind="stable")
    filled = np.empty((len(order), len(chances)))
    fill_knapsacks(posterior, prior, order, chances[rising] + len(prior) * 2.0**-51, filled)
    return np.asarray(filled[:, np.argsort(rising, kind="stable")])


@proves("leakage-curve", "tasks", "mutual-information")
def observe_worlds(
    source: Source,
    priors: Sequence[Fraction] = (),
    tasks: Sequence[npt.NDArray[np.float64]] = (),
    wagers: Wagers | None = None,
) -> WorldMeans:
    """Means over releases of what the posterior allows: as sums, or by `wagers` on curve, information and tasks."""
    m, prior = source.m, source.prior
    entropy = entropy_of(prior, m)
    chances = np.array([float(p) for p in priors])
    sizes = [divmod(p.numerator * m, p.denominator) for p in priors]
    whole = np.array([k for k, _ in sizes], dtype=np.intp)
    part = np.array([rest / p.denominator for (_, rest), p in zip(sizes, priors, strict=True)])

    def block(index: int) -> tuple[Floats, Floats, Floats, float]:
        view = source.view(index)
        values = np.empty((len(view.weight), len(priors) + 1 + len(tasks)))
        if len(priors) and prior is not None:
            values[:, : len(priors)] = knapsack(view.posterior, prior, chances)
        elif len(priors):
            ordered = np.sort(view.posterior, axis=1)[:, ::-1]
            reached = np.zeros((len(ordered), m + 2))
            np.cumsum(ordered, axis=1, dtype=np.float64, out=reached[:, 1:-1])
            reached[:, -1] = reached[:, -2]
            values[:, : len(priors)] = (1 - part) * reached[:, whole] + part * reached[:, whole + 1]
        safe = np.maximum(view.posterior, np.finfo(np.float32).tiny)
        values[:, len(priors)] = entropy + np.einsum("kw,kw->k", view.posterior, np.log(safe), dtype=np.float64)
        for i, wins in enumerate(tasks):
            guesses = view.posterior if wins is NAMING else view.posterior @ wins
            values[:, len(priors) + 1 + i] = guesses.max(axis=1)
        left = 0.0 * total if wagers is None else np.log(base - stake * values).sum(axis=0)
        return view.weight @ values, view.weight @ values**2, left, view.rounding

    total = np.zeros(len(priors) + 1 + len(tasks))
    squares, capital = np.zeros_like(total), np.zeros_like(total)
    if wagers is not None:
        base, stake = wagers.base.astype(np.float64), wagers.stake.astype(np.float64)
    rounding = 0.0
    with crew(float(source.rows * source.blocks) * m * 64) as pool:  # a posterior is found and sorted
        for first, second, left, slip in pool.map(block, range(source.blocks)):
            total += first
            squares += second
            capital += left
            rounding = max(rounding, slip)

    def mean(where: slice | int, span: float | Floats, error: float) -> MeanEstimate:
        chosen = np.atleast_1d(total[where])
        if source.draws == 0:
            return MeanEstimate.exact(chosen, error)
        seen = MeanEstimate.from_sums(
            chosen, np.atleast_1d(squares[where]), draws=source.draws, span=span, rounding=error
        )
        if wagers is None:
            return seen
        where = slice(where, where + 1) if isinstance(where, int) else where
        return MeanEstimate.from_wagers(  # sums of logarithms in double precision
            capital[where], wagers[where], variance=seen.variance, draws=source.draws, rounding=error, slip=2.0**-48
        )

    # Entropy is continuous, not Lipschitz: a posterior off by `rounding` moves it by this much at most.
    entropy_error = rounding * np.log(m) + _binary_entropy(min(rounding, 0.5)) + 1e-12
    return WorldMeans(
        priors=tuple(priors),
        curve=mean(slice(0, len(priors)), 1 - chances, rounding),
        information=mean(len(priors), float(np.log(m)), entropy_error),
        tasks=tuple(mean(len(priors) + 1 + i, 1.0, rounding) for i in range(len(tasks))),
        wins=tuple(tasks),
        entropy=None if prior is None else entropy,
    )


def _binary_entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log1p(-p)) if 0 < p < 1 else 0.0
