"""Any scikit-learn estimator, private: it is fitted in every world, and what it learns is released with noise."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from leakcap.caps import as_caps
from leakcap.errors import InputError, OutputError
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.computation import Computation, Utility
from leakcap.estimators.data import Rows, checked_weight, validated, without_text
from leakcap.estimators.held import answered_form, released_form, with_form_of
from leakcap.estimators.tree_refusals import refuse_trees
from leakcap.estimators.twins import categories_of, sums_of_last_step, twin_of
from leakcap.planning.ways import USUAL, about_one_person
from leakcap.simulate.callers import private_parts

__all__ = ["DIAGNOSTICS", "Private"]

# How a fit went, not what it learnt: nothing predicts from these, and most vary between worlds.
DIAGNOSTICS = (
    "_no_improvement_count",
    "_optimizer",
    "_random_state",
    "best_loss_",
    "best_validation_score_",
    "inertia_",
    "labeled_iter_",
    "labels_",
    "loss_",
    "loss_curve_",
    "lower_bound_",
    "lower_bounds_",
    "n_iter_",
    "n_samples_",
    "n_samples_fit_",
    "n_samples_seen_",
    "named_estimators_",  # the same as `estimators_`
    "termination_condition_",
    "train_score_",
    "transduction_",
    "validation_scores_",
)


def _inner_has(name: str) -> Callable[[Any], bool]:
    def check(self: Private) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return check


@dataclass(eq=False, repr=False)
class Private(PrivateEstimator):
    """Any scikit-learn estimator, a pipeline or a search too, with a private fit.

    The fitted numbers of the estimator are released with noise, in `estimator_`. Attributes that are not numbers must
    be equal in all worlds. A search (`GridSearchCV`) inside chooses anew in every world: the numbers of its winner are
    released, the choice is not. Estimators whose form depends on the data are refused: trees, forests and boosting at
    once, naming the private one to use; neighbours and kernel machines when they are fitted.

    Args:
        estimator: the estimator to fit; it is cloned, never fitted itself.
        drop: names of further attributes that are not to be released.
        weights: how much noise matters in each number, as in `leakcap.plan`.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        estimator_: a clone of the estimator that holds the released numbers; its fitted attributes are also found here.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.linear_model import Ridge
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = Private(Ridge(10.0), cap=lc.membership(0.9), worlds=16, random_state=0, options={"draws": 256})
        >>> model.fit(X, X @ [1.0, 2.0]).coef_.shape
        (2,)
    """

    estimator: Any
    _: KW_ONLY
    drop: tuple[str, ...] = ()
    weights: Any = None

    def __post_init__(self) -> None:
        _refuse_class(self.estimator)
        refuse_trees(self.estimator)

    @available_if(_inner_has("predict"))
    def predict(self, X: Any) -> Any:
        """What the wrapped estimator predicts, with released numbers.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().predict(X)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes by the wrapped estimator, with released numbers.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().predict_proba(X)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of these probabilities.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().predict_log_proba(X)

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores by the wrapped estimator, with released numbers.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().decision_function(X)

    @available_if(_inner_has("transform"))
    def transform(self, X: Any) -> Any:
        """Rows transformed by the wrapped estimator, with released numbers.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().transform(X)

    @available_if(_inner_has("inverse_transform"))
    def inverse_transform(self, X: Any) -> Any:
        """Rows transformed back by the wrapped estimator, with released numbers.

        Args:
            X: rows as `transform` gives them.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().inverse_transform(X)

    @available_if(_inner_has("score"))
    def score(self, X: Any, y: Any = None, **options: Any) -> Any:
        """The wrapped estimator's own score, with released numbers.

        Args:
            X: rows and columns, as given to `fit`.
            y: the target, where the score needs one.
            **options: further arguments of the wrapped estimator's `score`.

        Returns:
            The score; higher is better.
        """
        return self._fitted().score(X, y, **options)

    @available_if(_inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns that `transform` gives.

        Args:
            input_features: names of the columns that it takes, as in scikit-learn.

        Returns:
            As the wrapped estimator's method.
        """
        return self._fitted().get_feature_names_out(input_features)

    @available_if(_inner_has("set_output"))
    def set_output(self, *, transform: Any = None) -> Private:
        """Choose what `transform` gives: arrays or tables.

        Args:
            transform: "default", "pandas" or "polars", as in scikit-learn.

        Returns:
            The estimator itself.
        """
        getattr(self, "estimator_", self.estimator).set_output(transform=transform)
        return self

    @available_if(_inner_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit, and transform the same rows with released numbers.

        Args:
            X: rows and columns, an array or a DataFrame.
            y: the target, where the estimator needs one.
            **options: further arguments of `fit`.

        Returns:
            The transformed rows.
        """
        return self.fit(X, y, **options).transform(X)  # type: ignore[attr-defined]

    def _publish(self, estimator: Any) -> None:
        super()._publish(estimator)
        if hasattr(estimator, "classes_"):  # a pipeline shows those of its last step
            self.classes_ = estimator.classes_

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        _refuse_class(self.estimator)
        if not hasattr(self.estimator, "fit"):
            raise InputError("Private needs an estimator, such as Private(LogisticRegression(), cap=...)")
        if isinstance(self.estimator, PrivateEstimator) or private_parts(self.estimator, PrivateEstimator):
            raise InputError("Private needs plain estimators: one that is private would release in every world")
        refuse_trees(self.estimator)  # it may have been set since
        if _is_fitted(self.estimator):
            raise InputError("the estimator is fitted, and would be saved with what it learnt: give clone(estimator)")
        table = X.tocsr() if issparse(X) else X if hasattr(X, "shape") else np.asarray(X)
        target = None if y is None else np.asarray(y)
        if table.shape and table.shape[0] < 4:
            raise InputError(f"n_samples={table.shape[0]} is too few: a world has half of them")
        given = {} if weight is None else {"sample_weight": np.asarray(weight)}
        if given and not has_fit_parameter(self.estimator, "sample_weight"):
            raise InputError(f"{type(self.estimator).__name__} takes no sample_weight")
        # Other faults in the data raise scikit-learn's own errors.
        made = without_text(table, lambda: clone(self.estimator).fit(table, target, **given))
        validated(self, table, skip_check_array=True)
        return Rows(
            table, target, weight=checked_weight(weight, table), form=(made, *with_form_of(self.estimator, made))
        )

    def _rows_of_all(self, X: Any, y: Any, weight: Any) -> Rows:
        self._sums_of_all(Rows(X))  # which refuses, before the data are looked at
        raise AssertionError

    def _design(self, cap: Any) -> str:
        """Coins rather than worlds wherever nothing was said that asks for worlds."""
        design, given = super()._design(cap), self.options or {}
        unasked = self.worlds == "auto" and self.strata is None and not given.keys() & {"design", "mode", *USUAL}
        plain = unasked and not self.drop and self.weights is None and about_one_person(as_caps(cap))
        return "bits" if design == "worlds" and plain and twin_of(self.estimator) is not None else design

    def _sums_of_half(self, rows: Rows) -> Computation:
        twin, fitted = twin_of(self.estimator), rows.form[0]
        if twin is None:
            raise InputError(
                "design='bits' is for LogisticRegression, Ridge, LinearRegression and GaussianNB, alone or behind "
                "encoders, imputers, scalers, bins, splines and PCA: leave design out, and worlds are simulated"
            )
        made = sums_of_last_step(fitted, twin, (rows.features, rows.target, rows.weight))
        return replace(made, utility=self._utility(rows), keys=tuple(categories_of(fitted)))

    def _computation(self, rows: Rows) -> Computation:
        data = tuple(one for one in (rows.features, rows.target, rows.weight) if one is not None)
        names = tuple(
            name
            for name, one in (("X", rows.features), ("y", rows.target), ("sample_weight", rows.weight))
            if one is not None
        )
        _, form, taken = rows.form
        answer = functools.partial(_fit, form=form, names=names)
        drop = (*DIAGNOSTICS, *self.drop)
        return Computation(
            answer,
            data,
            functools.partial(released_form, form=_plain(form), asked=_plain(self.estimator)),
            self._utility(rows),
            pool_public=tuple(f"{words[:1].upper()}{words[1:]}" for words in taken),
            weights=self.weights,
            drop=drop,
        )

    def _strengths(self) -> dict[str, Any]:
        if isinstance(self.estimator, BaseSearchCV):
            return {}  # a search chooses its own strengths
        given = self.estimator.get_params()
        return {name: value for name, value in given.items() if name.rpartition("__")[2] in self._knobs}

    def _with(self, name: str, value: float) -> Private:
        other = copy.copy(self)
        other.estimator = clone(self.estimator).set_params(**{name: value})
        return other

    def _utility(self, rows: Rows) -> Utility | None:
        """How the released estimator is judged. Trying it before anything leaves shows whether its numbers suffice."""
        some = _safe_indexing(rows.features, np.arange(rows.features.shape[0])[rows.some])
        target = None if rows.target is None else rows.target[rows.some]
        if is_classifier(self.estimator) and target is not None:
            most = float(np.unique(target, return_counts=True)[1].max() / len(target))
            return Utility("accuracy", _tried(lambda made: made.score(some, target)), most)
        if is_regressor(self.estimator) and target is not None:
            return Utility("R2", _tried(lambda made: made.score(some, target)))
        for name in ("transform", "predict"):
            if hasattr(self.estimator, name):
                # The method only has to run: what its answer is worth is not known here.
                return Utility(name, _tried(lambda made: float(len(getattr(made, name)(some)) > 0)), -1.0)  # noqa: B023
        return None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags = inner.input_tags
        return tags

    @property
    def _estimator_type(self) -> Any:  # of scikit-learn before 1.6
        return getattr(self.estimator, "_estimator_type", None)


def _refuse_class(estimator: Any) -> None:
    if isinstance(estimator, type):
        name = estimator.__name__
        raise InputError(f"Private needs an estimator, and this is its class: write Private({name}(), cap=...)")


def _is_fitted(estimator: Any) -> bool:
    """Whether the estimator, or one inside it, holds something that it has learnt."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return any(
        name.endswith("_") and not name.startswith("_")
        for part in parts
        if isinstance(part, BaseEstimator)
        for name in vars(part)
    )


def _tried(score: Callable[[Any], float]) -> Callable[[Any], float]:
    def trial(made: Any) -> float:
        try:
            return float(score(made))
        except AttributeError as error:
            missing = error.name
        raise OutputError(
            f"what is released does not suffice to predict: {missing!r} is missing. Estimators that keep data or "
            "compiled objects cannot be released"
        )

    return trial


def _fit(*rows: Any, form: Any, names: tuple[str, ...]) -> Any:
    given = dict(zip(names, rows, strict=True))
    return answered_form(_winner(clone(form).fit(given.pop("X"), given.pop("y", None), **given), form))


def _plain(estimator: Any) -> Any:
    """What a search chooses for, or the estimator itself."""
    return _plain(estimator.estimator) if isinstance(estimator, BaseSearchCV) else estimator


def _winner(fitted: Any, asked: Any) -> Any:
    """The estimator without searches: the best estimator of each takes its place, under the parameters given."""
    if isinstance(fitted, BaseSearchCV):
        if not hasattr(fitted, "best_estimator_"):
            raise InputError("a search inside Private must refit: use refit=True")
        given = asked.estimator.get_params(deep=True)  # what was chosen is not released
        best = fitted.best_estimator_.set_params(**{name: given[name] for name in fitted.best_params_})
        return _winner(best, asked.estimator)
    if isinstance(fitted, Pipeline):
        inner = dict(asked.steps)
        fitted.steps = [(name, _winner(step, inner[name])) for name, step in fitted.steps]
    return fitted
