"""What learners ask of rows, labels and classes before a label is touched, and that labels are used once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from leakcap.errors import InputError
from leakcap.labels.mechanisms.classes import column
from leakcap.simulate.callers import SEARCHES, fitted_by

__all__ = [
    "SpendsLabels",
    "check_rows",
    "given_labels",
    "refuse_again",
    "refuse_mixed",
    "refuse_unfitted",
    "sorted_names",
    "table_of",
]


def table_of(X: Any) -> Any:
    """Features as they are, or as an array; the base checks their content."""
    if hasattr(X, "tocsr"):
        return X.tocsr()  # rows are picked from it
    return X if hasattr(X, "shape") else np.asarray(X)


def check_rows(X: Any, labels: int) -> None:
    if len(X.shape) != 2:
        raise InputError("X must be a table with one row for each label")
    if X.shape[0] != labels:
        raise InputError(f"X has {X.shape[0]} rows, but there are {labels} labels or observations: give one for each")
    if labels < 2:
        raise InputError("one sample is not enough to learn from: give more rows")


def given_labels(y: Any) -> npt.NDArray[Any]:
    """The labels as one column, if there are any."""
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None: give the labels")
    return column(y)


class SpendsLabels:
    """What spends epsilon of labels when it is fitted to them."""


def refuse_again(model: Any, go_on: str) -> None:
    """Labels that were used are spent: `certificate_` says so. Whoever fits clones to them would spend on each."""
    around = fitted_by(SpendsLabels)
    if around:
        named = "a search or cross-validation" if around == SEARCHES else around
        raise InputError(
            f"{named} around {type(model).__name__} would spend epsilon at every fit, and no certificate would tell of "
            "all of them. Fit it once; try settings on other data, or by labels that are made up"
        )
    if hasattr(model, "certificate_"):
        raise InputError(
            f"this {type(model).__name__} has privatised labels before, and doing so again would spend epsilon again: "
            f"{go_on}"
        )


def refuse_mixed(names: Sequence[Any]) -> None:
    if len({isinstance(name, str) for name in names}) > 1:
        raise InputError("some classes are text and some are numbers, which cannot be sorted: name all as text")


def sorted_names(names: Sequence[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Names of the classes as scikit-learn's scorers want them, and which place each of them had."""
    found = np.asarray(names)
    order = np.argsort(found, kind="stable")
    return found[order], order


def refuse_unfitted(model: Any, has: str, call: str) -> None:
    if not hasattr(model, has):
        raise NotFittedError(f"this {type(model).__name__} has learnt nothing yet: call {call} first")
