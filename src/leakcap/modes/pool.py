"""Being in the data at all (`lc.pool_membership`): sums over everybody, with noise made for declared bounds alone.

Nothing here looks at the pool but the sums themselves: neither noise, rank and grid nor the certificate. So an attacker
who knows everybody else is left with two Gaussians whose means are no further apart than the bounds allow: it is
Gaussian differential privacy, stated as the success of that attacker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from leakcap.caps import Cap, PoolMembership
from leakcap.certificates.release import Certificate
from leakcap.errors import CapError
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.kernels.bounded import Bounded, Extent
from leakcap.leakage.certify import entropy_slack
from leakcap.modes.about_one import furthest_apart
from leakcap.modes.bits import sticks
from leakcap.modes.interface import Everybody, NoiseSettings, capped_figures, certificate
from leakcap.noise import GRID, Noise, Randomness, Subspace, released_vector
from leakcap.noise.bounded import charge, least_deviations
from leakcap.noise.entropy import sampler_distance
from leakcap.noise.laws import NORMAL

__all__ = [
    "FINE",
    "SumsOfAll",
    "certified",
    "exact_total",
    "least_noise_within",
    "plain_space",
    "pool_caps",
    "told_apart",
    "whole_steps",
    "with_noise",
]

FINE = 2.0**-32  # of a noise deviation: what a person brings is cut to multiples of it, so that sums are exact
ROUNDING = 1e-12
BLOCK = 2**22  # numbers that are added up at a time
PUBLISHED = (
    "Published: the figures on this page, the bounds and the noise, none of which depends on the data. The error bars "
    "and the form of the answer (shape, keys, labels) follow from the released noisy sums and the public bounds.",
)
ASSUMED = (
    "Nobody but the custodian learns the noise; it comes from the operating system.",
    "Bounds, keys and the most rows of a person were chosen without looking at the data; which columns and people the "
    "question is about, too.",
    "What is made of the sums looks at the noised sums alone.",
)
BLOCKS = (
    "People were put into blocks by a keyed function (SipHash) with a fresh key, which behaves like a random one; the "
    "number of blocks was chosen without looking at the data."
)
NOT_PROMISED = (
    "What the answer says about people in general may be applied to anybody: that is what it is published for.",
    "A second answer about the same people adds to this one: squares of the Gaussian distance add up.",
    "Whoever would learn of a person from another's data (a relative's genome) is not stopped: only what the person's "
    "own rows bring is hidden.",
    "Nothing else that the custodian lets out is covered: timing, memory use, remarks.",
)


@dataclass(frozen=True, eq=False)
class SumsOfAll:
    """Everybody takes part. What each brings is cut to a fine grid, so that the sums are exact whole numbers of it."""

    noise: Noise
    total: Ints  # (d,), in multiples of FINE of the noise deviations
    exposure: Floats
    squares: Floats | None = None

    def vector(self, randomness: Randomness) -> Floats:
        return with_noise(self.noise, self.total, randomness)


def pool_caps(caps: tuple[Cap, ...]) -> None:
    """Refuse any other kind of cap beside pool caps."""
    for cap in caps:
        if not isinstance(cap, PoolMembership):
            raise CapError(
                f"a pool cap stands alone: {type(cap).__name__} is about who of the pool was used, and here everybody "
                "is. Leave one of them out"
            )


@proves("pool")
def certified(brings: Bounded, caps: tuple[Cap, ...], settings: NoiseSettings) -> tuple[SumsOfAll, Certificate]:
    """The least noise that hides whether any one person is in the data, whoever else is known.

    Guarantee: certain, nothing is sampled, and nothing of it depends on the data. No attacker who knows everybody else
    tells with a larger success than certified whether a given person is in the data; nor recognises people who are, at
    a larger rate, at any rate of false alarms, than two Gaussians at the stated distance allow.
    """
    pool_caps(caps)
    deviations, moved, distance = least_noise_within(brings.extent, caps, settings.kept)
    worst = told_apart(moved, distance)
    space = plain_space(len(deviations))
    made = certificate(
        "pool",
        Everybody(),
        space,
        settings,
        kind="pool",
        capped=capped_figures(caps, caps, (worst,) * len(caps), (0.5, 2)),
        membership_success=worst,
        mutual_information=min(math.log(2), 0.5 * math.log1p(moved / 4) * (1 + 1e-9) + entropy_slack(distance, 2)),
        leakage_curve=(),
        hockey_sticks=sticks(moved, 0.5, distance),
        name_a_member_success=1.0,
        confidence=1.0,
        gamma=0.0,
        gamma_used=0.0,
        bounds=1,
        draws=(),
        integrated=True,
        sampler_distance=distance,
        pool_public=(*PUBLISHED, *settings.pool_public),
        assumptions=ASSUMED if brings.people is None else (*ASSUMED, BLOCKS),
        not_promised=NOT_PROMISED,
        theorems=("pool", "sampler") if brings.people is None else ("blocks", "pool", "sampler"),
    )
    people = len(brings.values) if brings.people is None else brings.people
    total = exact_total(brings.values, deviations, moved)
    return SumsOfAll(Noise(space, deviations), total, np.full(people, worst), np.full(people, moved)), made


def least_noise_within(extent: Extent, caps: tuple[Cap, ...], kept: float = 0.0) -> tuple[Floats, float, float]:
    """Deviations of the least noise that keeps caps on one person within these limits; how far, squared, somebody then
    moves the sums; and the sampler's distance. All of it from what was declared."""
    distance = sampler_distance(len(extent.limits), 1.0)
    deviations = least_deviations(extent, furthest_apart(caps, NORMAL, max(distance, kept)) ** 2)
    return deviations, charge(extent, deviations), distance


def told_apart(moved: float, distance: float) -> float:
    """Success of the best guess between two normal laws, `moved` apart in squares; rounded up."""
    return min(1.0, float(ndtr(math.sqrt(moved) / 2)) * (1 + ROUNDING) + distance)


def plain_space(d: int) -> Subspace:
    """Sums as they are, of which nothing is known beforehand."""
    return Subspace(
        centre=np.zeros(d),
        scale=np.ones(d),
        coordinates=np.zeros((1, d)),
        directions=np.eye(d),
        dual=None,
        outputs=np.zeros((1, d)),
        flat=np.zeros(d, dtype=bool),
    )


def exact_total(values: Floats, deviations: Floats, moved: float = math.inf) -> Ints:
    """Sums in multiples of FINE of the noise deviations; each value is cut towards 0, never to more than its limit.

    `moved` is the squared distance, in deviations, by which one of those who bring may move all sums.
    """
    total = np.zeros(len(deviations), dtype=np.int64)
    step = max(1, BLOCK // len(deviations))
    for start in range(0, len(values), step):
        total += whole_steps(values[start : start + step], deviations, moved).sum(axis=0)
    return total


def whole_steps(values: Floats, deviations: Floats, moved: float = math.inf) -> Ints:
    """What everybody brings in multiples of FINE of the noise deviations, cut towards 0."""
    whitened = values / deviations
    # Each number is within its limits; whoever moves several of which one was declared to move is caught here.
    if (np.einsum("ud,ud->u", whitened, whitened) > moved * (1 + 1e-9)).any():
        raise AssertionError("a unit brings more than its limits")
    return np.trunc(whitened / FINE).astype(np.int64)


def with_noise(noise: Noise, total: Ints, randomness: Randomness) -> Floats:
    """A released vector around an exact total."""
    whole, rest = np.divmod(total, round(GRID / FINE))
    return released_vector(noise, rest * FINE * noise.deviations, GRID, randomness, whole=whole)
