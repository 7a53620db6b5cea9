"""Two stages (LP-2ST): a first part of the labels teaches a model, which makes the noise on the others do less harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing

from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.given import check_rows, table_of
from leakcap.labels.learning.classifier import Classifier, Learner
from leakcap.labels.learning.sums_first import beliefs, left_for_responses, most_nats, spending_copy, together
from leakcap.labels.mechanisms.auto import auto
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.classes import Classes, column
from leakcap.labels.mechanisms.krr import KRR
from leakcap.labels.mechanisms.with_prior import RRWithPrior
from leakcap.simulate.teaching import generator_of

__all__ = ["TwoStage"]

SHARE = 0.5  # of the labels, for a first stage of responses


class TwoStage(Learner):
    """Any scikit-learn classifier, learning from labels privatised in two parts (Ghazi et al. 2021, LP-2ST).

    A random part of the labels is privatised without knowing anything, and a `Classifier` learns from it. Its
    predictions for the other rows are the prior by which their labels are privatised: randomised response among the few
    classes that are likely there keeps more of them. The last fit uses all observations, each by its own mechanism.

    Guarantee: each label is used by one of two epsilon-DP mechanisms, once; the second depends on the first part
    through its observations only. So epsilon is not split and does not add up (parallel composition). With `prior=`
    noised sums of all labels take the place of the first part: every label is in the sums and is privatised in their
    light, and `epsilon` is that of the sums and of the responses together (sequential composition), with the delta of
    the sums.

    Args:
        base: a classifier with `predict_proba` whose `fit` takes `sample_weight`, or a pipeline that ends in one.
        epsilon: differential privacy of every label, at least 1e-6.
        n_classes: number of classes; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead. Public: never taken from the labels.
        share: part of the labels that the first stage takes, above 0 and below 1.
        first: mechanism of the first stage; "auto" takes the one that says most about labels of which nothing is known.
        rounds, folds, holdout, retrain, grid: as in `Classifier`; used for both fits.
        random_state: seed of the split into parts, which never looks at a label. It has no part in privacy.
        prior: a model of noised sums (`Ridge`, `Logistic`, `LDA` or `NaiveBayes`) with an epsilon of its own, a
            part of `epsilon`, for a curator who may see all labels. It is the first stage then: leave `share` and
            `first` out.

    Attributes:
        classes_: names of the classes, sorted.
        observed_: observations of the first and of the second part; with `prior`, the noised sums and observations of
            all labels.
        part_: for each row, whether it was in the first part; with `prior`, none was.
        certificate_: what the best attacker can learn of a label of either part; of sums and observations together.
        prior_: the prior, fitted, if there is one; its classes are places in the list of classes.
        learned_: the models that are mixed, their shares, and the likelihoods they were chosen by.
        best_params_: the settings of the grid that count most.

    Examples:
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = make_blobs(400, centers=3, random_state=0, cluster_std=0.5)
        >>> model = TwoStage(LogisticRegression(), epsilon=2.0, n_classes=3, rounds=1).fit_private(X, y)
        >>> model.certificate_.epsilon, int(model.part_.sum())
        (2.0, 200)
    """

    def __init__(
        self,
        base: Any,
        epsilon: float,
        n_classes: int | None = None,
        *,
        classes: Sequence[Any] | None = None,
        share: float = SHARE,
        first: Mechanism | str = "auto",
        rounds: int = 10,
        folds: int | str = "auto",
        holdout: float = 0.2,
        retrain: str | None = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
        random_state: Any = None,
        prior: Any = None,
    ) -> None:
        super().__init__(
            base,
            rounds=rounds,
            folds=folds,
            holdout=holdout,
            retrain=retrain,
            grid=grid,
            random_state=random_state,
            prior=prior,
        )
        self.epsilon = epsilon
        self.n_classes = n_classes
        self.classes = classes
        self.share = share
        self.first = first

    _go_on = "call refit(X) to try other settings"
    observed_: tuple[Any, npt.NDArray[Any]]

    def fit_private(self, X: Any, y: npt.ArrayLike) -> TwoStage:
        """Privatise both parts of the labels, each label once, and learn from all that was observed.

        Args:
            X: features, a row for each label.
            y: the labels, one column.

        Returns:
            The classifier itself, fitted.

        Raises:
            InputError: settings or labels cannot be used (nothing is drawn then), or labels were privatised before.
        """
        table, labels = table_of(X), column(y)
        names = Classes(self.n_classes, self.classes)
        if self.prior is not None:
            return self._after_sums(table, labels, names)
        first = self._first(names)
        recipe = self._rehearse(table, len(labels), first)
        names.codes(labels)  # bad labels are refused before anything is drawn
        in_first, rng = self._split(len(labels))
        one, two = np.flatnonzero(in_first), np.flatnonzero(~in_first)
        check_rows(one[:, None], len(one))  # what the first stage would refuse, before anything is drawn
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
        self._learn(table, scores, classes=names.names, recipe=recipe, rng=rng, start=known)
        return self

    def _after_sums(self, table: Any, labels: npt.NDArray[Any], names: Classes) -> TwoStage:
        """The second stage on all labels, by a prior of noised sums."""
        if self.first != "auto" or self.share != SHARE:
            raise InputError("prior= takes the place of a first stage of responses: leave first= and share= out")
        left = left_for_responses(checks.positive(epsilon=self.epsilon), self.prior)
        recipe = self._rehearse(table, len(labels), KRR(left, names.count, classes=names.names))
        codes = names.codes(labels)  # bad labels are refused before anything is drawn
        self.prior_ = spending_copy(self.prior, names.count)
        self.prior_.fit(table, codes)
        known = beliefs(self.prior_, table)
        second = RRWithPrior(left, np.exp(known), self.classes)
        seen = second.privatize(labels)
        scores = second.scores(seen)
        self.part_, self.observed_ = np.zeros(len(labels), dtype=bool), (self.prior_.sums_, seen)
        self._known = scores, known
        even = np.full(names.count, 1 / names.count)
        found = together(self.prior_.certificate_, second.certificate(len(labels), even), most_nats(left, names.count))
        self.certificate_ = replace(found, epsilon=float(self.epsilon))  # the sum, but for its last digit
        rng = generator_of(self.random_state)
        self._learn(table, scores, classes=names.names, recipe=recipe, rng=rng, start=known)
        return self

    def refit(self, X: Any) -> TwoStage:
        """Learn again from the observations of `fit_private`, with the settings of now, at no epsilon.

        Args:
            X: the features of `fit_private`, in the same order.

        Returns:
            The classifier itself, fitted.

        Raises:
            NotFittedError: nothing was observed yet.
            InputError: the settings cannot be used, or `X` has another number of rows.
        """
        if not hasattr(self, "_known"):
            raise NotFittedError("there are no observations yet to learn from: call fit_private(X, y) first")
        table = table_of(X)
        recipe, (scores, known) = self._recipe(table), self._known
        check_rows(table, len(scores))
        names = Classes(self.n_classes, self.classes).names
        rng = self._split(len(scores))[1] if self.prior is None else generator_of(self.random_state)
        self._learn(table, scores, classes=names, recipe=recipe, rng=rng, start=known)
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
        """Which labels go first, by chance alone; and the generator to draw from next.

        One generator serves all: from a fresh one of the same seed, the rows held out would be those that went first.
        """
        rng = generator_of(self.random_state)
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
