"""Release any computation on private data, and cap what any adversary can learn from it."""

from leakcap import convert
from leakcap.caps import (
    any_inference,
    identification,
    membership,
    mip,
    mutual_information,
    name_a_member,
    precision,
    task,
    true_positive_rate,
)
from leakcap.certificate import Certificate
from leakcap.errors import (
    AlreadyReleased,
    CapError,
    InputError,
    LeakcapError,
    NumericalError,
    OutputError,
    RepeatedReleaseWarning,
)
from leakcap.release import Plan, Release, plan, release
from leakcap.version import __version__

__all__ = [
    "AlreadyReleased",
    "CapError",
    "Certificate",
    "InputError",
    "LeakcapError",
    "NumericalError",
    "OutputError",
    "Plan",
    "Release",
    "RepeatedReleaseWarning",
    "__version__",
    "any_inference",
    "convert",
    "identification",
    "membership",
    "mip",
    "mutual_information",
    "name_a_member",
    "plan",
    "precision",
    "release",
    "task",
    "true_positive_rate",
]
