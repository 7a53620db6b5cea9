"""The best possible attacker, on pools so small that every sample, mixing and naming of classes can be listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import comb, factorial, log, prod

import numpy as np

from leakcap.audit.encoded.attacker import EncodedAttacker
from leakcap.audit.encoded.game import EncodedGame, EncodedTrial
from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.obfuscation.mixing import pair_labels, pairs
from leakcap.obfuscation.sampled import MixingLaw

__all__ = ["bayes", "can_be_listed"]

MOST_LAWS = 200_000  # samples times mixings
MOST_CLASSES = 5
AT_ONCE = 2**22  # likelihoods in memory


def can_be_listed(game: EncodedGame) -> bool:
    """Whether everything that may have been drawn fits into memory."""
    law = game.law
    samples = prod(comb(int(size), law.sampled) for size in np.bincount(law.labels))
    mixings = len(law.pairs) * 2 * log(comb(law.sampled, law.mix))
    return law.classes <= MOST_CLASSES and log(samples) + mixings <= log(MOST_LAWS)


def bayes(attacker: EncodedAttacker, trials: Sequence[EncodedTrial], learn: int) -> Floats:
    """Log-odds that each target was drawn, from an even prior: no method has more balanced success.

    Rows and labels are taken as they left: their order tells nothing about rows of the same two classes, and all names
    of the classes are tried.
    """
    game = attacker.game
    if not can_be_listed(game):
        raise InputError(
            "the pool is too large for the attack 'bayes', which lists every sample and mixing: leave it out, or try "
            "a pool of a few rows"
        )
    laws = _Laws.of(game, attacker.variance)
    step = max(1, AT_ONCE // (len(laws.inside) * factorial(game.law.classes)))
    parts = [laws.log_odds(game, trials[start : start + step]) for start in range(0, len(trials), step)]
    return np.concatenate(parts)[:, attacker.targets]


@dataclass(frozen=True, eq=False)
class _Laws:
    """Every sample and mixing: who is drawn, and of each block the precision and the logarithm of its determinant."""

    inside: Bools  # (laws, N)
    precisions: list[Floats]  # (laws, m * m)
    logs: Floats  # (laws,)

    @classmethod
    def of(cls, game: EncodedGame, variance: float) -> _Laws:
        law, columns = game.law, game.law.columns
        samples, tables = _samples(law), _mixings(law)
        inside = np.zeros((len(samples), len(law.labels)), dtype=np.bool_)
        for place, rows in enumerate(samples):
            inside[place, rows] = True
        precisions, logs = [], np.zeros(len(samples) * len(tables))
        for part in game.parts:
            means = np.concatenate([tables @ part[rows] for rows in samples])
            covariances = means @ means.transpose(0, 2, 1) / columns + variance * np.eye(means.shape[1])
            precisions.append(np.linalg.inv(covariances).reshape(len(means), -1))
            logs += np.linalg.slogdet(covariances)[1] * columns / 2
        return cls(np.repeat(inside, len(tables), axis=0), precisions, logs)

    def log_odds(self, game: EncodedGame, trials: Sequence[EncodedTrial]) -> Floats:
        """`(trials, N)`."""
        likelihoods = np.array([self._likelihoods(game, trial) for trial in trials])
        likelihoods = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
        inside = self.inside.astype(np.float64)
        with np.errstate(divide="ignore"):
            sides = [np.log(likelihoods @ some / some.sum(axis=0)) for some in (inside, 1 - inside)]
        return np.asarray(np.nan_to_num(sides[0] - sides[1], nan=0.0))

    def _likelihoods(self, game: EncodedGame, trial: EncodedTrial) -> Floats:
        """`(laws,)`, averaged over the names of the classes."""
        found = []
        left = trial.values[trial.order]
        for rows in _arrangements(game, trial.labels):
            grams = [(part @ part.T).ravel() for part in game.blocks_of(left[rows])]
            found.append(-self.logs - sum(one @ gram for one, gram in zip(self.precisions, grams, strict=True)) / 2)
        return np.asarray(np.logaddexp.reduce(found, axis=0))


def _samples(law: MixingLaw) -> list[Ints]:
    classes = [np.flatnonzero(law.labels == one) for one in range(law.classes)]
    every = product(*(combinations(rows.tolist(), law.sampled) for rows in classes))
    return [np.array([row for rows in chosen for row in rows], dtype=np.intp) for chosen in every]


def _mixings(law: MixingLaw) -> Floats:
    """`(mixings, m, n)`, all equally likely."""
    parts = [np.array(chosen) for chosen in combinations(range(law.sampled), law.mix)]
    of_rows = []
    for pair in law.pairs:
        choices = np.zeros((len(parts) ** 2, law.members))
        for place, halves in enumerate(product(parts, repeat=2)):
            for one, half in zip(pair, halves, strict=True):
                choices[place, one * law.sampled + half] += 1 / (2 * law.mix)
        of_rows.append(choices)
    picks = np.indices([len(one) for one in of_rows]).reshape(len(of_rows), -1)
    return np.stack([choices[pick] for choices, pick in zip(of_rows, picks, strict=True)], axis=1)


def _arrangements(game: EncodedGame, labels: Floats) -> list[Ints]:
    """For all names of the classes: which released row stands at each pair of classes."""
    wanted = np.lexsort(pair_labels(*pairs(game.pool.design), game.law.classes).T)
    found = []
    for names in permutations(range(game.law.classes)):
        rows = np.empty(len(labels), dtype=np.intp)
        rows[wanted] = np.lexsort(labels[:, list(names)].T)
        found.append(rows)
    return found
