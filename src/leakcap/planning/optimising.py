"""Less noise for the same caps (`optimize_noise`): a search over all covariances, and how far it could get at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.convert.rounding import rounded_down
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.noise import Noise, Subspace
from leakcap.noise.leverage import spectrum
from leakcap.noise.lower_bound import noise_lower_bound
from leakcap.noise.optimise import better_shape
from leakcap.noise.search import Goal, ScaledShape
from leakcap.planning.certifier import ExactCertifier, GivenCertifier
from leakcap.planning.plans import Plan, certifier_of, with_noise
from leakcap.planning.request import stream

__all__ = ["OptimizedNoise", "exact_certifier", "optimize_noise", "principal_covariance"]

FOR_BOUND = 0.2  # of the time
STREAM_OF_BOUND = 2**32  # of random numbers: beyond those of any attempt


@dataclass(frozen=True, eq=False)
class OptimizedNoise:
    """What a search over all covariances came to; custodian side.

    Attributes:
        plan: the better plan, certified; the given one where nothing better was found.
        before: total noise variance of the given plan, in its weighted outputs.
        after: the same of `plan`; never more.
        lower_bound: less than this is impossible for Gaussian noise of one covariance added to this answer.
        rounds: of the search.
    """

    plan: Plan
    before: float
    after: float
    lower_bound: float
    rounds: int

    @property
    def ratio(self) -> float:
        """How many times less noise variance there is than before."""
        return self.before / self.after if self.after else 1.0

    @property
    def gap(self) -> float:
        """How many times the lower bound the noise variance still is; infinite where the bound says nothing."""
        return self.after / self.lower_bound if self.lower_bound else float("inf" if self.after else 1.0)

    def __repr__(self) -> str:
        found = f"{self.ratio:.3g} times less than before" if self.after < self.before else "nothing better was found"
        return (
            f"OptimizedNoise(total variance {self.after:.4g}, {found}, {self.rounds} rounds)\n"
            f"  no covariance keeps the caps with less than {rounded_down(self.lower_bound)}: it is {self.gap:.3g} "
            "times the lower bound\n"
            "  .plan has the noise, its certificate and the right to release once"
        )


def optimize_noise(plan: Plan, seconds: float = 60.0) -> OptimizedNoise:
    """Less noise for the same caps, from a search over all covariances; and a bound that no covariance can beat.

    Plans try a few shapes of noise. This follows the exact leakage downhill from the best of them, certifies what it
    ends with once on fresh draws, with a share of the plan's failure probability of its own, and keeps the given plan
    where that is not better. Nothing is released; both plans share one right to release once.

    Args:
        plan: of mode "exact", over people; given inputs and parts of several answers are refused.
        seconds: for the search, about; certifying, and the lower bound in one basis, come on top. How far the search
            gets depends on the machine; the same seconds with a checkpoint give the same noise again.

    Returns:
        A record with the better plan (`.plan`), the total noise variance before and after, and the lower bound, all
        in the plan's weighted outputs.

    Raises:
        InputError: it is another plan, or has a cap that the search cannot follow.

    Guarantee: the certificate of `.plan` is like any other. `lower_bound`: whatever the covariance, if its total is
    smaller, `Y + N(0, S)` breaks one of the caps (docs/proofs/noise-lower-bound.md).

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(40, 2))
        >>> made = lc.plan(lambda x: x.mean(axis=0), rows, cap=0.7, worlds=64, seed=1)
        >>> better = lc.optimize_noise(made, seconds=0.5)
        >>> better.lower_bound <= better.after <= better.before
        True
    """
    certifier = exact_certifier(plan, "optimize_noise")
    checks.positive(seconds=seconds)
    space, settings = certifier.space, certifier.settings
    before = _total(plan.noise)
    goal = Goal.of(plan.caps, plan.run.worlds, floor=settings.floor, machine=settings.machine)
    if space.rank == 0:
        return OptimizedNoise(plan, before, after=before, lower_bound=before, rounds=0)
    best, rounds = plan, 0
    start = principal_covariance(space, plan.noise)
    if space.rank > 1:

        def choose(goal: Goal, coordinates: Floats, _: Floats, rng: np.random.Generator) -> ScaledShape:
            nonlocal rounds
            shape, rounds = better_shape(goal, coordinates, start, seconds=seconds * (1 - FOR_BOUND), rng=rng)
            return shape

        releaser, certificate = certifier.chosen(plan.caps, choose, "optimised", float(seconds))
        if _total(releaser.noise) < before:
            best = with_noise(plan, releaser, certificate)
    bound = noise_lower_bound(
        goal,
        space.coordinates,
        # In principal directions, and in those of the noise of both plans.
        [np.eye(space.rank), *(spectrum(principal_covariance(space, one.noise))[1] for one in (plan, best))],
        seconds=seconds * FOR_BOUND,
        rng=stream(plan.run.entropy, STREAM_OF_BOUND),
    )
    return OptimizedNoise(best, before, after=_total(best.noise), lower_bound=bound.total, rounds=rounds)


def _total(noise: Noise) -> float:
    return float((noise.deviations**2).sum())


def principal_covariance(space: Subspace, noise: Noise) -> Floats:
    """The covariance of noise that is diagonal in turned directions, in the principal ones."""
    turn = (space.coordinates / (space.variances * len(space.coordinates))).T @ noise.space.coordinates
    return np.asarray((turn * noise.deviations**2) @ turn.T)


def exact_certifier(plan: Plan, caller: str) -> ExactCertifier:
    """The certifier of a plan of mode "exact" over people; an InputError for anything else."""
    if not isinstance(plan, Plan):
        raise InputError(f"{caller} takes a plan, as leakcap.plan makes it")
    certifier = certifier_of(plan)
    if isinstance(certifier, GivenCertifier):
        raise InputError(f"{caller} is for worlds of people, and these are given inputs: plan.recap(cap) tries caps")
    if not isinstance(certifier, ExactCertifier):
        if plan.certificate.mode == "exact":
            raise InputError(
                f"{caller} is not for parts of several answers: what they tell together is bounded for noise that is "
                "fixed before the first of them leaves. It takes the plan of all of them: JointPlan.plan"
            )
        raise InputError(
            f"{caller} is for plans of mode 'exact', where all worlds are listed: this plan has mode "
            f"{plan.certificate.mode!r}, and its noise has a proof of its own. Make the plan with design='worlds' and "
            "without another mode"
        )
    return certifier
