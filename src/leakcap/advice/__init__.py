"""Which knob would buy most utility for these data and caps: measured before anything is released."""

from leakcap.advice.knobs import suggest
from leakcap.advice.offers import Offered, Variant
from leakcap.advice.records import Suggestion, Suggestions
from leakcap.advice.trials import Again

__all__ = ["Again", "Offered", "Suggestion", "Suggestions", "Variant", "suggest"]
