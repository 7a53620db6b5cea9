"""Nothing that a function prints, logs or warns about while it runs: it may quote the data, or tell of the secret."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout

__all__ = ["hushed", "silenced"]


@contextmanager
def hushed() -> Iterator[None]:
    """No prints, log records or warnings of Python code."""
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
def silenced() -> Iterator[None]:
    """Nothing at all, compiled libraries included: both streams of the process lead nowhere."""
    with ExitStack() as back, open(os.devnull, "wb") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number in (1, 2):
            try:
                kept = os.dup(number)
            except OSError:  # closed: nothing to silence
                continue
            back.callback(os.close, kept)
            back.callback(os.dup2, kept, number)
            os.dup2(nowhere.fileno(), number)
        with hushed():
            yield
