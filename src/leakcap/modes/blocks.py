"""Any function, whoever else is known (`leakcap.blocks`, `design="bits"`): a coin for everybody, an answer per block.

A person's coin moves the answer of one block, from one place within the bounds to another, whatever the other coins
show. So noise made for the bounds alone hides it from whoever knows all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.convert import posterior
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.kernels.blocks import InBlocks
from leakcap.modes.about_one import refuse_other_caps, values_of
from leakcap.modes.bits import AFTERWARDS, about_all_coins, sticks
from leakcap.modes.individual import closed_form
from leakcap.modes.interface import Draw, NoiseSettings
from leakcap.modes.pool import exact_total, least_noise_within, plain_space, told_apart, with_noise
from leakcap.noise import Noise, Randomness
from leakcap.simulate.silence import unheard
from leakcap.worlds import Worlds

__all__ = ["CoinsInBlocks", "certified"]

CUT = (
    "The answers of blocks are cut to bounds and added up exactly; a block in which the function fails counts as the "
    "middle of the bounds. Noise is made for the bounds and the number of blocks alone."
)


@dataclass(frozen=True, eq=False)
class CoinsInBlocks:
    """The secret is a coin for everybody; the function runs once more, in every block on those who take part."""

    noise: Noise
    brings: InBlocks
    draw: Draw
    exposure: Floats
    squares: Floats | None = None

    def vector(self, randomness: Randomness) -> Floats:
        coins = self.draw(randomness)
        # A word, a warning or an error that is heard only now would tell about the coins.
        found = unheard(lambda: self.brings.answers(coins))
        answers = np.zeros((1, len(self.noise.deviations))) if found is None else found
        return with_noise(self.noise, exact_total(answers, self.noise.deviations), randomness)


@proves("blocks")
def certified(
    brings: InBlocks, worlds: Worlds, caps: tuple[Cap, ...], settings: NoiseSettings, *, draw: Draw
) -> tuple[CoinsInBlocks, Certificate]:
    """The least noise that keeps a membership cap for answers in blocks, whoever else is known.

    Guarantee: certain, nothing is sampled. No attacker who knows the pool, its blocks, the noise's law and who else
    took part tells with a larger success than certified whether a given person took part.
    """
    if settings.mechanism == "exponential" or settings.floor or settings.weights is not None:
        raise InputError("blocks take Gaussian noise made for their bounds: leave out mechanism, floor and weights")
    refuse_other_caps(caps, worlds.rate)
    deviations, moved, distance = least_noise_within(brings.of.extent, caps, settings.kept)
    worst = told_apart(moved, distance)
    # Blocks share no coins, so that variances add up; within bounds each is at most a quarter of the squared width.
    spread = brings.of.blocks * (brings.of.extent.limits / deviations) ** 2 / 4
    information = about_all_coins(0.5 * float(np.log1p(spread).sum()), distance, worlds.n)
    space = plain_space(len(deviations))
    made = closed_form(
        worlds,
        space,
        settings,
        caps,
        worst=worst,
        values=values_of(caps, worst, apart=math.sqrt(moved), distance=distance),
        mutual_information=information,
        hockey_sticks=sticks(moved, worlds.rate, distance),
        known_memberships=((worlds.n - 1, worst),),
        name_a_member_success=min(1.0, float(posterior(information, worlds.rate))),
        sampler_distance=distance,
        pool_public=(CUT,),
        not_promised=AFTERWARDS,
        theorems=("blocks", "bits", "pool", "sampler", "log-det"),
    )
    everybody = np.full(worlds.n, worst), np.full(worlds.n, moved)
    return CoinsInBlocks(Noise(space, deviations), brings, draw, *everybody), made
