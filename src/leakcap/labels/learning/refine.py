"""Rounds of prediction and refitting on a table of scores, and what the observations themselves say about them.

Parts of the rows are held out in turn. The likelihood of their observations, which needs no label, says how far rounds
should go, whether predictions are too sure, which settings of the base fit so much noise, and how much the refined
predictions and those of naive training should count in the mixture of both. Then the same is done on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from leakcap.ground.arrays import Bools, Floats
from leakcap.labels.learning import likelihood as soft
from leakcap.labels.learning.likelihood import Undo
from leakcap.labels.learning.refit import Chain, Whole

__all__ = ["HELD_OUT_AT_LEAST", "Learned", "LearningRecipe", "Member", "learn"]

HELD_OUT_AT_LEAST = 30  # rows; fewer cannot decide a choice
_FOLDS = 3
_PARTS = 3  # parts held out in turn; only one where folds already make every round cost four fits
_ALONE = 0.95  # share in the mixture above which the other model is not worth its fit


@dataclass(frozen=True)
class LearningRecipe:
    """How to learn. `Classifier` explains each entry."""

    rounds: int
    folds: int | None
    holdout: float
    consensus: bool

    @property
    def stages(self) -> tuple[str, ...]:
        """The predictions that are judged: at first, after the rounds, and after a last fit to agreed rows."""
        return ("naive", *(("refined",) if self.rounds else ()), *(("consensus",) if self.consensus else ()))


@dataclass(frozen=True)
class Member:
    """A fitted model, how to read its predictions, and its share in the mixture."""

    model: Any
    undo: Undo | None = None
    power: float = 1.0
    share: float = 1.0

    def log_proba(self, X: Any, n_classes: int) -> Floats:
        found = soft.predicted(self.model, X, n_classes)
        return _read(self.undo(found) if self.undo else found, self.power)


@dataclass(frozen=True)
class Learned:
    """One or two fitted models whose predictions are mixed, and how they were chosen."""

    members: tuple[Member, ...]
    rounds: int = 0
    folds: int = 0
    consensus: bool = False
    held_out: dict[str, float] = field(default_factory=dict)  # mean log-likelihood of held-out observations
    fitted: tuple[float, ...] = ()  # mean log-likelihood of fitted observations, round by round, where rounds climb it

    @property
    def model(self) -> Any:
        """The model that counts most."""
        return max(self.members, key=lambda one: one.share).model

    def log_proba(self, X: Any, n_classes: int) -> Floats:
        if len(self.members) == 1:
            return self.members[0].log_proba(X, n_classes)
        found = [np.log(one.share) + one.log_proba(X, n_classes) for one in self.members]
        return np.asarray(logsumexp(np.stack(found), axis=0))


@dataclass(frozen=True)
class _Trial:
    """What a base fitted to the other rows makes of a part that was held out: naively, refined, and by consensus."""

    naive: Floats
    refined: Floats
    consensus: Floats
    origin: Floats  # predictions for all rows that the refined ones were made from, or lead to
    rounds: int


@dataclass(frozen=True)
class _Judged:
    """A base by its predictions for held-out rows: the power to read them by, and what they are worth in nats."""

    place: int
    power: float
    worth: float
    each: Floats  # log-likelihood of every held-out observation


@dataclass(frozen=True)
class _Task:
    """Bases to choose from and rows to fit them to."""

    bases: Sequence[Any]
    X: Any
    scores: Floats
    start: Floats | None
    believed: bool
    fold: Whole
    recipe: LearningRecipe

    def chain(self, place: int, used: Bools | None = None, *, folded: bool = False) -> Chain:
        used = np.ones(len(self.scores), dtype=bool) if used is None else used
        return Chain(
            base=self.bases[place],
            X=self.X,
            scores=self.scores,
            used=used,
            fold=self.fold if folded else None,
            start=self.start,
            believed=self.believed,
        )

    def is_folded(self, place: int) -> bool:
        """Whether rows are predicted by models that did not see them."""
        return bool(self.chain(place).is_flexible() if self.recipe.folds is None else self.recipe.folds)

    def unjudged(self) -> Learned:
        """The result of all rounds, without held-out rows to choose by."""
        chain = self.chain(0, folded=self.is_folded(0))
        found, _, trace = chain.climb(chain.naive(), self.recipe.rounds)
        if self.recipe.consensus:
            chain.agreed(found)
        member = Member(chain.model, chain.undo)
        return Learned(
            members=(member,),
            rounds=len(trace) - 1,
            folds=chain.folds,
            consensus=self.recipe.consensus,
            held_out={},
            fitted=trace,
        )

    def naive(self, judged: _Judged, share: float) -> Member:
        chain = self.chain(judged.place)
        chain.naive()
        return Member(chain.model, chain.undo, judged.power, share)

    def refined(self, judged: _Judged, share: float, trial: _Trial, *, folded: bool, consensus: bool) -> Learned:
        chain = self.chain(judged.place)
        # With folds, one round from predictions that no row's own observation shaped.
        found = chain.step(trial.origin) if folded and trial.rounds else trial.origin
        found, _, trace = chain.climb(found, 0 if folded else self.recipe.rounds)
        if consensus:
            chain.agreed(found)
        folds = int(self.fold.max()) + 1 if folded else 0
        return Learned(
            members=(Member(chain.model, None, judged.power, share),),
            rounds=trial.rounds,
            folds=folds,
            consensus=consensus,
            held_out={},
            fitted=trace,
        )


def learn(
    bases: Sequence[Any],
    X: Any,
    scores: npt.NDArray[Any],
    recipe: LearningRecipe,
    rng: np.random.RandomState,
    start: Floats | None = None,
    believed: bool = False,
) -> tuple[int, Learned]:
    """Models fitted to all observations, chosen by what held-out ones support, and the base that counts most.

    `start` is what is known of each row beforehand; if `believed`, it stays where observations say nothing.
    """
    table = np.asarray(scores, dtype=np.float64)
    size, order = round(recipe.holdout * len(table)), rng.permutation(len(table)).argsort()
    fold = rng.permutation(len(table)) % (recipe.folds or _FOLDS)
    task = _Task(bases=bases, X=X, scores=table, start=start, believed=believed, fold=fold, recipe=recipe)
    if size < HELD_OUT_AT_LEAST:
        return 0, task.unjudged()
    folded = [task.is_folded(k) for k in range(len(bases))]
    count = 1 if any(folded) else min(_PARTS, len(table) // size)
    parts = [(order >= k * size) & (order < (k + 1) * size) for k in range(count)]
    seen = table[np.concatenate([np.flatnonzero(part) for part in parts])]
    trials = [
        [_tried(task.chain(k, ~part, folded=folded[k]), part, recipe) for part in parts] for k in range(len(bases))
    ]
    judged = {name: _best(seen, trials, name) for name in recipe.stages}
    held_out = {name: one.worth / len(seen) for name, one in judged.items()}
    naive, name = judged["naive"], max(judged, key=lambda name: (name != "naive", judged[name].worth))
    late = judged[name]
    share = 0.0 if late is naive else soft.share(naive.each, late.each)
    if max(share, 1 - share) > _ALONE:
        share = float(np.round(share))
    if share == 0:
        return naive.place, Learned((task.naive(naive, 1.0),), held_out=held_out)
    trial, consensus = trials[late.place][0], name == "consensus"
    found = task.refined(late, share, trial, folded=folded[late.place], consensus=consensus)
    members = found.members if share == 1 else (task.naive(naive, 1 - share), *found.members)
    return (late if share >= 0.5 else naive).place, replace(found, members=members, held_out=held_out)


def _best(scores: Floats, trials: list[list[_Trial]], name: str) -> _Judged:
    """The base whose predictions by this name make held-out observations likeliest, and what was found about it."""
    judged = []
    for place, mine in enumerate(trials):
        found = np.concatenate([getattr(trial, name) for trial in mine])
        power, worth = soft.power(scores, found)
        judged.append(_Judged(place, power, worth, soft.marginal(scores, _read(found, power))))
    return max(judged, key=lambda one: one.worth)


def _tried(chain: Chain, held: Bools, recipe: LearningRecipe) -> _Trial:
    """Rounds on the rows in use.

    Where each row is predicted by models that did not see it, rounds end when they stop gaining on the held-out part;
    plain expectation maximisation ends where it comes to rest.
    """
    naive = chain.naive()
    if recipe.rounds == 0:
        refined = ahead = origin = naive
        rounds = 0
    elif chain.folds:
        refined, ahead, origin, rounds = _gaining(chain, naive, held, recipe.rounds)
    else:
        refined, ahead, trace = chain.climb(naive, recipe.rounds)
        origin, rounds = ahead, len(trace) - 1
    consensus = chain.agreed(ahead) if recipe.consensus else refined
    return _Trial(naive=naive[held], refined=refined[held], consensus=consensus[held], origin=origin, rounds=rounds)


def _gaining(chain: Chain, naive: Floats, held: Bools, rounds: int) -> tuple[Floats, Floats, Floats, int]:
    """The best round: its predictions, how they are read, what they were made from, and its number.

    Rows in the fit are predicted as if they were not in it, so they need the same reading as held-out ones.
    """
    scores = chain.scores[held]
    power, most = soft.power(scores, naive[held])
    before = _read(naive, power)
    best = (naive, before, before, 0)
    for k in range(1, rounds + 1):
        found = chain.step(before)
        power, worth = soft.power(scores, found[held])
        ahead = _read(found, power)
        if k == 1 or worth > most:
            best = (found, ahead, before, k)
        if worth < most:
            break
        most, before = worth, ahead
    return best


def _read(log_predicted: Floats, power: float) -> Floats:
    return log_predicted if power == 1 else np.asarray(log_softmax(power * log_predicted, axis=1))
