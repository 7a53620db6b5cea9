"""The clock that everybody has: how far apart two answers may be in all, squared, and what an answer takes of it.

With a coin for everybody, or everybody in, an attacker who knows all others is left with two Gaussians. The squares of
their distances, answer by answer, add up whatever is asked next, and everybody has a clock of the square that the cap
allows (docs/proofs/linear-sessions.md). Clocks are counted in whole ticks, each 10^-12 of the clock at the start:
charges are rounded up, and the clock down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.caps import Cap, Membership, PoolMembership, TruePositiveRate
from leakcap.custody.ledger.accounts import TICKS
from leakcap.errors import CapError, InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.modes.about_one import furthest_apart
from leakcap.noise.laws import NORMAL

__all__ = ["Clock"]

ROUNDING = 1e-12  # relative: what sums of squares and the normal law lose, with room to spare
FOR_THE_SAMPLER = 1e-4  # of what a cap allows beyond chance, kept for all that samplers are off in a session


@dataclass(frozen=True)
class Clock:
    """Everybody's clock under some caps."""

    square: float  # how far apart two answers may be in all, squared, in noise deviations; rounded down
    distance: float  # in total variation, by which the laws of all answers together may be off

    @classmethod
    @proves("linear-sessions")
    def of(cls, caps: tuple[Cap, ...]) -> Clock:
        """The shortest of the caps' clocks.

        Guarantee: whatever is asked, as long as nobody's charges exceed it, no cap is exceeded; rounded down.
        """
        _refuse_other_caps(caps)
        distance = FOR_THE_SAMPLER * min(_room(cap) for cap in caps)
        return cls(furthest_apart(caps, NORMAL, distance) ** 2 * (1 - ROUNDING), distance)

    def share(self, part: float) -> float:
        """A squared distance: this part of the whole clock, rounded down."""
        return checks.positive(share=part) * self.square * (1 - 4 * ROUNDING)

    @proves("linear-sessions")
    def ticks(self, squares: Floats) -> Ints:
        """What squared distances cost; rounded up, at least 1.

        Nothing where the square is 0: nobody is told apart by an answer to which they bring nothing.
        """
        if not np.isfinite(squares).all() or (squares < 0).any():
            raise InputError("charges must be finite and not below 0: give a larger noise")
        whole = np.ceil(squares * (TICKS / self.square * (1 + 4 * ROUNDING)))
        # More than 2^60 ticks are a million clocks, which nobody has.
        return np.where(squares > 0, np.clip(whole, 1, 2.0**60), 0).astype(np.int64)


def _room(cap: Cap) -> float:
    """What a cap allows beyond chance; no more than its rate of false alarms."""
    return min(cap.at_most - cap.fpr, cap.fpr) if isinstance(cap, TruePositiveRate) else cap.limit - 0.5


def _refuse_other_caps(caps: tuple[Cap, ...]) -> None:
    for cap in caps:
        if isinstance(cap, PoolMembership) and len(caps) > 1:
            raise CapError("a pool cap stands alone in a session: leave the other caps out")
        if not isinstance(cap, (Membership, TruePositiveRate, PoolMembership)):
            raise CapError(
                f"a session caps guesses at one person named in advance, and {type(cap).__name__} is none: a bound on "
                "it would have to count all people together. Use leakcap.membership(...), mip(...) or "
                "true_positive_rate(...), or a single release with design='worlds'"
            )
        if cap.limit >= 1:
            raise CapError("a cap of 100 % limits nothing: choose one below it, such as leakcap.membership(0.6)")
