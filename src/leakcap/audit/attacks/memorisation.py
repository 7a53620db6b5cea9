"""The attacker who asks a model for planted labels: which of two, or which of all wrong ones. Proof page: memorisation.

Nothing here is chosen by scores or by labels: how many canaries are guessed about is fixed before, and a guess sees
the candidates without knowing which was planted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leakcap.audit import statistics
from leakcap.audit.canaries import CanaryKey
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.proofs import proves

__all__ = ["EVERY_LABEL", "ONE_DECOY", "CanaryGuesses", "guesses_of", "largest_lower_end", "together"]

ONE_DECOY, EVERY_LABEL = "one decoy", "every wrong label"


@dataclass(frozen=True)
class CanaryGuesses:
    """Counts of one game: so many canaries guessed, so many right.

    Attributes:
        game: "one decoy" or "every wrong label".
        candidates: labels that a guess chose from.
        canaries: number of canaries in the run, guessed or not.
        guesses: number that the attacker guessed about, fixed before.
        right: number that were right.
    """

    game: str
    candidates: int
    canaries: int
    guesses: int
    right: int

    @proves("memorisation")
    def p_value(self, epsilon: float, delta: float) -> float:
        """P-value against (epsilon, delta)-privacy of each label.

        Guarantee: for a training that is so private in each label it is at most `a` with probability at most `a`.
        """
        return statistics.one_run(
            self.right, self.guesses, epsilon, delta, bits=self.canaries, candidates=self.candidates
        )

    @proves("memorisation")
    def epsilon_lower(self, delta: float, alpha: float) -> float:
        """The largest epsilon that these counts refute; 0 where they refute none.

        Guarantee: exceeds the training's epsilon, at this delta, with probability at most `alpha`.
        """
        return statistics.one_run_epsilon(
            self.right, self.guesses, alpha, delta, bits=self.canaries, candidates=self.candidates
        )

    def epsilon_upper(self, alpha: float) -> float:
        """The epsilon that this attack shows if its luck was bad, as if guesses were independent; may be infinite.

        No bound on the training's epsilon: another attack may show more.
        """
        high = statistics.interval(self.right, self.guesses, 2 * alpha)[1]
        return max(0.0, float(np.log(high * (self.candidates - 1) / (1 - high)))) if high < 1 else float(np.inf)


def guesses_of(scores: Floats, key: CanaryKey, shares: Sequence[float]) -> Iterator[CanaryGuesses]:
    """Both games, the attacker guessing about each of these shares of the canaries, the surest first."""
    for game, candidates, (right, surest) in _games(scores, key):
        order = np.argsort(-surest, kind="stable")
        for share in shares:
            guessed = order[: max(1, round(share * key.count))]
            yield CanaryGuesses(game, candidates, key.count, guesses=len(guessed), right=int(right[guessed].sum()))


@proves("memorisation")
def largest_lower_end(counts: Sequence[CanaryGuesses], delta: float, alpha: float) -> float:
    """The largest epsilon that games of one run refute, each at its share of `alpha`."""
    return max(one.epsilon_lower(delta, alpha / len(counts)) for one in counts)


@proves("memorisation")
def together(trainings: Sequence[Sequence[CanaryGuesses]]) -> tuple[CanaryGuesses, ...]:
    """Counts of the same games of several trainings, with labels of their own, as those of one."""
    found = []
    for games in zip(*trainings, strict=True):
        one = games[0]
        added = {name: sum(getattr(game, name) for game in games) for name in ("canaries", "guesses", "right")}
        found.append(CanaryGuesses(one.game, one.candidates, **added))
    return tuple(found)


def _games(scores: Floats, key: CanaryKey) -> Iterator[tuple[str, int, tuple[Bools, Floats]]]:
    yield ONE_DECOY, 2, _of_two(scores, key)
    if key.candidates > 2:
        yield EVERY_LABEL, key.candidates, _of_all(scores, key)


def _of_two(scores: Floats, key: CanaryKey) -> tuple[Bools, Floats]:
    """Which guesses are right, and how sure each is; of two labels believed alike the first in the list is guessed."""
    each = np.arange(key.count)
    # Sorted, so that nothing about a guess depends on which of them was planted.
    first, second = np.minimum(key.planted, key.decoys), np.maximum(key.planted, key.decoys)
    gap = scores[each, second] - scores[each, first]
    return np.where(gap > 0, second, first) == key.planted, np.abs(gap)


def _of_all(scores: Floats, key: CanaryKey) -> tuple[Bools, Floats]:
    """The wrong label that is believed most, and how far before the next."""
    each = np.arange(key.count)
    believed = scores.copy()
    believed[each, key.truths] = -np.inf  # known to the attacker, and not among the candidates
    best = believed.argmax(axis=1)
    ranked = np.partition(believed, -2, axis=1)
    return best == key.planted, ranked[:, -1] - ranked[:, -2]
