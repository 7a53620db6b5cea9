"""Whether a person is in the data, from a release under a pool cap, by whoever knows everybody else's rows.

Every trial tosses the person's coin: what they bring is added to everybody's exact sums or taken out of them, and the
code of the release noises that. The attacker knows the sums in either case and the claimed noise, and takes the
likelier: nobody is right more often. It is tried on the one in the data who moves the sums most, and on somebody who
brings as much as the bounds allow, for whom the noise was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leakcap.audit.attacks.law import of_grid
from leakcap.audit.verdicts import Finding, judged
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.bounded import Bounded, Extent
from leakcap.modes.pool import FINE, SumsOfAll, exact_total
from leakcap.noise import GRID
from leakcap.noise.bounded import blocks_of, charge
from leakcap.planning.plans import Plan, spend_on_trials

__all__ = ["ATTACK", "NOISE", "in_the_data"]

ATTACK, NOISE = "in the data", "noise of the sums"
PARTS = 5  # findings
MOST_NUMBERS = 400_000  # of noise that are looked at
NOT_KEPT = (
    "under a pool cap everybody takes part, and what everybody brings is not kept with this plan: it is no sum of "
    "rows, or too large. Whether it shows that somebody is there, leakcap.audit.universe(fn, data, person, cap=...) "
    "measures"
)


def in_the_data(plan: Plan, trials: int, alpha: float) -> Iterator[Finding]:
    """How often the likelier guess about one person is right; and whether the noise is as claimed.

    Args:
        plan: of sums over everybody, under a pool cap.
        trials: number of releases for either person.
        alpha: what refutations may cost.
    """
    brings, releaser, share = plan.run.brings, plan.releaser, alpha / PARTS
    if not isinstance(brings, Bounded) or not isinstance(releaser, SumsOfAll) or brings.people is not None:
        raise InputError(NOT_KEPT)
    spend_on_trials(plan)
    rng, noise = np.random.default_rng(), list[Floats]()
    deviations = releaser.noise.deviations
    everybody = {"somebody who brings all that the bounds allow": (releaser.total, _most(brings.extent, deviations))}
    if len(brings.values):
        moves = np.einsum("ud,ud->u", brings.values / deviations, brings.values / deviations)
        person = brings.values[int(moves.argmax())]
        everybody = {"the person who moves it most": (releaser.total - _alone(person, deviations), person)} | everybody
    for who, (others, person) in everybody.items():
        sides = (others, others + _alone(person, deviations))
        tossed = rng.random(trials) < 0.5
        right = 0
        for coin in tossed:
            seen = replace(releaser, total=sides[int(coin)]).vector(plan.randomness)
            off = [(seen - side * FINE * deviations) / deviations for side in sides]
            odds = float((off[0] ** 2 - off[1] ** 2).sum()) / 2
            right += bool((odds or rng.random() - 0.5) > 0) == bool(coin)
            if len(noise) * len(deviations) < MOST_NUMBERS:
                noise.append(off[int(coin)])
        yield judged(
            ATTACK,
            f"whether {who} is in the data",
            right,
            trials=trials,
            prior=0.5,
            certified=plan.certificate.membership_success,
            alpha=share,
            named=True,
        )
    yield from of_grid(NOISE, np.stack(noise), GRID, rng, alpha=share)


def _alone(person: Floats, deviations: Floats) -> Ints:
    return exact_total(person[None, :], deviations)


def _most(extent: Extent, deviations: Floats) -> Floats:
    """As much as one person may bring: in every part the limits of the block that moves the sums furthest."""
    blocks, part = blocks_of(extent)
    moved = np.bincount(blocks, (extent.limits / deviations) ** 2)
    largest = np.full(int(part.max()) + 1, -1)
    for block in np.argsort(moved):
        largest[part[block]] = block
    found = np.where(largest[part][blocks] == blocks, extent.limits, 0.0)
    assert (found / deviations) @ (found / deviations) <= charge(extent, deviations)
    return found
