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
from leakcap.worlds import Worlds, draw_worlds
from reproductions.pac_private_algorithms.mended import MENDED_FIGURES, NOTEBOOK
from reproductions.pac_private_algorithms.paper import BUDGETS, quotes

__all__ = [
    "OURS_CAP",
    "OURS_MI",
    "SERIES",
    "Hinge",
    "Row",
    "Settings",
    "Study",
    "as_printed",
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
AS_PRINTED = "as printed: variance as deviation"
MENDED = "the authors' mended figures"
LEFT_OUT = "the paper's rule, mean or leaves un-noised"
RULE = "the paper's rule, done right"
POLISHED = "the paper's rule, made orthonormal"
HINGE_UNPROTECTED = "plain hinge, no protection"
HINGE_PRINTED = "plain hinge, as printed"
HINGE_RULE = "plain hinge, the paper's rule, done right"
OURS_MI = "ours, equal mutual information"
OURS_CAP = "ours, equal membership cap"
SERIES = (
    UNPROTECTED,
    HALVED,
    AS_PRINTED,
    MENDED,
    ISOTROPIC,
    LEFT_OUT,
    RULE,
    POLISHED,
    HINGE_UNPROTECTED,
    HINGE_PRINTED,
    HINGE_RULE,
    OURS_MI,
    OURS_CAP,
)


@dataclass(frozen=True, eq=False)
class Hinge:
    """The same panel with the plain hinge of the paper's equation 4: only the paper's series are measured."""

    answers: Callable[[Worlds], Floats]  # of all worlds, natural numbers
    whole: Floats
    worlds: int  # at most; fits take long


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
    noised: npt.NDArray[np.bool_] | None = None  # the natural numbers that the public code adds noise to; None for all
    handed_out: Callable[[Floats], Floats] | None = None  # which noise the public code gives to which number
    hinge: Hinge | None = None


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
    paper: bool = False  # the paper's series only: ours are kept as they were
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
    yield from _papers(_Rows(figure, study.data, settings.worlds), study, settings, plan)
    if study.hinge:
        count = min(settings.worlds, study.hinge.worlds)
        yield from _hinged(_Rows(figure, study.data, count), study, settings)
    yield from _quoted(figure, study, settings)
    if not settings.paper:
        yield from _of_ours(_Rows(figure, study.data, settings.worlds), study, settings, plan)


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of one panel."""

    figure: str
    data: str
    worlds: int

    def row(self, series: str, budget: float, scores: Floats, made: Plan | None = None) -> Row:
        certificate = made.certificate if made else None
        return Row(
            self.figure,
            self.data,
            series,
            budget,
            "=",
            _short(np.mean(scores)),
            _short(np.std(scores)),
            cap_of(budget),
            certificate.membership_success if certificate else None,
            certificate.mutual_information if certificate else None,
            len(scores) if len(scores) > 1 else 0,
            self.worlds,
            "",
        )


def _short(value: float) -> float:
    """To six digits: more say nothing, and make the files that are kept long."""
    return float(f"{value:.6g}")


def _papers(rows: _Rows, study: Study, settings: Settings, plan: Plan) -> Iterator[Row]:
    """What needs no protection, and the paper's releases."""
    worlds = np.array([study.natural(answer) for answer in plan.outputs])
    halves = _scores(study, worlds, np.zeros(worlds.shape[1]), settings)
    whole = np.array([study.score(study.whole)])
    for budget in settings.budgets:
        noise = papers_rule(worlds, budget)
        yield rows.row(UNPROTECTED, budget, whole)
        yield rows.row(HALVED, budget, halves)
        printed = as_printed(worlds, budget, study.noised)
        printed = study.handed_out(printed) if study.handed_out else printed
        yield rows.row(AS_PRINTED, budget, _scores(study, worlds, printed, settings))
        yield rows.row(ISOTROPIC, budget, _scores(study, worlds, isotropic(worlds, budget), settings))
        if study.noised is not None:
            some = papers_rule(worlds, budget, study.noised)
            yield rows.row(LEFT_OUT, budget, _scores(study, worlds, some, settings))
        yield rows.row(RULE, budget, _scores(study, worlds, noise, settings))
        if study.polish:
            yield rows.row(POLISHED, budget, _scores(study, worlds, noise, settings, study.polish))


def _hinged(rows: _Rows, study: Study, settings: Settings) -> Iterator[Row]:
    """The paper's releases of plain-hinge fits."""
    assert study.hinge is not None
    units = len(study.columns[0])
    worlds = study.hinge.answers(draw_worlds(units, rows.worlds, np.random.default_rng(settings.seed)))
    whole = np.array([study.score(study.hinge.whole)])
    for budget in settings.budgets:
        yield rows.row(HINGE_UNPROTECTED, budget, whole)
        yield rows.row(HINGE_PRINTED, budget, _scores(study, worlds, as_printed(worlds, budget), settings))
        yield rows.row(HINGE_RULE, budget, _scores(study, worlds, papers_rule(worlds, budget), settings))


def _of_ours(rows: _Rows, study: Study, settings: Settings, plan: Plan) -> Iterator[Row]:
    """Our releases."""
    people = planned(study, settings, lc.membership(cap_of(settings.budgets[0])), settings.draws)
    for place, budget in enumerate(settings.budgets):
        same = plan.recap(lc.mutual_information(budget)) if place else plan
        yield rows.row(OURS_MI, budget, _ours(study, same, settings), same)
        cap = cap_of(budget)
        if cap < 1 and not (settings.thin and place % 2):
            capped = people.recap(lc.membership(cap)) if place else people
            yield rows.row(OURS_CAP, budget, _ours(study, capped, settings), capped)


def _quoted(figure: str, study: Study, settings: Settings) -> Iterator[Row]:
    """What the paper says, and what its authors' mended notebook printed."""
    for budget in settings.budgets:
        said = [(q.series, q.says, q.value, q.place) for q in quotes(figure, study.data) if q.low <= budget <= q.high]
        mended = MENDED_FIGURES.get((figure, study.data))
        if mended:
            said.append((MENDED, "=", mended.at(budget), NOTEBOOK))
        for series, says, value, place in said:
            # 1,000 trials: section 6.2
            yield Row(figure, study.data, series, budget, says, value, 0.0, cap_of(budget), None, None, 1000, 0, place)


def cap_of(budget: float) -> float:
    """The membership success that mutual information stands for (the paper's equation 3); 1 where it bounds nothing."""
    return float(lc.convert.posterior(budget, 0.5))


def papers_rule(worlds: Floats, budget: float, noised: npt.NDArray[np.bool_] | None = None) -> Floats:
    """Algorithm 2 of the paper with A = I: `e_i = sqrt(v_i) sum_j sqrt(v_j) / (2 beta)`, as standard deviations.

    The variances are those of the finite set of worlds: nothing is estimated. What is not in `noised` gets no noise
    and counts for nothing.
    """
    deviations = worlds.std(axis=0)
    if noised is not None:
        deviations = np.where(noised, deviations, 0.0)
    return np.asarray(np.sqrt(deviations * deviations.sum() / (2 * budget)))


def as_printed(worlds: Floats, budget: float, noised: npt.NDArray[np.bool_] | None = None) -> Floats:
    """The same with the variance in the place of the deviation, which is what the public code before April 2025 drew.

    Where a variance is below 1 this is less noise than the promise needs, and where it is above 1 it is more.
    """
    return papers_rule(worlds, budget, noised) ** 2


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
