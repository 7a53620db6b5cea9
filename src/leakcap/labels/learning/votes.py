"""Answers by noised votes: a question is answered where teachers agree, with the class that most of them name.

Votes are whole numbers, noise is drawn in whole numbers, and what leaves is which questions were answered, and how.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leakcap.certificates.labels import SUMS_THEN_VOTES, VOTES, VOTES_ASSUMPTIONS, LabelCertificate
from leakcap.errors import InputError
from leakcap.ground.arrays import Ints
from leakcap.ground.proofs import proves
from leakcap.labels.learning.vote_costs import VoteCosts, success_of_votes
from leakcap.labels.mechanisms.classes import Classes
from leakcap.labels.statistics.grid_noise import LEAST_DEVIATION, GridNoise
from leakcap.version import __version__

__all__ = ["UNANSWERED", "NoisedVotes", "votes_certificate"]

UNANSWERED = -1
MOST_DEVIATION = 100_000  # votes: chances of the noise are a table of eighteen times as many entries


@dataclass(frozen=True)
class NoisedVotes:
    """How votes become answers: all of it is public.

    Args:
        costs: questions, answers and noise.
        threshold: a question is answered if its largest count, noised, is at least this.
        classes: how many.
        earlier: total variation, at most, between what left before and its ideal law.
    """

    costs: VoteCosts
    threshold: float
    classes: int
    earlier: float = 0.0

    @cached_property
    def _selection(self) -> tuple[GridNoise, int] | None:
        return None if self.costs.sigma1 is None else _on_grid(self.costs.sigma1)

    @cached_property
    def _answer(self) -> tuple[GridNoise, int]:
        return _on_grid(self.costs.sigma2)

    @property
    def distance(self) -> float:
        """Total variation, at most, between what leaves and its ideal law."""
        asked = 0.0 if self._selection is None else self._selection[0].distance(self.costs.questions)
        return self.earlier + asked + self._answer[0].distance(self.costs.answers * self.classes)

    @proves("label-votes")
    def release(self, votes: Ints) -> Ints:
        """The answer to every question, or `UNANSWERED`. Every call spends epsilon.

        Guarantee: all of it is made of normal noise on the largest counts of `costs.questions` questions and on all
        counts of `costs.answers` answers, rounded to a grid.

        Args:
            votes: `(questions, classes)` counts, in the order in which they are asked.

        Returns:
            `(questions,)` numbers of classes.
        """
        costs = self.costs
        answers = np.full(costs.questions, UNANSWERED, dtype=np.int64)
        asked = np.arange(costs.questions)
        if self._selection is not None:
            noise, steps = self._selection
            agreed = votes.max(axis=1) * steps + noise.draw(costs.questions) >= math.ceil(self.threshold * steps)
            asked = np.flatnonzero(agreed)
        chosen = asked[: costs.answers]
        noise, steps = self._answer
        # Drawn for as many as may be answered, so that how many were is nowhere else to be seen.
        noised = noise.draw(costs.answers * self.classes).reshape(costs.answers, self.classes)
        answers[chosen] = (votes[chosen] * steps + noised[: len(chosen)]).argmax(axis=1)
        return answers


@proves("label-votes")
def votes_certificate(
    votes: NoisedVotes, *, epsilon: float, delta: float, labels: int, classes: Classes, teachers: int
) -> LabelCertificate:
    """What the best attacker can learn of one label from the answers.

    Guarantee: all of it is no clearer than one normal variable that a label moves by `costs.apart` deviations, and
    arithmetic; so two labels have a divergence of `apart^2 / 2` at most, and a mean of that over all pairs of classes.
    """
    count, costs, distance = classes.count, votes.costs, votes.distance
    nats = (count - 1) / count * costs.apart**2 / 2
    lost = distance * (math.log(count) + 1 - math.log(distance)) if distance else 0.0
    chosen = () if costs.sigma1 is None else (("sigma1", costs.sigma1), ("threshold", votes.threshold))
    return LabelCertificate(
        kind="label_dp",
        mechanism=SUMS_THEN_VOTES if costs.before else VOTES,
        settings=(
            ("teachers", float(teachers)),
            ("questions", float(costs.questions)),
            ("answers", float(costs.answers)),
            *chosen,
            ("sigma2", costs.sigma2),
            *((("sums_apart", costs.before),) if costs.before else ()),
        ),
        epsilon=epsilon,
        delta=delta,
        labels=labels,
        classes=tuple(str(name) for name in classes.names),
        prior=(1 / count,) * count,
        prior_is_even=True,
        prior_success=1 / count,
        guess_success=min(1.0, success_of_votes(costs.apart, count) + distance),
        mutual_information=min(math.log(count), (nats + lost) * (1 + 1e-12)),
        theorems=("label-votes", *(("label-statistics",) if costs.before else ()), "label-guessing"),
        leakcap_version=__version__,
        assumptions=VOTES_ASSUMPTIONS,
    )


def _on_grid(sigma: float) -> tuple[GridNoise, int]:
    """Noise of this deviation in votes, and the steps of the grid in one vote."""
    if not sigma <= MOST_DEVIATION:
        raise InputError(
            f"noise of more than {MOST_DEVIATION:,} votes drowns whatever teachers say: raise epsilon or delta, ask "
            "about fewer rows, or give smaller sigmas"
        )
    steps = max(1, math.ceil(LEAST_DEVIATION / sigma))
    return GridNoise(sigma * steps), steps
