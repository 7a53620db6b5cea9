"""The three ways to a release: `exact` (finite worlds), `confidence` (a fresh world), `empirical` (for comparison).

Each turns outputs and caps into a `Mechanism`: something that can make one released vector, and its certificate.
"""

from leakcap.modes.finite import OneOfTheWorlds, exact
from leakcap.modes.fresh import FreshWorld, confidence
from leakcap.modes.information import budget_for
from leakcap.modes.record import Mechanism, Settings
from leakcap.modes.stopping import StoppingRule, empirical

__all__ = [
    "FreshWorld",
    "Mechanism",
    "OneOfTheWorlds",
    "Settings",
    "StoppingRule",
    "budget_for",
    "confidence",
    "empirical",
    "exact",
]
