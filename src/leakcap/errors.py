"""Everything that leakcap raises or warns about.

Messages say what to do next and never quote the data: an error text can leave the custodian's machine in a log or in
a bug report.
"""

from __future__ import annotations

__all__ = [
    "AlreadyReleased",
    "BlocksWarning",
    "BoundsWarning",
    "BudgetError",
    "CapError",
    "FewWorldsWarning",
    "InputError",
    "KeyMadeWarning",
    "LeakcapError",
    "LeakcapWarning",
    "LeftOutWarning",
    "MissingExtra",
    "NumericalError",
    "OutputError",
    "OwnNoiseWarning",
    "PartiesError",
    "RepeatedIdsWarning",
    "RepeatedReleaseWarning",
    "SimulationWarning",
    "SmallGroupWarning",
    "UnknownArgument",
    "UselessReleaseWarning",
]


class LeakcapError(Exception):
    """Base class: catch it to catch everything that leakcap raises on purpose."""


class InputError(LeakcapError, ValueError):
    """An argument cannot be used as given."""


class UnknownArgument(InputError, TypeError):
    """A call has no argument of this name. The message says what is meant by it elsewhere, and what to write here."""


class CapError(InputError):
    """The cap cannot be kept by any release, or says nothing."""


class OutputError(LeakcapError, ValueError):
    """The function's outputs cannot be covered by noise. Nothing is released."""


class NumericalError(LeakcapError, ArithmeticError):
    """A bound could not be computed safely. leakcap never answers with a friendlier number instead."""


class AlreadyReleased(LeakcapError, RuntimeError):
    """The plan, or a recap of it, was released before: together they release once."""


class BudgetError(LeakcapError, RuntimeError):
    """A question costs more than is left of a budget. It was not answered, and nothing is spent."""


class MissingExtra(LeakcapError, ImportError):
    """An optional dependency is not installed. The message names the extra to install."""


class PartiesError(LeakcapError, RuntimeError):
    """Computing together with other parties ended without an answer. The message says whether anything was opened."""


class LeakcapWarning(UserWarning):
    """Base class of leakcap's warnings."""


class BlocksWarning(LeakcapWarning):
    """Blocks are too small for the function that is run in each of them."""


class BoundsWarning(LeakcapWarning):
    """Bounds look as if they had been read off the data, whose smallest and largest values they would publish."""


class FewWorldsWarning(LeakcapWarning):
    """So few worlds that whoever knows a handful of participants knows all of them."""


class KeyMadeWarning(LeakcapWarning):
    """A key was made that did not exist: keep a copy, what it seals or signs cannot do without it."""


class LeftOutWarning(LeakcapWarning):
    """People were left out of a session's answer, because their clock could not pay for it, or rows of theirs from all
    answers, because they have more than count. For the custodian alone."""


class OwnNoiseWarning(LeakcapWarning):
    """The function gives another answer each time it is run on the same rows."""


class RepeatedIdsWarning(LeakcapWarning):
    """A column looks like ids that have several rows each, and rows are protected one by one."""


class RepeatedReleaseWarning(LeakcapWarning):
    """The same data were released before in this process without a ledger."""


class SimulationWarning(LeakcapWarning):
    """A seed was given: what looks like a release is a simulation, and whoever knows the seed undoes its noise."""


class SmallGroupWarning(LeakcapWarning):
    """A class or group key leaves as it is, and so few people carry it that it tells of one of them."""


class UselessReleaseWarning(LeakcapWarning):
    """At this cap the noise takes nearly all that the answer is worth."""
