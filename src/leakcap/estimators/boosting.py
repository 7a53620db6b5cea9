"""Private boosting: rounds of small trees of public form, whose leaves are noised sums of residuals over people."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from leakcap.errors import InputError
from leakcap.estimators.classifiers import Probabilities, Scores
from leakcap.estimators.public_trees import PublicTrees, SummingTrees
from leakcap.estimators.rounds import ClassifierInRounds, RoundRows
from leakcap.estimators.settings import seed_of
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["BoostedTrees", "HistGradientBoostingClassifier"]

CLIP = math.sqrt(0.5)  # length of a residual: that of two classes before the first round
MAX_DEPTH, MAX_VOTES = 16, 2**16  # of a tree, and of all leaves of a round
FASTEST = 1e6  # mean residuals
ROUNDS, MIN_ROUNDS, MAX_ROUNDS = 0.65, 4, 40  # times the root of the rows that stand out of the noise


class BoostedTrees(SummingTrees):
    """Trees whose sums are scores of a logistic model. Made from released numbers, it may be published."""

    def predict_proba(self, X: Any) -> Floats:
        """`(rows, classes)`: probabilities."""
        return np.asarray(softmax(self.scores(X), axis=1))

    def decision_function(self, X: Any) -> Floats:
        """`(rows,)` where there are two classes: the score of the second less that of the first; otherwise of each."""
        found = self.scores(X)
        return np.asarray(found[:, 1] - found[:, 0]) if found.shape[1] == 2 else found


@dataclass(eq=False, repr=False)
class HistGradientBoostingClassifier(Scores, Probabilities, ClassifierInRounds):
    """Gradient boosting with private leaves: every round is one more noised sum over people, of one session.

    A round draws some trees beforehand, features and thresholds without labels: thresholds among the pool's quantiles,
    or evenly within declared bounds. What is asked is, for every leaf, the sum of the residuals of its rows, each cut
    to a length; scores move by that. The cap holds for all rounds together.

    Guarantee: what `certificate_` states: against whoever knows everybody else's coins; under a pool cap, about being
    in the data at all.

    Args:
        max_iter: number of rounds; "auto": from 4 to 40, more where the noised number of rows stands out more.
        learning_rate: how far scores move in a round, in mean residuals of a leaf of average size.
        n_trees: trees of a round. They share a row's residual, so that more of them need no more noise in scores.
        max_depth: depth of each tree, which has `2**max_depth` leaves.
        n_thresholds: thresholds of each feature that trees are drawn from.
        classes: under a pool cap, the classes there may be, known without the data. Rows of others count nowhere.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`, or `lc.pool_membership(0.55)`.
        worlds: not taken: everybody has a coin of their own.
        strata: not taken.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: not taken: the certificate is that of a session.
        options: `{"bounds": (low, high), "rows_per_unit": 1, "ledger": ..., "name": ...}`, as for `leakcap.Session`.

    Attributes:
        nodes_: `(trees of all rounds, 2**depth - 1)`, the feature of every node, level by level.
        thresholds_: of the same shape: a row goes right where its value is at or above.
        votes_: `(trees, 2**depth, classes)`, released: what each leaf adds to the score of each class.
        n_iter_: number of rounds; it follows from released numbers.
        classes_: the classes that occur in the pool, or those declared.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: there is none: rounds are answers of a session.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(400, centers=2, random_state=0)
        >>> model = HistGradientBoostingClassifier(4, cap=lc.membership(0.6), random_state=0)
        >>> model.fit(X, y).votes_.shape
        (64, 8, 2)
    """

    max_iter: Any = "auto"
    _: KW_ONLY
    learning_rate: float = 0.5
    n_trees: int = 16
    max_depth: int = 3

    def _learnt(self, rows: RoundRows, classes: npt.NDArray[Any]) -> BoostedTrees:
        trees, depth, speed = self._checked(rows.classes)
        count, rng = rows.count(), np.random.default_rng(seed_of(self.random_state) or 0)
        rounds = self._rounds(count * math.sqrt(rows.fitting.square * rows.left))
        each = [PublicTrees.drawn(rows.ladder, trees, depth, rng) for _ in range(rounds)]
        # A leaf of average size has so many rows: its mean residual is what it adds.
        size = count / each[0].leaves
        scores = np.zeros((len(rows.features), rows.classes))
        votes = []
        for number, own in enumerate(each):
            inside = own.inside(rows.features)
            residuals = (rows.kinds - softmax(scores, axis=1)) * (rows.codes >= 0)[:, None]
            sums, _ = rows.asked(inside, residuals, most=CLIP, share=rows.left / rounds, step=number)
            step = speed * (sums - sums.mean(axis=1, keepdims=True)) / size
            scores += inside @ step
            votes.append(step / math.sqrt(trees))
        whole = PublicTrees(*(np.concatenate([getattr(one, part) for one in each]) for part in ("nodes", "thresholds")))
        made = BoostedTrees.of(whole, np.concatenate(votes), classes)
        made.n_iter_ = rounds
        return made

    def _checked(self, classes: int) -> tuple[int, int, float]:
        """Trees of a round, their depth, and how far scores move: all that can be refused, before anything is asked."""
        if self.max_iter != "auto":
            checks.count(max_iter=self.max_iter)
        trees, depth = checks.count(n_trees=self.n_trees), checks.count(max_depth=self.max_depth)
        speed = checks.positive(learning_rate=self.learning_rate)
        if depth > MAX_DEPTH or trees * 2**depth * classes > MAX_VOTES:
            raise InputError(f"a round would have over {MAX_VOTES} votes of leaves: lower max_depth or n_trees")
        if speed > FASTEST:
            raise InputError(f"learning_rate must be {FASTEST:g} at most: scores would leave the range of numbers")
        return trees, depth, speed

    def _rounds(self, heard: float) -> int:
        """More of them where more rows stand out of the noise, as the first answer tells."""
        if self.max_iter != "auto":
            return checks.count(max_iter=self.max_iter)
        return min(max(round(ROUNDS * math.sqrt(heard)), MIN_ROUNDS), MAX_ROUNDS)
