"""Release without a trusted holder."""

from leakcap.local.parties.entry import Together, Transcript, together
from leakcap.local.parties.question import Question

__all__ = ["Question", "Together", "Transcript", "together"]
