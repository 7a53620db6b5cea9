"""The modes, each in the file of its name: `exact` (finite worlds), `confidence` and `individual` (a fresh world), and
`empirical` (for comparison). A mode says how figures are proved, a design how the secret is drawn: `bits` tosses a coin
for everybody, `matched` and `central` choose the list of worlds by looking at the pool (`designed` has their words).
`pool` has no secret: under a pool cap everybody takes part. `given` is the finite game over inputs in place of worlds.
`seeds` is `confidence` for functions whose own randomness is part of the secret.

Each has a function `certified`, which turns answers and caps into a `Releaser` (able to make one released vector) and
its certificate.
"""

from leakcap.modes import (
    any_bits,
    bits,
    blocks,
    confidence,
    designed,
    drawn_alike,
    empirical,
    exact,
    given,
    individual,
    pool,
    seeds,
    swapped,
)
from leakcap.modes.about_one import refuse_other_caps
from leakcap.modes.bits import CoinForEverybody
from leakcap.modes.blocks import CoinsInBlocks
from leakcap.modes.by_information import budget_for
from leakcap.modes.confidence import FreshWorld
from leakcap.modes.empirical import StoppingRule
from leakcap.modes.exact import OneOfTheWorlds
from leakcap.modes.given import OneOfTheInputs
from leakcap.modes.individual import FreshHalf, membership_caps
from leakcap.modes.interface import NoiseSettings, Releaser
from leakcap.modes.pool import SumsOfAll, pool_caps
from leakcap.modes.seeds import SecretSeed, SeededPairs
from leakcap.modes.swapped import Swapped

__all__ = [
    "DESIGNS",
    "MODES",
    "CoinForEverybody",
    "CoinsInBlocks",
    "FreshHalf",
    "FreshWorld",
    "NoiseSettings",
    "OneOfTheInputs",
    "OneOfTheWorlds",
    "Releaser",
    "SecretSeed",
    "SeededPairs",
    "StoppingRule",
    "SumsOfAll",
    "Swapped",
    "any_bits",
    "bits",
    "blocks",
    "budget_for",
    "confidence",
    "designed",
    "drawn_alike",
    "empirical",
    "exact",
    "given",
    "individual",
    "membership_caps",
    "pool",
    "pool_caps",
    "refuse_other_caps",
    "seeds",
    "swapped",
]

MODES = ("exact", "confidence", "individual", "empirical")
DESIGNS = ("auto", "worlds", "bits", "matched", "central")
