"""Attack your own release: measured lower bounds beside the certified upper ones."""

from leakcap.audit.canaries import CanaryKey, plant
from leakcap.audit.encoded.entry import ENCODED_ATTACKS, encoded
from leakcap.audit.mechanism import check_mechanism
from leakcap.audit.memorisation import MemorisationReport, memorised
from leakcap.audit.model import MODEL_ATTACKS, model
from leakcap.audit.report import AuditReport
from leakcap.audit.run import ATTACKS, run
from leakcap.audit.second_game.attribute import attribute
from leakcap.audit.second_game.reconstruction import reconstruction
from leakcap.audit.second_game.replay import replay
from leakcap.audit.second_game.universe import universe
from leakcap.audit.trials import Known, Trials, releases
from leakcap.audit.verdicts import Finding

__all__ = [
    "ATTACKS",
    "ENCODED_ATTACKS",
    "MODEL_ATTACKS",
    "AuditReport",
    "CanaryKey",
    "Finding",
    "Known",
    "MemorisationReport",
    "Trials",
    "attribute",
    "check_mechanism",
    "encoded",
    "memorised",
    "model",
    "plant",
    "reconstruction",
    "releases",
    "replay",
    "run",
    "universe",
]
