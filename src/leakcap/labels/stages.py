"""Two stages (LP-2ST): what a first part of the labels taught makes the noise on the others do less harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_random_state

from leakcap import checks
from leakcap.errors import InputError
from leakcap.label_certificate import LabelCertificate
from leakcap.labels.choice import auto
from leakcap.labels.classes import Classes, column
from leakcap.labels.classifier import Classifier, Learner, _check_rows, _table
from leakcap.labels.mechanism import Mechanism
from leakcap.labels.with_prior import RRWithPrior

__all__ = ["TwoStage"]


class TwoStage(Learner):
    """Any scikit-learn classifier, learning from labels privatised in two parts (Ghazi et al. 2021, LP-2ST).

    A random part of the labels is privatised without knowing anything, and a `Classifier` learns from it. What it
    predicts for the other rows is the prior by which their labels are privatised: randomised response among the few
    classes that are likely there keeps more of them. The last fit uses all observations, each by its own mechanism.

    Parameters:
        base, rounds, folds, holdout, retrain, grid: as in `Classifier`; used for both fits.
        epsilon: of every label.
        n_classes, classes: how many classes there may be, or their names; public, never taken from the labels.
        share: of the labels that the first stage takes.
        first: mechanism of the first stage; "auto" takes the one that tells most when nothing is known.
        random_state: of the split into parts, which never looks at a label. It has no part in privacy.

    After a fit: as in `Classifier`; `observed_` holds both parts' observations, `part_` which row was in the first.
    `refit(X)` learns again from the same observations, after `set_params`.

    Guarantee: each label is used by one of two epsilon-DP mechanisms, once; the second depends on the first part
    through its observations only. So epsilon is not split and does not add up (parallel composition).
    """

    def __init__(
        self,
        base: Any,
        epsilon: float,
        n_classes: int | None = None,
        *,
        classes: Sequence[Any] | None = None,
        share: float = 0.5,
        first: Mechanism | str = "auto",
        rounds: int = 10,
        folds: int | str = "auto",
        holdout: float = 0.2,
        retrain: str | None = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base, rounds=rounds, folds=folds, holdout=holdout, retrain=retrain, grid=grid, random_state=random_state
        )
        self.epsilon = epsilon
        self.n_classes = n_classes
        self.classes = classes
        self.share = share
        self.first = first

    _go_on = "call refit(X) to try other settings"

    def fit_private(self, X: Any, y: npt.ArrayLike) -> TwoStage:
        """Privatise both parts of the labels, each label once, and learn from all that was observed."""
        table, labels = _table(X), column(y)
        names = Classes(self.n_classes, self.classes)
        first = self._first(names)
        recipe = self._rehearse(table, len(labels), first)
        names.codes(labels)  # bad labels are refused before anything is drawn
        in_first, rng = self._split(len(labels))
        one, two = np.flatnonzero(in_first), np.flatnonzero(~in_first)
        _check_rows(one[:, None], len(one))  # what the first stage would refuse, before anything is drawn
        self._recipe(one[:, None])

        seen = first.privatize(labels[one])
        start = Classifier(
            self.base,
            first,
            rounds=self.rounds,
            folds=self.folds,
            holdout=self.holdout,
            retrain=self.retrain,
            grid=self.grid,
            random_state=rng,
        ).fit(_safe_indexing(table, one), seen)
        chances = np.exp(start.learned_.log_proba(_safe_indexing(table, two), names.count))
        second = RRWithPrior(self.epsilon, chances, self.classes)
        rest = second.privatize(labels[two])

        scores = np.empty((len(labels), names.count), dtype=np.float32)
        scores[one], scores[two] = first.scores(seen), second.scores(rest)
        known = np.full(scores.shape, -np.log(names.count))
        known[two] = np.log(chances)
        self.part_, self.observed_, self._known = in_first, (seen, rest), (scores, known)
        even = np.full(names.count, 1 / names.count)
        self.certificate_ = _both(first.certificate(len(one), even), second.certificate(len(two), even))
        self._learn(table, scores, names.names, recipe, rng, known)
        return self

    def refit(self, X: Any) -> TwoStage:
        """Learn again from the observations of `fit_private`, with the settings of now. No label, no epsilon."""
        if not hasattr(self, "_known"):
            raise NotFittedError("there are no observations yet to learn from: call fit_private(X, y) first")
        table = _table(X)
        recipe, (scores, known) = self._recipe(table), self._known
        _check_rows(table, len(scores))
        names = Classes(self.n_classes, self.classes).names
        self._learn(table, scores, names, recipe, self._split(len(scores))[1], known)
        return self

    def _first(self, names: Classes) -> Mechanism:
        if isinstance(self.first, Mechanism):
            same = self.first.classes == names.names and self.first.epsilon <= self.epsilon and not self.first.delta
            if not same:
                raise InputError(
                    "the first mechanism must have the same classes, at most the same epsilon, and no delta"
                )
            return self.first
        checks.choice(("auto",), first=self.first)
        return auto(self.epsilon, self.n_classes, classes=self.classes)

    def _split(self, labels: int) -> tuple[npt.NDArray[np.bool_], np.random.RandomState]:
        """Which labels go first, by chance alone; and where to draw from next.

        One generator serves all: from a fresh one of the same seed, the rows held out would be those that went first.
        """
        rng = check_random_state(self.random_state)
        size = min(max(2, round(checks.fraction(share=self.share) * labels)), labels - 1)
        part = np.zeros(labels, dtype=bool)
        part[rng.permutation(labels)[:size]] = True
        return part, rng


def _both(first: LabelCertificate, second: LabelCertificate) -> LabelCertificate:
    """The first certificate, with figures that hold for labels of either part."""
    return replace(
        first,
        mechanism=f"two stages, each label in one of them: {first.mechanism}, then {second.mechanism}",
        settings=(*first.settings, ("labels_in_first_stage", float(first.labels))),
        epsilon=max(first.epsilon, second.epsilon),
        labels=first.labels + second.labels,
        guess_success=max(first.guess_success, second.guess_success),
        mutual_information=max(first.mutual_information, second.mutual_information),
    )
