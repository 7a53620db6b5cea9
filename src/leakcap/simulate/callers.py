"""Which estimator of others' making is calling a private one's `fit`: it may do so more than once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["SEARCHES", "fitted_by", "private_parts"]

SEARCHES = "sklearn.model_selection"
NEUTRAL = ("sklearn.base", "sklearn.utils")  # clone, check and dispatch for others, and fit nothing of their own
ONCE = ("sklearn.pipeline", "sklearn.compose._column_transformer")  # Pipeline and its like: each part is fitted once


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
    if outermost is not None and len(_not_within_others(private_parts(outermost, private), private)) > 1:
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


def _not_within_others(parts: list[Any], private: type) -> list[Any]:
    """Those that are no parts of another: what a private estimator fits itself, it accounts for."""
    within = {id(inner) for part in parts for inner in private_parts(part, private)}
    return [part for part in parts if id(part) not in within]
