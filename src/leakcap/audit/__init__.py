"""Attack your own release: measured lower bounds beside the certified upper ones."""

from leakcap.audit.attacks.attribute import attribute
from leakcap.audit.attacks.reconstruction import reconstruction
from leakcap.audit.attacks.replay import replay
from leakcap.audit.attacks.universe import universe
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
    "attribute",
    "check_mechanism",
    "model",
    "reconstruction",
    "releases",
    "replay",
    "run",
    "universe",
]
