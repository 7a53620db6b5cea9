"""What every attacker on an encoded set works with: the pool, the rules, and rows of the pool to ask about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leakcap.audit.encoded.game import EncodedGame, EncodedTrial
from leakcap.ground.arrays import Bools, Floats, Ints

__all__ = ["LEAST_NOISE", "EncodedAttack", "EncodedAttacker", "middle_cut"]

LEAST_NOISE = 1e-4  # that attackers reckon with: without any, laws are singular


@dataclass(frozen=True, eq=False)
class EncodedAttacker:
    """An attacker's knowledge and means.

    Attributes:
        game: the pool, and how it is encoded.
        targets: places in the pool of the rows that are asked about.
        simulated: encodings that it makes of its own, for those attacks that simulate.
        rng: where its own choices come from.
    """

    game: EncodedGame
    targets: Ints
    simulated: int
    rng: np.random.Generator

    @property
    def variance(self) -> float:
        """Of the noise that it reckons with."""
        return max(self.game.noise, LEAST_NOISE) ** 2

    def inside(self, trials: Sequence[EncodedTrial]) -> Bools:
        """`(trials, targets)`: who was drawn."""
        return np.array([trial.inside[self.targets] for trial in trials])


# From the trials, of which it may look at the secrets of the first few, to scores of every target in each: above 0 says
# that it was drawn.
EncodedAttack = Callable[[EncodedAttacker, Sequence[EncodedTrial], int], Floats]


def middle_cut(scores: Floats, inside: Bools, learn: int) -> Floats:
    """Scores less a cut for each target: half way between those of members and of others in the first `learn` trials.

    Nothing is learnt from trials that are judged. A target that was always in, or never, has a cut at its own mean.
    """
    seen, known = scores[:learn], inside[:learn]
    members, others = known.sum(axis=0), (~known).sum(axis=0)
    means = [np.where(some, seen, 0.0).sum(axis=0) / np.maximum(some.sum(axis=0), 1) for some in (known, ~known)]
    cut = np.where((members > 0) & (others > 0), (means[0] + means[1]) / 2, seen.mean(axis=0))
    return np.asarray(scores - cut)
