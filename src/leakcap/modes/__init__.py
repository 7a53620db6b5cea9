"""The ways to a release: `exact` (finite worlds), `confidence` and `individual` (a fresh world), and `empirical` (for
comparison).

Each turns outputs and caps into a `Mechanism`: something that can make one released vector, and its certificate.
"""

from leakcap.modes.finite import OneOfTheWorlds, exact
from leakcap.modes.fresh import FreshWorld, confidence
from leakcap.modes.information import budget_for
from leakcap.modes.one_person import FreshHalf, individual, membership_caps
from leakcap.modes.record import Mechanism, Settings
from leakcap.modes.stopping import StoppingRule, empirical

__all__ = [
    "FreshHalf",
    "FreshWorld",
    "Mechanism",
    "OneOfTheWorlds",
    "Settings",
    "StoppingRule",
    "budget_for",
    "confidence",
    "empirical",
    "exact",
    "individual",
    "membership_caps",
]
