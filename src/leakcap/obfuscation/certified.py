"""The one place where the encoder asks for certified noise: the least that keeps a cap on the success about one row."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from leakcap.errors import CapError, NumericalError
from leakcap.ground.arrays import Floats, Ints
from leakcap.leakage.confidence import Attempts
from leakcap.obfuscation.design import MixingDesign
from leakcap.obfuscation.least import NoiseForCap
from leakcap.obfuscation.least import least_noise as noise_for_cap
from leakcap.obfuscation.masking import encoding_distance
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import UnitEffort
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs

__all__ = ["EncodingNoise", "least_noise"]

RESERVE = 5e-4  # of success, for the distance of what is computed to the ideal law
FIRST_NOISE = 0.02  # where the search begins, beside rows of length 1


@dataclass(frozen=True)
class EncodingNoise:
    """Noise that keeps a cap, and the figures that were certified with it; rounding and arithmetic are in them."""

    noise: float
    success: float
    mean_success: float
    true_positives: tuple[tuple[float, float], ...]
    theorems: tuple[str, ...]


def least_noise(
    pool: Floats,
    labels: Ints,
    design: MixingDesign,
    *,
    cap: float,
    confidence: float,
    columns: tuple[Ints, ...],
    public: Floats | None = None,
    seed: int | None = None,
) -> EncodingNoise:
    """The least noise with which nobody of the pool is exposed by more than `cap`.

    Means of public rows that are masked and added are known to the attacker, row by row, and count as noise of that
    covariance.

    Args:
        pool: all rows, in the unit ball.
        labels: the class of every row, numbered from 0.
        design: the sizes.
        cap: balanced success that nobody may exceed, above 1/2.
        confidence: of everything that is returned, together.
        columns: of every block.
        public: means of public rows that are added to the released ones, in the order of the pairs of classes.
        seed: of a simulation.
    """
    if cap - RESERVE <= 0.5:
        raise CapError(f"choose a cap above {0.5 + RESERVE}: closer to a coin flip nothing is certified")
    order = np.concatenate(columns)  # blocks one after the other
    found = _searched(
        np.ascontiguousarray(pool[:, order]),
        labels,
        design,
        public=None if public is None else public[:, order],
        cap=cap - RESERVE,
        gamma=1 - confidence,
        rng=np.random.default_rng(secrets.randbits(128) if seed is None else seed),
    )
    noise, bounds = float(found.obfuscated.noise_std), found.bounds
    distance = encoding_distance(design, noise, 1 if public is None else 2)
    if distance > RESERVE:
        raise NumericalError(
            "so many released numbers cannot be computed accurately enough beside so little noise: release fewer rows "
            "or columns"
        )
    rates = (
        (float(false), min(1.0, float(max(true)) + 2 * distance))
        for false, true in zip(bounds.alarms, bounds.recognised, strict=True)
    )
    return EncodingNoise(
        noise=noise,
        success=min(cap, bounds.worst + distance),
        mean_success=min(cap, bounds.mean_success + distance),
        true_positives=tuple(rates),
        theorems=("obfuscation-pairs", "obfuscation-confidence", "obfuscation-sampler"),
    )


def _searched(
    pool: Floats,
    labels: Ints,
    design: MixingDesign,
    *,
    public: Floats | None,
    cap: float,
    gamma: float,
    rng: np.random.Generator,
) -> NoiseForCap:
    """By the leakage of this folder; columns of the pool are in the order of their blocks."""
    law = MixingLaw(
        labels=labels,
        sampled=design.sampled_per_class,
        mix=design.mix,
        pairs=all_class_pairs(design.classes, design.released_per_pair),
        columns=design.block_dim,
    )
    drawn = None if public is None else lambda _: public  # drawn once, before anything is certified
    release = Obfuscated(pool=pool, law=law, noise_std=FIRST_NOISE, public=drawn, blocks=design.blocks)
    return noise_for_cap(release, cap, effort=UnitEffort(), attempts=Attempts(gamma), rng=rng)
