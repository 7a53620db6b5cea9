"""What the library says of `register` and of sessions, in the words of `leakcap sql`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from leakcap.errors import LeakcapError

__all__ = ["as_sql_options", "in_sql_options"]

WRITTEN = (
    (r"links=\{'([^']+)': '([^']+)'\}", r"--link \1=\2"),
    (r"bounds=\{'([^']+)': \(low, high\)\}", r"--bounds \1=LOW,HIGH"),
    (r"keys=\{'([^']+)': \[\.\.\.\]\}", r"--keys \1=VALUE,VALUE"),
    (r"\bdesign='(\w+)'", r"--design \1"),
    (r"\brows_per_unit=(?!\w)", "--rows-per-unit"),
    (r"\brows=(?!\w)", "--rows"),
    (r"\b(links|link)=(?!\w)", "--link"),
    (r"\b(bounds|cap|cohorts|keys|public|share|unit|worlds)=(?!\w)", r"--\1"),
)


def as_sql_options(words: str) -> str:
    """A sentence that names arguments, with the options that they are here."""
    for argument, option in WRITTEN:
        words = re.sub(argument, option, words)
    return words


@contextmanager
def in_sql_options() -> Iterator[None]:
    """Errors with their words as options."""
    try:
        yield
    except LeakcapError as error:
        words = as_sql_options(str(error))
        if words == str(error):
            raise
        raise type(error)(words) from None
