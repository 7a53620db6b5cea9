"""What may be capped. Caps are plain data: `leakage/measures.py` knows how each kind is measured.

Every cap is a promise about the best possible attacker. This attacker knows the pool, the code, all worlds and all
outputs, but not the secret world and not the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.caps.kinds import (
    AnyInference,
    Cap,
    Identification,
    Membership,
    MutualInformation,
    NameAMember,
    PoolMembership,
    Precision,
    Task,
    TruePositiveRate,
)
from leakcap.errors import CapError, InputError
from leakcap.ground import checks

__all__ = [
    "AnyInference",
    "Cap",
    "Identification",
    "Membership",
    "MutualInformation",
    "NameAMember",
    "PoolMembership",
    "Precision",
    "Task",
    "TruePositiveRate",
    "any_inference",
    "as_caps",
    "identification",
    "membership",
    "mip",
    "mutual_information",
    "name_a_member",
    "pool_membership",
    "precision",
    "task",
    "true_positive_rate",
]


CapLike: TypeAlias = Cap | float | Iterable[Cap | float]  # a bare number caps membership


def membership(success: float) -> Membership:
    """Nobody may guess any one person's participation with more than this success.

    At sampling rates other than 1/2 the cap is on the *balanced* success: the mean of the rates at which participants
    and others are recognised. Plain accuracy says little there: always guessing the likelier answer is often right.

    Args:
        success: highest probability of a right guess, above 0.5 (a coin flip) and at most 1.

    Returns:
        A cap for `leakcap.plan`.

    Raises:
        CapError: `success` is 0.5 or less, which no release can keep.

    Examples:
        >>> membership(0.55).describe()
        'guess whether a person named in advance took part: at most 55 %'
    """
    if checks.probability(success=success) <= 0.5:
        raise CapError("membership success starts at 0.5 (a coin flip): choose a cap above 0.5, for example 0.55")
    return Membership(float(success))


def mip(eta: float) -> Membership:
    """eta-MIP of the literature: membership success at most 1/2 + `eta`.

    Worlds that were chosen (`design="matched"`, `"central"`, `"cohorts"`, or given as an array) are no random halves:
    the cap is then about the listed worlds only, and the certificate says so.

    Args:
        eta: advantage over a coin flip, above 0 and at most 0.5.

    Returns:
        The same cap as `membership(0.5 + eta)`.

    Raises:
        CapError: `eta` is not above 0 and at most 0.5.
    """
    if not 0 < checks.probability(eta=eta) <= 0.5:
        raise CapError("eta must be above 0 and at most 0.5")
    return Membership(0.5 + float(eta))


def pool_membership(success: float) -> PoolMembership:
    """Nobody, even knowing about everybody else, may guess whether a person is in the data at all with more success.

    For sums over people with declared bounds (`leakcap.stats`, `leakcap.additive`). All rows are used, and the noise
    follows from the bounds alone: it is Gaussian differential privacy, and the certificate says which.

    Args:
        success: highest probability of a right guess, above 0.5 (a coin flip) and below 1.

    Returns:
        A cap for `leakcap.plan`.

    Raises:
        CapError: `success` is 0.5 or less, which no release can keep, or 1, which caps nothing.

    Examples:
        >>> pool_membership(0.55).describe()
        'guess whether a person is in the data at all: at most 55 %'
    """
    if not 0.5 < checks.probability(success=success) < 1:
        raise CapError("pool membership starts at 0.5 (a coin flip) and ends below 1: choose a cap such as 0.55")
    return PoolMembership(float(success))


def name_a_member(success: float) -> NameAMember:
    """Nobody may name a participant of their own choice with more than this success.

    The attacker picks the person after the release. A name picked blindly is right as often as the sampling rate.

    Args:
        success: highest probability that the named person took part, from 0 to 1.

    Returns:
        A cap for `leakcap.plan`.
    """
    return NameAMember(checks.probability(success=success))


def precision(claims: float, at_most: float) -> Precision:
    """Claims "this person took part", made in at least a share `claims` of releases, are right at most this often.

    Args:
        claims: least share of releases in which the attacker makes the claim, above 0 and at most 1.
        at_most: highest share of the claims that are right, from 0 to 1.

    Returns:
        A cap for `leakcap.plan`.

    Raises:
        CapError: `claims` is 0.
    """
    if checks.probability(claims=claims) == 0:
        raise CapError("claims must be above 0: a claim that is never made has no precision")
    return Precision(float(claims), checks.probability(at_most=at_most))


def identification(success: float) -> Identification:
    """Nobody may name the whole secret world with more than this success.

    Args:
        success: highest probability of naming everybody's participation at once, from 0 to 1.

    Returns:
        A cap for `leakcap.plan`.
    """
    return Identification(checks.probability(success=success))


def any_inference(prior: float, success: float) -> AnyInference:
    """No guess of prior success `prior`, whatever it is about, may succeed more often than `success`.

    Args:
        prior: probability of a right guess without the release, above 0 and below 1.
        success: highest probability of a right guess with the release, above `prior` and at most 1.

    Returns:
        A cap for `leakcap.plan`.

    Raises:
        CapError: `success` is not above `prior`.
    """
    checks.fraction(prior=prior)
    if checks.probability(success=success) <= prior:
        raise CapError("success must lie above the prior: an attacker without the release has the prior already")
    return AnyInference(float(prior), float(success))


def mutual_information(nats: float) -> MutualInformation:
    """The release may carry at most this much information about the secret world.

    Args:
        nats: most mutual information, in nats (one nat is 1.44 bits), above 0.

    Returns:
        A cap for `leakcap.plan`.
    """
    return MutualInformation(checks.positive(nats=nats))


def true_positive_rate(fpr: float, at_most: float) -> TruePositiveRate:
    """At a false positive rate `fpr`, at most this share of participants may be recognised, for every person.

    Args:
        fpr: share of the other people whom the attacker accuses, above 0 and below 1.
        at_most: highest share of participants whom the attacker recognises, above `fpr` and at most 1.

    Returns:
        A cap for `leakcap.plan`.

    Raises:
        CapError: `at_most` is not above `fpr`.
    """
    checks.fraction(fpr=fpr)
    if checks.probability(at_most=at_most) <= fpr:
        raise CapError("at_most must lie above fpr: blind accusation already has a true positive rate of fpr")
    return TruePositiveRate(float(fpr), float(at_most))


def task(wins: npt.ArrayLike | Callable[[npt.NDArray[np.bool_]], npt.ArrayLike], success: float) -> Task:
    """The custodian's own criterion: no attacker may win this game more often than `success`.

    Args:
        wins: `(m, guesses)` table; `wins[w, g]` is 1, 0, or the probability with which guess `g` wins in world `w`. For
            worlds that are drawn later: a function of the `(m, n)` masks that returns such a table; for given inputs
            (`plan(fn, inputs=...)`), of the list of inputs.
        success: highest probability that the attacker wins, from 0 to 1.

    Returns:
        A cap for `leakcap.plan`.

    Raises:
        InputError: `wins` is not a table of probabilities.
    """
    checks.probability(success=success)
    if callable(wins):
        return Task(wins, float(success))
    return Task(as_wins(wins), float(success))


def as_wins(wins: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A checked `(m, guesses)` table of winning probabilities."""
    try:
        table = np.asarray(wins, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("wins must be a table of numbers, one row per world and one column per guess") from None
    if table.ndim != 2 or table.size == 0:
        raise InputError("wins must be a table with one row per world and one column per guess")
    if not np.isfinite(table).all() or table.min() < 0 or table.max() > 1:
        raise InputError("wins must hold 0, 1 or probabilities between them")
    return table


def as_caps(cap: CapLike) -> tuple[Cap, ...]:
    """One cap or several, as a tuple.

    Args:
        cap: a cap such as `leakcap.membership(0.55)`, or several in a list; all of them must hold. A bare number caps
            membership.

    Returns:
        The caps, in the order given.

    Raises:
        CapError: `cap` is not a cap, or is an empty list.
    """
    if isinstance(cap, str):
        raise CapError(f"cap must be a number or a cap, such as 0.55, and this is text{checks.meant_by(cap)}")
    given = tuple(cap) if isinstance(cap, Iterable) else (cap,)
    if not given or not all(isinstance(one, (Cap, Real)) and not isinstance(one, bool) for one in given):
        raise CapError("cap must be a cap such as leakcap.membership(0.55), or a list of them")
    return tuple(one if isinstance(one, Cap) else membership(one) for one in given)
