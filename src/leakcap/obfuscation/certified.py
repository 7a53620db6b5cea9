"""Where the encoder asks for certified figures: of the least noise that keeps a cap, or of noise that was given."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.caps import Cap, Membership, membership
from leakcap.errors import CapError, InputError, NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import Attempts
from leakcap.obfuscation.design import MixingDesign
from leakcap.obfuscation.least import least_noise as noise_for_cap
from leakcap.obfuscation.masking import encoding_distance
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import UnitBounds, UnitEffort, certify_units
from leakcap.obfuscation.pools import EncodablePool
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs

__all__ = [
    "EncodingNoise",
    "Tick",
    "certified_noise",
    "claims_right",
    "law_of",
    "least_noise",
    "noise_or_cap",
    "obfuscation_of",
    "source_of",
]

RESERVE = 5e-4  # of success, for the distance of what is computed to the ideal law
FIRST_NOISE = 0.02  # where the search begins, beside rows of length 1
WIDTH = 0.005  # of success: near enough to what was seen, for noise that was given
OFTEN = 0.5  # share of releases in which an attacker makes a claim
INACCURATE = (
    "so many released numbers cannot be computed accurately enough beside so little noise: release fewer rows or "
    "columns, or choose more noise"
)

Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class EncodingNoise:
    """Noise, and the figures that were certified with it; rounding and arithmetic are in them.

    Attributes:
        noise: standard deviation in every cell.
        success: balanced success about the worst row of the pool, at most.
        mean_success: the same on average over the pool.
        true_positives: false positive rates, and the most true positives with each.
        claims: how often a claim is made, how often a blind one is right, and how often one is right at most.
        draws: that were made for everybody in the certification that is stated.
        again: that were made for those who were near the cap.
        attempts: certifications, each with a share of the failure probability.
    """

    noise: float
    success: float
    mean_success: float
    true_positives: tuple[tuple[float, float], ...]
    claims: tuple[float, float, float]
    draws: int
    again: int
    attempts: int
    theorems: tuple[str, ...] = ("obfuscation-pairs", "obfuscation-confidence", "obfuscation-sampler")


def law_of(labels: Ints, design: MixingDesign) -> MixingLaw:
    """The public rules of an encoding, as its leakage knows them."""
    return MixingLaw(
        labels=labels,
        sampled=design.sampled_per_class,
        mix=design.mix,
        pairs=all_class_pairs(design.classes, design.released_per_pair),
        columns=design.block_dim,
    )


def obfuscation_of(
    pool: EncodablePool, *, public: Floats | None, noise: float, backend: str | None = None
) -> Obfuscated:
    """What an encoding of the pool releases; columns are in the order of their blocks.

    Means of public rows that are masked and added are known to the attacker, row by row, and count as noise of that
    covariance; they were drawn once, before anything is certified.
    """
    order = np.concatenate(pool.columns)
    mixed = None if public is None else public[:, order]
    return Obfuscated(
        pool=np.ascontiguousarray(pool.rows[:, order]),
        law=law_of(pool.codes, pool.design),
        noise_std=noise,
        public=None if mixed is None else lambda _: mixed,
        blocks=pool.design.blocks,
        backend=backend,
    )


def least_noise(
    pool: EncodablePool,
    cap: float,
    *,
    confidence: float,
    effort: UnitEffort,
    public: Floats | None = None,
    backend: str | None = None,
    seed: int | None = None,
    tick: Tick | None = None,
) -> EncodingNoise:
    """The least noise with which nobody of the pool is exposed by more than `cap`.

    Args:
        pool: to be encoded.
        cap: balanced success that nobody may exceed, above 1/2.
        confidence: of everything that is returned, together.
        effort: draws of one certification.
        public: means of public rows that are added to the released ones, in the order of the pairs of classes.
        backend: "torch:cuda" computes on a GPU.
        seed: of a simulation.
        tick: called with draws made and draws at most, in every certification.
    """
    if cap - RESERVE <= 0.5:
        raise CapError(f"choose a cap above {0.5 + RESERVE}: closer to a coin flip nothing is certified")
    release = obfuscation_of(pool, public=public, noise=FIRST_NOISE, backend=backend)
    found = noise_for_cap(
        release, cap - RESERVE, effort=effort, attempts=Attempts(1 - confidence), rng=source_of(seed), tick=tick
    )
    noise = float(found.obfuscated.noise_std)
    stated = _stated(found.bounds, release.law, noise, _distance(pool.design, noise, public), attempts=found.attempts)
    assert stated.success <= cap
    return stated


def certified_noise(
    pool: EncodablePool,
    noise: float,
    *,
    confidence: float,
    effort: UnitEffort,
    public: Floats | None = None,
    backend: str | None = None,
    seed: int | None = None,
    tick: Tick | None = None,
) -> EncodingNoise | None:
    """What noise that was given is worth, or None for so little that arithmetic hides it.

    It takes the same as the least noise for a cap, and stops when it knows to half a point.
    """
    release = obfuscation_of(pool, public=public, noise=noise, backend=backend)
    try:
        distance = _distance(pool.design, noise, public)
        bounds = certify_units(
            release, effort=effort, gamma=1 - confidence, rng=source_of(seed), width=WIDTH, tick=tick
        )
    except NumericalError:
        return None
    return _stated(bounds, release.law, noise, distance, attempts=1)


def source_of(seed: int | None) -> np.random.Generator:
    """Of draws that certify: never the release's own."""
    return np.random.default_rng(secrets.randbits(128) if seed is None else seed)


def _distance(design: MixingDesign, noise: float, public: Floats | None) -> float:
    distance = encoding_distance(design, noise, 1 if public is None else 2)
    if distance > RESERVE:
        raise NumericalError(INACCURATE)
    return distance


def _stated(bounds: UnitBounds, law: MixingLaw, noise: float, distance: float, *, attempts: int) -> EncodingNoise:
    rates = (
        (float(false), min(1.0, float(max(true)) + 2 * distance))
        for false, true in zip(bounds.alarms, bounds.recognised, strict=True)
    )
    told = np.minimum(2 * (np.asarray(bounds.success) + distance) - 1, 1.0)
    return EncodingNoise(
        noise=noise,
        success=min(1.0, bounds.worst + distance),
        mean_success=min(1.0, bounds.mean_success + distance),
        true_positives=tuple(rates),
        claims=(OFTEN, float(law.rates.max()), claims_right(told, law.rates, OFTEN)),
        draws=bounds.draws,
        again=bounds.again,
        attempts=attempts,
    )


@proves("obfuscation-pairs")
def claims_right(told: Floats, rates: Floats, often: float) -> float:
    """The largest share of right ones among claims "this row was drawn", made in a share `often` of releases.

    Guarantee: for every row whose two laws are told apart by at most `told`, drawn with probability `rates`: of the
    claims a share `often` is `q a + (1-q) b` with `a - b <= told`, so that `a <= often + (1-q) told`.
    """
    bounds = np.minimum(rates * (1 + (1 - rates) * told / often), rates / often)
    return float(np.minimum(bounds * (1 + 1e-12), 1.0).max())


def noise_or_cap(noise: Any, cap: Any) -> tuple[float | None, Cap | None]:
    """One of the two, checked: noise that was given, or a cap on membership."""
    if cap is not None and noise is not None and noise == 0:
        raise InputError("without noise no cap holds: leave noise= out, and the least that keeps the cap is found")
    if cap is not None and noise is not None:
        raise InputError("give noise= or cap=, not both: a cap finds the least noise that keeps it")
    if cap is None and noise is None:
        raise InputError("give cap=, such as leakcap.membership(0.6), or noise=; noise=0 promises nothing")
    if cap is None:
        return checks.nonnegative(noise=noise), None
    found = cap if isinstance(cap, Cap) else membership(cap)
    if not isinstance(found, Membership):
        raise CapError("an encoder keeps caps on membership: cap=leakcap.membership(0.6)")
    return None, found
