"""The likelihood attack: samples are simulated with and without a target, and the likelier side wins.

After section 7.2 of the paper on learnable obfuscation: the likelihood of the release is averaged over simulated
samples and mixings that contain the target, and over as many that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from leakcap.audit.encoded.attacker import EncodedAttacker
from leakcap.audit.encoded.game import EncodedGame, EncodedTrial
from leakcap.audit.encoded.swapped import swapped_likelihoods
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.sampled import MixingLaw, draw_mixed

__all__ = ["likelihood", "likelihood_as_printed", "swaps_of"]


def likelihood(attacker: EncodedAttacker, trials: Sequence[EncodedTrial], learn: int) -> Floats:
    """With the mask integrated out: released columns are normal, with a covariance that the mask is not in.

    Differs from the paper: its attacker draws masks too, which never come near the one that was used; and samples serve
    all targets here, each of which joins or leaves a sample by a swap with somebody of its class.
    """
    return _likelier(_integrated, attacker, trials)


def likelihood_as_printed(attacker: EncodedAttacker, trials: Sequence[EncodedTrial], learn: int) -> Floats:
    """As the paper has it: mask, mixing and order are drawn at random, and the rest of the release is noise.

    Differs from the paper: its figure guesses in proportion to the likelihoods; here the larger one decides, which is
    right more often. Samples serve all targets.
    """
    return _likelier(_with_mask, attacker, trials)


def _likelier(of_sample: Callable[..., Floats], attacker: EncodedAttacker, trials: Sequence[EncodedTrial]) -> Floats:
    """`(trials, targets)`: log-likelihood, over simulated samples, that a target has joined, less that it has left."""
    cut = [attacker.game.blocks_of(trial.values) for trial in trials]
    released = [np.hstack(block) for block in zip(*cut, strict=True)]  # of all trials beside each other, by block
    sides = [
        np.logaddexp.reduce([of_sample(attacker, released, joined=joined) for _ in range(attacker.simulated)], axis=0)
        for joined in (True, False)
    ]
    return np.asarray(sides[0] - sides[1])


def _integrated(attacker: EncodedAttacker, released: Sequence[Floats], *, joined: bool) -> Floats:
    """`(trials, targets)` log-likelihoods of one simulated sample that each target in turn has joined, or left."""
    game, mixed = attacker.game, draw_mixed(attacker.game.law, attacker.rng)
    places, joins = swaps_of(game.law, mixed.rows, attacker.targets, joined=joined, rng=attacker.rng)
    weights = mixed.weights[:, places].toarray()
    found = np.zeros((_trials(game, released), len(places)))
    for part, columns in zip(game.parts, released, strict=True):
        change = part[joins] - part[mixed.rows[places]]
        base, gains = swapped_likelihoods(
            np.asarray(mixed.weights @ part[mixed.rows]),
            columns,
            weights,
            change,
            columns=game.law.columns,
            variance=attacker.variance,
        )
        found += base[:, None] + gains
    return found


def _trials(game: EncodedGame, released: Sequence[Floats]) -> int:
    return released[0].shape[1] // game.law.columns


def _with_mask(attacker: EncodedAttacker, released: Sequence[Floats], *, joined: bool) -> Floats:
    """The same where a mask was drawn as well, and the distance to the release is that of noise."""
    game, rng = attacker.game, attacker.rng
    mixed, wide = draw_mixed(game.law, rng), game.law.columns
    places, joins = swaps_of(game.law, mixed.rows, attacker.targets, joined=joined, rng=rng)
    weights = mixed.weights[:, places].toarray()
    lengths = (weights**2).sum(axis=0)
    trials = _trials(game, released)
    found = np.zeros((trials, len(places)))
    for part, columns in zip(game.parts, released, strict=True):
        mask = rng.normal(size=(part.shape[1], wide)) / np.sqrt(wide)
        guess = np.asarray(mixed.weights @ part[mixed.rows]) @ mask
        step = (part[joins] - part[mixed.rows[places]]) @ mask  # what a swap adds to a mean, times its weight there
        away = columns.reshape(len(guess), trials, wide) - guess[:, None]
        fits = np.einsum("mrz,mt,tz->rt", away, weights, step, optimize=True)
        squared = (away**2).sum(axis=(0, 2))[:, None] - 2 * fits + lengths * (step**2).sum(axis=1)
        found -= squared / (2 * attacker.variance)
    return found


def swaps_of(law: MixingLaw, rows: Ints, targets: Ints, *, joined: bool, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """At which place of the sample somebody else comes in for each target, and who: the target, or an outsider.

    Where the target is in already, or out already, the same row comes back.
    """
    places = law.labels[targets] * law.sampled + rng.integers(law.sampled, size=len(targets))
    where = np.full(len(law.labels), -1)
    where[rows] = np.arange(len(rows))
    there = where[targets] >= 0
    places = np.where(there, where[targets], places)
    if joined:
        return places, targets
    joins = rows[places].copy()
    for one in np.flatnonzero(there):
        outsiders = np.flatnonzero((law.labels == law.labels[targets[one]]) & (where < 0))
        joins[one] = rng.choice(outsiders)
    return places, joins
