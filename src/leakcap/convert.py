"""Mutual information, success rates and DP parameters, each in terms of the others.

Arguments broadcast; plain numbers give a plain float. Information is in nats. What bounds an attacker from above is
rounded up, budgets and failure rates are rounded down. Proofs: `docs/proofs/currency.md`.

A prior is the success of the best guess *without* the release, for an attacker who knows pool and worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap import _kl, checks
from leakcap._kl import FloatArray, Numbers
from leakcap.errors import InputError
from leakcap.proofs import proves

__all__ = [
    "agreement_prior",
    "bits_right",
    "dp_identification_failure",
    "dp_mutual_information",
    "from_dp",
    "generalisation",
    "membership",
    "mutual_information",
    "name_a_member",
    "posterior",
    "posterior_f",
    "precision",
    "rdp_reconstruction",
    "true_positive_rate",
    "zcdp_mutual_information",
]

Divergence: TypeAlias = str | Callable[[FloatArray], npt.ArrayLike]

_CELLS = 2**24  # of a table held at once; sums of so many signs are still exact in float32


@proves("currency")
def posterior(mi: npt.ArrayLike, prior: npt.ArrayLike) -> Numbers:
    """Highest success of any inference whose success without the release is `prior`.

    Guarantee: against every attacker, for every criterion of success, if the release carries at most `mi` nats about
    the secret (PAC Privacy, Theorem 1). The root of KL(Bern(a) || Bern(prior)) = mi, rounded up.

    >>> round(posterior(1, 0.01), 5)
    0.35729
    """
    mi, prior = np.broadcast_arrays(_kl.nonnegative(mi=mi), _kl.prior(prior=prior))
    base = np.maximum(prior, _kl.TINY)
    success = _kl.root_above(lambda a: _kl.at_least(_kl.bernoulli(a - base, base, 1 - base)), base, 1.0, mi)
    return _kl.plain(np.where(mi == 0, prior, success))


@proves("currency")
def mutual_information(posterior: npt.ArrayLike, prior: npt.ArrayLike) -> Numbers:
    """Nats a release may carry so that a guess of this prior succeeds at most with `posterior`.

    Guarantee: `convert.posterior` of the result is never above the posterior given here. The result is
    KL(Bern(posterior) || Bern(prior)), rounded down.

    >>> round(mutual_information(0.55, 0.5), 6)
    0.005008
    """
    success, prior = np.broadcast_arrays(_kl.probability(posterior=posterior), _kl.prior(prior=prior))
    if (success < prior).any():
        raise InputError("posterior must not lie below the prior: an attacker has the prior without any release")
    base = np.maximum(prior, _kl.TINY)
    return _kl.plain(_kl.budget(_kl.bernoulli(np.maximum(success, base) - base, base, 1 - base)))


@proves("currency")
def membership(mi: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest success at guessing whether one person, named in advance, took part.

    Guarantee: if the release carries at most `mi` nats about that person's participation (or about the whole secret)
    and everybody takes part with probability `rate`. Away from rate 1/2 plain success is blind: see `precision` and
    `true_positive_rate`.

    >>> round(membership(1 / 4), 4)
    0.8379
    """
    rate = _kl.rate(rate=rate)
    other = 1 - rate
    other = np.where(1 - other > rate, np.nextafter(other, 1.0), other)  # the exact 1 - rate, or just above it
    return posterior(mi, np.maximum(rate, other))


@proves("currency")
def name_a_member(mi: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest success at naming somebody who took part, where the attacker picks the person after the release.

    Guarantee: if the release carries at most `mi` nats about the *whole* secret; information about one person's
    participation is not enough. Everybody takes part with probability `rate`, and the attacker must always name one.

    >>> round(name_a_member(0.5, rate=0.02), 4)
    0.2742
    """
    return posterior(mi, _kl.rate(rate=rate))


@proves("currency")
def precision(mi: npt.ArrayLike, claims: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest share of right ones among claims "this person took part", made in at least a share `claims` of releases.

    Guarantee: for one person named in advance, if the release carries at most `mi` nats about that person's
    participation, whose prior is `rate`. The claim is a bit of the attacker's making, so its information about the
    participation is at most `mi`; that constraint is solved exactly and an attacker attains it. Rare claims may be
    certain: this is *not* `posterior(mi, rate)`.

    >>> round(precision(0.01, claims=0.02, rate=0.02), 4)
    0.2626
    """
    mi, claims, rate = np.broadcast_arrays(_kl.nonnegative(mi=mi), _kl.prior(claims=claims), _kl.rate(rate=rate))
    silent = np.where(claims < 1, 1 - claims, 1.0)
    # Right claims are no more frequent than participation: claims * precision <= rate.
    most = np.where(rate < claims, _kl.up(rate / claims, 1.0), 1.0)
    most = np.where(claims == 1, rate, most)

    def information(right: FloatArray) -> FloatArray:
        rise = right - rate
        return _kl.at_least(_kl.channel(claims, rise, claims * rise / silent, rate, 1 - rate))

    return _kl.plain(_kl.root_above(information, rate, most, mi))


@proves("currency")
def true_positive_rate(mi: npt.ArrayLike, fpr: npt.ArrayLike, rate: npt.ArrayLike = 0.5) -> Numbers:
    """Highest share of participants that a test recognises while it accuses at most a share `fpr` of the others.

    Guarantee: for one person named in advance, if the release carries at most `mi` nats about that person's
    participation, whose prior is `rate`. The information of the binary channel is solved exactly, so some release
    with that information attains the bound.

    >>> round(true_positive_rate(0.01, fpr=0.001), 4)
    0.034
    """
    mi, fpr, rate = np.broadcast_arrays(_kl.nonnegative(mi=mi), _kl.probability(fpr=fpr), _kl.rate(rate=rate))

    def information(tpr: FloatArray) -> FloatArray:
        gap = tpr - fpr
        positive, negative = fpr + rate * gap, (1 - tpr) + (1 - rate) * gap
        return _kl.at_least(_kl.channel(rate, (1 - rate) * gap, rate * gap, positive, negative))

    return _kl.plain(_kl.root_above(information, fpr, 1.0, mi))


@proves("currency")
def posterior_f(divergence: npt.ArrayLike, prior: npt.ArrayLike, f: Divergence) -> Numbers:
    """Highest success of any inference of this prior, from an f-divergence instead of mutual information.

    `f` is "kl", "tv" (total variation, at most 1), "chi2", "hellinger" (squared, `1 - sum sqrt(pq)`), or a convex
    function with f(1) = 0 that works on arrays of positive numbers.

    Guarantee: if D_f(law of secret and release || law of the secret x any fixed law) is at most `divergence` (PAC
    Privacy, Theorem 1). Rounded up; for a function of your own provided it is accurate to about 1e-14.

    >>> posterior_f(0.04, 0.5, "chi2") < 0.6000001
    True
    """
    limit, prior = np.broadcast_arrays(_kl.nonnegative(divergence=divergence), _kl.prior(prior=prior))
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
        return _kl.plain(_kl.root_f(limit, prior, f))
    else:
        raise InputError("f must be 'kl', 'tv', 'chi2', 'hellinger' or a convex function with f(1) = 0")
    return _kl.plain(np.where(limit == 0, prior, _kl.up(success, 1.0)))


@proves("currency")
def from_dp(
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike = 0.0,
    relation: str = "replace_one",
    sampling: str = "fixed_size",
    rate: npt.ArrayLike = 0.5,
) -> Numbers:
    """Highest success at guessing one person's participation when the release is (epsilon, delta)-DP.

    `relation` is the neighbourhood of the DP claim, `sampling` how participants are drawn from the pool. Replacing
    one record is the neighbourhood of fixed-size sampling, adding or removing one that of Poisson sampling. Under
    add/remove DP a swap costs (2 epsilon, (1 + e^epsilon) delta). Replace-one DP with Poisson sampling is refused:
    such a mechanism may publish the number of participants.

    Guarantee: `1 - (1-delta)/(1+e^epsilon)` at rate 1/2, against an attacker who knows the pool, when the
    participants are a fresh draw from *all* subsets. It does not hold for a short list of known worlds, whose
    neighbours differ in many people.

    >>> round(from_dp(1), 4), round(from_dp(1, relation="add_remove"), 4)
    (0.7311, 0.8808)
    """
    epsilon, delta, rate = np.broadcast_arrays(
        _kl.nonnegative(epsilon=epsilon), _kl.probability(delta=delta), _kl.rate(rate=rate)
    )
    if _swaps(relation, sampling) == 2:
        with np.errstate(over="ignore", invalid="ignore"):
            delta = np.where(delta == 0, 0.0, _kl.up((1 + np.exp(epsilon)) * delta, 1.0))
            epsilon = 2 * epsilon
    test = special.expit(epsilon) + delta * special.expit(-epsilon)
    blind = np.maximum(rate + (1 - rate) * delta, (1 - rate) + rate * delta)
    nothing = (epsilon == 0) & (delta == 0) & (rate == 0.5)
    return _kl.plain(np.where(nothing, 0.5, _kl.up(np.maximum(test, blind), 1.0)))


@proves("currency")
def dp_identification_failure(
    epsilon: npt.ArrayLike,
    rate: npt.ArrayLike = 0.5,
    relation: str = "replace_one",
    sampling: str = "fixed_size",
) -> Numbers:
    """Lowest probability that a claim "this person took part" is wrong when the release is epsilon-DP.

    Guarantee: for every release and every claim made after it, `(1-q)e^-eps / (q + (1-q)e^-eps)` at prior q = `rate`,
    rounded down; neighbourhoods and attacker as in `from_dp`.

    >>> round(dp_identification_failure(1, rate=0.02), 4)
    0.9474
    """
    epsilon, rate = np.broadcast_arrays(_kl.nonnegative(epsilon=epsilon), _kl.rate(rate=rate))
    with np.errstate(over="ignore"):
        return _kl.plain(_kl.down((1 - rate) / ((1 - rate) + rate * np.exp(_swaps(relation, sampling) * epsilon))))


def _swaps(relation: str, sampling: str) -> int:
    """How many neighbouring steps lie between a draw with a person and the same draw without."""
    checks.choice(("replace_one", "add_remove"), relation=relation)
    checks.choice(("fixed_size", "poisson"), sampling=sampling)
    if (relation, sampling) == ("replace_one", "poisson"):
        raise InputError(
            "replace-one DP says nothing about data sets of different sizes, so it bounds nothing under Poisson "
            "sampling: use an add/remove guarantee, or sample a fixed size"
        )
    return 2 if (relation, sampling) == ("add_remove", "fixed_size") else 1


@proves("currency")
def dp_mutual_information(epsilon: npt.ArrayLike, n: npt.ArrayLike) -> Numbers:
    """Nats that a replace-one epsilon-DP release of `n` records carries about them.

    Guarantee: for any law of the records, however dependent. With e = n epsilon and k = e/(1 - exp(-e)) the bound is
    `k - 1 - log k`, rounded up: the largest information under that likelihood ratio.

    >>> round(dp_mutual_information(0.01, 100), 4)
    0.1233
    """
    each, count = np.broadcast_arrays(_kl.nonnegative(epsilon=epsilon), _kl.counts(n=n))
    total = _kl.up(each * count)
    # Differs from the paper (e^2/2, after Corollary 1): at most e^2/8, which also serves where k - 1 cancels.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        k = total / -np.expm1(-total)
        exact = k - 1 - np.log(k) + 2.0**-48 * k
        return _kl.plain(np.where(each == 0, 0.0, np.fmin(exact, _kl.up(total * total / 8))))


@proves("currency")
def zcdp_mutual_information(xi: npt.ArrayLike, n: npt.ArrayLike) -> Numbers:
    """Nats that a replace-one xi-zCDP release of `n` *independent* records carries about them.

    Guarantee: `n xi`, if the records are independent of each other. The members of a random half are not.

    >>> round(zcdp_mutual_information(0.001, 100), 6)
    0.1
    """
    each, count = np.broadcast_arrays(_kl.nonnegative(xi=xi), _kl.counts(n=n))
    return _kl.plain(np.where(each == 0, 0.0, _kl.up(each * count)))


@proves("currency")
def rdp_reconstruction(prior: npt.ArrayLike, epsilon: npt.ArrayLike, alpha: npt.ArrayLike) -> Numbers:
    """Highest success at reconstructing one record when the release is replace-one (alpha, epsilon)-Renyi DP.

    Guarantee: `(prior e^epsilon)^((alpha-1)/alpha)`, against an attacker who knows all other records; `prior` is the
    best success without the release (Balle, Cherubin and Hayes 2022). `alpha` may be infinite: pure DP.

    >>> round(rdp_reconstruction(1e-6, epsilon=2, alpha=8), 8)
    3.236e-05
    """
    prior, epsilon, alpha = np.broadcast_arrays(
        _kl.prior(prior=prior), _kl.nonnegative(epsilon=epsilon), _kl.order(alpha=alpha)
    )
    exponent = (np.log(prior) + epsilon) * (1 - 1 / alpha)
    margin = 2.0**-50 * (8 - np.log(prior) + epsilon)
    return _kl.plain(_kl.up(np.exp(np.minimum(exponent + margin, 0.0)), 1.0))


@proves("currency")
def generalisation(mi: npt.ArrayLike) -> Numbers:
    """Largest gap between expected loss on fresh data and on the data used, for losses from 0 to 1.

    Guarantee: `sqrt(mi/2)`, when the release carries at most `mi` nats about the data.
    Differs from the paper: Theorem 10 of PAC Privacy claims it from the identification success, which is too little.

    >>> round(generalisation(0.02), 4)
    0.1
    """
    mi = _kl.nonnegative(mi=mi)
    return _kl.plain(np.where(mi == 0, 0.0, _kl.up(np.sqrt(mi / 2), 1.0)))


@proves("currency")
def bits_right(n: npt.ArrayLike, k: npt.ArrayLike, design: str = "independent") -> Numbers:
    """Prior of guessing at least `k` of `n` participation bits right; `posterior(mi, ...)` of it bounds the rest.

    `design` is "independent" (fair coins) or "half" (a uniform half; for odd `n` both sizes are equally likely).

    Guarantee: no guess does better without the release, whatever its size. Among halves a guess of n/2 people is not
    always best: its score has the parity of n, so an odd `k` is easier with one person less.

    >>> round(posterior(1, bits_right(100, 70)), 4)
    0.1381
    """
    n, k = np.broadcast_arrays(_kl.counts(n=n), _kl.counts(0, k=k))
    if (k > n).any():
        raise InputError("k must not exceed n: there are only n bits")
    prior = {"independent": _coins_right, "half": _half_right}[checks.choice(("independent", "half"), design=design)]
    return _kl.plain(np.vectorize(prior, otypes=[np.float64])(n, k))


def _coins_right(n: int, k: int) -> float:
    return _kl.sum_up(n, _kl.log_comb(n, np.arange(k, n + 1)) - n * math.log(2))


def _half_right(n: int, k: int) -> float:
    half = n // 2
    if k <= half:
        return 1.0  # "nobody took part" has at least n // 2 bits right
    if n % 2:
        return min(1.0, (_sets_right(n, half, half, k) + _sets_right(n, half + 1, half, k)) / 2)
    return max(_sets_right(n, half, half, k), _sets_right(n, half, half - 1, k))


def _sets_right(n: int, size: int, guess: int, k: int) -> float:
    """Probability that a guess of `guess` people agrees with a uniform set of `size` in at least `k` of `n` bits."""
    least = max(0, size + guess - n, -((n - size - guess - k) // 2))  # agreement = n - size - guess + 2 common
    common = np.arange(least, min(size, guess) + 1)
    ways = _kl.log_comb(guess, common) + _kl.log_comb(n - guess, size - common) - _kl.log_comb(n, np.asarray(size))
    return _kl.sum_up(n, ways)


@proves("currency")
def agreement_prior(masks: npt.ArrayLike, k: npt.ArrayLike) -> Numbers:
    """Prior of guessing at least `k` participation bits right when the worlds are the rows of `masks`.

    Guarantee: no guess, world or not, does better without the release. Two worlds that share a winning guess agree
    in at least 2k - n bits: the largest such neighbourhood of a world, over the number of worlds, is safe.

    >>> agreement_prior([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], 4)
    0.25
    """
    table = np.asarray(masks)
    if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "biuf" or ((table != 0) & (table != 1)).any():
        raise InputError("masks must be a table of 0 and 1 with one row per world and one column per unit")
    table = table.astype(bool)
    m, n = table.shape
    k = _kl.counts(0, k=k)
    if (k > n).any():
        raise InputError("k must not exceed the number of units")
    step = max(1, _CELLS // m)
    counts = np.zeros(k.shape, dtype=np.int64)
    for top in range(0, m, step):
        signed = np.zeros((min(step, m - top), m))  # agreements minus disagreements, whole numbers: exact
        for left in range(0, n, step):
            tile = np.where(table[:, left : left + step], np.float32(1), np.float32(-1))
            signed += tile[top : top + step] @ tile.T
        for place in np.ndindex(k.shape):
            near = np.count_nonzero(signed >= 4 * k[place] - 3 * n, axis=1).max()
            counts[place] = max(counts[place], near)
    return _kl.plain(np.vectorize(_kl.ratio_up, otypes=[np.float64])(counts, m))
