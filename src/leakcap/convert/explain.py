"""What follows from a privacy number in other currencies: mutual information, eps, eta, success.

Kept apart throughout: what *follows* from the number given, what is *enough* to keep it, and what may only be
*compared* with it. Attackers' success is rounded up, budgets are rounded down. Proofs: `docs/proofs/currency.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leakcap.convert import differential_privacy as dp
from leakcap.convert import information
from leakcap.convert.rounding import above, below, exact, percent, percent_up, rounded_down, rounded_up

__all__ = ["HALF", "SECTIONS", "Row", "rows"]

SECTIONS = {
    "given": "You gave",
    "follows": "Follows: no attacker can do better",
    "enough": "Enough to keep it",
    "then": "Follows too, where it is kept by that mi",
    "comparison": "For comparison: nothing is promised by it",
    "none": "Does not follow",
}
HALF = Fraction(1, 2)
ALARMS = (Fraction(1, 100), Fraction(1, 1000))
CLAIMS = Fraction(1, 10)
RARE = Fraction(1, 100)
DP = "replace-one DP, with a fresh random half of the pool taking part"
ON_AVERAGE = "is an average over releases, while eps must hold for each of them, the unlikely ones too."


@dataclass(frozen=True)
class Row:
    """A number in one currency, how it relates to what was given, and a sentence about it."""

    section: str
    name: str
    value: float | None
    shown: str
    sentence: str


def rows(given: dict[str, Fraction]) -> list[Row]:
    """Everything that can be said about the numbers given, in the order of the sections."""
    prior = given.get("prior", HALF)
    if "mi" in given:
        relations = _from_mi(given["mi"], prior)
    elif "eps" in given:
        relations = _from_eps(given["eps"], given.get("delta", Fraction(0)), prior, given.get("n"))
    elif "eta" in given:
        relations = _from_membership(HALF + given["eta"], prior, "eta")
    elif prior == HALF:
        relations = _from_membership(given["success"], prior, "success")
    else:
        relations = _from_success(given["success"], prior)
    return sorted(relations, key=lambda row: list(SECTIONS).index(row.section))


def _from_mi(mi: Fraction, prior: Fraction) -> Iterator[Row]:
    nats = above(mi)
    words = f"The release carries at most {exact(mi)} nats ({rounded_up(nats / math.log(2))} bits) about the secret."
    yield Row("given", "mi", nats, f"≤ {exact(mi)} nats", sentence=words)
    for chance in dict.fromkeys((prior, RARE)):
        yield _guess("follows", _number(information.posterior(nats, above(chance))), chance)
    member = _number(information.membership(nats))
    yield from _membership("follows", member)
    for alarms in ALARMS:
        yield _recognised("follows", _number(information.true_positive_rate(nats, above(alarms))), alarms)
    yield _claimed("follows", _number(information.precision(nats, below(CLAIMS))))
    named = percent_up(_number(information.name_a_member(nats)))
    words = f"Naming somebody who took part, picked after seeing the release, succeeds at most {named} of the time."
    yield Row("follows", "name a member", _number(information.name_a_member(nats)), f"≤ {named}", sentence=words)
    if member < 1:
        eps = math.log(member) - math.log1p(-member)
        words = f"An eps-DP release ({DP}) with this eps has the same limit for membership, but not for other attacks."
        yield Row("comparison", "eps of equal success", eps, f"about {eps:.3g}", sentence=words)
    yield Row("none", "eps", None, "none", sentence=f"Information {ON_AVERAGE}")


def _from_eps(eps: Fraction, delta: Fraction, prior: Fraction, n: Fraction | None) -> Iterator[Row]:
    e, d = above(eps), above(delta)
    pair = f"({exact(eps)}, {exact(delta)})" if delta else exact(eps)
    words = f"The release is {pair}-differentially private; below that is {DP}."
    yield Row("given", "eps, delta" if delta else "eps", e, pair, sentence=words)
    member = _number(dp.from_dp(e, d))
    yield from _membership("follows", member)
    either = _number(dp.from_dp(e, d, relation="add_remove"))
    words = "The same, where DP is about adding or removing one record: a swap is two such steps."
    yield Row("follows", "if add/remove DP", either, f"≤ {percent_up(either)}", sentence=words)
    for alarms in ALARMS:
        yield _recognised("follows", _recognised_under_dp(e, d, above(alarms)), alarms)
    if not delta:
        yield from _under_pure_dp(e, prior)
    yield from _information_under_dp(e, delta, n, prior)
    nats = _number(information.mutual_information(member, 0.5))
    words = "A release that carries this much has the same limit for membership, but not for other attacks."
    yield Row("comparison", "mi of equal success", nats, f"about {nats:.3g} nats", sentence=words)


def _under_pure_dp(eps: float, prior: Fraction) -> Iterator[Row]:
    wrong = _number(dp.dp_identification_failure(eps, rate=above(prior)))
    right = min(1.0, math.nextafter(1 - wrong, 2.0))
    words = (
        f"Claims that a person took part ({percent(prior)} beforehand), however rarely they are made, are right at "
        f"most {percent_up(right)} of the time."
    )
    yield Row("follows", f"claims, prior {percent(prior)}", right, f"≤ {percent_up(right)}", sentence=words)
    for chance in dict.fromkeys((prior, RARE)):
        if chance != HALF:
            hit = _number(dp.rdp_reconstruction(above(chance), eps, math.inf))
            words = (
                f"Whatever about one person's record has a {percent(chance)} chance beforehand is guessed at most "
                f"{percent_up(hit)} of the time, even by somebody who knows all other records."
            )
            yield Row("follows", f"one record, prior {percent(chance)}", hit, f"≤ {percent_up(hit)}", sentence=words)


def _information_under_dp(eps: float, delta: Fraction, n: Fraction | None, prior: Fraction) -> Iterator[Row]:
    if delta:
        why = "With probability delta anything may leave, all data included, so leakcap derives no limit."
        yield Row("none", "mi", None, "none", sentence=why)
    elif n is None:
        yield Row(
            "none", "mi", None, "needs n", sentence="It depends on the number of records: add n=1000, for example."
        )
    else:
        nats = _number(dp.dp_mutual_information(eps, int(n)))
        shown = f"{rounded_up(nats)} nats"
        words = f"A release from {int(n):,} records carries at most {shown} about them, however they depend."
        yield Row("follows", "mi", nats, f"≤ {shown}", sentence=words)
        yield _guess("follows", _number(information.posterior(nats, above(prior))), prior)


def _from_membership(success: Fraction, prior: Fraction, given: str) -> Iterator[Row]:
    """From the success at guessing one person's participation, who takes part with probability 1/2."""
    eta = success - HALF
    words = f"Guessing whether a given person took part succeeds at most {percent(success)} of the time (a coin: 50 %)."
    other = "follows" if given == "eta" else "given"
    yield Row(other, "membership success", float(success), f"≤ {percent(success)}", sentence=words)
    equal = "The release has membership inference privacy with this eta: success of at most 1/2 + eta."
    yield Row("given" if given == "eta" else "follows", "eta", float(eta), f"≤ {exact(eta)}", sentence=equal)
    for alarms in ALARMS:  # every test: success = (1 + TPR - FPR)/2
        yield _recognised("follows", min(Fraction(1), alarms + 2 * eta), alarms)
    yield _claimed("follows", min(Fraction(1), HALF + eta / (2 * CLAIMS)))  # every test: TPR - FPR = 2c (2a - 1)
    nats = _number(information.mutual_information(below(success), 0.5))
    yield _enough(nats)
    eps = _kept(math.log(success / (1 - success)), below(success), dp.from_dp)
    half = rounded_down(eps / 2)
    words = f"An eps-DP release with at most this eps keeps it ({DP}; under add/remove DP half of it, {half})."
    yield Row("enough", "eps", eps, f"≤ {rounded_down(eps)}", sentence=words)
    for chance in dict.fromkeys((prior, RARE)):
        if chance != HALF:
            yield _guess("then", _number(information.posterior(nats, above(chance))), chance)
    why = "The person is named before the release here, and one who is picked afterwards is another matter."
    yield Row("none", "name a member", None, "none", sentence=why)
    why = "Each participation alone may be hard to guess while the release tells a lot about all of them together."
    yield Row("none", "mi", None, "none", sentence=why)
    yield Row("none", "eps", None, "none", sentence=f"Success {ON_AVERAGE}")


def _from_success(success: Fraction, prior: Fraction) -> Iterator[Row]:
    """From the success at some guess of another prior than 1/2."""
    words = (
        f"A guess that is right {percent(prior)} of the time without the release succeeds at most {percent(success)}."
    )
    yield Row("given", f"success, prior {percent(prior)}", float(success), f"≤ {percent(success)}", sentence=words)
    nats = _number(information.mutual_information(below(success), above(prior)))
    yield _enough(nats)

    def guessed(eps: float) -> Any:
        return dp.rdp_reconstruction(above(prior), eps, math.inf)

    eps = _kept(math.log(success / prior), below(success), guessed)
    words = (
        "A replace-one eps-DP release with at most this eps keeps it, where the guess is about one person's record and "
        "its prior is that of somebody who knows all others."
    )
    yield Row("enough", "eps, for one record", eps, f"≤ {rounded_down(eps)}", sentence=words)
    yield from _membership("then", _number(information.membership(nats)))
    why = "This is about one question of that prior, and participation, at a prior of 50 %, is another question."
    yield Row("none", "eta", None, "none", sentence=why)
    yield Row("none", "mi", None, "none", sentence="The release may tell a lot that does not help with this guess.")
    yield Row("none", "eps", None, "none", sentence=f"Success {ON_AVERAGE}")


def _enough(nats: float) -> Row:
    words = (
        f"A release that carries at most {rounded_down(nats)} nats about the secret keeps it, whatever was computed."
    )
    return Row("enough", "mi", nats, f"≤ {rounded_down(nats)} nats", sentence=words)


def _guess(section: str, success: float, prior: Fraction) -> Row:
    words = (
        f"Any guess that is right {percent(prior)} of the time without the release is right at most "
        f"{percent_up(success)} of the time with it."
    )
    return Row(section, f"success, prior {percent(prior)}", success, f"≤ {percent_up(success)}", sentence=words)


def _membership(section: str, success: float) -> Iterator[Row]:
    words = (
        f"Guessing whether a given person took part (half of the pool does) succeeds at most {percent_up(success)} of "
        "the time."
    )
    yield Row(section, "membership success", success, f"≤ {percent_up(success)}", sentence=words)
    eta = success - 0.5  # exact: the two lie within a factor of two
    words = "The release has membership inference privacy with this eta: success of at most 1/2 + eta."
    yield Row(section, "eta", eta, f"≤ {rounded_up(eta)}", sentence=words)


def _recognised(section: str, share: float | Fraction, alarms: Fraction) -> Row:
    words = (
        f"A test that wrongly accuses {percent(alarms)} of the others recognises at most {percent_up(share)} of those "
        "who took part."
    )
    return Row(section, f"found at {percent(alarms)} alarms", float(share), f"≤ {percent_up(share)}", sentence=words)


def _claimed(section: str, right: float | Fraction) -> Row:
    words = (
        f"Claims that a given person took part, made in at least {percent(CLAIMS)} of releases, are right at most "
        f"{percent_up(right)} of the time; rarer claims may be surer."
    )
    return Row(section, f"claims, {percent(CLAIMS)} of cases", float(right), f"≤ {percent_up(right)}", sentence=words)


def _recognised_under_dp(eps: float, delta: float, alarms: float) -> float:
    """Both inequalities of (eps, delta)-DP, for a test and its complement (currency.md, section 3), rounded up."""
    slack = 2.0**-45
    direct = (math.exp(min(eps, 700.0)) * alarms + delta) * (1 + slack)
    complement = 1 - max(0.0, 1 - alarms - delta) * math.exp(-eps) * (1 - slack) + slack
    return min(1.0, direct, complement)


def _kept(start: float, success: float, bound: Callable[[float], Any]) -> float:
    """The eps given, or one just below it that was checked to keep the success; 0 if none does."""
    near = (start * (1 - slack) for slack in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-9))
    return next((eps for eps in near if _number(bound(eps)) <= success), 0.0)


def _number(value: Any) -> float:
    """Of one number in, one number out."""
    return float(value)
