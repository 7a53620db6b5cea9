"""A certificate checked against its stored plan: recomputed to the last digit, and tried on fresh draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from leakcap.audit.conversions import CheckedClaim
from leakcap.certificates.inputs_text import named
from leakcap.certificates.release import Certificate
from leakcap.certificates.text import percent
from leakcap.leakage import observe_units
from leakcap.leakage.confidence import Attempts, log_term, upper
from leakcap.leakage.posterior import Sampled
from leakcap.leakage.tasks import NAMING, observe_worlds
from leakcap.planning.plans import Plan

__all__ = ["findings"]

MAX_PEOPLE = 64  # against whom the attacker is tried, the most exposed by the plan
DRAWS = 2**14
FALSE_ALARM = 1e-6  # probability that a true certificate fails on fresh draws
# Entries that another version of leakcap may word differently.
LATER = ("log_det", "signal", "secret_id", "data_id")  # which older certificates do not state
WORDS = ("pool_public", "assumptions", "not_promised", "theorems", "leakcap_version")


def findings(certificate: Certificate, plan: Plan) -> Iterator[CheckedClaim]:
    """What can be checked about a certificate, one claim after the other."""
    yield _recomputed(certificate, plan)
    yield _released(certificate, plan)
    if certificate.mode in ("exact", "given") and certificate.gamma_again is not None and plan.noise.space.rank:
        yield _risk_shares(certificate, certificate.gamma_again)
    for figure in certificate.capped:
        kept = figure.certified <= figure.limit
        yield CheckedClaim(kept, f"cap {'kept' if kept else 'NOT kept'}: {figure.meaning}")
    if certificate.mode == "exact" and plan.noise.space.rank:
        yield _on_fresh_draws(certificate, plan)
    if certificate.of_inputs and plan.noise.space.rank:
        yield _named_on_fresh_draws(certificate, plan)


def _recomputed(certificate: Certificate, plan: Plan) -> CheckedClaim:
    given = asdict(certificate)
    stated = [name for name in given if name not in LATER or given[name] is not None]
    recomputed = asdict(plan.certificate)
    differing = [name for name in stated if given[name] != recomputed[name]]
    agreement = "it is what the stored plan gives, to the last digit"
    other_version = certificate.leakcap_version != plan.certificate.leakcap_version
    if other_version and plan.released_certificate == certificate:
        differing = [name for name in differing if name not in WORDS]
        agreement = f"its figures are what the stored plan gives; leakcap {certificate.leakcap_version} chose the words"
    if differing:
        return CheckedClaim(False, f"it differs from what the stored plan gives in: {', '.join(differing)}")
    return CheckedClaim(True, agreement)


def _released(certificate: Certificate, plan: Plan) -> CheckedClaim:
    released = plan.released_certificate
    if released is None:
        return CheckedClaim(True, "nothing was released from this plan yet")
    same = released == certificate
    return CheckedClaim(same, f"the stored release carries {'this' if same else 'another'} certificate")


def _risk_shares(certificate: Certificate, stated: float) -> CheckedClaim:
    """The attempt's share of gamma, and its halves for everybody and for those looked at again, as proved."""
    share = Attempts(certificate.gamma).share(certificate.attempt)
    stages = sum(name.startswith(("units", "second moments")) for name, _ in certificate.draws)
    again = share / 2 if stages > 1 else 0.0
    right = np.allclose((certificate.gamma_used, stated), (share, again), rtol=1e-12, atol=0.0)
    return CheckedClaim(
        bool(right),
        f"the risk is shared out {'as' if right else 'NOT as'} proved: {certificate.gamma_used:.3g} of "
        f"{certificate.gamma:.3g} for attempt {certificate.attempt}, {stated:.3g} of it for the few "
        "who got more draws",
    )


def _on_fresh_draws(certificate: Certificate, plan: Plan) -> CheckedClaim:
    """The best attacker at work, on releases that nobody has seen."""
    exposed = np.argsort(-plan.exposure)[:MAX_PEOPLE]
    points = plan.noise.space.coordinates / plan.noise.deviations
    source = Sampled(points, DRAWS, np.random.SeedSequence())
    success = observe_units(source, plan.run.worlds, np.empty(0), exposed).balanced
    # The attacker's success from below, for all people at once, so that luck refutes nothing: an upper bound on the
    # mirrored variable.
    at_least = -upper(success.scaled(-1.0), log_term(FALSE_ALARM, len(exposed)))
    return CheckedClaim(
        bool(at_least.max() <= certificate.membership_success),
        f"{DRAWS:,} fresh releases: the best attacker against the {len(exposed)} most exposed people reaches "
        f"{percent(float(success.estimate.max()))}, certified {percent(certificate.membership_success)}",
    )


def _named_on_fresh_draws(certificate: Certificate, plan: Plan) -> CheckedClaim:
    """The same over given inputs: the best attacker names the one that was used."""
    points = plan.noise.space.coordinates / plan.noise.deviations
    source = Sampled(points, DRAWS, np.random.SeedSequence(), prior=plan.run.worlds.shares)
    (success,) = observe_worlds(source, tasks=(NAMING,)).tasks
    at_least = -float(upper(success.scaled(-1.0), log_term(FALSE_ALARM, 1))[0])
    return CheckedClaim(
        at_least <= named(certificate),
        f"{DRAWS:,} fresh releases: the best attacker names the input in {percent(float(success.estimate[0]))}, "
        f"certified {percent(named(certificate))}",
    )
