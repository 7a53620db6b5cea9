"""Leakage: whitened outputs in, what the best adversaries know out. Knows no noise class."""

from leakcap.leakage.certify import Effort, Findings, certify
from leakcap.leakage.confidence import Attempts, MeanEstimate
from leakcap.leakage.measures import Observed, measure, needs, prior
from leakcap.leakage.membership import observe_units
from leakcap.leakage.posterior import Cells, Sampled
from leakcap.leakage.tasks import observe_worlds

__all__ = [
    "Attempts",
    "Cells",
    "Effort",
    "Findings",
    "MeanEstimate",
    "Observed",
    "Sampled",
    "certify",
    "measure",
    "needs",
    "observe_units",
    "observe_worlds",
    "prior",
]
