"""Classifiers made of sums by class. Under a pool cap the classes are declared: a name that shows tells of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.estimators.classifiers import PrivateClassifier
from leakcap.estimators.computation import Utility
from leakcap.estimators.data import Rows
from leakcap.estimators.declared_classes import declared_rows
from leakcap.ground.arrays import Floats, Ints

__all__ = ["OfDeclaredClasses", "class_weights"]


@dataclass(eq=False, repr=False)
class OfDeclaredClasses(PrivateClassifier):
    """What these classifiers share: `classes`, which a pool cap needs and which nothing else takes."""

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        if self._declared() is not None:
            raise InputError("classes are for a pool cap, leakcap.pool_membership(...): otherwise y has them")
        return super()._rows(X, y, weight)

    def _rows_of_all(self, X: Any, y: Any, weight: Any) -> Rows:
        declared = self._declared()
        if declared is None:
            raise InputError(
                f"a pool cap, or a session within bounds, needs the classes there may be: {type(self).__name__}(..., "
                "classes=['no', 'yes']), or --setting classes=no,yes in a command. They must not come from the data, "
                "because a class that shows tells that somebody is in it"
            )
        if weight is not None:
            raise InputError("under a pool cap every row counts alike: leave out sample_weight")
        return declared_rows(self, X, y, declared)

    def _declared(self) -> Any:
        return getattr(self, "classes", None)

    def _accuracy(self, rows: Rows) -> Utility:
        assert rows.target is not None
        known = np.flatnonzero(rows.target >= 0)
        if len(known) == len(rows.target):
            return super()._accuracy(rows)
        if not len(known):
            return Utility("accuracy", lambda made: 0.0)
        return super()._accuracy(Rows(rows.features[known], rows.target[known], rows.classes))


def class_weights(codes: Ints, weight: Floats, count: int) -> Floats:
    """The weight of all rows of each class; never 0."""
    return np.maximum(np.bincount(codes, weight, minlength=count), np.finfo(float).tiny)
