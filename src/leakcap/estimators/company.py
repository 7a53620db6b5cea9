"""Who else would fit a private estimator, and how often: every fit is a release.

Meta-estimators do not say what they are about to do. What can be seen is who is calling: the method of another
estimator is running, and calls `fit` or `clone` of a private one. Pipelines and their like call each of their parts
once, and may hold one private part. Everything else is refused before anything is planned. What gets past, because it
is no estimator, shows by what it does: it fits clones of one estimator to the same rows.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError

__all__ = ["MARK", "Family", "family_of", "fitted_by", "join_family", "private_parts", "refuse_company"]

SEARCHES = "sklearn.model_selection"
NEUTRAL = ("sklearn.base", "sklearn.utils")  # clone, check and dispatch for others, and fit nothing of their own
ONCE = ("sklearn.pipeline", "sklearn.compose._column_transformer")  # Pipeline and its like: each part is fitted once
MIN_SHARED_ROWS = 0.25  # share of a fit's rows that a clone released before, from which on they are the same people
MARK = "_fitted_by"  # goes with an unfitted estimator into the processes to which a meta-estimator sends it


def refuse_company(estimator: Any, private: type) -> None:
    """Refuse to be fitted, or cloned, by what would release at every fit; `private` is the class that releases."""
    around = getattr(estimator, MARK, None) or fitted_by(private)
    if around == SEARCHES:
        raise InputError(
            "a search or cross-validation around a private estimator would release at every fit, and nothing "
            "bounds them together. Put the search inside, Private(GridSearchCV(...), cap=...), or compare "
            "settings with privacy_utility_curve and plan_.suggest(), which release nothing"
        )
    if around:
        raise InputError(
            f"{around} around private estimators would release at every fit of theirs, and nothing bounds these "
            f"releases together. Put it inside, with plain estimators in it: Private({around}(...), cap=...)"
        )


def fitted_by(private: type) -> str | None:
    """The class that calls private estimators and may release more than once (SEARCHES for any search), or None."""
    found = _around(sys._getframe(1), private)
    if found is None and threading.current_thread() is not threading.main_thread():
        # Whoever gave this thread its work waits in another one. Threads that have nothing private are not looked at.
        others = (_around(frame, private, waiting=True) for frame in sys._current_frames().values())
        found = next(filter(None, others), None)
    return found


def _around(stack: FrameType, private: type, waiting: bool = False) -> str | None:
    outermost, worker = None, None
    for frame in _frames(stack):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(NEUTRAL):
            continue
        owner = _owner(frame)
        if isinstance(owner, private) or (waiting and (owner is None or not private_parts(owner, private))):
            continue
        if module.startswith(SEARCHES):
            return SEARCHES
        if owner is not None:
            if not _fits_once(owner):
                return type(owner).__name__
            outermost = owner
        elif module.startswith("sklearn.") and module not in ONCE:
            worker = "MetaEstimator"  # a function of one, whose own call may be in another process
    if outermost is not None and len(private_parts(outermost, private)) > 1:
        return type(outermost).__name__
    return worker


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _owner(frame: FrameType) -> Any:
    """The estimator whose method a frame runs; None for other functions."""
    code = frame.f_code
    kind = code.co_qualname.rpartition(".")[0].rpartition(".")[2]
    if not code.co_argcount or not kind:
        return None
    owner = frame.f_locals.get(code.co_varnames[0])
    is_estimator = callable(getattr(type(owner), "get_params", None)) and hasattr(type(owner), "fit")
    return owner if is_estimator and any(above.__name__ == kind for above in type(owner).__mro__) else None


def _fits_once(owner: Any) -> bool:
    return any(above.__module__ in ONCE for above in type(owner).__mro__)


def private_parts(owner: Any, private: type) -> list[Any]:
    """The private estimators among the settings of an estimator, and among those of its parts."""
    parts = {id(part): part for part in owner.get_params(deep=True).values() if isinstance(part, private)}
    return list(parts.values())


@dataclass(eq=False)
class Family:
    """An estimator and its clones, and which rows each of them has released. Custodian side, never saved."""

    released: list[tuple[weakref.ref[Any], npt.NDArray[np.uint64]]] = field(default_factory=list)

    def refuse_known_rows(self, estimator: Any, rows: npt.NDArray[np.uint64]) -> None:
        """Refuse rows that a clone has released: by hand or in a loop, it would be one release more of them."""
        for member, known in self.released:
            if member() is not estimator and np.isin(rows, known).mean() >= MIN_SHARED_ROWS:
                raise InputError(
                    "a clone of this estimator was fitted to these rows and has released what it learnt; nothing "
                    "bounds two releases together. Put what fits several inside, Private(...), compare settings with "
                    "plan_.suggest(), or, if they are other people, make a new estimator instead of a clone"
                )

    def remember(self, estimator: Any, rows: npt.NDArray[np.uint64]) -> None:
        """Before the release: a crash may waste it."""
        self.released.append((weakref.ref(estimator), rows))


_families: weakref.WeakKeyDictionary[Any, Family] = weakref.WeakKeyDictionary()


def family_of(estimator: Any) -> Family:
    """The family of an estimator; of its own, until it is cloned."""
    return _families.setdefault(estimator, Family())


def join_family(clone: Any, estimator: Any) -> None:
    """Make a clone one of the family of what it was made from."""
    _families[clone] = family_of(estimator)
