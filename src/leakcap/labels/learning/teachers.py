"""Teachers: one model for each part of the labels, and how many of them name which class for a row."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.utils import _safe_indexing

from leakcap.errors import InputError
from leakcap.ground.arrays import Ints
from leakcap.kernels.linear.parts import ridge_votes, shared_ridge_votes
from leakcap.labels.learning.linear_teacher import LinearTeacher
from leakcap.simulate.silence import silenced

__all__ = ["fitted", "rehearse", "votes_of"]

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

    A teacher that fails, or answers in another form, has no vote: a label in its part moves no other teacher. What it
    says while it learns is heard by nobody.

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
    questions, places = _safe_indexing(table, asked), np.arange(len(asked))
    votes = np.zeros((len(asked), classes), dtype=np.int64)
    for part, seed in zip(parts, seeds, strict=True):
        with silenced(), _own_randomness(seed):
            named = _named(teacher, table, codes, part, questions=questions, whole=whole)
        if named is not None:
            right = (named >= 0) & (named < classes)
            votes[places[right], named[right]] += 1
    return votes


def _ridge_alpha(teacher: Any, table: Any) -> float | None:
    """The penalty, where all teachers are solved at once and vote as each by itself would."""
    plain = type(teacher) is RidgeClassifier and isinstance(table, np.ndarray) and table.dtype.kind == "f"
    if not plain or teacher.class_weight is not None or teacher.positive or teacher.solver not in ("auto", "cholesky"):
        return None
    ordinary = isinstance(teacher.alpha, (int, float)) and teacher.alpha >= LEAST_ALPHA
    return float(teacher.alpha) if ordinary and np.isfinite(table).all() else None


def _shared_alpha(teacher: Any, table: Any) -> float | None:
    """The same, for teachers that see all features."""
    plain = type(teacher) is LinearTeacher and isinstance(table, np.ndarray) and table.dtype.kind == "f"
    return float(teacher.alpha) if plain and np.isfinite(table).all() else None


def _named(teacher: Any, table: Any, codes: Ints, part: Ints, *, questions: Any, whole: bool) -> Ints | None:
    known = codes[part]
    if (known == known[0]).all():  # many classifiers refuse a single class
        return np.full(questions.shape[0], known[0])
    try:
        named = np.asarray(fitted(teacher, table, part, known, whole=whole).predict(questions))
        return named.astype(np.int64) if _fits(named, questions.shape[0]) else None
    except Exception:
        return None


def fitted(model: Any, table: Any, rows: Ints, labels: Ints, *, whole: bool) -> Any:
    """A copy of the model that has learnt these rows; or all of them, with the label -1 where it knows none."""
    if not whole:
        return clone(model).fit(_safe_indexing(table, rows), labels)
    known = np.full(table.shape[0], -1)
    known[rows] = labels
    return clone(model).fit(table, known)


def _fits(named: npt.NDArray[Any], rows: int) -> bool:
    return named.shape == (rows,) and named.dtype.kind in "iu"


def rehearse(model: Any, table: Any, rows: Ints, classes: int, *, role: str, whole: bool) -> None:
    """Fail here, with classes that are made up, wherever that is possible without labels: epsilon is spent once.

    All features are looked at. What goes wrong is told by its kind: it was caused by features and settings alone.
    """
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise InputError(f"{role} must be a classifier with fit and predict, such as LogisticRegression()")
    try:
        with silenced(), _own_randomness(0):
            learnt = fitted(model, table, rows, np.arange(len(rows)) % classes, whole=whole)
            named = np.asarray(learnt.predict(table))
    except Exception as error:
        raise InputError(
            f"the {role} fails on these features, with classes that are made up ({type(error).__name__}): fill missing "
            f"cells, give more rows to each, or try {role}.fit(X, y) by itself"
        ) from None
    if not _fits(named, table.shape[0]):
        raise InputError(f"the {role} must predict one class for each row, as it was given them")


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """The process's generators begin with this seed, and go on afterwards as if nothing had been drawn."""
    torch = sys.modules.get("torch")
    before, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002  # what teachers of others' making draw from
    tensors = None if torch is None else torch.random.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numbers)  # noqa: NPY002
        if torch is not None and tensors is not None:
            torch.random.set_rng_state(tensors)
