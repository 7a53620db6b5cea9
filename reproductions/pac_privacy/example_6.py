"""Example 6: a picture of CIFAR-10 that is published itself, at one nat about which of the 60,000 it is.

The paper's two figures, 1.6e2 by Theorem 3 and 2.2e3 by local differential privacy, are its formulas. Beside them stand
log-det, which is never more than Theorem 3, and what `leakcap.local.publish` certifies over a list of pictures, where
nothing is estimated. Over a shorter list less noise is enough at the same number of nats: there is less to tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import leakcap as lc
from leakcap.certificates.layout import rounded_up
from reproductions.pac_privacy.cifar import PIXELS, Moments, pictures
from reproductions.pac_privacy.output import Row, arguments, bars, printed, written
from reproductions.pac_privacy.rules import Floats, least_noise, norm, papers_noise

__all__ = ["closed_forms", "listed_pictures", "local_dp", "main"]

NATS = 1.0
LISTS = (256, 1024, 4096)


def local_dp(d: int = PIXELS, nats: float = NATS) -> float:
    """Norm of Gaussian noise for `nats` of zCDP, numbers between 0 and 1: deviation `sqrt(d)/sqrt(2 nats)` each."""
    return d / math.sqrt(2 * nats)


def closed_forms(eigenvalues: Floats, count: int) -> list[Row]:
    """What follows from the covariance of all pictures."""
    game = f"one of {count:,}"
    return [
        Row(game, "local DP (zCDP)", NATS, local_dp(len(eigenvalues)), 2.2e3, "any two pictures"),
        Row(game, "the paper's rule", NATS, norm(papers_noise(eigenvalues, NATS)), 1.6e2, "information"),
        Row(game, "log-det", NATS, norm(least_noise(eigenvalues, NATS)), None, "information"),
    ]


def listed_pictures(pixels: Floats, seed: int = 6, draws: int | None = None) -> list[Row]:
    """The paper's rule, log-det and `local.publish` over a list of pictures."""
    game = f"one of {len(pixels):,}"
    sizes = np.linalg.svd(pixels - pixels.mean(axis=0), compute_uv=False) ** 2 / len(pixels)
    plan = lc.local.plan(
        pixels, cap=lc.mutual_information(NATS), weights="equal", seed=seed, draws=draws, progress=False
    )
    certificate = plan.certificate
    told = f"certified: {rounded_up(certificate.mutual_information, 4):.4f} nats, named "
    told += f"{rounded_up(certificate.name_the_input_success or 1.0, 4):.4f}"
    return [
        Row(game, "the paper's rule", NATS, norm(papers_noise(sizes, NATS)), None, "information"),
        Row(game, "log-det", NATS, norm(least_noise(sizes, NATS)), None, "information"),
        Row(game, "leakcap.local.publish", NATS, norm(plan.noise.output_deviations**2), None, told),
    ]


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`example_6.csv`, a picture, and a table; it needs CIFAR-10."""
    options = arguments("Example 6 of PAC Privacy", given)
    pixels = pictures()
    table = closed_forms(Moments.of(pixels).covariance(), len(pixels))
    order = np.random.default_rng(6).permutation(len(pixels))
    for count in LISTS[:1] if options.quick else LISTS:
        table += listed_pictures(pixels[order[:count]] / 255.0)
    written("example6", table, options)
    bars(table, "Example 6: a picture that is published, one nat", options.out / "example_6")
    printed(table)
    return table


if __name__ == "__main__":
    main()
