"""What transformers take from the data before anything is learnt: categories, bins, knots.

It would be of another form in every world. So it is taken from the whole pool, once, and the certificate lists it.
Whoever knows it without the data gives it to the transformer, as in `OneHotEncoder(categories=...)`: then nothing is
taken from the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, SplineTransformer, TargetEncoder

__all__ = ["answered_form", "in_words", "released_form", "with_form_of"]

AWAY = "passthrough"  # a step of scikit-learn's that is a word


class _Held(TransformerMixin, BaseEstimator):
    """A transformer that keeps what it took from the pool, whatever it is fitted to."""

    def __init__(self, made: Any) -> None:
        self.made = made

    @property
    def keys(self) -> bool:
        """Whether what it holds are categories alone."""
        return isinstance(self.made, (OneHotEncoder, OrdinalEncoder))

    def fit(self, X: Any, y: Any = None) -> _Held:
        return self

    def transform(self, X: Any) -> Any:
        return self.made.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return self.made.get_feature_names_out(input_features)

    def __sklearn_clone__(self) -> _Held:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


def with_form_of(asked: Any, made: Any) -> tuple[Any, tuple[str, ...]]:
    """`asked`, to be fitted in every world in the form that `made` took from the pool; and what that is, in words."""
    words: list[str] = []
    return _with_form(asked, made, "", words), tuple(words)


def _with_form(asked: Any, made: Any, columns: str, words: list[str]) -> Any:
    if isinstance(asked, str) or not hasattr(asked, "get_params"):  # "passthrough", "drop"
        return asked
    form = clone(asked)
    if isinstance(asked, BaseSearchCV):
        form.estimator = _with_form(asked.estimator, made.best_estimator_, columns, words)
    elif isinstance(asked, Pipeline):
        fitted = dict(made.steps)
        form.steps = [(name, _with_form(step, fitted[name], columns, words)) for name, step in asked.steps]
    elif isinstance(asked, FeatureUnion):
        fitted = dict(made.transformer_list)
        form.transformer_list = [(name, _with_form(a, fitted[name], "", words)) for name, a in asked.transformer_list]
    elif isinstance(asked, ColumnTransformer):
        fitted = {name: one for name, one, _ in made.transformers_}
        form.transformers = [
            (name, _with_form(one, fitted.get(name, one), in_words(some), words), some)
            for name, one, some in asked.transformers
        ]
        form.remainder = _with_form(asked.remainder, fitted.get("remainder"), "", words)
        form.sparse_threshold = 1.0 if made.sparse_output_ else 0.0  # how full a table is differs between worlds
    elif what := _taken(asked, made):
        words.append(f"{what} of {columns or 'the columns'} ({type(asked).__name__})")
        if not isinstance(asked, TargetEncoder):  # which learns numbers beside
            return _Held(made)
        form.categories = [np.asarray(one) for one in made.categories_]
    return form


def answered_form(fitted: Any) -> Any:
    """What was fitted in a world, without what was not: in place of a held transformer stands a word.

    Encoders stay, because their categories are keys of the answer, of which rare ones are warned about.
    """
    return _replaced(
        fitted, fitted, lambda one, _: one if not isinstance(one, _Held) else one.made if one.keys else AWAY
    )


def released_form(answer: Any, form: Any, asked: Any) -> Any:
    """The estimator that was asked for, of released numbers and of what was held."""
    made = _replaced(answer, form, lambda one, held: held.made if isinstance(held, _Held) and not held.keys else one)
    return _with_parameters(made, asked)


def _replaced(fitted: Any, beside: Any, of: Callable[[Any, Any], Any]) -> Any:
    """Every part of an estimator replaced by what `of` makes of it and of the part that stands there in another."""
    if isinstance(fitted, Pipeline):
        other = dict(beside.steps)
        fitted.steps = [(name, _replaced(one, other[name], of)) for name, one in fitted.steps]
    elif isinstance(fitted, FeatureUnion):
        other = dict(beside.transformer_list)
        fitted.transformer_list = [(name, _replaced(one, other[name], of)) for name, one in fitted.transformer_list]
    elif isinstance(fitted, ColumnTransformer):
        other = {name: one for name, one, _ in beside.transformers} | {"remainder": beside.remainder}
        for place in ("transformers", "transformers_"):
            if parts := getattr(fitted, place, None):
                setattr(fitted, place, [(name, _replaced(one, other[name], of), some) for name, one, some in parts])
    return of(fitted, beside)


def _with_parameters(made: Any, asked: Any) -> Any:
    """With the parameters that were asked for in place of those by which it was held."""
    if isinstance(made, Pipeline):
        for (_, one), (_, step) in zip(made.steps, asked.steps, strict=True):
            _with_parameters(one, step)
    elif isinstance(made, FeatureUnion):
        for (_, one), (_, step) in zip(made.transformer_list, asked.transformer_list, strict=True):
            _with_parameters(one, step)
    elif isinstance(made, ColumnTransformer):
        given = {name: one for name, one, _ in asked.transformers} | {"remainder": asked.remainder}
        for name, one, _ in made.transformers_:
            _with_parameters(one, given[name])
        fresh = clone(asked)
        made.transformers, made.remainder = fresh.transformers, fresh.remainder
        made.sparse_threshold = asked.sparse_threshold
    elif isinstance(made, TargetEncoder):
        made.categories = asked.categories
    return made


def in_words(columns: Any) -> str:
    """Columns of a transformer, as people say them."""
    given = [columns] if isinstance(columns, (str, int)) else columns
    if isinstance(given, (list, tuple, np.ndarray)) and all(isinstance(one, str) for one in given):
        return ", ".join(given)
    return ""


def _taken(asked: Any, made: Any) -> str:
    """What a transformer's form takes from the data; nothing where it was given."""
    if isinstance(asked, OneHotEncoder):
        rare = asked.min_frequency is not None or asked.max_categories is not None
        return "categories" if rare or isinstance(asked.categories, str) else ""
    if isinstance(asked, (OrdinalEncoder, TargetEncoder)):
        return "categories" if isinstance(asked.categories, str) else ""
    if isinstance(asked, KBinsDiscretizer):
        return "bins"
    if isinstance(asked, SplineTransformer):
        return "knots" if isinstance(asked.knots, str) else ""
    if isinstance(asked, SimpleImputer):
        learnt = asked.strategy in ("mean", "median", "constant") and not asked.add_indicator
        return "" if learnt else "what missing cells become"
    return ""
