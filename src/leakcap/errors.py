"""Everything leakcap raises or warns about.

Messages say what to do next and never quote the data: an error text can leave the custodian's
machine in a log or a bug report.
"""

from __future__ import annotations

__all__ = [
    "AlreadyReleased",
    "CapError",
    "InputError",
    "LeakcapError",
    "LeakcapWarning",
    "MissingExtra",
    "NumericalError",
    "OutputError",
    "RepeatedReleaseWarning",
    "UselessReleaseWarning",
]


class LeakcapError(Exception):
    """Base class: catch this to catch everything leakcap raises on purpose."""


class InputError(LeakcapError, ValueError):
    """An argument cannot be used as given."""


class CapError(InputError):
    """A cap that no release can keep, or that says nothing."""


class OutputError(LeakcapError, ValueError):
    """The function's outputs cannot be covered by noise: fail closed, nothing is released."""


class NumericalError(LeakcapError, ArithmeticError):
    """A bound could not be computed safely. Never answered with a friendlier number."""


class AlreadyReleased(LeakcapError, RuntimeError):
    """A plan and all its recaps release once."""


class MissingExtra(LeakcapError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class LeakcapWarning(UserWarning):
    """Base class of leakcap's warnings."""


class RepeatedReleaseWarning(LeakcapWarning):
    """The same data were released before in this process without a ledger."""


class UselessReleaseWarning(LeakcapWarning):
    """At this cap hardly anything of the answer's use is left."""
