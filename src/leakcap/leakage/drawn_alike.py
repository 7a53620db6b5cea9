"""From some worlds to all: what the finite game over worlds drawn alike says about a fresh one of the same law.

The best attacker's success against a unit is a convex function of the law of the secret, so that over a random list of
worlds it is too large on average; and one world more or less hardly changes it (docs/proofs/drawn-alike.md).
"""

from __future__ import annotations

import math

from leakcap.ground.proofs import proves

__all__ = ["sampling_margin", "worlds_for"]


@proves("drawn-alike")
def sampling_margin(worlds: int, statements: int, gamma: float, rate: float = 0.5) -> float:
    """By how much the success over all worlds of a law may exceed that over `worlds` independent ones of them.

    Args:
        worlds: independent draws of the law.
        statements: units, times noises that were fixed before the draws.
        gamma: probability that any of these statements fails.
        rate: probability that a unit takes part.

    Guarantee: with probability `1 - gamma` over the draws, for every statement at once, the balanced success of the
    best attacker against a fresh world is at most that of the finite game over the drawn ones plus this. Rounded up.
    """
    spread = math.sqrt(math.log(statements / gamma) / (2 * worlds))
    return spread / (2 * min(rate, 1 - rate)) * (1 + 1e-12)


def worlds_for(margin: float, statements: int, gamma: float, rate: float = 0.5) -> int:
    """How many worlds make the margin as small as this."""
    return math.ceil(math.log(statements / gamma) / 2 / (2 * min(rate, 1 - rate) * margin) ** 2)
