"""Whoever else is known, for any function (`mode="confidence"`, `design="bits"`): a coin for everybody, and the spread
of the answers over simulated coins.

Coins fall independently, so that somebody who knows all others is left with a fair one; on average over these the
answers vary no more than over all coins together, and the trace bound holds (docs/proofs/trace.md).
"""

from __future__ import annotations

from dataclasses import replace

from leakcap.caps import Cap
from leakcap.certificates.release import Certificate
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.modes import confidence
from leakcap.modes.confidence import FreshWorld
from leakcap.modes.interface import COLLUSION, NOT_PROMISED, Draw, NoiseSettings, Rerun
from leakcap.worlds import Worlds, unseen_share

__all__ = ["certified"]

ON_AVERAGE = (
    "Against attackers who know about other people, the figure for a guess at one person holds on average over what "
    "these people's coins show: for some ways in which they fall, a guess may succeed more often."
)
NAMED_BEFORE = (
    "Questions about several people at once, a family for example, may be guessed better: they, and questions about "
    "somebody picked after seeing the release, are bounded only by the information about all coins together."
)


@proves("trace")
def certified(
    outputs: Floats,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    gamma: float,
    rerun: Rerun,
    draw: Draw,
    proposal: Floats | None = None,
) -> tuple[FreshWorld, Certificate]:
    """Any function, with a fair coin for everybody: variances are bounded from independent simulated coins.

    Guarantee: with probability `1 - gamma` over the simulated coins, an attacker who knows the pool and any function of
    the other coins guesses a unit's coin with at most the certified success, on average over what is known; and the
    mutual information between all coins and the release is at most the certified figure.
    """
    made, found = confidence.certified(
        outputs,
        worlds,
        caps,
        settings,
        gamma=gamma,
        rerun=rerun,
        draw=draw,
        unseen=unseen_share(worlds.n),
        proposal=proposal,
    )
    return made, replace(
        found,
        known_memberships=((worlds.n - 1, found.membership_success),),
        not_promised=(
            NOT_PROMISED[0],
            NAMED_BEFORE,
            ON_AVERAGE,
            *(line for line in NOT_PROMISED[1:] if line != COLLUSION),
        ),
        theorems=("trace", "confidence-mode", "log-det", "currency", "rebuild", "sampler"),
    )
