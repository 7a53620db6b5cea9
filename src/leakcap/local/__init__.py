"""Release without a trusted holder: records that leave with noise of their own, and parties who compute together."""

from leakcap.certificates.parties import PartiesCertificate
from leakcap.local.parties.certifying import promise
from leakcap.local.parties.entry import JointAnswer, Transcript, together
from leakcap.local.parties.question import JointQuestion
from leakcap.local.parties.shares import Opening
from leakcap.local.parties.wire import Message
from leakcap.local.publish import PublishedTable, TablePlan, plan, publish

__all__ = [
    "JointAnswer",
    "JointQuestion",
    "Message",
    "Opening",
    "PartiesCertificate",
    "PublishedTable",
    "TablePlan",
    "Transcript",
    "plan",
    "promise",
    "publish",
    "together",
]
