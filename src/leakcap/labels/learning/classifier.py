"""A scikit-learn classifier that learns from privatised labels, and never sees the true ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.given import (
    SpendsLabels,
    check_rows,
    refuse_again,
    refuse_mixed,
    refuse_unfitted,
    sorted_names,
    table_of,
)
from leakcap.labels.learning import likelihood as soft
from leakcap.labels.learning.refine import HELD_OUT_AT_LEAST, LearningRecipe, learn
from leakcap.labels.learning.sums_first import beliefs, spending_copy, together
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.classes import column
from leakcap.simulate.teaching import generator_of

__all__ = ["Classifier", "Learner"]


class Learner(SpendsLabels, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A learner from a table of scores; subclasses say where the table comes from."""

    _go_on: str  # how to learn from the same observations with other settings

    def __init__(
        self,
        base: Any,
        *,
        rounds: int,
        folds: int | str,
        holdout: float,
        retrain: str | None,
        grid: Mapping[str, Sequence[Any]] | None,
        random_state: Any,
        prior: Any,
    ) -> None:
        self.base = base
        self.rounds = rounds
        self.folds = folds
        self.holdout = holdout
        self.retrain = retrain
        self.grid = grid
        self.random_state = random_state
        self.prior = prior

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every true class.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`, in the order of `classes_`.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        refuse_unfitted(self, "learned_", "fit_private(X, y)")
        return np.asarray(np.exp(self.learned_.log_proba(table_of(X), len(self._order))[:, self._order]))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest true class of every row.

        Args:
            X: features, as given to the fit.

        Returns:
            A class for each row.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @property
    def model_(self) -> Any:
        """The base as fitted last; of two, the one that counts more. Its classes are places in the mechanism's list."""
        return self.learned_.model

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the base was fitted to."""
        return int(self.learned_.model.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns that the base was fitted to, where it was a table."""
        return np.asarray(self.learned_.model.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learned_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags, base = super().__sklearn_tags__(), get_tags(self.base)
        tags.input_tags.sparse, tags.input_tags.allow_nan = base.input_tags.sparse, base.input_tags.allow_nan
        return tags

    def _recipe(self, X: Any) -> LearningRecipe:
        """Settings, checked before any label is touched."""
        _check_base(self.base)
        folds = None if self.folds == "auto" else checks.count(at_least=0, folds=self.folds)
        if folds == 1:
            raise InputError("folds must be 'auto', 0 (rows predicted by the model fitted to them), or at least 2")
        if self.retrain is not None:
            checks.choice(("consensus",), retrain=self.retrain)
        holdout = checks.probability(holdout=self.holdout)
        if holdout > 0.5:
            raise InputError("holdout must be at most 0.5: the other rows are those the choice is made for")
        if self.grid and round(holdout * X.shape[0]) < HELD_OUT_AT_LEAST:
            raise InputError(f"a grid is chosen from by {HELD_OUT_AT_LEAST} held-out rows or more: raise holdout")
        return LearningRecipe(checks.count(at_least=0, rounds=self.rounds), folds, holdout, self.retrain == "consensus")

    def _bases(self) -> tuple[list[dict[str, Any]], list[Any]]:
        """Settings to choose from, and the base with each of them."""
        settings = list(ParameterGrid(dict(self.grid))) if self.grid else [{}]
        return settings, [clone(self.base).set_params(**one) for one in settings]

    def _rehearse(self, X: Any, labels: int, mechanism: Mechanism) -> LearningRecipe:
        """Fail here, before a label is drawn, wherever that is possible without labels: epsilon is spent once."""
        recipe, names = self._recipe(X), mechanism.classes
        check_rows(X, labels)
        refuse_again(self, f"{self._go_on}, or take clone(model) for other labels")
        if hasattr(self, "prior_"):  # its sums may have been drawn where nothing came of them
            refuse_again(self.prior_, "take clone(model) for other labels")
        refuse_mixed(names)
        if not mechanism.mutual_information() > 0:
            raise InputError("this mechanism reveals nothing about the labels: raise epsilon, or give another prior")
        generator_of(self.random_state)
        codes = np.arange(labels) % len(names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these classes are made up, and so would be warnings about them
            for k, base in enumerate(self._bases()[1]):
                some = labels if k == 0 else min(labels, 5 * len(names))  # all features once, then settings alone
                soft.fit_weighted(base, _safe_indexing(X, np.arange(some)), np.eye(len(names))[codes[:some]])
        return recipe

    def _learn(
        self,
        X: Any,
        scores: npt.NDArray[Any],
        classes: Sequence[Any],
        recipe: LearningRecipe,
        rng: np.random.RandomState,
        start: Floats | None = None,
    ) -> None:
        settings, bases = self._bases()
        believed = self.prior is not None
        place, self.learned_ = learn(bases, X, scores=scores, recipe=recipe, rng=rng, start=start, believed=believed)
        self.best_params_ = settings[place]
        self.classes_, self._order = sorted_names(classes)


class Classifier(Learner):
    """Any scikit-learn classifier, learning from what a mechanism let through about the labels.

    `fit(X, observed)` is for whoever holds the observations only: `observed` is what `mechanism.privatize(y)` gave,
    and the mechanism is public. `fit_private(X, y)` is for whoever holds the labels: it privatises once and goes on
    from there. Either way the base is refitted several times, each time to what its own predictions make of the
    observations (see `leakcap.labels.learning.likelihood`). Held-out observations make all the choices below, at no
    epsilon, and decide how much these refined predictions count beside those of naive training: where features say
    little about labels, naive training is as good, and the mixture keeps the better of both.

    `fit` cannot tell labels from observations where they look alike (`KRR`), and scikit-learn's own tools
    (`cross_val_score`, `GridSearchCV`) pass on what they are given: give them observations. A row is handed to the base
    once for every class that its observation leaves in question: with sets of many classes that takes memory.

    Guarantee: all of it is computed from features and observations. What the certificate of the mechanism says about
    a label holds whatever is published of this object; the labels given to `fit_private` are not kept.

    Args:
        base: a classifier with `predict_proba` whose `fit` takes `sample_weight`, or a pipeline that ends in one.
        mechanism: what privatised the labels, such as `lc.labels.auto(epsilon=1.0, n_classes=10)`.
        rounds: most rounds of refitting after naive training.
        folds: number of parts by which rows are predicted by models that did not see them; 0 for the model fitted to
            all rows. "auto" takes 0 for a base that finds little to fit in shuffled observations (linear models), and 3
            for others (forests, boosting), which would confirm the noise that they fitted.
        holdout: share of the rows held out at a time to choose, at most 0.5; 0 takes all rounds as they come.
        retrain: "consensus" also tries a last fit to the predicted classes of those rows whose observation agrees,
            and keeps it where held-out observations get likelier.
        grid: settings of the base to choose from, such as `{"C": [1, 0.1, 0.01]}`: noise calls for stronger ones.
        random_state: seed of the split into held-out rows and folds. It has no part in privacy.
        prior: a model of noised sums (`Ridge`, `Logistic`, `LDA` or `NaiveBayes`) with an epsilon of its own, for
            `fit_private`, and for a curator who may see all labels: it is fitted first, and what it makes of each row
            is the prior of that row's observation. Epsilons and deltas of both add up.

    Attributes:
        classes_: names of the classes, sorted.
        observed_: the observations that were learnt from.
        certificate_: what the best attacker can learn of a label, prior included; after `fit_private`.
        prior_: the prior, fitted, if there is one; its classes are places in the mechanism's list.
        learned_: the models that are mixed, their shares, and the likelihoods they were chosen by.
        model_: the model that counts most.
        best_params_: the settings of the grid that count most.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = make_blobs(1000, centers=3, random_state=0, cluster_std=0.5)
        >>> model = lc.labels.Classifier(LogisticRegression(), lc.labels.auto(epsilon=2.0, n_classes=3))
        >>> bool(model.fit_private(X, y).score(X, y) > 0.9), model.certificate_.epsilon
        (True, 2.0)
    """

    def __init__(
        self,
        base: Any,
        mechanism: Mechanism,
        *,
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
        self.mechanism = mechanism

    _go_on = "call fit(X, model.observed_) to try other settings"

    def _recipe(self, X: Any) -> LearningRecipe:
        if not isinstance(self.mechanism, Mechanism):
            raise InputError("mechanism must be one of leakcap.labels, such as auto(epsilon=1.0, n_classes=2)")
        return super()._recipe(X)

    def fit(self, X: Any, observed: npt.ArrayLike) -> Classifier:
        """Learn from observations, never from the labels themselves.

        Args:
            X: features, a row for each label.
            observed: what `mechanism.privatize(y)` returned.

        Returns:
            The classifier itself, fitted.

        Raises:
            InputError: settings or observations cannot be used.
        """
        table = table_of(X)
        recipe = self._recipe(table)
        if observed is None:
            raise InputError("fit requires y to be passed, but the target y is None: give what privatize() returned")
        if self.prior is not None and not hasattr(getattr(self, "prior_", None), "certificate_"):
            raise InputError("prior= is fitted to labels: call fit_private(X, y), and fit goes on from there")
        scores = self.mechanism.scores(observed)
        check_rows(table, len(scores))
        if observed is not getattr(self, "observed_", None):
            self.observed_ = observed
            if hasattr(self, "certificate_"):  # of other observations
                del self.certificate_
        self._learn(
            table,
            scores,
            classes=self.mechanism.classes,
            recipe=recipe,
            rng=generator_of(self.random_state),
            start=None if self.prior is None else beliefs(self.prior_, table),
        )
        return self

    def fit_private(self, X: Any, y: npt.ArrayLike) -> Classifier:
        """Privatise the labels once, keep what may be known of them, and learn from that.

        It works once: to try other settings, call `fit(X, observed_)` as often as you like.

        Args:
            X: features, a row for each label.
            y: the labels, one column.

        Returns:
            The classifier itself, fitted.

        Raises:
            InputError: settings or labels cannot be used (nothing is drawn then), or labels were privatised before.
        """
        self._rehearse(table_of(X), len(column(y)), self.mechanism)
        places = self.mechanism.places(y)  # bad labels are refused before anything is drawn
        if self.prior is not None:
            self.prior_ = spending_copy(self.prior, self.mechanism.n_classes)
            self.prior_.fit(X, places)
        self.observed_ = self.mechanism.privatize(y)
        self.certificate_ = self._certificate(len(places))
        return self.fit(X, self.observed_)

    def _certificate(self, labels: int) -> LabelCertificate:
        if self.prior is None:
            return self.mechanism.certificate(labels=labels)
        even = np.full(self.mechanism.n_classes, 1 / self.mechanism.n_classes)
        responses = self.mechanism.certificate(labels, even)
        # Given the label, observations do not depend on the sums: together they tell at most what both tell.
        return together(self.prior_.certificate_, responses, responses.mutual_information)


def _check_base(base: Any) -> None:
    last = base.steps[-1][1] if hasattr(base, "steps") else base
    if isinstance(base, type) or not hasattr(base, "fit"):
        raise InputError("base must be a scikit-learn classifier, such as LogisticRegression()")
    if not hasattr(base, "predict_proba"):
        raise InputError(
            "base must predict probabilities (predict_proba), since observations are weighed against them: "
            "use LogisticRegression() in place of a linear SVM or RidgeClassifier"
        )
    if not has_fit_parameter(last, "sample_weight"):
        raise InputError(
            "base must take sample_weight in fit, since a privatised label counts partly for several classes: use "
            "HistGradientBoostingClassifier, RandomForestClassifier or LogisticRegression in place of nearest "
            "neighbours; for networks there is leakcap.labels.PosteriorLoss"
        )
