"""Teachers: one model for each part of the labels, and how many of them name which class for a row."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from leakcap.ground.arrays import Ints
from leakcap.simulate.silence import silenced

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
        with silenced(), _own_randomness(seed):
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
        if whole:
            labels = np.full(len(codes), -1)
            labels[part] = known
            fitted = clone(teacher).fit(table, labels)
        else:
            fitted = clone(teacher).fit(_safe_indexing(table, part), known)
        named = np.asarray(fitted.predict(questions))
        fits = named.shape == (questions.shape[0],) and named.dtype.kind in "iu"
        return named.astype(np.int64) if fits else None
    except Exception:
        return None


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
