"""Teachers: one model for each part of the labels, and how many of them name which class for a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.utils import _safe_indexing

from leakcap.ground.arrays import Ints
from leakcap.kernels.linear.parts import ridge_votes, shared_ridge_votes
from leakcap.labels.learning.linear_teacher import LinearTeacher
from leakcap.labels.learning.mlp_teacher import MLPTeacher, network_votes
from leakcap.simulate.silence import each_unheard, silenced
from leakcap.simulate.teaching import all_rows, fitted, names_classes, own_randomness

__all__ = ["votes_of"]

LEAST_ALPHA = 1e-6  # of a ridge that is solved for all teachers at once: a smaller one asks for care


def votes_of(
    teacher: Any,
    table: Any,
    codes: Ints,
    *,
    parts: Sequence[Ints],
    seeds: Sequence[int],
    asked: Ints,
    classes: int,
    whole: bool,
) -> Ints:
    """`(asked, classes)`: how many teachers name each class for each row. Custodian side.

    A teacher that fails in whatever way, or answers in another form, has no vote: a label in its part moves no other
    teacher. What it says while it learns is heard by nobody. Ctrl-C of the user's stops them all.

    Args:
        teacher: a classifier.
        table: all features.
        codes: all labels.
        parts: rows of each teacher.
        seeds: for each teacher, of all randomness it may take from the process: what it took would otherwise show in
            the votes of those after it.
        asked: rows to vote on.
        classes: how many.
        whole: hand every teacher all rows, with -1 where it does not know the label.
    """
    alpha = _shared_alpha(teacher, table) if whole else _ridge_alpha(teacher, table)
    if alpha is not None:
        rows = table.astype(np.float64)
        if whole:
            return shared_ridge_votes(rows, codes, parts, rows[asked], classes=classes, alpha=alpha)
        intercept = bool(teacher.fit_intercept)
        return ridge_votes(rows, codes, parts, rows[asked], classes=classes, alpha=alpha, intercept=intercept)
    if type(teacher) is MLPTeacher and _plain(table):
        rows = table.astype(np.float64)
        with silenced():
            return network_votes(
                teacher, rows, codes, rows[asked], parts=parts, seeds=seeds, classes=classes, whole=whole
            )
    questions, places = _safe_indexing(table, asked), np.arange(len(asked))
    votes = np.zeros((len(asked), classes), dtype=np.int64)

    def vote(one: tuple[Ints, int]) -> None:
        part, seed = one
        with own_randomness(seed):
            named = _named(teacher, table, codes, part, questions=questions, whole=whole)
        if named is not None:
            right = (named >= 0) & (named < classes)
            votes[places[right], named[right]] += 1

    each_unheard(vote, zip(parts, seeds, strict=True))
    return votes


def _ridge_alpha(teacher: Any, table: Any) -> float | None:
    """The penalty, where all teachers are solved at once and vote as each by itself would."""
    if type(teacher) is not RidgeClassifier or not _plain(table):
        return None
    if teacher.class_weight is not None or teacher.positive or teacher.solver not in ("auto", "cholesky"):
        return None
    ordinary = isinstance(teacher.alpha, (int, float)) and teacher.alpha >= LEAST_ALPHA
    return float(teacher.alpha) if ordinary else None


def _shared_alpha(teacher: Any, table: Any) -> float | None:
    """The same, for teachers that see all features."""
    return float(teacher.alpha) if type(teacher) is LinearTeacher and _plain(table) else None


def _plain(table: Any) -> bool:
    """Whether this is an array of finite numbers, as the kernels take it."""
    return isinstance(table, np.ndarray) and table.dtype.kind == "f" and bool(np.isfinite(table).all())


def _named(teacher: Any, table: Any, codes: Ints, part: Ints, *, questions: Any, whole: bool) -> Ints | None:
    """The class of each row; None where it is none."""
    known = codes[part]
    if (known == known[0]).all():  # many classifiers refuse a single class
        return np.full(questions.shape[0], known[0])
    present, places = np.unique(known, return_inverse=True)  # some ask for classes that are 0, 1, ... without a gap
    named = np.asarray(fitted(teacher, table, part, places, whole=whole).predict(all_rows(questions)))
    if not names_classes(named, questions.shape[0]):
        return None
    right = (named >= 0) & (named < len(present))
    return np.where(right, present[np.where(right, named, 0)], -1)
