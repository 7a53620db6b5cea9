"""Several answers with the noise of one plan over given inputs, each with a secret and noise of its own, at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.modes import OneOfTheInputs
from leakcap.noise import Randomness
from leakcap.planning.plans import Plan
from leakcap.planning.rebuilding import refuse_fragile

__all__ = ["one_of_each"]


@proves("published-rows")
def one_of_each(plan: Plan, secrets: Callable[[Randomness], list[int]]) -> Floats:
    """A released vector for each secret that is drawn, as rows; the plan's right to release is spent."""
    releaser = plan.releaser
    if not isinstance(releaser, OneOfTheInputs):
        raise InputError("several secrets are for plans over given inputs")
    token, quiet = plan.run.token, plan.certificate.kind == "simulation"
    token.refuse_spent()
    if not quiet:
        token.refuse_child()
    refuse_fragile(plan.answer_of, plan.noise, None)
    token.spend(quiet)
    source = plan.randomness
    return np.stack([releaser.vector_of(secret, source) for secret in secrets(source)])
