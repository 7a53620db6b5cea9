"""Models of others' making, as teachers and students: they learn in silence, with randomness that is theirs alone."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from leakcap.errors import InputError, MissingExtra
from leakcap.ground.arrays import Ints
from leakcap.simulate.silence import silenced

__all__ = ["all_rows", "fitted", "generator_of", "names_classes", "own_randomness", "rehearse"]

# The process's generators are of all threads: what one model draws would otherwise show in those of other threads.
_ONE_AT_A_TIME = threading.RLock()


def fitted(model: Any, table: Any, rows: Ints, labels: Ints, *, whole: bool) -> Any:
    """A copy of the model that has learnt these rows; or all of them, with the label -1 where it knows none."""
    if not whole:
        return clone(model).fit(_safe_indexing(table, rows), labels)
    known = np.full(table.shape[0], -1)
    known[rows] = labels
    return clone(model).fit(all_rows(table), known)


def all_rows(table: Any) -> Any:
    """A copy, for one model alone: what it changes in place, as a scaler without copies does, is seen by no other.

    Which models get so far may depend on labels, and a label must not show in what others have learnt or said.
    """
    return _safe_indexing(table, np.arange(table.shape[0]))


def names_classes(named: npt.NDArray[Any], rows: int) -> bool:
    """Whether this is the number of a class for each row."""
    return named.shape == (rows,) and named.dtype.kind in "iu"


def rehearse(model: Any, table: Any, rows: Ints, classes: int, *, role: str, whole: bool) -> None:
    """Fail here, with classes that are made up, wherever that is possible without labels: epsilon is spent once.

    All features are looked at. What goes wrong is told by its kind: it was caused by features and settings alone.
    """
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise InputError(f"{role} must be a classifier with fit and predict, such as LogisticRegression()")
    try:
        with silenced(), own_randomness(0):
            learnt = fitted(model, table, rows, np.arange(len(rows)) % classes, whole=whole)
            named = np.asarray(learnt.predict(all_rows(table)))
    except (MissingExtra, KeyboardInterrupt):
        raise  # says what to install; stopped by the user
    except BaseException as error:  # a model may end the process, and others in it go on
        raise InputError(
            f"the {role} fails on these features, with classes that are made up ({type(error).__name__}): fill missing "
            f"cells, give more rows to each, or try {role}.fit(X, y) by itself"
        ) from None
    if not names_classes(named, table.shape[0]):
        raise InputError(f"the {role} must predict one class for each row, as it was given them")


def generator_of(random_state: Any) -> np.random.RandomState:
    """What scikit-learn makes of `random_state`; an error of our own where it makes nothing of it."""
    try:
        return check_random_state(random_state)
    except ValueError:
        pass
    raise InputError(
        "random_state must be None, a whole number from 0 on, or a numpy RandomState; in place of a Generator give it "
        "a number, such as rng.integers(2**31)"
    )


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """The process's generators begin with this seed, and go on afterwards as if nothing had been drawn.

    Other threads that come here wait.
    """
    with _ONE_AT_A_TIME:
        yield from _seeded(seed)


def _seeded(seed: int) -> Iterator[None]:
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
