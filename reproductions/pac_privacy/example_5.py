"""Example 5: the mean of n draws of a Gaussian law, and how much less noise one individual needs than all of them.

Three games, which are not to be mixed up:

* (13), *all records*: one value tells at most v nats about all n draws together. The paper's rule, and log-det, which
  is the least Gaussian noise here.
* (12), *one record*: at most v nats about the value of one draw, by whoever knows the law and none of the others. They
  are noise themselves: for v of at least d/2 log(n/(n-1)) nothing need be added. The least noise is found exactly.
* *which half* of a pool that the attacker may know to the last digit: leakcap's. `optimize_noise` looks for less noise
  among all covariances and says below what no covariance keeps the cap. At v nats about the half, and, in the game of
  one person, at the membership cap that v nats about one fair bit stand for.

Equation (14) bounds the difference between the first two from below. It is right for eigenvalues of the covariance of
the *mean*, `Sigma/n`; with those of `Sigma`, as printed, it would exceed the noise that there is in all (column
`equation_14_as_printed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import leakcap as lc
from leakcap import convert
from reproductions.pac_privacy.output import arguments, written
from reproductions.pac_privacy.rules import Floats, least_noise, least_noise_for_one, papers_noise
from reproductions.pac_private_algorithms.picture import saved

__all__ = ["Line", "equation_14", "line", "main", "pool"]

EIGENVALUES = np.array([4.0, 1.0, 0.25, 0.0625])
N = 100
BUDGETS = (1.0, 0.25, 0.05, 0.02, 0.01)
OPTIMISED = (1.0, 0.25, 0.05)
SECONDS = 15.0


@dataclass(frozen=True)
class Line:
    """Total variances of the noise at one number of nats."""

    nats: float
    all_records_paper: float  # (13) by the paper's rule
    all_records_least: float  # (13), log-det
    one_record_least: float  # (12)
    difference: float  # between the paper's rule and (12)
    equation_14: float  # of the covariance of the mean
    equation_14_as_printed: float
    known_half: float | None = None  # leakcap, which half, shape="best"
    known_half_optimised: float | None = None
    known_half_lower_bound: float | None = None
    one_person: float | None = None  # leakcap, mode="individual", membership cap of so many nats


def equation_14(eigenvalues: Floats, n: int, nats: float) -> float:
    """The right-hand side of (14) as it stands there, of these eigenvalues."""
    roots = np.sqrt(eigenvalues)
    whole = roots * roots.sum() / (2 * nats)
    if nats >= len(eigenvalues) / (n - 1):
        return float(whole.sum())
    return float(np.minimum(whole, (n - 1) * eigenvalues).sum())


def line(nats: float, eigenvalues: Floats = EIGENVALUES, n: int = N) -> Line:
    """The closed forms at one number of nats."""
    of_mean = eigenvalues / n
    papers, one = papers_noise(of_mean, nats).sum(), least_noise_for_one(eigenvalues, n, nats).sum()
    return Line(
        nats,
        float(papers),
        float(least_noise(of_mean, nats).sum()),
        float(one),
        float(papers - one),
        equation_14(of_mean, n, nats),
        equation_14(eigenvalues, n, nats),
    )


def pool(eigenvalues: Floats = EIGENVALUES, n: int = N, seed: int = 5) -> Floats:
    """Twice n draws: a half of them is n."""
    return np.asarray(np.random.default_rng(seed).normal(size=(2 * n, len(eigenvalues))) * np.sqrt(eigenvalues))


def searched(found: Line, seconds: float = SECONDS, worlds: int = 1024) -> Line:
    """The same line with leakcap's noise for a pool of such draws."""
    rows = pool()
    plan = lc.plan(
        lc.stats.mean,
        rows,
        cap=lc.mutual_information(found.nats),
        worlds=worlds,
        design="worlds",
        weights="equal",
        seed=5,
        progress=False,
    )
    better = lc.optimize_noise(plan, seconds=seconds)
    return Line(
        **{
            **vars(found),
            "known_half": better.before,
            "known_half_optimised": better.after,
            "known_half_lower_bound": better.lower_bound,
            "one_person": for_one_person(found.nats, rows),
        }
    )


def for_one_person(nats: float, rows: Floats) -> float | None:
    """Noise at the membership cap that so many nats about a fair bit stand for; None where they bound nothing."""
    if nats >= np.log(2):
        return None
    plan = lc.plan(
        lc.stats.mean,
        rows,
        cap=lc.membership(float(convert.posterior(nats, 0.5))),
        mode="individual",
        design="worlds",
        weights="equal",
        seed=5,
        progress=False,
    )
    return float((plan.noise.output_deviations**2).sum())


def drawn(table: Sequence[Line]) -> Figure:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    nats = [one.nats for one in table]
    for name, words, look in (
        ("all_records_paper", "all records, the paper's rule (13)", "s-"),
        ("all_records_least", "all records, log-det (13)", "s--"),
        ("one_record_least", "one record, least (12)", "x-"),
        ("known_half", "which half, leakcap", "o-"),
        ("known_half_optimised", "which half, optimize_noise", "o--"),
        ("known_half_lower_bound", "which half, no less than", "v:"),
        ("one_person", "one person, leakcap", "D-"),
    ):
        points = [(x, getattr(one, name)) for x, one in zip(nats, table, strict=True) if getattr(one, name)]
        if points:
            axis.plot(*zip(*points, strict=True), look, label=words, markersize=4)
    axis.set(xscale="log", yscale="log", xlabel="nats", ylabel="total variance of the noise")
    axis.set_title(f"Example 5: the mean of {N} draws in {len(EIGENVALUES)} dimensions", fontsize=11)
    axis.legend(fontsize=8)
    return figure


def main(given: Sequence[str] | None = None) -> list[Line]:
    """`example_5.csv`, a picture, and a table."""
    options = arguments("Example 5 of PAC Privacy", given)
    table = [line(nats) for nats in BUDGETS]
    size: dict[str, Any] = {"seconds": 0.5, "worlds": 64} if options.quick else {}
    table = [searched(one, **size) if one.nats in OPTIMISED else one for one in table]
    written("example5", table, options)
    saved(drawn(table), options.out / "example_5")
    for one in table:
        print(", ".join(f"{name} {value:.4g}" for name, value in vars(one).items() if value is not None))
    return table


if __name__ == "__main__":
    main()
