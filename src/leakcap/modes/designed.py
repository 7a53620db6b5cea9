"""What a certificate says of worlds that were chosen by looking at the pool (`design="matched"`, `"central"`).

Section by section the figures are those of `exact` mode: they hold for any balanced list of worlds that does not look
at the secret (docs/proofs/designed-worlds.md). What is lost beside random halves stands here, in words.
"""

from __future__ import annotations

from leakcap.worlds.central import DRAWN

__all__ = ["LISTED_ONLY", "NAMES", "NOT_PROMISED", "POOL_PUBLIC"]

NAMES = ("matched", "central")
POOL_PUBLIC = {
    "matched": (
        "Which worlds are possible: partners are people whose data are alike, and each world holds one of every two "
        "partners.",
    ),
    "central": (
        f"Which worlds are possible: of every {DRAWN} random halves one was kept, those whose column means lie nearest "
        "to the pool's, each with its complement.",
    ),
}
LISTED_ONLY = (
    "Worlds are no uniformly random halves of the pool, so membership inference privacy (MIP) as its authors define "
    "it, over all halves, is not claimed: every figure is about the listed worlds."
)
CLOSE_TO_THE_POOL = (
    "Every possible world resembles the whole pool, so the answer comes close to the pool's own: about being in the "
    "pool at all it may tell more than an answer from random halves."
)
PARTNERS = (
    "Of two partners exactly one took part: whoever learns about one of them has learnt about the other. Figures for "
    "known memberships are for people told at random, not for an attacker who is told somebody's partner."
)
NOT_PROMISED = {
    "matched": (PARTNERS, LISTED_ONLY, CLOSE_TO_THE_POOL),
    "central": (LISTED_ONLY, CLOSE_TO_THE_POOL),
    "given": (LISTED_ONLY,),  # as an array
}
