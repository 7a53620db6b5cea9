"""Release without a trusted holder."""

from leakcap.certificates.parties import PartiesCertificate
from leakcap.local.parties.certifying import promise
from leakcap.local.parties.entry import JointAnswer, Transcript, together
from leakcap.local.parties.question import JointQuestion
from leakcap.local.parties.shares import Opening
from leakcap.local.parties.wire import Message

__all__ = [
    "JointAnswer",
    "JointQuestion",
    "Message",
    "Opening",
    "PartiesCertificate",
    "Transcript",
    "promise",
    "together",
]
