"""Rounds of prediction and refitting on a table of scores, and what the observations themselves say about them.

A part of the rows is held out. The likelihood of their observations, which needs no label, says when to stop, whether
predictions are too sure, which settings of the base fit so much noise, and whether naive training or retraining on
agreed rows does better. Then the same is done on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from leakcap.labels import soft
from leakcap.labels.soft import Floats, Undo

__all__ = ["HELD_OUT_AT_LEAST", "Learned", "Recipe", "learn"]

Rows = npt.NDArray[np.bool_]
_STILL = 1e-3  # mean change of a probability that counts as none
_FOUND_IN_NOISE = 0.015  # share of pure noise that a base may fit and still predict its own rows
HELD_OUT_AT_LEAST = 30  # rows; with fewer there is no choosing
_FOLDS = 3
_SPLITS = 3  # parts held out in turn, where settings are to be told apart
_SURE = 2.0  # standard errors beyond which a difference is no chance


@dataclass(frozen=True)
class Recipe:
    """How to learn: `Classifier` says what each entry means."""

    rounds: int
    folds: int | None
    holdout: float
    consensus: bool


@dataclass(frozen=True)
class Learned:
    """A fitted model, how to read its predictions, and how it was chosen."""

    model: Any
    undo: Undo | None
    power: float
    rounds: int
    folds: int
    consensus: bool
    held_out: tuple[float, ...] = ()  # mean log-likelihood of held-out observations after every round, naive first
    fitted: tuple[float, ...] = ()  # the same of the observations fitted to, where the fit follows the likelihood

    def log_proba(self, X: Any, n_classes: int) -> Floats:
        found = soft.predicted(self.model, X, n_classes)
        return _read(self.undo(found) if self.undo else found, self.power)


@dataclass
class _Chain:
    """Predictions for all rows by a base fitted to the used ones, round after round."""

    base: Any
    X: Any
    scores: Floats
    used: Rows
    fold: npt.NDArray[np.int64] | None = None  # where given, used rows are predicted by models that did not see them
    start: Floats | None = None  # what is known of each row beforehand, in logarithms
    model: Any = None
    undo: Undo | None = None

    @property
    def folds(self) -> int:
        return 0 if self.fold is None else int(self.fold.max()) + 1

    def naive(self) -> Floats:
        """The first round, from what is known already. Weights average 1: the base is regularised as if naively."""
        known = soft.even(self.scores.shape[1]) if self.start is None else self.start
        weights = soft.informed(self.scores, known)
        weights /= weights[self.used].sum(axis=1).mean()
        if self.start is not None:
            self.undo = None
            return self._fit(weights)
        self.undo = Undo.of(self.scores[self.used], weights[self.used])
        return self.undo(self._fit(weights))

    def step(self, log_prior: Floats) -> Floats:
        """One round: what the base predicts when fitted to what these predictions make of the observations."""
        self.undo = None
        return self._fit(soft.informed(self.scores, log_prior))

    def two_steps(self, log_prior: Floats) -> tuple[Floats, Floats]:
        """Two rounds, and predictions carried on in their direction (squared extrapolation).

        Expectation maximisation crawls where most of a label is left to guess. The point it crawls to stays the same;
        a longer step is taken only if it makes the observations likelier than the two rounds did.
        """
        first = self.step(log_prior)
        second = self.step(first)
        reached = self.likelihood(second)
        change, bend = _centred(first - log_prior), _centred(second - 2 * first + log_prior)
        length = float(np.sqrt((change**2).sum() / max(float((bend**2).sum()), 1e-300)))
        while length > 1.01:
            ahead = np.asarray(log_softmax(log_prior + 2 * length * change + length**2 * bend, axis=1))
            if self.likelihood(ahead) >= reached:
                return second, ahead
            length = (length + 1) / 2
        return second, second

    def agreed(self, log_prior: Floats) -> Floats:
        """Refitted to its own predicted classes, where the observation speaks for none more than for that one."""
        self.undo = None
        best = log_prior.argmax(axis=1)
        own = np.take_along_axis(self.scores, best[:, None], axis=1)[:, 0]
        weights = np.zeros_like(self.scores)
        weights[np.arange(len(best)), best] = own >= self.scores.max(axis=1) - 1e-6
        return self._fit(weights)

    def likelihood(self, log_prior: Floats) -> float:
        return float(soft.marginal(self.scores[self.used], log_prior[self.used]).mean())

    def _fit(self, weights: Floats) -> Floats:
        classes = self.scores.shape[1]
        self.model = _fitted(self.base, self.X, weights, self.used, self.model)
        found = soft.predicted(self.model, self.X, classes)
        for k in range(self.folds):
            here = self.used & (self.fold == k)
            other = _fitted(self.base, self.X, weights, self.used & ~here, None)
            found[here] = soft.predicted(other, _rows(self.X, here), classes)
        return found


@dataclass
class _Round:
    """Predictions of one round: what they were made from, where they lead, what they are worth on held-out rows."""

    before: Floats
    found: Floats
    ahead: Floats
    power: float
    worth: float
    each: Floats  # log-likelihood of every held-out observation


@dataclass
class _Trial:
    """One base, judged round by round on held-out rows."""

    chain: _Chain
    held: Rows
    trail: list[_Round] = field(default_factory=list)

    def run(self, recipe: Recipe, fold: npt.NDArray[np.int64]) -> None:
        chain = self.chain
        if recipe.folds or (recipe.folds is None and self._is_flexible()):
            chain.fold = fold
        self._judge(soft.even(chain.scores.shape[1]), chain.naive(), None)
        while len(self.trail) <= recipe.rounds and not self._is_over():
            before = self.trail[-1].ahead
            if chain.folds:
                self._judge(before, chain.step(before), None)
            else:
                self._judge(before, *chain.two_steps(before))

    def _judge(self, before: Floats, found: Floats, ahead: Floats | None) -> None:
        scores = self.chain.scores[self.held]
        power, worth = soft.power(scores, found[self.held])
        read = _read(found, power)
        if ahead is None:
            # Rows in the fit are predicted as if they were not, so they need the same reading. (Where they are
            # predicted as they were fitted, rounds are plain expectation maximisation.)
            ahead = read if self.chain.folds else found
        self.trail.append(_Round(before, found, ahead, power, worth, soft.marginal(scores, read[self.held])))
        for k, one in enumerate(self.trail[:-2]):  # tables that can still be needed: the first, the best, the last two
            if k not in (0, self.chosen):
                one.before = one.found = one.ahead = np.empty((0, 0))

    def _is_flexible(self) -> bool:
        """Whether the base finds much to fit in weights that were shuffled between rows: in nothing but noise."""
        classes = self.chain.scores.shape[1]
        (used,) = np.nonzero(self.chain.used)
        shuffled = self.chain.scores[np.random.RandomState(0).permutation(used)]
        weights = soft.informed(shuffled, soft.even(classes))
        weights /= weights.sum(axis=1).mean()
        rows = _rows(self.chain.X, self.chain.used)
        fit = np.exp(soft.predicted(soft.fit_weighted(self.chain.base, rows, weights), rows, classes))
        whole = weights.sum(axis=1, keepdims=True)
        target = weights / np.maximum(whole, 1e-12)
        left, all_of_it = (float((whole * (target - p) ** 2).sum()) for p in (fit, weights.sum(axis=0) / weights.sum()))
        return left < (1 - _FOUND_IN_NOISE) * all_of_it

    def _is_over(self) -> bool:
        """Rounds that follow the likelihood end where they stop moving, others where they stop gaining."""
        if self.chain.folds:
            return self.trail[-1].worth < max(one.worth for one in self.trail)
        return len(self.trail) > 1 and _change(self.trail[-1].found, self.trail[-2].found) < _STILL

    @property
    def chosen(self) -> int:
        """The best round; of rounds that follow the likelihood the last, unless naive training is surely better."""
        if self.chain.folds:
            return max(range(len(self.trail)), key=lambda k: self.trail[k].worth)
        gap = self.trail[0].each - self.trail[-1].each
        return 0 if gap.sum() > _SURE * gap.std() * np.sqrt(len(gap)) else len(self.trail) - 1

    @property
    def best(self) -> _Round:
        return self.trail[self.chosen]


def learn(
    bases: Sequence[Any],
    X: Any,
    scores: npt.NDArray[Any],
    recipe: Recipe,
    rng: np.random.RandomState,
    start: Floats | None = None,
) -> tuple[int, Learned]:
    """Which base the observations support best, and that base fitted to all of them."""
    table = np.asarray(scores, dtype=np.float64)
    everything = np.ones(len(table), dtype=bool)
    size = round(recipe.holdout * len(table))
    order = rng.permutation(len(table))
    parts = [np.isin(order.argsort(), np.arange(k * size, (k + 1) * size) % len(table)) for k in range(_SPLITS)]
    fold = rng.permutation(len(table)) % (recipe.folds or _FOLDS)
    if size < HELD_OUT_AT_LEAST:
        chain = _Chain(bases[0], X, table, everything, fold if recipe.folds else None, start)
        return 0, _finished(chain, chain.naive(), recipe.rounds, recipe.consensus)
    held = parts[0]
    trials = [_tried(_Chain(base, X, table, ~held, None, start), held, recipe, fold) for base in bases]

    def again(k: int, part: Rows) -> _Trial:
        return _tried(_Chain(bases[k], X, table, ~part, None, start), part, recipe, fold)

    place = _preferred(trials, again, parts[1:])
    chain, trail, chosen = trials[place].chain, trials[place].trail, trials[place].chosen
    worth = [one.worth for one in trail]
    best, power, consensus = trail[chosen], trail[chosen].power, False
    if recipe.consensus:
        agreed, nats = soft.power(table[held], chain.agreed(best.ahead)[held])
        worth.append(nats)
        if nats > best.worth:
            power, consensus = agreed, True
    folds, chain.used, chain.fold = chain.folds, everything, None
    if chosen == 0:
        learned = _finished(chain, chain.naive(), 0, consensus)
    elif folds:  # one round from predictions that no row's own observation shaped
        learned = _finished(chain, chain.step(best.before), 0, consensus)
    else:
        learned = _finished(chain, best.ahead, recipe.rounds, consensus)
    held_out = tuple(float(nats) / size for nats in worth)
    return place, Learned(learned.model, learned.undo, power, chosen, folds, consensus, held_out, learned.fitted)


def _tried(chain: _Chain, held: Rows, recipe: Recipe, fold: npt.NDArray[np.int64]) -> _Trial:
    trial = _Trial(chain, held)
    trial.run(recipe, fold)
    return trial


def _preferred(trials: list[_Trial], again: Callable[[int, Rows], _Trial], parts: list[Rows]) -> int:
    """The base that is worth most; where the first two are near each other, other parts are held out to tell them."""
    worth = [trial.best.worth for trial in trials]
    ranked = sorted(range(len(trials)), key=lambda k: -worth[k])
    if len(ranked) == 1:
        return 0
    gap = trials[ranked[0]].best.each - trials[ranked[1]].best.each
    if gap.sum() > _SURE * gap.std() * np.sqrt(len(gap)):
        return ranked[0]
    return max(ranked[:2], key=lambda k: worth[k] + sum(again(k, part).best.worth for part in parts))


def _finished(chain: _Chain, found: Floats, rounds: int, consensus: bool) -> Learned:
    """So many more rounds from these predictions, fewer where they come to rest."""
    trace, ahead = [chain.likelihood(found)], found
    for _ in range(rounds):
        last = found
        found, ahead = (chain.step(ahead),) * 2 if chain.folds else chain.two_steps(ahead)
        trace.append(chain.likelihood(found))
        if _change(found, last) < _STILL:
            break
    if consensus:
        chain.agreed(found)
    return Learned(chain.model, chain.undo, 1.0, len(trace) - 1, chain.folds, consensus, (), tuple(trace))


def _fitted(base: Any, X: Any, weights: Floats, rows: Rows, near: Any) -> Any:
    if rows.all():
        return soft.fit_weighted(base, X, weights, near)
    return soft.fit_weighted(base, _rows(X, rows), weights[rows], near)


def _rows(X: Any, rows: Rows) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, np.flatnonzero(rows))


def _read(log_predicted: Floats, power: float) -> Floats:
    return log_predicted if power == 1 else np.asarray(log_softmax(power * log_predicted, axis=1))


def _change(one: Floats, other: Floats) -> float:
    return float(np.abs(np.exp(one) - np.exp(other)).mean())


def _centred(table: Floats) -> Floats:
    return np.asarray(table - table.mean(axis=1, keepdims=True))
