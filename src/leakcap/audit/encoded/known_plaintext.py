"""Known plaintexts: whoever knows what some released means are of finds the mask, and with it the others.

No certificate is about this attacker, who was told part of the mixing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakcap.audit import statistics
from leakcap.audit.encoded.attacker import EncodedAttacker
from leakcap.audit.encoded.game import EncodedTrial
from leakcap.audit.verdicts import SHOWN, UNBOUNDED, Finding
from leakcap.ground.arrays import Bools, Floats
from leakcap.obfuscation.sampled import draw_mixed

__all__ = ["KNOWN", "AlignedMask", "known_plaintext"]

KNOWN = "known plaintext"
SHARE_KNOWN = 0.5  # of the released means


@dataclass(frozen=True, eq=False)
class AlignedMask:
    """A mask as known means tell it: its mean `(D, d)`, and the covariance `(D, D)` of each of its columns."""

    mask: Floats
    covariance: Floats

    @classmethod
    def of(cls, means: Floats, released: Floats, variance: float) -> AlignedMask:
        """By least squares, drawn to 0 as far as noise and the mask's own variance `1/d` say."""
        precision = means.T @ means / variance + released.shape[1] * np.eye(means.shape[1])
        covariance = np.linalg.inv(precision)
        return cls(covariance @ (means.T @ released) / variance, covariance)

    def likelihoods(self, means: Floats, released: Floats, variance: float) -> Floats:
        """How likely each released row is a masked mean of these, but for a constant."""
        spread = variance + np.einsum("ij,jk,ik->i", means, self.covariance, means)
        away = ((released - means @ self.mask) ** 2).sum(axis=1)
        return np.asarray(-released.shape[1] * np.log(spread) / 2 - away / (2 * spread))

    def rebuilt(self, released: Floats) -> Floats:
        """The means that released rows are of, by least squares: whole if there are as many columns as before."""
        return np.asarray(released @ np.linalg.pinv(self.mask))


def known_plaintext(attacker: EncodedAttacker, trials: Sequence[EncodedTrial]) -> Finding:
    """Half of the means are known; of each other row the attacker is shown its mean and one that was drawn like it."""
    values = np.array([_told(attacker, trial).mean() for trial in trials])
    return Finding(
        attack=KNOWN,
        question="which of two means a row is, knowing half of them",
        measured=float(values.mean()),
        interval=statistics.mean_interval(values, SHOWN),
        prior=0.5,
        certified=None,
        p_value=1.0,
        verdict=UNBOUNDED,
        trials=len(values),
    )


def _told(attacker: EncodedAttacker, trial: EncodedTrial) -> Bools:
    """Of every row that is not known, whether its mean is told from the other one."""
    game, rng, variance = attacker.game, attacker.rng, attacker.variance
    known = rng.permutation(len(trial.values)) < SHARE_KNOWN * len(trial.values)
    other = draw_mixed(game.law, rng)
    evidence = np.zeros(int((~known).sum()))
    for part, released in zip(game.parts, game.blocks_of(trial.values), strict=True):
        means, decoys = np.asarray(trial.weights @ part), np.asarray(other.weights @ part[other.rows])
        aligned = AlignedMask.of(means[known], released[known], variance)
        sides = [aligned.likelihoods(one[~known], released[~known], variance) for one in (means, decoys)]
        evidence += sides[0] - sides[1]
    return np.asarray(evidence > 0)
