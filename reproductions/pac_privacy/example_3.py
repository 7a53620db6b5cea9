"""Example 3: the mean of half of 60,000 pictures, at one nat about the half.

The covariance of that mean has a closed form, so that nothing need be simulated. It gives a noise of norm .718 by the
paper's rule where everybody is in by a coin (the paper's text: independently selected) and .658 where halves have one
size. The paper prints .28: what the covariance of 100 simulated halves of one size gives. A hundred halves show 99 of
3,072 directions, so that figure bounds nothing. Algorithm 2, which looks at distances alone, needs 6.73 or 3.12; the
paper prints 3.94. What is certified stands beside it: over 1,024 known halves, and for one person whoever else is
known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import leakcap as lc
from leakcap import kernels
from leakcap.certificates.layout import rounded_up
from leakcap.worlds import Units, Worlds
from reproductions.pac_privacy.cifar import PIXELS, SCALE, Moments, pictures
from reproductions.pac_privacy.output import Row, arguments, bars, printed, written
from reproductions.pac_privacy.rules import Floats, algorithm_2, least_noise, norm, papers_noise

__all__ = ["closed_forms", "main", "mean_of_half", "plugged_in", "zcdp"]

NATS, HALVES, SIMULATED, SETS = 1.0, 1024, 100, 5
CAPS = {
    "leakcap, exact": lc.mutual_information(NATS),
    "leakcap, exact, membership .60": lc.membership(0.60),
    "leakcap, exact, membership .55": lc.membership(0.55),
}


def zcdp(d: int = PIXELS, units: int = 60_000, nats: float = NATS) -> float:
    """Norm of the noise for `nats/units` of zCDP, where one picture moves the answer by `sqrt(d)/(units/2)`."""
    deviation = math.sqrt(d) / (units / 2) / math.sqrt(2 * nats / units)
    return math.sqrt(d) * deviation


def closed_forms(moments: Moments) -> list[Row]:
    """What follows from the covariance of the answer, by a coin for everybody and for halves of one size."""
    found = []
    for game, variances, printed_norm, second in (
        ("coins", moments.independent(), 0.28, 3.94),  # the paper: independently selected
        ("halves of one size", moments.fixed_size(), None, None),
    ):
        d = len(variances)
        found += [
            Row(game, "the paper's rule", NATS, norm(papers_noise(variances, NATS)), printed_norm, "information"),
            Row(game, "log-det", NATS, norm(least_noise(variances, NATS)), None, "information"),
            Row(game, "Algorithm 2", NATS, norm(algorithm_2(variances.sum(), d, NATS)), second, "information"),
        ]
    return [*found, Row("coins", "zCDP", NATS, zcdp(len(moments.sums), moments.count), 17.7, "any two pictures")]


def sums_of(pixels: npt.NDArray[np.uint8], masks: npt.NDArray[np.bool_]) -> Floats:
    """`(masks, d)`: sums of the pictures in each mask. Below 2^24 they are exact in single precision."""
    most = int(masks.sum(axis=1).max()) * 255
    assert most < 2**24
    found = np.zeros((len(masks), pixels.shape[1]))
    for start in range(0, len(pixels), 4000):
        part = slice(start, start + 4000)
        found += masks[:, part].astype(np.float32) @ pixels[part].astype(np.float32)
    return found


def plugged_in(pixels: npt.NDArray[np.uint8], halves: int = SIMULATED, sets: int = SETS) -> list[Row]:
    """The paper's rule on the covariance of simulated halves, by coins and of one size: what bounds nothing."""
    n, found = len(pixels), []
    for game in ("coins", "halves of one size"):
        norms = []
        for seed in range(sets):
            rng = np.random.default_rng(seed)
            chosen = rng.integers(2, size=(halves, n)) if game == "coins" else rng.permuted(_halves(n, halves), axis=1)
            means = sums_of(pixels, chosen.astype(bool)) / (SCALE * n / 2)
            spread = np.linalg.svd(means - means.mean(axis=0), compute_uv=False)[: halves - 1]
            norms.append(norm(papers_noise(spread**2 / (halves - 1), NATS)))
        told = f"nothing; {min(norms):.3f} to {max(norms):.3f} over {sets} sets"
        rule = f"the paper's rule, plug-in of {halves} halves"
        found.append(Row(game, rule, NATS, float(np.mean(norms)), 0.28 if game != "coins" else None, told))
    return found


def _halves(units: int, count: int) -> npt.NDArray[np.int8]:
    return np.tile((np.arange(units) < units // 2).astype(np.int8), (count, 1))


def _all_halves(data: tuple[Any, ...], units: Units, worlds: Worlds) -> Floats:
    (pixels,) = data
    masks = np.stack([worlds.mask(world) for world in range(worlds.m)])
    return sums_of(pixels, masks) / (SCALE * masks.sum(axis=1)[:, None])


@kernels.offers(_all_halves, tolerance=1e-9)
def mean_of_half(pixels: Any) -> Any:
    """The mean of these pictures."""
    return pixels.sum(axis=0, dtype=np.float64) / (SCALE * len(pixels))


def certified(pixels: npt.NDArray[np.uint8], halves: int = HALVES) -> list[Row]:
    """Over known halves, with nothing estimated."""
    plan, found = None, []
    for rule, cap in CAPS.items():
        plan = (
            lc.plan(
                mean_of_half,
                pixels,
                cap=cap,
                worlds=halves,
                design="worlds",
                weights="equal",
                seed=3,
                progress=False,
            )
            if plan is None
            else plan.recap(cap)
        )
        one = plan.certificate
        told = f"certified: {rounded_up(one.mutual_information, 3):.3f} nats, membership "
        told += f"{rounded_up(one.membership_success, 4):.4f}"
        nats = NATS if isinstance(cap, type(CAPS["leakcap, exact"])) else None
        game = f"{halves:,} known halves"
        found.append(Row(game, rule, nats, norm(plan.noise.output_deviations**2), None, told))
    return found


def by_coins(pixels: npt.NDArray[np.uint8], caps: Sequence[float] = (0.60, 0.55)) -> list[Row]:
    """A coin for everybody and a cap on membership that holds whoever else is known."""
    count, plan, found = len(pixels), None, []
    for cap in caps:
        plan = (
            lc.plan(
                lc.additive(lambda rows: rows / (SCALE * count), each="row"),
                pixels,
                cap=lc.membership(cap),
                design="bits",
                weights="equal",
                seed=3,
                progress=False,
            )
            if plan is None
            else plan.recap(lc.membership(cap))
        )
        told = f"certified: membership {rounded_up(plan.certificate.membership_success, 4):.4f}, whoever else is known"
        rule = f"leakcap, bits, membership {cap:.2f}"
        found.append(Row("coins", rule, None, norm(plan.noise.output_deviations**2), None, told))
    return found


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`example_3.csv`, a picture, and a table; it needs CIFAR-10."""
    options = arguments("Example 3 of PAC Privacy", given)
    pixels = pictures()
    table = closed_forms(Moments.of(pixels)) + plugged_in(pixels, sets=1 if options.quick else SETS)
    if not options.quick:
        table += certified(pixels)
        table += by_coins(pixels)
    written("example3", table, options)
    bars(table, "Example 3: the mean of half of 60,000 pictures", options.out / "example_3")
    printed(table)
    return table


if __name__ == "__main__":
    main()
