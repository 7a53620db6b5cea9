"""Release without a trusted holder."""

from leakcap.certificates.parties import PartiesCertificate
from leakcap.local.parties.certifying import promise
from leakcap.local.parties.entry import Together, Transcript, together
from leakcap.local.parties.question import Question
from leakcap.local.parties.shares import Opening
from leakcap.local.parties.wire import Message

__all__ = ["Message", "Opening", "PartiesCertificate", "Question", "Together", "Transcript", "promise", "together"]
