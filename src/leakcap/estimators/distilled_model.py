"""What a distilled model is: a student, and by how much its probabilities were off. Public: it may be published."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import has_fit_parameter

from leakcap.ground.arrays import Floats, Ints

__all__ = ["DistilledModel"]

CELLS = 16  # about so many, by the class that a student names and how sure it is
FAINT = 0.02  # shares of a class that a student is not told of


class DistilledModel(ClassifierMixin, BaseEstimator):
    """A student whose probabilities are put right, cell by cell. Made from released numbers, it may be published."""

    student_: Any
    classes_: npt.NDArray[Any]
    cuts_: Floats  # (classes, levels - 1): how sure the student is of the class that it names
    shifts_: Floats  # (cells, classes): what is added to its probabilities

    @classmethod
    def of(cls, student: Any, rows: Floats, labels: Floats, classes: npt.NDArray[Any]) -> DistilledModel:
        """A student that has learnt soft labels of public rows, with nothing put right yet."""
        made = cls()
        made.classes_ = classes
        made.student_ = _taught(student, rows, labels)
        said = made._said(rows)
        levels = max(1, round(CELLS / len(classes)))
        made.cuts_ = np.stack([_cuts(said, place, levels) for place in range(len(classes))])
        made.shifts_ = np.zeros((len(classes) * levels, len(classes)))
        return made

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.shifts_)

    def places(self, X: Any) -> tuple[Ints, Floats]:
        """The cell of each row, and the student's probabilities."""
        said = self._said(X)
        named = said.argmax(axis=1)
        sure = said[np.arange(len(said)), named]
        level = (sure[:, None] > self.cuts_[named]).sum(axis=1)
        return named * (self.cuts_.shape[1] + 1) + level, said

    def put_right(self, counts: Floats, said: Floats, noise: float) -> None:
        """Shift the probabilities of a cell to the shares of its people, as far as these are surer than noise.

        Args:
            counts: `(cells, classes)`, noised numbers of people.
            said: `(cells, classes)`, what the student says of public rows there on average; not a number where there
                are none.
            noise: deviation in each count.
        """
        people = np.maximum(counts.sum(axis=1, keepdims=True), noise * np.sqrt(counts.shape[1]))
        apart = np.where(np.isfinite(said), counts / people - said, 0.0)
        apart -= apart.mean(axis=1, keepdims=True)
        size = np.maximum((apart**2).sum(axis=1, keepdims=True), np.finfo(float).tiny)
        # What remains after noise of this size is taken off (James and Stein).
        self.shifts_ = apart * np.maximum(0.0, 1 - (counts.shape[1] - 1) * (noise / people) ** 2 / size)

    def predict_proba(self, X: Any) -> Floats:
        """`(rows, classes)`: probabilities."""
        cell, said = self.places(X)
        found = np.maximum(said + self.shifts_[cell], 1e-6)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _said(self, X: Any) -> Floats:
        found = np.zeros((len(X), len(self.classes_)))
        if not hasattr(self.student_, "predict_proba"):
            found[np.arange(len(X)), np.asarray(self.student_.predict(X), dtype=np.intp)] = 1.0
            return found
        found[:, np.asarray(self.student_.classes_, dtype=np.intp)] = self.student_.predict_proba(X)
        return found


def _taught(student: Any, rows: Floats, labels: Floats) -> Any:
    """Soft labels as rows with weights where the student takes weights; otherwise the likeliest class of each."""
    likeliest = labels.argmax(axis=1)
    try:
        weighs = has_fit_parameter(student, "sample_weight")
    except (TypeError, ValueError):
        weighs = False
    if not weighs:
        if (likeliest == likeliest[0]).all():
            return DummyClassifier().fit(rows, likeliest)
        return clone(student).fit(rows, likeliest)
    told = labels > np.minimum(FAINT, labels.max(axis=1, keepdims=True) / 2)
    row, place = np.nonzero(told)
    if (place == place[0]).all():
        return DummyClassifier().fit(rows, likeliest)
    return clone(student).fit(rows[row], place, sample_weight=labels[row, place])


def _cuts(said: Floats, place: int, levels: int) -> Floats:
    sure = said[said.argmax(axis=1) == place, place]
    return np.quantile(sure, np.arange(1, levels) / levels) if len(sure) else np.full(levels - 1, 1.0)
