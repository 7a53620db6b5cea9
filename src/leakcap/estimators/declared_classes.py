"""Classes that are declared, because under a pool cap a name that shows tells of people."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from leakcap.errors import InputError
from leakcap.estimators.data import Rows, validated
from leakcap.stats.cells import own_places

__all__ = ["declared_rows"]


def declared_rows(estimator: Any, X: Any, y: Any, declared: Any) -> Rows:
    """The rows, each with the place of its class among those declared; -1 where it is none of them.

    Of the target nothing is checked but its length: a cell that suits no check would be heard.
    """
    classes = _different(declared)
    features = validated(estimator, X, dtype=np.float64, order="C", ensure_min_samples=2)
    check_consistent_length(features, y)
    place = own_places(y, classes.tolist())
    return Rows(features, np.where(place < len(classes), place, -1), classes)


def _different(declared: Any) -> Any:
    classes = None if isinstance(declared, (str, bytes)) else np.asarray(list(declared))
    if classes is None or classes.ndim != 1 or classes.dtype.kind not in "biufU" or len(classes) < 2:
        raise InputError("classes must be a list of at least two names or numbers, such as ['no', 'yes']")
    found = np.unique(classes)
    if len(found) < len(classes):
        raise InputError("classes must be different from each other")
    return found
