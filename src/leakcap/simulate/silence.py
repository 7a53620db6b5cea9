"""Nothing that a function prints, logs or warns about while it runs: it may quote the data, or tell of the secret."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from leakcap.ground.interrupts import interrupts_heard

__all__ = ["each_unheard", "garbage_gone", "hushed", "kept_quiet", "silenced", "unheard"]

ROUNDS = 4  # of looking for garbage: what is thrown away may leave more of it
S = TypeVar("S")
T = TypeVar("T")


class _Together:
    """A context that several threads may be in at once: the first one enters it, and the last one leaves it.

    Streams and warnings are the whole process's. Were each thread to put back what it found, one of them would put back
    what another has closed.
    """

    def __init__(self, context: Callable[[], AbstractContextManager[None]]) -> None:
        self.context, self.inside, self.entered = context, 0, ExitStack()
        self.lock = threading.RLock()  # garbage that goes meanwhile may come by here

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.entered.enter_context(self.context())
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.entered.close()


@contextmanager
def _hushed() -> Iterator[None]:
    before = logging.root.manager.disable
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        logging.disable(logging.CRITICAL)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            logging.disable(before)


@contextmanager
def _silenced() -> Iterator[None]:
    with ExitStack() as back, open(os.devnull, "wb") as nowhere:
        streams = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
        _flush(streams)  # what was said before is heard
        for number in (1, 2):
            try:
                kept = os.dup(number)
            except OSError:  # closed: nothing to silence
                continue
            back.callback(os.close, kept)
            back.callback(os.dup2, kept, number)
            os.dup2(nowhere.fileno(), number)
        back.callback(_flush, streams)  # and what was said since is not: it may wait in a buffer still
        with hushed():
            yield


def _flush(streams: list[Any]) -> None:
    for stream in streams:
        with suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
            stream.flush()
    for flush in _flushes_of_c():
        flush()


@cache
def _flushes_of_c() -> list[Callable[[], Any]]:
    """Of what compiled code prints to. Not of all that it has open: another thread may be waiting at one of them."""
    found = list[Callable[[], Any]]()
    for name in ("stdout", "stderr", "__stdoutp", "__stderrp"):
        with suppress(AttributeError, OSError, TypeError, ValueError):  # another system, or another library
            library = ctypes.CDLL(None)
            found.append(partial(library.fflush, ctypes.c_void_p.in_dll(library, name)))
    return found


@contextmanager
def _garbage_gone() -> Iterator[None]:
    heard = sys.unraisablehook
    gc.freeze()
    sys.unraisablehook = lambda error: None
    try:
        yield
    finally:
        with silenced():
            for _ in range(ROUNDS):
                if not gc.collect():
                    break
        sys.unraisablehook = heard
        gc.unfreeze()


_hush, _silence, _gone = _Together(_hushed), _Together(_silenced), _Together(_garbage_gone)


def hushed() -> AbstractContextManager[None]:
    """No prints, log records or warnings of Python code."""
    return _hush


def silenced() -> AbstractContextManager[None]:
    """Nothing at all, compiled libraries included: both streams of the process lead nowhere."""
    return _silence


def garbage_gone() -> AbstractContextManager[None]:
    """What is made inside and in use no more goes at the end, in silence: it may have a last word.

    Only what is new is looked through, because all of a process takes a tenth of a second: the rest is put aside for as
    long, and what the process itself had put aside before (`gc.freeze`) comes back with it.
    """
    return _gone


@contextmanager
def kept_quiet(quiet: bool) -> Iterator[None]:
    """Where `quiet`, the same, and nothing of what arithmetic makes of cells."""
    with ExitStack() as silence:
        if quiet:
            silence.enter_context(hushed())
            silence.enter_context(np.errstate(all="ignore"))
        yield


def unheard(compute: Callable[[], T]) -> T | None:
    """What `compute` gives, or None if it fails, in whatever way: neither a word nor an error of it gets out.

    Ctrl-C stops it, without telling where it was. A KeyboardInterrupt of its own is a failure like others.
    """
    result, begun, stops = None, False, list[bool]()
    try:
        with interrupts_heard(stops), silenced(), garbage_gone():
            begun = True
            with suppress(BaseException):  # an error holds on to all that was there: it goes before silence is lifted
                result = compute()
    except BaseException:  # it may have closed what the silence is lifted with
        if not begun:
            raise
    if stops:
        raise KeyboardInterrupt
    return result


def each_unheard(compute: Callable[[S], T], things: Iterable[S]) -> list[T | None]:
    """The same for each of many things: one that fails does so alone, and nothing is heard of which."""
    found, begun, stops = list[T | None](), False, list[bool]()
    try:
        with interrupts_heard(stops), silenced(), garbage_gone():
            begun = True
            for thing in things:
                try:
                    found.append(compute(thing))
                except BaseException:  # whatever it is, it would tell of this one
                    found.append(None)
                if stops:
                    break
    except BaseException:
        if not begun:
            raise
    if stops:
        raise KeyboardInterrupt
    return found
