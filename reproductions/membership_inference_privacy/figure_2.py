"""Figure 2: a covariance matrix of three columns and 500,000 rows, by DP-SGD, by the paper's MIP, and by ours.

Shown is `|A - Sigma| / |Sigma|` (Frobenius), the mean of ten runs and its standard error. `A` is what gradient descent
on `|A - mean of x x'|^2` finds on a random half. It is symmetric: six numbers are released.

* *DP-SGD*, full batch: gradients clipped at their median, Gaussian noise on their sum, divided by the number of rows;
  steps composed exactly (Gaussian differential privacy, add or remove one row, delta 1e-5); eta by Theorem 4.
* *The paper's MIP*: Corollary 10 as printed, for M = 2, 4, 6, moments from 128 splits. Its radius has no
  proof for several numbers, and fails for many (`attacks`).
* *A first moment*: the same norm and the same moments, density `exp(-|x|/s)` with `s = 1/artanh(2 eta)`.
* *leakcap*: `lc.plan` on the six columns of products, Gaussian and exponential noise, with a coin for everybody; and,
  for some eta, over random halves (`mode="individual"`), which is the paper's own game. Nothing is estimated there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.special import ndtr
from sklearn.datasets import make_spd_matrix

import leakcap as lc
from leakcap import convert
from leakcap.noise import Seeded
from leakcap.noise.norm import NormNoise
from reproductions.membership_inference_privacy.output import arguments, keep
from reproductions.membership_inference_privacy.paper import epsilon_of, mip_scale, printed_noise, unit_weights
from reproductions.pac_private_algorithms.picture import listed, saved

__all__ = ["ETAS", "Pool", "Row", "clipped_descent", "main", "measured", "noise_multiplier"]

Floats = npt.NDArray[np.float64]
ROWS, RUNS, SPLITS = 500_000, 10, 128
ETAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.49)
IN_HALVES = (0.01, 0.1, 0.4)  # over random halves a plan of this size takes most of a minute
POWERS = (2, 4, 6)
STEPS, RATE, DELTA = 25, 0.25, 1e-5  # of the descent
UPPER = np.triu_indices(3)
Release = Callable[[int], Floats]  # from the number of a run to six numbers


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows and what they were drawn from."""

    rows: Floats
    sigma: Floats

    @classmethod
    def of(cls, n: int, seed: int = 0) -> Pool:
        sigma = make_spd_matrix(3, random_state=seed)
        return cls(np.random.default_rng(seed).multivariate_normal(np.zeros(3), sigma, size=n), sigma)

    @property
    def products(self) -> Floats:
        """`(n, 6)`, the entries of `x x'` on and above the diagonal."""
        return np.asarray(self.rows[:, UPPER[0]] * self.rows[:, UPPER[1]])

    def error(self, released: Floats) -> float:
        """Relative error of the symmetric matrix with these six entries."""
        found = np.empty((3, 3))
        found[UPPER] = found[UPPER[::-1]] = released
        return float(np.linalg.norm(found - self.sigma) / np.linalg.norm(self.sigma))


@dataclass(frozen=True)
class Row:
    """One point of the figure."""

    series: str
    eta: float
    scale: float  # of the noise, in the norm in which the moment is 1; 0 where there is none
    error: float
    spread: float  # standard error of the mean


# ---- the paper's ways ---------------------------------------------------------------------------------------------


def noise_multiplier(eta: float, steps: int) -> float:
    """Deviation of the noise over the clipping bound, for DP of `epsilon_of(eta)` and delta after all steps."""
    epsilon = epsilon_of(eta)

    def delta(mu: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))

    return math.sqrt(steps) / float(brentq(lambda mu: delta(mu) - DELTA, 1e-4, 50))


def clipped_descent(rows: Floats, multiplier: float, rng: np.random.Generator, steps: int = STEPS) -> Floats:
    """Full-batch DP-SGD from 0; the clipping bound is the median gradient along the descent without clipping."""
    squares = (rows**2).sum(axis=1)
    mean = rows.T @ rows / len(rows)
    found, path = np.zeros((3, 3)), []
    for _ in range(steps):
        path.append(float(np.median(_lengths(rows, squares, found))))
        found = found - RATE * 2 * (found - mean)
    bound = float(np.median(path))
    found = np.zeros((3, 3))
    for _ in range(steps):
        weight = np.minimum(1, bound / np.maximum(_lengths(rows, squares, found), 1e-300))
        total = 2 * (weight.sum() * found - (rows * weight[:, None]).T @ rows)
        noise = rng.standard_normal((3, 3)) * multiplier * bound
        found = found - RATE * (total + noise) / len(rows)
    return np.asarray((found + found.T)[UPPER] / 2)


def _lengths(rows: Floats, squares: Floats, found: Floats) -> Floats:
    """Of every row's gradient, `|2 (A - x x')|`."""
    inner = ((rows @ found) * rows).sum(axis=1)
    return np.asarray(2 * np.sqrt(np.maximum(squares**2 - 2 * inner + (found**2).sum(), 0)))


def moments_of(products: Floats, splits: int, rng: np.random.Generator) -> dict[int, Floats]:
    """The M-th root of the M-th absolute central moment of each entry, over random halves: an estimate."""
    means = np.array([products[_half(len(products), rng)].mean(axis=0) for _ in range(splits)])
    apart = np.abs(means - means.mean(axis=0))
    return {power: np.asarray((apart**power).mean(axis=0) ** (1 / power)) for power in POWERS}


def _half(n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    return rng.permutation(n)[: n // 2]


# ---- all of them --------------------------------------------------------------------------------------------------


def measured(pool: Pool, etas: Sequence[float], runs: int, splits: int) -> Iterator[Row]:
    """Every point of the figure."""
    products, rng = pool.products, np.random.default_rng(1)
    halves = [_half(len(products), rng) for _ in range(runs)]
    answers = np.array([products[half].mean(axis=0) for half in halves])
    moments = moments_of(products, splits, rng)
    judge = partial(_judged, pool, runs)
    yield judge("no noise", 0.5, 0.0, lambda run: answers[run])
    plans = {
        f"leakcap, {name} noise, a coin for everybody": lc.plan(
            lc.stats.mean, products, cap=0.5 + etas[0], design="bits", seed=0, mechanism=name
        )
        for name in ("gaussian", "exponential")
    }
    halved = lc.plan(lc.stats.mean, products, cap=0.5 + IN_HALVES[0], mode="individual", worlds=64, seed=0)
    for eta in etas:
        multiplier = noise_multiplier(eta, STEPS)
        yield judge(
            "DP-SGD, full batch",
            eta,
            multiplier,
            lambda run, multiplier=multiplier: clipped_descent(
                pool.rows[halves[run]], multiplier, np.random.default_rng([2, run])
            ),
        )
        for power in POWERS:
            scale = mip_scale(eta, power)
            yield judge(
                f"the paper's MIP, M = {power}",
                eta,
                scale,
                lambda run, power=power, eta=eta: (
                    answers[run] + printed_noise(moments[power], power, eta, np.random.default_rng([3, run]))
                ),
            )
            ours = NormNoise(unit_weights(moments[power], power), power, float(convert.scale_for_mip(1.0, eta)))
            yield judge(
                f"a first moment, M = {power}",
                eta,
                ours.scale,
                lambda run, ours=ours: answers[run] + ours.draw(Seeded(run)),
            )
        for name, plan in plans.items():
            yield judge(name, eta, 0.0, _released(plan.recap(0.5 + eta)))
        if eta in IN_HALVES:
            kept = halved if eta == IN_HALVES[0] else halved.recap(0.5 + eta)
            yield judge("leakcap, Gaussian noise, random halves", eta, 0.0, _released(kept))


def _released(plan: lc.Plan) -> Release:
    return lambda run: plan.releaser.vector(Seeded(run))


def _judged(pool: Pool, runs: int, series: str, eta: float, scale: float, release: Release) -> Row:
    errors = np.array([pool.error(release(run)) for run in range(runs)])
    found = Row(series, eta, scale, float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(runs)))
    print(f"{series}, eta {eta:g}: {found.error:.4g} +- {found.spread:.2g}", flush=True)
    return found


LOOKS: dict[str, dict[str, Any]] = {
    "no noise": {"color": "0.4", "linestyle": "--"},
    "DP-SGD": {"color": "#b8a100", "marker": "v"},
    "the paper's MIP": {"color": "#d1495b", "marker": "s"},
    "a first moment": {"color": "#2a9d8f", "marker": "o"},
    "leakcap, gaussian": {"color": "#1d3557", "marker": "D"},
    "leakcap, exponential": {"color": "#457b9d", "marker": "^"},
    "leakcap, Gaussian": {"color": "#1d3557", "marker": "*", "linestyle": ":"},
}
DASHES = {"M = 2": "-", "M = 4": "--", "M = 6": ":"}


def drawn(table: Sequence[Row]) -> Figure:
    """Error against eta, both on logarithmic scales."""
    figure = Figure(figsize=(8.2, 5.4), layout="constrained")
    axis = figure.subplots()
    for series in dict.fromkeys(row.series for row in table):
        here = [row for row in table if row.series == series]
        look = next(look for name, look in LOOKS.items() if series.startswith(name))
        dash = next((dash for name, dash in DASHES.items() if name in series), look.get("linestyle", "-"))
        if series == "no noise":
            axis.axhline(here[0].error, label=series, **look)
            continue
        axis.errorbar(
            [row.eta for row in here],
            [row.error for row in here],
            [row.spread for row in here],
            label=series,
            markersize=4,
            linewidth=1.2,
            **{**look, "linestyle": dash},
        )
    axis.axhline(1, color="0.85", linewidth=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("eta")
    axis.set_ylabel("relative error of the covariance matrix")
    axis.set_title("Figure 2: d = 3, n = 500,000" if len(table) > 40 else "Figure 2, toy size", fontsize=11)
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`figure_2.csv`, `.svg` and `.png`."""
    options = arguments("Figure 2: error of a private covariance matrix", given)
    pool = Pool.of(2000 if options.quick else ROWS)
    etas = (0.01, 0.4) if options.quick else ETAS
    table = list(measured(pool, etas, 3 if options.quick else RUNS, 16 if options.quick else SPLITS))
    listed([field.name for field in fields(Row)], [astuple(row) for row in table], options.out / "figure_2.csv")
    saved(drawn(table), options.out / "figure_2")
    if not options.quick:
        _kept(table)
    return table


def _kept(table: Sequence[Row]) -> None:
    at = {(row.series, row.eta): row for row in table}
    printed, ours = at["the paper's MIP, M = 2", 0.1], at["a first moment, M = 2", 0.1]
    most = max((row for row in table if row.series.startswith("a first moment")), key=lambda row: row.error)
    small = max((row for row in table if row.series.startswith("leakcap")), key=lambda row: row.error)
    dp = [row.error for row in table if row.series.startswith("DP")]
    below = [row.eta for row in table if row.series == "the paper's MIP, M = 2" and row.error < 1]
    keep(
        "figure2",
        "figure-2",
        claim="Figure 2 (covariance of 3 columns, 500,000 rows): scale at eta .1, and relative errors",
        asked="a scale of 4.93 where the paper needs 3,795; error below 1 at every eta from .01 on",
        seen=(
            f"scale {ours.scale:.2f} where the paper needs {printed.scale:,.0f}; largest error at eta of .01 and more: "
            f"{most.error:.2f} by a first moment ({most.series.removeprefix('a first moment, ')}, eta {most.eta:g}), "
            f"{small.error:.4f} by leakcap's plans; the paper's own, M = 2, is below 1 from eta {min(below):g} on. "
            f"DP-SGD gives {min(dp):.2f} to {max(dp):.2f}, the bias of clipping at the median, not above 1 as printed"
        ),
    )


if __name__ == "__main__":
    main()
