"""Attack your own release: measured lower bounds beside the certified upper ones."""

from leakcap.audit.findings import Finding
from leakcap.audit.mechanism import check_mechanism
from leakcap.audit.models import MODEL_ATTACKS, model
from leakcap.audit.report import AuditReport
from leakcap.audit.runs import ATTACKS, run
from leakcap.audit.trials import Known, Trials, releases

__all__ = [
    "ATTACKS",
    "MODEL_ATTACKS",
    "AuditReport",
    "Finding",
    "Known",
    "Trials",
    "check_mechanism",
    "model",
    "releases",
    "run",
]
