"""How each kind of cap is measured: one function per kind, from what was observed over releases.

`bound` turns means into upper bounds (`confidence.upper`) or into aims for a search (`confidence.forecast`).
Every measure is also bounded through the mutual information, which needs no sampling; the smaller counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, singledispatch

import numpy as np
import numpy.typing as npt

from leakcap import convert
from leakcap.caps import (
    AnyInference,
    Cap,
    Identification,
    Membership,
    MutualInformation,
    NameAMember,
    PoolMembership,
    Precision,
    Task,
    TruePositiveRate,
    as_wins,
)
from leakcap.errors import CapError, InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import Bound
from leakcap.leakage.membership import UnitMeans
from leakcap.leakage.tasks import NAMING, WorldMeans, as_fraction, entropy_of, task_prior
from leakcap.worlds import Worlds

__all__ = [
    "RATIOS",
    "Needs",
    "Observed",
    "before",
    "check_limit",
    "information_budget",
    "largest",
    "measure",
    "naming",
    "needs",
    "observed_for",
    "prior",
    "thresholds",
]

# Likelihood ratios at which the attacker's ROC is certified; fixed, so that nothing is chosen after seeing scores.
RATIOS = (1.2, 1.5, 2.0, 3.0, 5.0, 9.0, 16.0, 30.0, 60.0)

ABOUT_WORLDS = AnyInference, Identification, MutualInformation, Task  # caps that need nobody in the worlds


@dataclass(frozen=True, eq=False)
class Observed:
    """Everything a measure may draw on. `mi_ceiling` bounds the mutual information without sampling."""

    rate: float
    m: int
    mi_ceiling: float
    units: UnitMeans | None = None
    worlds: WorldMeans | None = None
    shares: Floats | None = None  # the chance of each world; None: all alike


@dataclass(frozen=True, eq=False)
class Needs:
    """What must be observed to measure some caps."""

    units: bool = False
    sticks: bool = False  # of units: few false alarms, or precise claims
    priors: tuple[Fraction, ...] = ()
    tasks: tuple[npt.NDArray[np.float64], ...] = field(default=())
    information: bool = False

    @property
    def worlds(self) -> bool:
        return bool(self.priors or self.tasks or self.information)

    def __add__(self, other: Needs) -> Needs:
        return Needs(
            units=self.units or other.units,
            sticks=self.sticks or other.sticks,
            priors=self.priors + other.priors,
            tasks=self.tasks + other.tasks,
            information=self.information or other.information,
        )


def thresholds(rate: float, ratios: Sequence[float] = RATIOS) -> Floats:
    """Posterior probabilities of membership at which the likelihood ratio reaches `ratios`."""
    grid = np.asarray(ratios)
    return np.asarray(grid * rate / (1 - rate + grid * rate))


def needs(caps: Sequence[Cap], worlds: Worlds) -> tuple[Needs, tuple[Cap, ...]]:
    """What to observe, and the caps with tasks made concrete for these worlds. Impossible caps raise."""
    concrete = tuple(_concrete(cap, worlds) for cap in caps)
    for cap in concrete:
        if not worlds.n and not isinstance(cap, ABOUT_WORLDS):
            raise CapError(
                f"{type(cap).__name__} is about people in a pool, and these are inputs: cap a task, any_inference, "
                "identification or mutual_information"
            )
        check_limit(cap, worlds.rate, worlds.m, worlds.shares)
    wanted = sum((observed_for(cap, worlds.m) for cap in concrete), Needs())
    return wanted if worlds.n else replace(wanted, tasks=(*wanted.tasks, NAMING)), concrete


def check_limit(cap: Cap, rate: float, m: int, shares: Floats | None = None) -> None:
    """Refuse a cap that no release can keep, and one that every release keeps."""
    floor = before(cap, rate, m, shares)
    if cap.limit <= floor:
        raise CapError(
            f"{type(cap).__name__} is capped at {cap.limit:.6g}, but an attacker without the release already "
            f"reaches {floor:.6g}: choose a cap above that"
        )
    told = shares is not None and isinstance(cap, MutualInformation)
    most = entropy_of(shares, m) if told else largest(cap, rate, m)
    if cap.limit >= most:
        raise CapError(f"{type(cap).__name__} capped at {cap.limit:.6g} promises nothing: choose a smaller cap")


@proves("given-inputs")
def before(cap: Cap, rate: float, m: int, shares: Floats | None = None) -> float:
    """What an attacker without the release reaches, where worlds have chances of their own (`shares`)."""
    if shares is not None and isinstance(cap, Identification):
        return float(shares.max())
    if shares is not None and isinstance(cap, Task):
        return task_prior(np.asarray(cap.wins), shares)
    return prior(cap, rate, m)


def information_budget(caps: Sequence[Cap], rate: float, m: int, shares: Floats | None = None) -> float:
    """The most mutual information that keeps every cap on its own, whatever else is true of the release."""

    def kept(mi: float) -> bool:
        seen = Observed(rate, m, mi, shares=shares)
        return all(measure(cap, seen, lambda mean: mean.estimate) <= cap.limit for cap in caps)

    low, high = 0.0, 1e-9
    while kept(high):
        low, high = high, 4 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def _concrete(cap: Cap, worlds: Worlds) -> Cap:
    if not isinstance(cap, Task):
        return cap
    wins = as_wins(cap.wins(worlds.listed())) if callable(cap.wins) else cap.wins
    if len(wins) != worlds.m:
        what = "world" if worlds.n else "input"
        raise InputError(f"the task has {len(wins)} rows, but there are {worlds.m} {what}s: one row per {what}")
    return Task(wins, cap.success)


@singledispatch
def prior(cap: Cap, rate: float, m: int) -> float:
    """What an attacker without the release reaches."""
    raise InputError(f"leakcap cannot measure a {type(cap).__name__}")


@singledispatch
def measure(cap: Cap, seen: Observed, bound: Bound) -> float:
    """The best attacker's figure for this kind of cap, over the worst unit where there are units."""
    raise InputError(f"leakcap cannot measure a {type(cap).__name__}")


@singledispatch
def largest(cap: Cap, rate: float, m: int) -> float:
    """What an attacker who learns the secret world reaches: a cap there or above promises nothing."""
    return 1.0


@singledispatch
def observed_for(cap: Cap, m: int) -> Needs:
    """What must be observed over releases to measure this kind of cap. Nothing: the information alone bounds it."""
    return Needs()


@observed_for.register
def _(cap: Membership | NameAMember | Precision | TruePositiveRate, m: int) -> Needs:
    return Needs(units=True, sticks=isinstance(cap, Precision | TruePositiveRate))


@prior.register
def _(cap: PoolMembership, rate: float, m: int) -> float:
    return 0.5


@prior.register
def _(cap: Membership, rate: float, m: int) -> float:
    return 0.5


@measure.register
@proves("exact-membership")
def _(cap: Membership, seen: Observed, bound: Bound) -> float:
    sampled = 1.0 if seen.units is None else float(bound(seen.units.balanced).max())
    # KL(Bern(a) || Bern(1/2)) <= (2a - 1)^2: where that already leaves more room, the root is not worth its time.
    if sampled <= 0.5 + math.sqrt(seen.mi_ceiling) / 2:
        return sampled
    return min(sampled, balanced_by_information(seen.mi_ceiling, seen.rate))


@lru_cache(maxsize=1024)  # a search asks for the same roots again and again
def balanced_by_information(mi: float, rate: float) -> float:
    """Balanced membership success from the mutual information: the KL root at 1/2, else Pinsker on both sides."""
    if rate == 0.5:
        return float(convert.posterior(mi, 0.5))
    return min(1.0, 0.5 + 0.5 * float(np.sqrt(mi / (2 * rate * (1 - rate)))))


@prior.register
def _(cap: NameAMember, rate: float, m: int) -> float:
    return rate


@measure.register
@proves("tasks")
def _(cap: NameAMember, seen: Observed, bound: Bound) -> float:
    sampled = 1.0 if seen.units is None else float(bound(seen.units.naming)[0])
    return min(sampled, float(convert.posterior(seen.mi_ceiling, seen.rate)))


@prior.register
def _(cap: Precision, rate: float, m: int) -> float:
    return rate


@largest.register
def _(cap: Precision, rate: float, m: int) -> float:
    return min(1.0, rate / cap.claims)  # claims that frequent cannot be right more often than that


@measure.register
@proves("roc")
def _(cap: Precision, seen: Observed, bound: Bound) -> float:
    by_information = float(convert.precision(seen.mi_ceiling, cap.claims, seen.rate))
    if seen.units is None:
        return by_information
    cuts, sticks = _worst_sticks(seen.units, seen.rate, bound)
    return min(1.0, by_information, float((cuts + sticks / cap.claims).min()))


@prior.register
def _(cap: TruePositiveRate, rate: float, m: int) -> float:
    return cap.fpr


@measure.register
@proves("roc")
def _(cap: TruePositiveRate, seen: Observed, bound: Bound) -> float:
    by_information = float(convert.true_positive_rate(seen.mi_ceiling, cap.fpr, seen.rate))
    if seen.units is None:
        return by_information
    cuts, sticks = _worst_sticks(seen.units, seen.rate, bound)
    ratio = cuts * (1 - seen.rate) / (seen.rate * (1 - cuts))
    return min(1.0, by_information, float((ratio * cap.fpr + sticks / (seen.rate * (1 - cuts))).min()))


def _worst_sticks(units: UnitMeans, rate: float, bound: Bound) -> tuple[Floats, Floats]:
    """Thresholds t and bounds on the worst unit's E(q_u - t)_+. At t = q it is half of E|q_u - q|."""
    deviation = (float(bound(units.balanced).max()) - 0.5) * 4 * rate * (1 - rate)
    cuts = np.concatenate([[rate], units.thresholds])
    return cuts, np.concatenate([[deviation / 2], bound(units.sticks).max(axis=1)])


@prior.register
def _(cap: Identification, rate: float, m: int) -> float:
    return 1 / m


@observed_for.register
def _(cap: Identification, m: int) -> Needs:
    return Needs(priors=(Fraction(1, m),))


@measure.register
@proves("leakage-curve")
def _(cap: Identification, seen: Observed, bound: Bound) -> float:
    if seen.shares is None:
        return _curve(Fraction(1, seen.m), seen, bound)
    return naming(seen, bound)


@proves("given-inputs")
def naming(seen: Observed, bound: Bound) -> float:
    """Success at naming the world, which need not be likelier than others: no more than the curve, and often less."""
    likeliest = 1 / seen.m if seen.shares is None else float(seen.shares.max())
    by_information = float(convert.posterior(seen.mi_ceiling, np.nextafter(likeliest, 1)))
    if seen.worlds is None:
        return by_information
    means = [mean for mean, wins in zip(seen.worlds.tasks, seen.worlds.wins, strict=True) if wins is NAMING]
    return min([by_information, *(float(bound(mean)[0]) for mean in means)])


@prior.register
def _(cap: AnyInference, rate: float, m: int) -> float:
    return cap.prior


@observed_for.register
def _(cap: AnyInference, m: int) -> Needs:
    return Needs(priors=(as_fraction(cap.prior),))


@measure.register
@proves("leakage-curve")
def _(cap: AnyInference, seen: Observed, bound: Bound) -> float:
    return _curve(as_fraction(cap.prior), seen, bound)


def _curve(p: Fraction, seen: Observed, bound: Bound) -> float:
    by_information = float(convert.posterior(seen.mi_ceiling, float(p)))
    if seen.worlds is None or p not in seen.worlds.priors:
        return by_information
    return min(by_information, float(bound(seen.worlds.curve)[seen.worlds.priors.index(p)]))


@prior.register
def _(cap: MutualInformation, rate: float, m: int) -> float:
    return 0.0


@largest.register
def _(cap: MutualInformation, rate: float, m: int) -> float:
    return math.log(m)


@observed_for.register
def _(cap: MutualInformation, m: int) -> Needs:
    return Needs(information=True)


@measure.register
@proves("mutual-information")
def _(cap: MutualInformation, seen: Observed, bound: Bound) -> float:
    sampled = np.inf if seen.worlds is None else float(bound(seen.worlds.information)[0])
    return min(sampled, seen.mi_ceiling)


@prior.register
def _(cap: Task, rate: float, m: int) -> float:
    return task_prior(np.asarray(cap.wins))


@observed_for.register
def _(cap: Task, m: int) -> Needs:
    return Needs(tasks=(np.asarray(cap.wins),))


@measure.register
@proves("tasks")
def _(cap: Task, seen: Observed, bound: Bound) -> float:
    wins = np.asarray(cap.wins)
    by_information = float(convert.posterior(seen.mi_ceiling, task_prior(wins, seen.shares)))
    if seen.worlds is None:
        return by_information
    sampled = [
        float(bound(mean)[0])
        for mean, table in zip(seen.worlds.tasks, seen.worlds.wins, strict=True)
        if table is cap.wins
    ]
    return min([by_information, *sampled])
