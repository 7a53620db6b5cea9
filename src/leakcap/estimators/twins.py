"""A pipeline whose last step has a twin made of sums over people: a coin for everybody then takes the place of worlds.

The steps before the last are fitted to the whole pool, once, and stay as they are; the certificate lists them. Only
steps whose fit are categories, bins, knots, means and the like go this way: what keeps rows of people does not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from types import NoneType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import linear_model, naive_bayes, preprocessing
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from leakcap.estimators.base import PrivateEstimator, sums_of_half
from leakcap.estimators.classification import LogisticRegression
from leakcap.estimators.computation import Computation
from leakcap.estimators.held import in_words
from leakcap.estimators.naive_bayes import GaussianNB
from leakcap.estimators.regression import LinearRegression, Ridge

__all__ = ["categories_of", "sums_of_last_step", "twin_of"]

TWINS: dict[type, type[PrivateEstimator]] = {
    linear_model.LinearRegression: LinearRegression,
    linear_model.LogisticRegression: LogisticRegression,
    linear_model.Ridge: Ridge,
    naive_bayes.GaussianNB: GaussianNB,
}
# Settings that change how a fit is found, and not what it is.
HOW = {"copy_X", "multi_class", "n_jobs", "random_state", "solver", "verbose", "warm_start"}
OTHER_OPTIMA = {"liblinear"}  # a solver that penalises the intercept, too
HELD: tuple[type, ...] = (
    PCA,
    SimpleImputer,
    preprocessing.Binarizer,
    preprocessing.FunctionTransformer,
    preprocessing.KBinsDiscretizer,
    preprocessing.Normalizer,
    preprocessing.OneHotEncoder,
    preprocessing.OrdinalEncoder,
    preprocessing.PolynomialFeatures,
    preprocessing.SplineTransformer,
    preprocessing.StandardScaler,
)
WITHOUT_DATA = (preprocessing.Binarizer, preprocessing.FunctionTransformer, preprocessing.Normalizer)
COUNTS = ("n_samples_seen_", "n_samples_")  # of rows: nothing is made from them


def twin_of(estimator: Any) -> PrivateEstimator | None:
    """The private twin of an estimator, or of the last step of a pipeline all of whose other steps can be held."""
    if isinstance(estimator, Pipeline):
        *before, (_, last) = estimator.steps
        return twin_of(last) if all(_can_be_held(step) for _, step in before) else None
    kind = TWINS.get(type(estimator))
    if kind is None:
        return None
    given, usual = estimator.get_params(), type(estimator)().get_params()
    known = set(kind().get_params())
    odd = {name for name, value in given.items() if name not in known | HOW and value != usual[name]}
    if odd or given.get("solver") in OTHER_OPTIMA or given.get("class_weight") == "balanced":
        return None
    return kind(**{name: value for name, value in given.items() if name in known})


def sums_of_last_step(fitted: Any, twin: PrivateEstimator, data: tuple[Any, Any, Any]) -> Computation:
    """The computation of the twin behind the steps that were fitted to the whole pool."""
    table, target, weight = data
    steps = [(name, _without_counts(step)) for name, step in fitted.steps[:-1]] if isinstance(fitted, Pipeline) else []
    for _, step in steps:
        table = table if isinstance(step, str) else step.transform(table)
    places = table.toarray() if issparse(table) else np.asarray(table, dtype=np.float64)
    made = sums_of_half(twin, places, target, weight)
    words = tuple(words for _, step in steps for words in _words(step))
    return replace(
        made,
        build=functools.partial(_rebuilt, fitted=fitted, steps=steps, build=made.build),
        pool_public=(*words, *made.pool_public),
    )


def _rebuilt(value: Any, *, fitted: Any, steps: list[Any], build: Any) -> Any:
    last = build(value)
    if not isinstance(fitted, Pipeline):
        return last
    whole = clone(fitted)
    whole.steps = [*steps, (fitted.steps[-1][0], last)]
    return whole


def _can_be_held(step: Any) -> bool:
    return all(isinstance(part, str) or part is None or type(part) in HELD for part, _ in _leaves(step))


def _leaves(step: Any, columns: str = "") -> Iterator[tuple[Any, str]]:
    """The transformers that a step consists of, and the names of their columns."""
    if isinstance(step, Pipeline):
        for _, one in step.steps:
            yield from _leaves(one, columns)
    elif isinstance(step, FeatureUnion):
        for _, one in step.transformer_list:
            yield from _leaves(one, columns)
    elif isinstance(step, ColumnTransformer):
        for _, one, some in getattr(step, "transformers_", None) or [*step.transformers, ("", step.remainder, "")]:
            yield from _leaves(one, in_words(some))
    else:
        yield step, columns


def _words(step: Any) -> Iterator[str]:
    for part, columns in _leaves(step):
        if not isinstance(part, (str, NoneType, *WITHOUT_DATA)):
            yield f"All that {type(part).__name__} takes from {columns or 'the columns'}"


def _without_counts(step: Any) -> Any:
    for part, _ in _leaves(step):
        for name in COUNTS:
            getattr(part, "__dict__", {}).pop(name, None)
    return step


def categories_of(fitted: Any) -> list[set[Any]]:
    """The categories that the encoders of a fitted pipeline hold, each encoder's columns one by one."""
    return [
        set(np.asarray(one).tolist())
        for part, _ in _leaves(fitted)
        if isinstance(part, (preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder))
        for one in part.categories_
    ]
