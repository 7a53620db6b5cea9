"""Given inputs (`plan(fn, inputs=..., prior=...)`): the secret is which of a list of inputs was used.

The finite game without people: an input is drawn by the prior, its stored answer is noised and released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakcap.caps import Cap
from leakcap.certificates.release import CappedFigure, Certificate
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.leakage.certify import Effort, Findings, priors_for
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import before
from leakcap.modes.exact import noised
from leakcap.modes.interface import NoiseSettings, certificate
from leakcap.noise import Noise, Randomness, Subspace, released_vector
from leakcap.noise.calibrate import Calibrated
from leakcap.noise.search import Goal
from leakcap.worlds import GivenInputs, Worlds

__all__ = ["OneOfTheInputs", "certified"]

THEOREMS = (
    *("given-inputs", "leakage-curve", "tasks", "mutual-information", "log-det", "monotone", "confidence", "wagers"),
    *("rank-one", "rebuild", "sampler"),
)
PUBLIC = (
    "Published: the figures on this page, the error bars, the number of inputs, the form of the answer (shape, keys, "
    "labels) and the grid on which it leaves.",
    "Need not be hidden, because the promise holds against attackers who know it: every input, its chance to be used "
    "and the answer on it, the mean answer, and the shape and scale of the noise.",
)
NOT_PROMISED = (
    "That the input is one of the list is not hidden: the promise is about which of them was used.",
    "What all inputs of the list have in common is not hidden: the game is over these inputs, and no others.",
    "With another answer from the same input it may tell more: each certificate stands alone, and none covers two "
    "releases.",
    "Nothing else that the custodian lets out is covered: timing, memory use, remarks.",
)
ASSUMPTIONS = (
    "Nobody but the custodian learns the secret input or the noise; both come from the operating system.",
    "The secret is drawn by the prior, here: an input that came about in another way is covered as far as the prior "
    "is that of the attacker.",
    "The function sees the input that it is run on, and nothing else.",
    "The generator behind certifying draws (PCG64) behaves like independent random numbers.",
)


@dataclass(frozen=True, eq=False)
class OneOfTheInputs:
    """The secret is one of the inputs, drawn by the prior; its stored answer is released, never a re-run."""

    noise: Noise
    step: float
    inputs: GivenInputs

    @property
    def exposure(self) -> Floats:
        """Nobody's: an InputError."""
        raise InputError("given inputs have no people in them, so that nobody is exposed: see plan.certificate")

    @proves("given-inputs")
    def vector(self, randomness: Randomness) -> Floats:
        # Drawn last: nothing else depends on it. By whole numbers, so by exactly the prior.
        return self.vector_of(self.inputs.drawn(randomness.below(self.inputs.numbers)), randomness)

    def vector_of(self, secret: int, randomness: Randomness) -> Floats:
        """The stored answer of an input, with noise."""
        return released_vector(self.noise, self.noise.space.coordinates[secret], self.step, randomness)


def certified(
    space: Subspace,
    worlds: Worlds,
    caps: tuple[Cap, ...],
    settings: NoiseSettings,
    *,
    attempts: Attempts,
    rng: np.random.Generator,
    share_done: Callable[[float], None] = lambda _: None,
    remember: Callable[[Callable[[], Calibrated]], Calibrated] = lambda compute: compute(),
) -> tuple[OneOfTheInputs, Certificate]:
    """As in the finite game of worlds: everything about the attacker is computed, nothing is estimated."""
    assert isinstance(worlds, GivenInputs)
    goal = Goal.of(caps, worlds, shape=settings.shape, floor=settings.floor, machine=settings.machine)
    made = noised(
        space,
        goal,
        settings,
        _nothing_leaks,
        attempts=attempts,
        rng=rng,
        share_done=share_done,
        remember=remember,
    )
    findings = made.findings
    capped = tuple(
        CappedFigure(
            cap=type(cap).__name__,
            meaning=_meaning(cap),
            before=before(full, worlds.rate, worlds.m, worlds.shares),
            limit=cap.limit,
            certified=value,
        )
        for cap, full, value in zip(caps, goal.caps, findings.values, strict=True)
    )
    record = certificate(
        "given",
        worlds,
        made.noise.space,
        settings,
        kind="exact",
        capped=capped,
        membership_success=1.0,
        name_a_member_success=1.0,
        name_the_input_success=findings.naming,
        likeliest_input=float(worlds.likeliest),
        entropy_of_the_prior=worlds.entropy,
        mutual_information=findings.mutual_information,
        leakage_curve=findings.curve,
        confidence=1 - attempts.gamma,
        gamma=attempts.gamma,
        gamma_used=findings.gamma,
        gamma_again=findings.gamma_again,
        attempt=made.attempt,
        bounds=findings.bounds,
        draws=(("inputs", findings.effort.worlds),),
        integrated=findings.integrated,
        sampler_distance=made.distance,
        grid_step=made.step,
        pool_public=PUBLIC + settings.pool_public,
        not_promised=NOT_PROMISED + settings.not_promised,
        assumptions=ASSUMPTIONS,
        theorems=THEOREMS,
    )
    return OneOfTheInputs(made.noise, made.step, worlds), record


def _meaning(cap: Cap) -> str:
    """The cap in words that fit inputs."""
    words = cap.describe()
    return words.replace("secret world (everybody's participation at once)", "input that was used").replace(
        "secret world", "input that was used"
    )


def _nothing_leaks(goal: Goal) -> Findings:
    """All answers are equal: every attacker is left with the prior."""
    inputs = goal.worlds
    assert isinstance(inputs, GivenInputs)
    return Findings(
        exposure=np.empty(0),
        membership=1.0,
        naming=float(inputs.likeliest),
        sticks=(),
        curve=tuple((float(p), float(p)) for p in priors_for(inputs.m, goal.wanted)),
        mutual_information=0.0,
        known=(),
        values=tuple(before(cap, inputs.rate, inputs.m, inputs.shares) for cap in goal.caps),
        integrated=True,
        gamma=0.0,
        gamma_again=0.0,
        bounds=0,
        effort=Effort((), 0, 0),
    )
