"""What a distilled model is: a student, and by how much its probabilities were off. Public: it may be published."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier

from leakcap.ground.arrays import Bools, Floats, Ints

__all__ = ["DistilledModel", "shrunk"]

CELLS = 16  # about so many, by the class that a student names and how sure it is
HEARD = 3.0  # deviations of its noise, that the number of people of a cell must exceed
SUREST = 0.6  # of the rows of a class, from which a student learns in rounds


class DistilledModel(ClassifierMixin, BaseEstimator):
    """A student whose probabilities are put right, cell by cell. Made from released numbers, it may be published."""

    student_: Any
    classes_: npt.NDArray[Any]
    cuts_: Floats  # (classes, levels - 1): how sure the student is of the class that it names
    shifts_: Floats  # (cells, classes): what is added to its probabilities

    @classmethod
    def of(
        cls, student: Any, rows: Floats, votes: Floats, *, classes: npt.NDArray[Any], rounds: int = 0
    ) -> DistilledModel:
        """A student that has learnt votes about public rows, with nothing put right yet."""
        made = cls()
        made.classes_ = classes
        made.student_ = _taught(student, rows, votes, rounds)
        said = _shares(made.student_, rows, len(classes))
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
        said = _shares(self.student_, X, len(self.classes_))
        named = said.argmax(axis=1)
        sure = said[np.arange(len(said)), named]
        level = (sure[:, None] > self.cuts_[named]).sum(axis=1)
        return named * (self.cuts_.shape[1] + 1) + level, said

    def put_right(self, counts: Floats, public: Floats, noise: float) -> None:
        """Shift the probabilities of a cell to the shares of its people, as far as these are surer than noise.

        Args:
            counts: `(cells, classes)`, noised numbers of people.
            public: rows, on which the student's own average in a cell is taken.
            noise: deviation in each count.
        """
        cell, said = self.places(public)
        sizes = np.bincount(cell, minlength=self.cells)[:, None]
        own = np.stack([np.bincount(cell, column, minlength=self.cells) for column in said.T], axis=1)
        people = np.maximum(counts.sum(axis=1, keepdims=True), noise * np.sqrt(counts.shape[1]))
        heard = (sizes > 0) & (people > HEARD * noise * np.sqrt(counts.shape[1]))
        apart = np.where(heard, counts / people - own / np.maximum(sizes, 1), 0.0)
        apart -= apart.mean(axis=1, keepdims=True)
        of_noise = (counts.shape[1] - 1) * (noise / people) ** 2
        self.shifts_ = apart * shrunk((apart**2).sum(axis=1, keepdims=True), of_noise)

    def predict_proba(self, X: Any) -> Floats:
        """`(rows, classes)`: probabilities."""
        cell, said = self.places(X)
        found = np.maximum(said + self.shifts_[cell], 1e-6)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def shrunk(squares: Floats, of_noise: Floats | float) -> Floats:
    """What to keep of vectors with these squared lengths, of which noise makes so much on average (James and Stein)."""
    heard = squares > of_noise
    return np.where(heard, 1 - of_noise / np.where(heard, squares, 1.0), 0.0)


def _taught(student: Any, rows: Floats, votes: Floats, rounds: int) -> Any:
    """A student of the class with the most votes, for every row; or of the surest rows of each class, round by round.

    After a round rows have the classes that the student names: those of a class are more alike than their votes.
    """
    named = votes.argmax(axis=1)
    if not rounds:
        return _one_or_more(student, rows, named)
    taught = None
    for _ in range(rounds if hasattr(student, "predict_proba") else 1):
        sure = _surest(votes, named)
        taught = _one_or_more(student, rows[sure], named[sure])
        votes = _shares(taught, rows, votes.shape[1])
        named = votes.argmax(axis=1)
    return taught


def _surest(votes: Floats, named: Ints) -> Bools:
    """The surest rows of each class: by how far it is ahead of the next."""
    ordered = np.sort(votes, axis=1)
    ahead = ordered[:, -1] - ordered[:, -2]
    kept = np.zeros(len(votes), dtype=bool)
    for place in np.unique(named):
        own = np.flatnonzero(named == place)
        kept[own[np.argsort(-ahead[own], kind="stable")][: max(1, round(SUREST * len(own)))]] = True
    return kept


def _one_or_more(student: Any, rows: Floats, named: Ints) -> Any:
    if (named == named[0]).all():  # many classifiers refuse a single class
        return DummyClassifier().fit(rows, named)
    return clone(student).fit(rows, named)


def _shares(taught: Any, X: Any, classes: int) -> Floats:
    """`(rows, classes)`: probabilities, or 1 for the class that is named where there are none."""
    found = np.zeros((len(X), classes))
    if hasattr(taught, "predict_proba"):
        found[:, np.asarray(taught.classes_, dtype=np.intp)] = taught.predict_proba(X)
    else:
        found[np.arange(len(X)), np.asarray(taught.predict(X), dtype=np.intp)] = 1.0
    return found


def _cuts(said: Floats, place: int, levels: int) -> Floats:
    sure = said[said.argmax(axis=1) == place, place]
    return np.quantile(sure, np.arange(1, levels) / levels) if len(sure) else np.full(levels - 1, 1.0)
