"""The series of a figure: what a test set says of unprotected, of the paper's and of our releases, budget by budget.

A `Study` is one panel: a mechanism on one data set. Its answers are planned in units in which equal noise does equal
harm; `natural` leads back to the numbers that the paper releases, in which the paper's rule is applied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import leakcap as lc
from leakcap.caps import Cap
from leakcap.planning.plans import Plan
from reproductions.pac_private_algorithms.paper import BUDGETS, quotes

__all__ = [
    "OURS_CAP",
    "OURS_MI",
    "SERIES",
    "Row",
    "Settings",
    "Study",
    "cap_of",
    "isotropic",
    "measured",
    "papers_rule",
    "planned",
]

Floats = npt.NDArray[np.float64]
UNPROTECTED = "no protection"
HALVED = "half of the rows, no noise"
ISOTROPIC = "the paper's isotropic noise"
RULE = "the paper's rule, done right"
POLISHED = "the paper's rule, made orthonormal"
OURS_MI = "ours, equal mutual information"
OURS_CAP = "ours, equal membership cap"
SERIES = (UNPROTECTED, HALVED, ISOTROPIC, RULE, POLISHED, OURS_MI, OURS_CAP)


@dataclass(frozen=True, eq=False)
class Study:
    """One panel of a figure."""

    data: str
    answer: Callable[..., Floats]  # of the rows of one world; offers a kernel where there is one
    columns: tuple[Any, ...]  # the training part
    whole: Floats  # the unprotected answer on the whole training part, in natural numbers
    natural: Callable[[Floats], Floats]  # from a planned answer to the numbers that the paper releases
    score: Callable[[Floats], float]  # of natural numbers, on the test part
    pool_public: tuple[str, ...]
    polish: Callable[[Floats], Floats] | None = None  # what the paper's release could have been made, at no price


@dataclass(frozen=True)
class Settings:
    """How much is simulated."""

    worlds: int = 1024
    releases: int = 200
    budgets: tuple[float, ...] = BUDGETS
    rows: int | None = None  # of the data, for trying things out
    draws: int = 2**14  # to certify membership with; fewer cost a little more noise
    draws_information: int = 2**10  # the noise for mutual information follows from the log-det bound, without sampling
    thin: bool = False  # membership caps at every second budget only
    seed: int = 0

    @staticmethod
    def quick(releases: int | None = None) -> Settings:
        """Toy size: shows that a script runs, not what it finds."""
        return Settings(
            worlds=24, releases=releases or 10, budgets=(2**-4,), rows=180, draws=256, draws_information=256
        )


@dataclass(frozen=True)
class Row:
    """One point of one series; also a line of the CSV file."""

    figure: str
    data: str
    series: str
    mutual_information: float
    says: str  # "=" where measured; how the paper puts it where it is quoted
    mean: float
    spread: float  # standard deviation between releases; 0 where nothing is drawn
    membership_cap: float
    certified_membership: float | None
    certified_information: float | None
    releases: int
    worlds: int
    place: str  # in the paper


def measured(figure: str, study: Study, settings: Settings) -> Iterator[Row]:
    """All points of one panel."""
    plan = planned(study, settings, lc.mutual_information(settings.budgets[0]), settings.draws_information)
    people = planned(study, settings, lc.membership(cap_of(settings.budgets[0])), settings.draws)
    worlds = np.array([study.natural(answer) for answer in plan.outputs])
    halves = _scores(study, worlds, np.zeros(worlds.shape[1]), settings)

    def row(series: str, budget: float, scores: Floats, made: Plan | None = None, says: str = "=") -> Row:
        certificate = made.certificate if made else None
        return Row(
            figure,
            study.data,
            series,
            budget,
            says,
            float(np.mean(scores)),
            float(np.std(scores)),
            cap_of(budget),
            certificate.membership_success if certificate else None,
            certificate.mutual_information if certificate else None,
            len(scores) if len(scores) > 1 else 0,
            settings.worlds,
            "",
        )

    for place, budget in enumerate(settings.budgets):
        yield row(UNPROTECTED, budget, np.array([study.score(study.whole)]))
        yield row(HALVED, budget, halves)
        yield row(ISOTROPIC, budget, _scores(study, worlds, isotropic(worlds, budget), settings))
        noise = papers_rule(worlds, budget)
        yield row(RULE, budget, _scores(study, worlds, noise, settings))
        if study.polish:
            yield row(POLISHED, budget, _scores(study, worlds, noise, settings, study.polish))
        same = plan.recap(lc.mutual_information(budget)) if place else plan
        yield row(OURS_MI, budget, _ours(study, same, settings), same)
        cap = cap_of(budget)
        if cap < 1 and not (settings.thin and place % 2):
            capped = people.recap(lc.membership(cap)) if place else people
            yield row(OURS_CAP, budget, _ours(study, capped, settings), capped)
        for quote in quotes(figure, study.data):
            if quote.low <= budget <= quote.high:
                yield Row(
                    figure,
                    study.data,
                    quote.series,
                    budget,
                    quote.says,
                    quote.value,
                    0.0,
                    cap,
                    None,
                    None,
                    1000,  # section 6.2
                    0,
                    quote.place,
                )


def cap_of(budget: float) -> float:
    """The membership success that mutual information stands for (the paper's equation 3); 1 where it bounds nothing."""
    return float(lc.convert.posterior(budget, 0.5))


def papers_rule(worlds: Floats, budget: float) -> Floats:
    """Algorithm 2 of the paper with A = I: `e_i = sqrt(v_i) sum_j sqrt(v_j) / (2 beta)`, as standard deviations.

    The variances are those of the finite set of worlds: nothing is estimated.
    """
    deviations = worlds.std(axis=0)
    return np.asarray(np.sqrt(deviations * deviations.sum() / (2 * budget)))


def isotropic(worlds: Floats, budget: float) -> Floats:
    """The same noise on every output, `e = sum_j v_j / (2 beta)`: the least that the paper's inequality allows.

    The public code takes the largest `e_i` of the anisotropic rule instead, which is never less.
    """
    return np.full(worlds.shape[1], math.sqrt(float(worlds.var(axis=0).sum()) / (2 * budget)))


def _scores(
    study: Study, worlds: Floats, noise: Floats, settings: Settings, polish: Callable[[Floats], Floats] | None = None
) -> Floats:
    """Test scores of the paper's releases: a world's own answer with independent noise on each number."""
    rng = np.random.default_rng(settings.seed)
    found = np.empty(settings.releases)
    for i in range(settings.releases):
        released = worlds[rng.integers(len(worlds))] + noise * rng.standard_normal(worlds.shape[1])
        found[i] = study.score(polish(released) if polish else released)
    return found


def _ours(study: Study, plan: Plan, settings: Settings) -> Floats:
    """Test scores of our releases, made by the plan itself."""
    found: list[float] = []

    def score(value: Any) -> float:
        found.append(study.score(study.natural(np.asarray(value))))
        return found[-1]

    plan.expected(score, settings.releases, settings.seed)
    return np.array(found[: settings.releases])  # noised ones come first, then ones without noise


def planned(study: Study, settings: Settings, cap: Cap, draws: int) -> Plan:
    """A simulation of the study at a cap."""
    return lc.plan(
        study.answer,
        *study.columns,
        cap=cap,
        worlds=settings.worlds,
        seed=settings.seed,
        weights="equal",
        draws=draws,
        pool_public=study.pool_public,
    )
