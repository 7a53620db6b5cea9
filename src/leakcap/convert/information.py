"""Mutual information and success rates, each in terms of the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap.convert import _arithmetic
from leakcap.convert._arithmetic import FloatArray, Numbers
from leakcap.errors import InputError
from leakcap.ground.proofs import proves

__all__ = [
    "generalisation",
    "membership",
    "mutual_information",
    "name_a_member",
    "posterior",
    "posterior_f",
    "precision",
    "true_positive_rate",
]


Divergence: TypeAlias = str | Callable[[FloatArray], npt.ArrayLike]
ValueAndSlope: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@proves("currency")
def posterior(mi: npt.ArrayLike, prior: npt.ArrayLike) -> Numbers:
    """Highest success of any inference whose success without the release is `prior`.

    Guarantee: against every attacker, for every criterion of success, if the release carries at most `mi` nats about
    the secret (PAC Privacy, Theorem 1). The root of KL(Bern(a) || Bern(prior)) = mi, rounded up.

    Args:
        mi: mutual information between release and secret, in nats, at least 0.
        prior: probability of a right guess without the release.

    Returns:
        The bound on the probability of a right guess with the release.

    Examples:
        >>> round(posterior(1, 0.01), 5)
        0.35729
    """
    mi, prior = np.broadcast_arrays(_arithmetic.nonnegative(mi=mi), _arithmetic.prior(prior=prior))
    return _posterior(mi, prior) if mi.ndim else _one_posterior(float(mi), float(prior))


def _posterior(mi: FloatArray, prior: FloatArray) -> FloatArray:
    base = np.maximum(prior, _arithmetic.TINY)
    rest = 1 - base

    def off(a: FloatArray) -> tuple[FloatArray, FloatArray]:
        up, down = np.log1p((a - base) / base), np.log1p((base - a) / rest)
        return a * up + (1 - a) * down - mi, up - down

    success = _arithmetic.root_above(
        lambda a: _arithmetic.at_least(_arithmetic.bernoulli(a - base, base, rest)),
        base,
        1.0,
        mi,
        near=_guessed(off, base, base + np.sqrt(mi / 2)),
    )
    return np.where(mi == 0, prior, success)


def _guessed(off: ValueAndSlope, low: FloatArray, high: FloatArray) -> FloatArray:
    """About the root of a convex function: Newton's way, from above."""
    found = np.minimum(high, 1 - 2.0**-53)
    with np.errstate(all="ignore"):
        for _ in range(6):
            value, slope = off(found)
            found = found - np.where(slope > 0, value / slope, 0.0)
            found = np.clip(np.where(np.isfinite(found), found, low), low, 1.0)
    return found


@lru_cache(maxsize=4096)  # every page of a certificate and every search asks for the same roots again
def _one_posterior(mi: float, prior: float) -> float:
    return float(_posterior(np.asarray(mi), np.asarray(prior)))


@proves("currency")
def mutual_information(posterior: npt.ArrayLike, prior: npt.ArrayLike) -> Numbers:
    """Nats that a release may carry so that a guess of this prior succeeds at most with probability `posterior`.

    Guarantee: `convert.posterior` of the result is never above the posterior given here. The result is
    KL(Bern(posterior) || Bern(prior)), rounded down.

    Args:
        posterior: highest allowed probability of a right guess, at least `prior`.
        prior: probability of a right guess without the release.

    Returns:
        The budget, in nats.

    Raises:
        InputError: `posterior` lies below `prior`.

    Examples:
        >>> round(mutual_information(0.55, 0.5), 6)
        0.005008
    """
    success, prior = np.broadcast_arrays(_arithmetic.probability(posterior=posterior), _arithmetic.prior(prior=prior))
    if (success < prior).any():
        raise InputError("posterior must not lie below the prior: an attacker has the prior without any release")
    base = np.maximum(prior, _arithmetic.TINY)
    return _arithmetic.plain(
        _arithmetic.budget(_arithmetic.bernoulli(np.maximum(success, base) - base, base, 1 - base))
    )


@proves("currency")
def membership(mi: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest success at guessing whether one person, named in advance, took part.

    Guarantee: if the release carries at most `mi` nats about that person's participation (or about the whole secret)
    and everybody takes part with probability `rate`. Away from rate 1/2 plain success is blind: see `precision` and
    `true_positive_rate`.

    Args:
        mi: mutual information, in nats, at least 0.
        rate: probability with which everybody takes part.

    Returns:
        The bound on the probability of a right guess.

    Examples:
        >>> round(membership(1 / 4), 4)
        0.8379
    """
    rate = _arithmetic.rate(rate=rate)
    other = 1 - rate
    other = np.where(1 - other > rate, np.nextafter(other, 1.0), other)  # the exact 1 - rate, or just above it
    return posterior(mi, np.maximum(rate, other))


@proves("currency")
def name_a_member(mi: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest success at naming somebody who took part, where the attacker picks the person after the release.

    Guarantee: if the release carries at most `mi` nats about the *whole* secret; information about one person's
    participation is not enough. Everybody takes part with probability `rate`, and the attacker must always name one.

    Args:
        mi: mutual information between release and secret, in nats, at least 0.
        rate: probability with which everybody takes part.

    Returns:
        The bound on the probability that the named person took part.

    Examples:
        >>> round(name_a_member(0.5, rate=0.02), 4)
        0.2742
    """
    return posterior(mi, _arithmetic.rate(rate=rate))


@proves("currency")
def precision(mi: npt.ArrayLike, claims: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest share of right ones among claims "this person took part", made in at least a share `claims` of releases.

    Guarantee: for one person named in advance, if the release carries at most `mi` nats about that person's
    participation, whose prior is `rate`. The claim is a bit of the attacker's making, so its information about the
    participation is at most `mi`; that constraint is solved exactly and an attacker attains it. Rare claims may be
    certain: this is *not* `posterior(mi, rate)`.

    Args:
        mi: mutual information, in nats, at least 0.
        claims: least share of releases in which the attacker makes the claim.
        rate: probability with which everybody takes part.

    Returns:
        The bound on the share of claims that are right.

    Examples:
        >>> round(precision(0.01, claims=0.02, rate=0.02), 4)
        0.2626
    """
    mi, claims, rate = np.broadcast_arrays(
        _arithmetic.nonnegative(mi=mi), _arithmetic.prior(claims=claims), _arithmetic.rate(rate=rate)
    )
    silent = np.where(claims < 1, 1 - claims, 1.0)
    # Right claims are no more frequent than participation: claims * precision <= rate.
    most = np.where(rate < claims, _arithmetic.up(rate / claims, 1.0), 1.0)
    most = np.where(claims == 1, rate, most)

    def information(right: FloatArray) -> FloatArray:
        rise = right - rate
        return _arithmetic.at_least(_arithmetic.channel(claims, rise, claims * rise / silent, base=rate, rest=1 - rate))

    return _arithmetic.plain(_arithmetic.root_above(information, rate, most, mi))


@proves("currency")
def true_positive_rate(mi: npt.ArrayLike, fpr: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest share of participants that a test recognises while it accuses at most a share `fpr` of the others.

    Guarantee: for one person named in advance, if the release carries at most `mi` nats about that person's
    participation, whose prior is `rate`. The information of the binary channel is solved exactly, so some release
    with that information attains the bound.

    Args:
        mi: mutual information, in nats, at least 0.
        fpr: false positive rate, from 0 to 1.
        rate: probability with which everybody takes part.

    Returns:
        The bound on the true positive rate.

    Examples:
        >>> round(true_positive_rate(0.01, fpr=0.001), 4)
        0.034
    """
    mi, fpr, rate = np.broadcast_arrays(
        _arithmetic.nonnegative(mi=mi), _arithmetic.probability(fpr=fpr), _arithmetic.rate(rate=rate)
    )
    return _recognised(mi, fpr, rate) if mi.ndim else _one_recognised(float(mi), float(fpr), float(rate))


def _recognised(mi: FloatArray, fpr: FloatArray, rate: FloatArray) -> FloatArray:
    def information(tpr: FloatArray) -> FloatArray:
        gap = tpr - fpr
        positive, negative = fpr + rate * gap, (1 - tpr) + (1 - rate) * gap
        return _arithmetic.at_least(
            _arithmetic.channel(rate, (1 - rate) * gap, rate * gap, base=positive, rest=negative)
        )

    def off(tpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        gap = tpr - fpr
        positive, negative = fpr + rate * gap, (1 - tpr) + (1 - rate) * gap
        up, down = np.log1p((1 - rate) * gap / positive), np.log1p((rate - 1) * gap / negative)
        other = special.xlog1py(fpr, -rate * gap / positive) + special.xlog1py(1 - fpr, rate * gap / negative)
        return rate * (tpr * up + (1 - tpr) * down) + (1 - rate) * other - mi, rate * (up - down)

    near = _guessed(off, fpr, fpr + np.sqrt(mi / (2 * rate * (1 - rate))))
    return _arithmetic.root_above(information, fpr, 1.0, mi, near=near)


@lru_cache(maxsize=4096)
def _one_recognised(mi: float, fpr: float, rate: float) -> float:
    return float(_recognised(np.asarray(mi), np.asarray(fpr), np.asarray(rate)))


@proves("currency")
def posterior_f(divergence: npt.ArrayLike, prior: npt.ArrayLike, f: Divergence) -> Numbers:
    """Highest success of any inference of this prior, from an f-divergence instead of mutual information.

    Guarantee: if D_f(law of secret and release || law of the secret x any fixed law) is at most `divergence` (PAC
    Privacy, Theorem 1). Rounded up; for a function of your own provided it is accurate to about 1e-14.

    Args:
        divergence: bound on the f-divergence, at least 0 (in nats for "kl").
        prior: probability of a right guess without the release.
        f: "kl", "tv" (total variation, at most 1), "chi2", "hellinger" (squared, `1 - sum sqrt(pq)`), or a convex
            function with f(1) = 0 that works on arrays of positive numbers.

    Returns:
        The bound on the probability of a right guess with the release.

    Raises:
        InputError: `f` is neither one of these names nor a function.

    Examples:
        >>> posterior_f(0.04, 0.5, "chi2") < 0.6000001
        True
    """
    limit, prior = np.broadcast_arrays(_arithmetic.nonnegative(divergence=divergence), _arithmetic.prior(prior=prior))
    rest = 1 - prior
    if f == "kl":
        return posterior(limit, prior)
    if f == "tv":
        success = prior + limit
    elif f == "chi2":
        success = prior + np.sqrt(limit) * np.sqrt(prior * rest)
    elif f == "hellinger":  # with prior = sin^2 of an angle, the distance is 1 - cos of the turn
        angle = np.arctan2(np.sqrt(prior), np.sqrt(rest)) + 2 * np.arcsin(np.sqrt(np.minimum(limit, 1) / 2))
        success = np.sin(np.minimum(angle, np.pi / 2)) ** 2
    elif callable(f):
        return _arithmetic.plain(_arithmetic.root_f(limit, prior, f))
    else:
        raise InputError("f must be 'kl', 'tv', 'chi2', 'hellinger' or a convex function with f(1) = 0")
    return _arithmetic.plain(np.where(limit == 0, prior, _arithmetic.up(success, 1.0)))


@proves("currency")
def generalisation(mi: npt.ArrayLike) -> Numbers:
    """Largest gap between expected loss on fresh data and on the data used, for losses from 0 to 1.

    Guarantee: `sqrt(mi/2)`, when the release carries at most `mi` nats about the data.
    Differs from the paper: Theorem 10 of PAC Privacy claims it from the identification success, which is too little.

    Args:
        mi: mutual information between release and data, in nats, at least 0.

    Returns:
        The bound on the gap, from 0 to 1.

    Examples:
        >>> round(generalisation(0.02), 4)
        0.1
    """
    mi = _arithmetic.nonnegative(mi=mi)
    return _arithmetic.plain(np.where(mi == 0, 0.0, _arithmetic.up(np.sqrt(mi / 2), 1.0)))
