"""Teachers: one model for each part of the labels, and how many of them name which class for a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from leakcap.ground.arrays import Ints
from leakcap.simulate.silence import silenced
from leakcap.simulate.teaching import fitted, names_classes, own_randomness

__all__ = ["votes_of"]


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
    votes = np.zeros((len(asked), classes), dtype=np.int64)
    questions, places = _safe_indexing(table, asked), np.arange(len(asked))
    for part, seed in zip(parts, seeds, strict=True):
        with silenced(), own_randomness(seed):
            named = _named(teacher, table, codes, part, questions=questions, whole=whole)
        if named is not None:
            right = (named >= 0) & (named < classes)
            votes[places[right], named[right]] += 1
    return votes


def _named(teacher: Any, table: Any, codes: Ints, part: Ints, *, questions: Any, whole: bool) -> Ints | None:
    known = codes[part]
    if (known == known[0]).all():  # many classifiers refuse a single class
        return np.full(questions.shape[0], known[0])
    try:
        named = np.asarray(fitted(teacher, table, part, known, whole=whole).predict(questions))
        return named.astype(np.int64) if names_classes(named, questions.shape[0]) else None
    except Exception:
        return None
