"""Somebody who knows the mixing and everybody else who was drawn: two rows are left for one place.

More than a server can know, and the certificate holds all the same: its bound is the success of this attacker, on
average over what is drawn (proof page: obfuscation-pairs). So faults show here first. It reckons with the noise as it
was seen in the first trials.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakcap.audit.encoded.attacker import LEAST_NOISE, EncodedAttacker
from leakcap.audit.encoded.game import EncodedTrial
from leakcap.audit.encoded.swapped import swapped_likelihoods
from leakcap.ground.arrays import Floats, Ints

__all__ = ["insider"]


def insider(attacker: EncodedAttacker, trials: Sequence[EncodedTrial], learn: int) -> Floats:
    """Log-likelihood of the release with the target, less that with somebody of its class in its place."""
    seen = float(np.mean([(trial.rest**2).mean() for trial in trials[:learn]]))
    variance = max(seen, LEAST_NOISE**2)
    return np.array([_of_trial(attacker, trial, variance) for trial in trials])


def _of_trial(attacker: EncodedAttacker, trial: EncodedTrial, variance: float) -> Floats:
    game, targets = attacker.game, attacker.targets
    drawn = trial.inside[targets]
    partners = _partners(attacker, trial)
    leaves, joins = np.where(drawn, targets, partners), np.where(drawn, partners, targets)
    weights = trial.weights[:, leaves].toarray()
    gain = np.zeros(len(targets))
    for part, released in zip(game.parts, game.blocks_of(trial.values), strict=True):
        mixture = np.asarray(trial.weights @ part)
        change = part[joins] - part[leaves]
        gain += swapped_likelihoods(mixture, released, weights, change, columns=game.law.columns, variance=variance)[1][
            0
        ]
    # By the swap a target that was drawn leaves, and one that was not joins.
    return np.asarray(np.where(drawn, -gain, gain))


def _partners(attacker: EncodedAttacker, trial: EncodedTrial) -> Ints:
    """Of every target, a uniform row of its class on the other side."""
    labels, found = attacker.game.law.labels, np.empty(len(attacker.targets), dtype=np.intp)
    for place, target in enumerate(attacker.targets):
        others = np.flatnonzero((labels == labels[target]) & (trial.inside != trial.inside[target]))
        found[place] = attacker.rng.choice(others)
    return found
