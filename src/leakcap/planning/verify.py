"""Whether proposed noise keeps a plan's caps (`verify`): Algorithm 3 of PAC Privacy.

In exact mode nothing about the data is estimated, so the proposal may be anything: one covariance, one for every world,
or a law known by its density. In confidence mode it is one covariance. Differs from the paper: no Gaussian noise is
added beside the proposal, and no KL of mixtures is estimated; the caps' own figures are certified.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.certificates.facts import CappedFigure
from leakcap.certificates.release import Certificate
from leakcap.convert.rounding import rounded_up
from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.leakage.posterior import Source
from leakcap.leakage.proposals import Density, DensityReleases, PerWorldReleases, ceiling_per_world, certify_proposal
from leakcap.modes.interface import Releaser, capped_figures
from leakcap.noise.calibrate import looked_at
from leakcap.noise.proposed import inside, roots_per_world
from leakcap.noise.search import Goal, Search
from leakcap.planning.certifier import ExactCertifier, FreshCertifier
from leakcap.planning.optimising import exact_certifier
from leakcap.planning.plans import Plan, certifier_of, with_noise
from leakcap.planning.request import stream

__all__ = ["VerifiedNoise", "verify"]

NOTHING_TO_HIDE = "all worlds have the same answer: no noise is needed, and there is nothing to verify"
NOT_SHOWN = "A cap is not shown to be kept: nothing is released with this noise."
DRAWS = 2**14  # for proposals that are no single covariance
IDEAL = (
    "The figures are for noise of exactly this law. It is not released: leakcap draws Gaussian noise of one covariance "
    "on a grid, and how far a sampler of this law would be from it is not counted."
)


@dataclass(frozen=True, eq=False)
class VerifiedNoise:
    """What was certified of a proposal; custodian side.

    Attributes:
        kept: whether all caps are kept.
        capped: every cap with its certified figure.
        kind: "covariance", "one covariance for every world" or "density".
        confidence: probability that the figures hold, together with all else that was certified of this plan.
        gamma_used: the part of the failure probability that this attempt used.
        attempt: its number: every proposal is one.
        certificate: for one covariance that keeps all caps, the whole certificate; otherwise None.
        plan: for one covariance that keeps all caps, a plan that releases with it, and shares the right to release
            once with the given one; otherwise None.
        remark: why there is no plan, in words; empty where there is one.
    """

    kept: bool
    capped: tuple[CappedFigure, ...]
    kind: str
    confidence: float
    gamma_used: float
    attempt: int
    certificate: Certificate | None = None
    plan: Plan | None = None
    remark: str = ""

    def __repr__(self) -> str:
        lines = [f"VerifiedNoise({'kept' if self.kept else 'not kept'}, {self.kind}, attempt {self.attempt})"]
        lines += [
            f"  {one.cap}: at most {rounded_up(one.certified)}, cap {one.limit:g}"
            f"{'' if one.certified <= one.limit else ' (exceeded, or not shown by so many draws)'}"
            for one in self.capped
        ]
        return "\n".join([*lines, *([f"  {self.remark}"] if self.remark else [])])


def verify(plan: Plan, noise: npt.ArrayLike | Density) -> VerifiedNoise:
    """Certify proposed noise for a plan's caps: whether it keeps them, and by how much.

    In mode "exact" every call is an attempt: it has fresh draws and its own share of the plan's failure probability, so
    that trying many proposals and keeping one is counted. In mode "confidence" all rest on what the plan has bounded
    already: how far answers vary along each direction. Nothing is released.

    Args:
        plan: of mode "exact" or "confidence", over people; given inputs and parts of several answers are refused.
        noise: in outputs (flattened): a covariance matrix `(outputs, outputs)`; one for every world,
            `(worlds, outputs, outputs)`; or an object with `log_density(x)`, for rows `x`, and `draw(rng, size)`, both
            of the same law. In mode "confidence" it is one covariance.

    Returns:
        What was certified. For one covariance that keeps the caps, `.plan` releases with it.

    Raises:
        InputError: the noise is singular where outputs move, negative, not symmetric or of another shape; or it is
            another plan.
        NumericalError: outputs are too far apart for this noise.

    Guarantee: with the plan's confidence, all that was ever certified of it together, the best attacker's figure is at
    most the certified one, for an answer that is rebuilt in the plan's own directions and noised by this law (docs/
    proofs/proposed-noise.md). Noise outside of these directions that is correlated with noise in them is taken as seen.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(40, 2))
        >>> made = lc.plan(lambda x: x.mean(axis=0), rows, cap=0.7, worlds=64, seed=1)
        >>> lc.verify(made, np.eye(2)).kept
        True
    """
    fresh = certifier_of(plan) if isinstance(plan, Plan) else None
    if isinstance(fresh, FreshCertifier):
        return _of_fresh_worlds(fresh, plan, noise)
    certifier = exact_certifier(plan, "verify")
    goal = Goal.of(plan.caps, plan.run.worlds, machine=certifier.settings.machine)
    law = _as_density(noise)
    if certifier.space.rank == 0 and law is None:
        raise InputError(NOTHING_TO_HIDE)
    if law is not None:
        lifted = certifier.space.lift(certifier.space.coordinates)
        return _sampled(
            certifier,
            plan,
            "density",
            partial(DensityReleases, lifted, law),
            ceiling=math.log(plan.run.worlds.m),
        )
    given = _numbers(noise, len(certifier.space.centre), plan.run.worlds.m)
    if given.ndim == 3:
        points, roots = roots_per_world(certifier.space, given)
        return _sampled(
            certifier,
            plan,
            "one covariance for every world",
            partial(PerWorldReleases, points, roots),
            ceiling=ceiling_per_world(points, roots @ roots.transpose(0, 2, 1)),
        )
    variances, turn = inside(certifier.space, given)
    return _gaussian(certifier, plan, goal, variances=variances, turn=turn, asked=fingerprint(given))


def _of_fresh_worlds(certifier: FreshCertifier, plan: Plan, noise: Any) -> VerifiedNoise:
    """For all subsets: one covariance, by the deviations that the plan has bounded already."""
    outputs = plan.run.simulation.table.shape[1]
    if _as_density(noise) is not None or np.ndim(noise) == 3:
        raise InputError(
            "for worlds that were never simulated only one covariance for all of them is certified: what other noise "
            "tells would have to be estimated over worlds that nobody has seen. Make the plan with mode='exact'"
        )
    given = _numbers(noise, outputs, 0)
    if not plan.noise.space.rank:
        raise InputError(NOTHING_TO_HIDE)
    releaser, certificate = certifier(plan.caps, given)
    kept = all(one.certified <= one.limit for one in certificate.capped)
    return _told(plan, releaser, certificate, kept=kept)


def _gaussian(
    certifier: ExactCertifier, plan: Plan, goal: Goal, *, variances: Floats, turn: Floats, asked: str
) -> VerifiedNoise:
    space, run = certifier.space, plan.run
    # With a checkpoint the same proposal has the same draws again, so that its release can be seen again.
    with certifier.alone(plan.caps, "proposal", asked) as (attempts, _):
        rng = stream(run.entropy, 1 + attempts.made)
        search = Search(
            goal,
            space.coordinates @ turn,
            turn,
            variances,
            budget=goal.budget(space.rank),
            seed=np.random.SeedSequence(int(rng.integers(2**63))),
        )
        seen = looked_at(search, attempts=attempts, rng=rng, draws=certifier.settings.draws)
        releaser, certificate = certifier.stated(seen, goal, plan.caps, attempts)
        kept = seen.missed(goal) <= 0
    return _told(plan, releaser, certificate, kept=kept)


def _told(plan: Plan, releaser: Releaser, certificate: Certificate, *, kept: bool) -> VerifiedNoise:
    """Of one covariance: with a plan that releases with it, if it keeps the caps."""
    return VerifiedNoise(
        kept,
        certificate.capped,
        "covariance",
        confidence=certificate.confidence,
        gamma_used=certificate.gamma_used,
        attempt=certificate.attempt,
        certificate=certificate if kept else None,
        plan=with_noise(plan, releaser, certificate) if kept else None,
        remark="" if kept else NOT_SHOWN,
    )


def _sampled(certifier: ExactCertifier, plan: Plan, kind: str, releases: Any, *, ceiling: float) -> VerifiedNoise:
    goal, worlds = Goal.of(plan.caps, plan.run.worlds), plan.run.worlds

    def source(draws: int, seed: np.random.SeedSequence) -> Source:
        made: Source = releases(draws=draws, seed=seed)
        return made

    # A law cannot be recognised: it is always a question that was never asked.
    with certifier.alone(plan.caps, "law", secrets.token_hex(16)) as (attempts, _):
        rng = stream(plan.run.entropy, 1 + attempts.made)
        gamma = attempts.next()
        values = certify_proposal(
            source,
            worlds,
            goal.caps,
            goal.wanted,
            gamma=gamma,
            draws=certifier.settings.draws or DRAWS,
            seed=np.random.SeedSequence(int(rng.integers(2**63))),
            mi_ceiling=ceiling,
            memory=certifier.settings.machine.memory,
        )
        attempt = attempts.made
    return VerifiedNoise(
        all(value <= cap.limit for value, cap in zip(values, goal.caps, strict=True)),
        capped_figures(plan.caps, goal.caps, values, (worlds.rate, worlds.m)),
        kind,
        confidence=1 - attempts.gamma,
        gamma_used=gamma,
        attempt=attempt,
        remark=IDEAL,
    )


def _as_density(noise: Any) -> Density | None:
    both = callable(getattr(noise, "log_density", None)) and callable(getattr(noise, "draw", None))
    return noise if both else None


def _numbers(noise: Any, outputs: int, m: int) -> Floats:
    try:
        given = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape not in ((outputs, outputs), (m, outputs, outputs)):
        raise InputError(
            f"noise must be a covariance of shape ({outputs}, {outputs}), one for every world, ({m}, {outputs}, "
            f"{outputs}), or an object with log_density(x) and draw(rng, size)"
        )
    if not np.isfinite(given).all():
        raise InputError("the proposed covariance must hold finite numbers")
    return given
