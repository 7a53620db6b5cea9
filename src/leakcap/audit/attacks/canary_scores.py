"""What a model believes of each canary: a row of scores, a column for every class, whatever kind of model it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leakcap.audit.canaries import CanaryKey
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground.arrays import Floats

__all__ = ["canary_scores"]

FARTHEST = 1e300  # stands for infinity, whose differences are no numbers
METHODS = ("predict_proba", "decision_function")


def canary_scores(predict: Any, key: CanaryKey, X: Any = None) -> Floats:
    """Scores of the canaries, `(canaries, classes)`, higher where the model believes a class more.

    `predict`: a fitted classifier, a function of rows, or the scores themselves of all rows or of the canaries alone.
    With `X` rows of the canaries are given to the model; none of the others is touched.
    """
    if X is None:
        if hasattr(predict, METHODS[0]) or (callable(predict) and not hasattr(predict, "__array__")):
            raise InputError("give the rows as well (X=...): a model or a function needs them to predict")
        return _of_canaries(_table(predict, key), key)
    rows = _picked(X, key)
    asked, names = _asked(predict)
    found = _table(_answer(asked, rows), key, names)
    if len(found) != key.count:
        raise OutputError(
            f"the model must give a row of scores for each of the {key.count} canaries it was asked about"
        )
    return found


def _answer(asked: Callable[[Any], Any], rows: Any) -> Any:
    """What the model says; its own error would quote rows, and so tell which are canaries."""
    try:
        return asked(rows)
    except LeakcapError:
        raise
    except (Exception, SystemExit) as error:
        kind = type(error).__name__
    raise OutputError(
        f"the model failed on the rows of the canaries ({kind}; its words are withheld, they may quote a row): ask it "
        "for scores of all rows yourself, and give that table in place of the model"
    )


def _of_canaries(found: Floats, key: CanaryKey) -> Floats:
    if len(found) not in (key.labels, key.count):
        raise InputError(
            f"scores must have a row for each of the {key.labels} labels, or for each of the {key.count} canaries in "
            f"the order of the key; they have {len(found)}"
        )
    return found if len(found) == key.count else found[key.rows]


def _picked(X: Any, key: CanaryKey) -> Any:
    try:
        table = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
        rows = len(table) if not hasattr(table, "tocsr") else table.shape[0]
    except (TypeError, ValueError):  # ragged rows, or none
        rows = 0
    if rows != key.labels:
        raise InputError(f"X must be a table with a row for each of the {key.labels} labels; it has {rows}")
    return table.iloc[key.rows] if hasattr(table, "iloc") else table[key.rows]


def _asked(predict: Any) -> tuple[Callable[[Any], Any], tuple[Any, ...] | None]:
    """What gives scores, and the classes of its columns where it says them."""
    named = getattr(predict, "classes_", None)
    names = None if named is None else _classes(named)
    for method in METHODS:
        if hasattr(predict, method):
            return getattr(predict, method), names
    if hasattr(predict, "predict") and names is not None:
        return lambda rows: _named(predict.predict(rows), names), names
    if callable(predict):
        return predict, None
    raise InputError("predict must be a fitted classifier, a function of rows, or a table of scores")


def _classes(named: Any) -> tuple[Any, ...]:
    try:
        listed = np.asarray(named)
    except ValueError:  # ragged
        listed = np.empty((0, 0))
    if listed.ndim != 1:
        raise InputError("the model's classes_ must be one list: it predicts several labels at once, audit one of them")
    return tuple(listed.tolist())


def _named(found: Any, names: tuple[Any, ...]) -> Any:
    """1 for the class that is named; of what is no class, such as None, nothing is believed."""
    named = np.asarray(found)
    if named.ndim != 1:
        return None
    believed = named[:, None] == np.asarray(names)[None, :]
    if not np.any(believed):
        raise OutputError("the model names none of its own classes (classes_): let it predict these, or give scores")
    return believed


def _table(given: Any, key: CanaryKey, names: tuple[Any, ...] | None = None) -> Floats:
    """Scores as numbers, with a column for each class of the key."""
    if names is None:
        names = _names_of_columns(given, key)
    found = _numbers(given)
    if found.ndim == 1 and len(found) and len(key.classes) == 2:
        found = np.column_stack([-found, found])  # as scikit-learn does it with two classes
    if found.ndim != 2 or found.shape[1] != len(key.classes if names is None else names):
        raise OutputError(f"scores must be a table of numbers with a column for each of the {len(key.classes)} classes")
    if np.isnan(found).any():
        raise OutputError("some scores are not numbers: a model that fails on some rows cannot be judged on them")
    found = np.clip(found, -FARTHEST, FARTHEST)
    return found if names is None else _in_order(found, names, key)


def _numbers(given: Any) -> Floats:
    """As an array of numbers; what is missing in a masked one is not a number, and what is no table has no numbers."""
    given = given.detach().cpu() if hasattr(given, "detach") else given  # a tensor that remembers its gradient
    given = given.toarray() if hasattr(given, "toarray") else given
    try:
        if np.asarray(given).dtype.kind == "c":
            return np.empty(0)
        return np.ma.filled(np.ma.asarray(given, dtype=np.float64), np.nan)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return np.empty(0)


def _names_of_columns(given: Any, key: CanaryKey) -> tuple[Any, ...] | None:
    """The classes of a table's columns, where they are named after them; None where they are not."""
    columns = list(getattr(given, "columns", ()))
    if columns == list(range(len(columns))):  # as pandas numbers them where nobody names them
        return None
    for names in (key.classes, tuple(map(str, key.classes))):
        if len(columns) == len(names) and set(columns) == set(names):
            return tuple(key.classes[names.index(one)] for one in columns)
    return None


def _in_order(found: Floats, names: tuple[Any, ...], key: CanaryKey) -> Floats:
    """Columns as in the key; a class that the model never saw is believed as little as any."""
    if len(set(names)) < len(names):
        raise InputError("the model lists a class twice (classes_): its columns cannot be told apart")
    if not set(names) <= set(key.classes):
        raise InputError("the model knows classes that the key does not: plant with classes=[...], all of them")
    ordered = np.full((len(found), len(key.classes)), min(0.0, float(found.min(initial=0.0))))
    ordered[:, [key.classes.index(name) for name in names]] = found
    return ordered
