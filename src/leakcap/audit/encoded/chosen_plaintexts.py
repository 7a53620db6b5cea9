"""Chosen plaintexts: two pools, one that can be learnt and one that cannot, are told apart by how well a model learns.

Theorem 1 of the paper on learnable obfuscation as an attack: whatever can be learnt from shows that it can. Every
certificate of an encoded set says that it is not secure against this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from leakcap.audit.encoded.attacker import EncodedAttacker
from leakcap.audit.encoded.game import EncodedGame
from leakcap.audit.verdicts import Finding, judged
from leakcap.ground.arrays import Bools, Floats
from leakcap.noise.entropy import Randomness

__all__ = ["CHOSEN", "chosen_plaintexts", "server_accuracy"]

CHOSEN = "chosen plaintexts"
FOLDS = 5
PENALTY = 0.1  # of the server's model, in units of the released rows' mean squared length


def chosen_plaintexts(attacker: EncodedAttacker, *, releases: int, learn: int, randomness: Randomness) -> Finding:
    """The pool, or the same rows with their labels in a random order, by the toss of a coin: which was encoded?"""
    games = attacker.game, _unlearnable(attacker.game, attacker.rng)
    hard = np.asarray(attacker.rng.permutation(releases) % 2 == 1)
    hard[:learn] = np.arange(learn) % 2 == 1
    trials = [games[int(one)].trial(randomness) for one in hard]
    accuracies = np.array([server_accuracy(trial.values[trial.order], trial.labels) for trial in trials])
    wins = _right(accuracies, hard, learn)
    return judged(
        CHOSEN,
        "which of two pools was encoded",
        int(wins.sum()),
        trials=len(wins),
        prior=0.5,
        certified=None,
        alpha=0.5,
    )


def server_accuracy(rows: Floats, labels: Floats) -> float:
    """How often a linear model, trained on other rows, names a class of an encoded row: what a server can measure."""
    size = PENALTY * float((rows**2).sum(axis=1).mean())
    folds = KFold(min(FOLDS, len(rows)), shuffle=True, random_state=0)
    told: Any = cross_val_predict(Ridge(size), rows, labels, cv=folds)
    return float(np.mean(labels[np.arange(len(rows)), told.argmax(axis=1)] > 0))


def _unlearnable(game: EncodedGame, rng: np.random.Generator) -> EncodedGame:
    return replace(game, pool=replace(game.pool, codes=rng.permutation(game.pool.codes)))


def _right(accuracies: Floats, hard: Bools, learn: int) -> Bools:
    """Guesses about the later encodings, with a cut between the means of the first ones."""
    seen, known = accuracies[:learn], hard[:learn]
    cut = (seen[known].mean() + seen[~known].mean()) / 2
    return np.asarray((accuracies[learn:] <= cut) == hard[learn:])
