"""Figure 13: the likelihood-ratio attack on Iris, on K-Means and on linear support vector machines.

Shown is the share of right guesses "took part / did not", of one attacker against every flower; half are right
without a release. The attacker scores flowers as Appendix D of the paper says, and learns both laws of every
flower's score from releases that it makes itself: it knows the pool, the worlds and the noise.

Differs from the paper: releases are cut in three. Laws are learnt on the first part; which attack, which threshold and
which flower is most exposed is chosen on the second; the third is counted once. The paper takes the best threshold
after seeing the scores: what this would have said of our third part is in the column `chosen_after`. On scores
that tell nothing it says more than one half.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.stats import binomtest

import leakcap as lc
from leakcap.audit.shadow import scores
from leakcap.audit.shadow.lira import EmpiricalLira, Lira
from leakcap.audit.trials import releases
from leakcap.planning.plans import Plan
from reproductions.pac_private_algorithms.data import Split, iris
from reproductions.pac_private_algorithms.figure import arguments, settings_of
from reproductions.pac_private_algorithms.kmeans import clusters
from reproductions.pac_private_algorithms.paper import ANISOTROPIC, BASELINE, Quote
from reproductions.pac_private_algorithms.picture import drawn, listed, saved
from reproductions.pac_private_algorithms.series import (
    HALVED,
    OURS_CAP,
    OURS_MI,
    RULE,
    Row,
    Settings,
    Study,
    cap_of,
    papers_rule,
    planned,
)
from reproductions.pac_private_algorithms.svm import machine

Floats = npt.NDArray[np.float64]
Members = npt.NDArray[np.bool_]
ATTACKS = (Lira("online"), Lira("online", "pooled"), EmpiricalLira("online"), EmpiricalLira("offline"))
RELEASES = 6000  # for each point: a quarter to learn from, a quarter to choose on, a half to judge
CUTS = np.linspace(0.01, 0.99, 99)  # thresholds that are tried: quantiles of the statistics
LEVEL = 0.99  # of the intervals in the table
QUOTES = (  # the paper tells advantages: shares of right guesses less one half
    Quote("13", "K-Means", BASELINE, "≈", 0.5961, "section 8"),
    Quote("13", "K-Means", ANISOTROPIC, "≈", 0.5115, "section 8", low=2**-6, high=2**-6),
    Quote("13", "SVM, C = 1", BASELINE, "≈", 0.554, "section 8"),
    Quote("13", "SVM, C = .05", BASELINE, "≈", 0.543, "section 8"),
)


@dataclass(frozen=True)
class Point(Row):
    """One point of one series: `mean` is the success against all flowers, `spread` that between releases."""

    attack: str
    low: float  # of the mean, from the spread between releases: guesses in one release depend on each other
    high: float
    most_exposed: float  # success against the flower that was chosen
    most_exposed_low: float
    most_exposed_high: float
    chosen_after: float


@dataclass(frozen=True, eq=False)
class Panel:
    """A mechanism, and the paper's confidence in each flower under its released numbers."""

    name: str
    study: Study
    confidence: Callable[[Floats], Floats]  # (k, numbers) -> (k, flowers)


def panels(split: Split) -> Iterator[Panel]:
    x = split.x

    def near(numbers: Floats) -> Floats:
        return scores.kmeans_confidence(x, numbers.reshape(len(numbers), split.classes, -1))

    def sure(numbers: Floats) -> Floats:
        lines = numbers.reshape(len(numbers), -1, x.shape[1] + 1)
        return scores.svm_confidence(x, lines[:, :, :-1], lines[:, :, -1])

    yield Panel("K-Means", clusters(split), near)
    yield Panel("SVM, C = 1", machine(split, 1.0), sure)
    yield Panel("SVM, C = .05", machine(split, 0.05), sure)


@dataclass(frozen=True)
class Success:
    """Of an attacker, on releases that had no part in its making."""

    attack: str
    by_release: Floats
    most_exposed: tuple[float, float, float]
    chosen_after: float


def attacked(confidence: Floats, inside: Members) -> Success:
    """Learn on the first quarter of the releases, choose on the second, judge on the rest."""
    learn, choose, judge = (slice(*ends) for ends in np.array([[0, 1], [1, 2], [2, 4]]) * len(confidence) // 4)
    best = -1.0
    for attack in ATTACKS:
        statistics = attack.fit(confidence[learn], inside[learn])
        found = statistics(confidence[choose])
        for cut in np.quantile(found, CUTS):
            right = ((found > cut) == inside[choose]).mean(axis=0)
            if right.mean() > best:
                best, chosen, threshold, flower = right.mean(), attack, cut, int(right.argmax())
    judged = chosen.fit(confidence[learn], inside[learn])(confidence[judge])
    right = (judged > threshold) == inside[judge]
    wins = int(right[:, flower].sum())
    sure = binomtest(wins, len(right)).proportion_ci(LEVEL, method="exact")
    after = [((judged > cut) == inside[judge]).mean(axis=0) for cut in np.quantile(judged, CUTS, axis=0)]
    return Success(
        str(chosen), right.mean(axis=1), (wins / len(right), sure.low, sure.high), float(np.max(after, axis=0).mean())
    )


def measured(panel: Panel, settings: Settings) -> Iterator[Point]:
    """All points of one panel."""
    study, k = panel.study, settings.releases
    plan = planned(study, settings, lc.mutual_information(settings.budgets[0]), settings.draws_information)
    people = planned(study, settings, lc.membership(cap_of(settings.budgets[0])), settings.draws)
    masks = plan.worlds.masks()
    answers = np.array([study.natural(answer) for answer in plan.outputs])
    rng = np.random.default_rng(settings.seed)

    def papers(noise: Floats | float) -> Success:
        """A world's own answer with independent noise on each number."""
        world = rng.integers(len(answers), size=k)
        noised = answers[world] + noise * rng.standard_normal((k, answers.shape[1]))
        return attacked(panel.confidence(noised), masks[world])

    def ours(made: Plan) -> Success:
        trials = releases(made, k)
        return attacked(panel.confidence(np.array([study.natural(seen) for seen in trials.seen])), trials.inside())

    def point(series: str, budget: float, found: Success, made: Plan | None = None) -> Point:
        certificate = made.certificate if made else None
        mean, spread = float(found.by_release.mean()), float(found.by_release.std())
        margin = 2.576 * spread / np.sqrt(len(found.by_release))  # normal, 99 %
        return Point(
            "13",
            panel.name,
            series,
            budget,
            "=",
            mean,
            spread,
            cap_of(budget),
            certificate.membership_success if certificate else None,
            certificate.mutual_information if certificate else None,
            k,
            settings.worlds,
            "",
            found.attack,
            mean - margin,
            mean + margin,
            *found.most_exposed,
            found.chosen_after,
        )

    bare = papers(0.0)
    for place, budget in enumerate(settings.budgets):
        yield point(HALVED, budget, bare)
        yield point(RULE, budget, papers(papers_rule(answers, budget)))
        same = plan.recap(lc.mutual_information(budget)) if place else plan
        yield point(OURS_MI, budget, ours(same), same)
        cap = cap_of(budget)
        if cap < 1 and not (settings.thin and place % 2):
            capped = people.recap(lc.membership(cap)) if place else people
            yield point(OURS_CAP, budget, ours(capped), capped)


def quoted(budgets: Sequence[float], panel: str) -> list[Row]:
    """What the paper's text says."""
    return [
        Row(
            "13",
            panel,
            quote.series,
            budget,
            quote.says,
            quote.value,
            0.0,
            cap_of(budget),
            None,
            None,
            1000,  # caption of Figure 13
            0,
            quote.place,
        )
        for quote in QUOTES
        for budget in budgets
        if quote.data == panel and quote.low <= budget <= quote.high
    ]


def pictured(points: Sequence[Point], rows: Sequence[Row]) -> Figure:
    """Means as lines, the most exposed flower as dots, and the bound that the budget stands for."""
    figure = drawn([*points, *rows], "Figure 13: the likelihood-ratio attack, Iris", "share of right guesses")
    for axis in figure.axes:
        here = [point for point in points if point.data == axis.get_title()]
        bounds = sorted({(point.mutual_information, point.membership_cap) for point in here})
        axis.plot(*zip(*bounds, strict=True), color="0.1", linewidth=1.6)
        axis.annotate("bound", bounds[0], xytext=(0, 5), textcoords="offset points", fontsize=8)
        for line in axis.get_lines():
            shown = [point for point in here if point.series == line.get_label()]
            if shown and line.get_label() != HALVED:
                budgets = [point.mutual_information for point in shown]
                worst = [point.most_exposed for point in shown]
                axis.plot(budgets, worst, ".", color=line.get_color(), alpha=0.5, markersize=5)
        axis.set_ylim(0.48, 1.02)
    return figure


def main(given: Sequence[str] | None = None) -> None:
    """Write the figure."""
    options = arguments(str(__doc__), given)
    if options.panels:
        raise SystemExit("Figure 13 takes minutes and is made whole: leave out --panels")
    settings = settings_of(options)
    if not options.releases:
        settings = Settings(**{**vars(settings), "releases": 200 if options.quick else RELEASES})
    stem = options.out / "figure_13"
    points: list[Point] = []
    rows: list[Row] = []
    for number, panel in enumerate(panels(iris(settings.rows)), start=1):
        if options.quick and number > 1:
            break
        began = time.perf_counter()
        points += measured(panel, settings)
        rows += quoted(settings.budgets, panel.name)
        print(f"Figure 13, {panel.name}: {time.perf_counter() - began:.0f} s", flush=True)
        head = [field.name for field in fields(Point)]
        empty = ("",) * (len(head) - len(fields(Row)))
        table = [*(astuple(point) for point in points), *((*astuple(row), *empty) for row in rows)]
        listed(head, table, stem.with_suffix(".csv"))
        saved(pictured(points, rows), stem)
    for point in points:
        if point.most_exposed_low > point.membership_cap and point.series != HALVED:
            print(f"above the bound: {point.data}, {point.series}, {point.mutual_information:g}")


if __name__ == "__main__":
    main()
