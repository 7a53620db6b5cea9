"""A certificate checked without its plan: every figure that follows from others is worked out again.

By other code than the one that wrote it: plain floating-point numbers and bisection, nothing of `convert`, no numpy.
What was measured on the data cannot be checked here: the plan of the custodian can (`recheck`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from statistics import NormalDist
from typing import Any

from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.certificates.text import percent

__all__ = ["CheckedClaim", "conversions"]

CLOSE = 1e-6  # relative, between two ways of working out a figure: both round up a little
FAR = 1e-4  # relative, where the success was inverted first
SLACK = 1e-9  # absolute
NORMAL = NormalDist()
PRIORS, ALARMS = (0.5, 0.01), (0.01, 0.001)


@dataclass(frozen=True)
class CheckedClaim:
    """One thing that was checked about a certificate."""

    holds: bool
    words: str


@singledispatch
def conversions(cert: Any) -> Iterator[CheckedClaim]:
    """What follows from the record itself, one claim for each kind of figure."""
    raise TypeError(f"{type(cert).__name__} is no certificate")


@conversions.register
def _(cert: ObfuscationCertificate) -> Iterator[CheckedClaim]:
    rows = cert.rows_sampled % cert.classes == cert.rows_released % cert.classes**2 == cert.mask_dim % cert.blocks == 0
    fits = rows and cert.mix <= cert.rows_sampled // cert.classes and cert.mask_dim <= cert.columns
    yield CheckedClaim(fits, "the sizes of the encoded set fit each other")
    ordered = 0.5 <= cert.mean_success <= cert.membership_success <= 1
    yield CheckedClaim(ordered, "the mean over rows is not above the worst row")
    rates = all(false <= true <= 1 for false, true in cert.true_positives)
    yield CheckedClaim(rates, "no true positive rate is below its rate of false alarms")


@conversions.register
def _(cert: UnclaimedEncoding) -> Iterator[CheckedClaim]:
    yield CheckedClaim(cert.is_guarantee is False, "nothing is claimed, and there is no figure to check")


@conversions.register
def _(cert: Certificate) -> Iterator[CheckedClaim]:
    yield from _caps(cert)
    yield _risk(cert)
    if not cert.only_one_person:
        yield _any_question(cert)
    if cert.of_inputs:
        yield _naming(cert)
    else:
        yield _recognition(cert)
    if cert.leakage_curve:
        yield _curve(cert)
    if _is_gaussian(cert):
        yield from _of_two_gaussians(cert)
    if cert.mode == "individual" and cert.whoever_is_known:
        yield _named(cert)


@conversions.register
def _(cert: LabelCertificate) -> Iterator[CheckedClaim]:
    before = max(cert.prior)
    right = _close(cert.prior_success, before)
    yield _claim(right, "the best guess before {} the likeliest class of the prior", "is")
    odds = math.exp(min(cert.epsilon, 700.0))
    most = min(1.0, before * odds / (1 - before + before * odds) + cert.delta)
    right = cert.prior_success <= cert.guess_success <= most * (1 + CLOSE)
    yield _claim(right, f"naming one label, {percent(cert.guess_success)}, {{}} within what epsilon allows", "is")
    right = cert.delta > 0 or cert.mutual_information <= cert.epsilon * (1 + CLOSE)
    yield _claim(right, "the stated information {} within what epsilon allows", "is")
    figures = [(p, cert.posterior(p), p * odds / (1 - p + p * odds) + cert.delta) for p in PRIORS]
    yield _table("any question about one label", [(p, stated, min(1.0, found)) for p, stated, found in figures])


@conversions.register
def _(cert: SessionCertificate) -> Iterator[CheckedClaim]:
    for one in cert.capped:
        yield _claim(one.certified <= one.limit, f"the cap {{}} kept: {one.meaning}", "is")
    if not cert.whoever_is_known or cert.always:
        return
    lost, apart = cert.sampler_distance, math.sqrt(cert.square)
    found = NORMAL.cdf(apart / 2) + lost
    right = _close(cert.membership_success, found)
    yield _claim(right, f"the success {{}} from the distance that the clocks allow: {percent(found)}", "follows")
    recognised = [(f, cert.true_positive_rate(f), NORMAL.cdf(NORMAL.inv_cdf(f + lost) + apart) + lost) for f in ALARMS]
    yield _table("participants recognised", recognised)


def _caps(cert: Certificate) -> Iterator[CheckedClaim]:
    """Each cap is kept, and its figure is the one that stands elsewhere in the record, or no lower."""
    same = {
        "Membership": cert.membership_success,
        "PoolMembership": cert.membership_success,
        "MutualInformation": cert.mutual_information,
        "NameAMember": cert.name_a_member_success,
    }
    for one in cert.capped:
        yield _claim(one.certified <= one.limit, f"the cap {{}} kept: {one.meaning}", "is")
        if one.cap in same:
            yield _claim(_close(one.certified, same[one.cap]), "its figure {} the one of the record", "is")
        elif one.cap in FOLLOW:
            least = FOLLOW[one.cap](cert, one.before) * (1 - CLOSE)
            yield _claim(one.certified >= least, "its figure {} from the record", "follows")


def _risk(cert: Certificate) -> CheckedClaim:
    """The attempt's share of the allowed risk, and the confidence that is left."""
    share = cert.gamma / (cert.attempt * (cert.attempt + 1)) if cert.attempt else math.inf
    if cert.mode in ("confidence", "empirical"):  # one attempt, which may take all of it
        share = cert.gamma
    nothing_drawn = not cert.draws and not cert.gamma_used
    right = (
        (nothing_drawn or _close(cert.gamma_used, share, tiny=0.0))
        and (not cert.gamma_again or _close(cert.gamma_again, cert.gamma_used / 2, tiny=0.0))
        and (not cert.is_guarantee or abs(cert.confidence - (1 - cert.gamma)) <= SLACK)
    )
    return _claim(right, f"confidence {cert.confidence:.7g} {{}} what the stated risk leaves", "is")


def _any_question(cert: Certificate) -> CheckedClaim:
    chances = (*PRIORS, 1 / cert.worlds) if cert.worlds > 1 else PRIORS
    about = "the input" if cert.of_inputs else "who took part"
    return _table(f"any question about {about}", [(p, cert.posterior(p), _posterior(cert, p)) for p in chances])


def _recognition(cert: Certificate) -> CheckedClaim:
    told = [(f, cert.true_positive_rate(f), _true_positives(cert, f)) for f in ALARMS]
    return _table("participants recognised", told)


def _naming(cert: Certificate) -> CheckedClaim:
    """Naming the input is one of the questions: no worse than without the release, no better than the curve allows."""
    before, after = float(cert.likeliest_input or 0), float(cert.name_the_input_success or 0)
    right = before * (1 - CLOSE) <= after <= _by_information(cert.mutual_information, before) * (1 + CLOSE) + SLACK
    return _claim(right, f"naming the input, {percent(after)}, {{}} within the stated information", "is")


def _table(what: str, figures: list[tuple[float, float, float]]) -> CheckedClaim:
    """A line of the page, with the chance before, the figure stated and the one found here."""
    agree = all(_close(stated, found) for _, stated, found in figures)
    shown = ", ".join(f"{100 * before:.3g} % to {percent(found)}" for before, _, found in figures)
    return _claim(agree, f"{what}: worked out again it {{}} what the page says: {shown}", "is")


def _curve(cert: Certificate) -> CheckedClaim:
    """No point of the curve lies below its prior, or above what the stated information allows."""
    most = [_by_information(cert.mutual_information, prior) * (1 + CLOSE) for prior, _ in cert.leakage_curve]
    inside = all(prior <= bound <= top for (prior, bound), top in zip(cert.leakage_curve, most, strict=True))
    return _claim(inside, "every point of the leakage curve {} within the stated information", "is")


def _is_gaussian(cert: Certificate) -> bool:
    known = cert.whoever_is_known and not cert.on_average_over_the_known
    return known and cert.noise is None and 0.5 < cert.membership_success < 1


def _of_two_gaussians(cert: Certificate) -> Iterator[CheckedClaim]:
    """Everything about one person follows from one distance, and that from the success."""
    lost = cert.sampler_distance
    apart = 2 * NORMAL.inv_cdf(cert.membership_success - lost)
    right = all(_close(bound, _stick(cut, apart) + 2 * lost, FAR) for cut, bound in cert.hockey_sticks)
    yield _claim(right, "what is recognised at few false alarms {} from the success", "follows")
    if cert.mode == "individual":
        right = cert.known_memberships == ((cert.units - 1, cert.membership_success),)
        yield _claim(right, "the same success {} stated whoever else is known", "is")
    if cert.mode == "pool":
        entropy = -lost * math.log(lost) - (1 - lost) * math.log1p(-lost) if lost else 0.0
        nats = min(math.log(2), 0.5 * math.log1p(apart**2 / 4) + lost * math.log(2) + entropy)
        yield _claim(
            _close(cert.mutual_information, nats, FAR), "the stated information {} from the success", "follows"
        )


def _named(cert: Certificate) -> CheckedClaim:
    most = min(1.0, _by_information(cert.mutual_information, cert.sampling_rate))
    return _claim(_close(cert.name_a_member_success, most), "naming a participant {} from the information", "follows")


def _posterior(cert: Certificate, prior: float) -> float:
    best = _by_information(cert.mutual_information, prior)
    for q, bound in cert.leakage_curve:
        best = min(best, bound * prior / q if prior >= q else 1 - (1 - prior) * (1 - bound) / (1 - q))
    return max(prior, best)


def _true_positives(cert: Certificate, alarms: float) -> float:
    rate, success = cert.sampling_rate, cert.membership_success
    best = min(1.0, alarms + 2 * success - 1, _recognised_by_information(cert.mutual_information, alarms, rate))
    if _is_gaussian(cert) and cert.mode in ("individual", "pool"):
        lost, apart = cert.sampler_distance, 2 * NORMAL.inv_cdf(success)
        best = min(best, NORMAL.cdf(NORMAL.inv_cdf(min(1 - 1e-16, alarms + lost)) + apart) + lost)
    for cut, stick in cert.hockey_sticks:
        best = min(best, (cut * (1 - rate) * alarms + stick) / (rate * (1 - cut)))
    return max(alarms, best)


def _named_world(cert: Certificate, prior: float) -> float:
    return _posterior(cert, prior) if cert.name_the_input_success is None else cert.name_the_input_success


# Caps whose figures are no lower than what the record gives for the same chance before, or rate of false alarms.
FOLLOW = {"AnyInference": _posterior, "Identification": _named_world, "TruePositiveRate": _true_positives}


def _stick(cut: float, apart: float) -> float:
    """`E(q - cut)_+` of a posterior q between two normal laws so far apart, each as likely as the other."""
    turn = math.log(cut / (1 - cut)) / apart
    return ((1 - cut) * NORMAL.cdf(apart / 2 - turn) - cut * NORMAL.cdf(-apart / 2 - turn)) / 2


def _by_information(nats: float, prior: float) -> float:
    """The largest success whose divergence from the prior is no more than the information."""
    return _largest(lambda success: _divergence(success, prior), prior, nats)


def _recognised_by_information(nats: float, alarms: float, rate: float) -> float:
    """The same for recognition: both rates of alarms against that of all."""

    def told(found: float) -> float:
        alarmed = rate * found + (1 - rate) * alarms
        return rate * _divergence(found, alarmed) + (1 - rate) * _divergence(alarms, alarmed)

    return _largest(told, alarms, nats)


def _largest(grows: Callable[[float], float], low: float, at_most: float) -> float:
    high = 1.0
    if grows(high) <= at_most:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if grows(middle) <= at_most else (low, middle)
    return high


def _divergence(one: float, other: float) -> float:
    """Of two coins, in nats."""
    parts = ((one, other), (1 - one, 1 - other))
    return sum(p * math.log(p / q) if q > 0 else math.inf for p, q in parts if p > 0)


def _claim(holds: bool, words: str, verb: str) -> CheckedClaim:
    """Words with a verb at their braces, which is denied where they do not hold."""
    denied = {"is": "is NOT", "follows": "does NOT follow"}
    return CheckedClaim(holds, words.format(verb if holds else denied[verb]))


def _close(stated: float, found: float, within: float = CLOSE, tiny: float = SLACK) -> bool:
    return abs(stated - found) <= within * max(abs(stated), abs(found)) + tiny
