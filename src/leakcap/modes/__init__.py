"""The modes, each in the file of its name: `exact` (finite worlds), `confidence` and `individual` (a fresh world), and
`empirical` (for comparison).

Each has a function `certified`, which turns answers and caps into a `Releaser` (able to make one released vector) and
its certificate.
"""

from leakcap.modes import confidence, empirical, exact, individual
from leakcap.modes.by_information import budget_for
from leakcap.modes.confidence import FreshWorld
from leakcap.modes.empirical import StoppingRule
from leakcap.modes.exact import OneOfTheWorlds
from leakcap.modes.individual import FreshHalf, membership_caps
from leakcap.modes.interface import Releaser, Settings

__all__ = [
    "MODES",
    "FreshHalf",
    "FreshWorld",
    "OneOfTheWorlds",
    "Releaser",
    "Settings",
    "StoppingRule",
    "budget_for",
    "confidence",
    "empirical",
    "exact",
    "individual",
    "membership_caps",
]

MODES = ("exact", "confidence", "individual", "empirical")
