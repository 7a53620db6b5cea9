"""Which estimators of trees `Private` refuses, before anything is fitted, and what to use in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.base import BaseEstimator, is_regressor

from leakcap.errors import InputError

__all__ = ["refuse_trees"]

TREES = ("sklearn.tree.",)
FORESTS = ("sklearn.ensemble._forest", "sklearn.ensemble._iforest")
BOOSTED = ("sklearn.ensemble._gb", "sklearn.ensemble._hist_gradient_boosting.", "xgboost.", "lightgbm.", "catboost.")
TREES_BY_DEFAULT = ("sklearn.ensemble._weight_boosting", "sklearn.ensemble._bagging")  # where no estimator is given
BOOSTED_BY_DEFAULT = TREES_BY_DEFAULT[:1]


def refuse_trees(estimator: Any) -> None:
    """An InputError that names the estimator to use, where there are trees among the parts of an estimator."""
    for part in _parts(estimator):
        if _is_of(part, (*TREES, *FORESTS, *BOOSTED)) or (_is_of(part, TREES_BY_DEFAULT) and not _has_parts(part)):
            raise InputError(
                f"{type(part).__name__} cannot be made private: which splits a tree has depends on the data, so that "
                f"it is no list of numbers that noise could cover. Use {_instead(part)}"
            )


def _is_of(part: Any, modules: tuple[str, ...]) -> bool:
    """Whether a class of these modules is among those that an estimator is made from; they are not imported here."""
    return any(f"{above.__module__}.".startswith(modules) for above in type(part).__mro__)


def _has_parts(part: Any) -> bool:
    return any(isinstance(held, BaseEstimator) for held in part.get_params(deep=False).values())


def _instead(part: Any) -> str:
    if is_regressor(part):
        return "leakcap.estimators.Ridge, or any fit in blocks of people: leakcap.blocks(...)"
    if _is_of(part, (*BOOSTED, *BOOSTED_BY_DEFAULT)):
        return (
            "leakcap.estimators.HistGradientBoostingClassifier, whose rounds are noised sums over people; or, with "
            "public rows, leakcap.estimators.Distilled(model, student, queries=rows), which takes any model"
        )
    if _is_of(part, TREES) and not _is_of(part, FORESTS):
        return "leakcap.estimators.DecisionTreeClassifier, whose splits are chosen by noised counts"
    return "leakcap.estimators.RandomForestClassifier, whose trees are drawn beforehand, and leaves alone learnt"


def _parts(held: Any) -> Iterator[BaseEstimator]:
    """Estimators in an estimator, a list, a tuple or a mapping, however deep; itself first."""
    if isinstance(held, BaseEstimator):
        yield held
        yield from _parts(list(held.get_params(deep=False).values()))
    elif isinstance(held, Mapping):
        yield from _parts(list(held.values()))
    elif isinstance(held, (list, tuple)):
        for one in held:
            yield from _parts(one)
