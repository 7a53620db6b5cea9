"""Guarantees of differential privacy (pure, zero-concentrated, Rényi) as success rates and information."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap.convert import _arithmetic
from leakcap.convert._arithmetic import Numbers
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves

__all__ = [
    "dp_identification_failure",
    "dp_mutual_information",
    "from_dp",
    "from_zcdp",
    "gaussian_epsilon",
    "rdp_reconstruction",
    "zcdp_mutual_information",
]


@proves("currency")
def from_dp(
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike = 0.0,
    relation: str = "replace_one",
    sampling: str = "fixed_size",
    rate: npt.ArrayLike = 0.5,
) -> Numbers:
    """Highest success at guessing one person's participation when the release is (epsilon, delta)-DP.

    Replacing one record is the neighbourhood of fixed-size sampling, adding or removing one that of Poisson sampling.
    Under add/remove DP a swap costs (2 epsilon, (1 + e^epsilon) delta).

    Guarantee: `1 - (1-delta)/(1+e^epsilon)` at rate 1/2, against an attacker who knows the pool, when the
    participants are a fresh draw from *all* subsets. It does not hold for a short list of known worlds, whose
    neighbours differ in many people.

    Args:
        epsilon: privacy parameter, at least 0.
        delta: probability with which epsilon may fail, from 0 to 1.
        relation: neighbourhood of the DP claim, "replace_one" or "add_remove".
        sampling: how participants are drawn from the pool, "fixed_size" or "poisson".
        rate: probability with which everybody takes part.

    Returns:
        The bound on the probability of a right guess.

    Raises:
        InputError: replace-one DP with Poisson sampling, since such a mechanism may publish the number of participants.

    Examples:
        >>> round(from_dp(1), 4), round(from_dp(1, relation="add_remove"), 4)
        (0.7311, 0.8808)
    """
    epsilon, delta, rate = np.broadcast_arrays(
        _arithmetic.nonnegative(epsilon=epsilon), _arithmetic.probability(delta=delta), _arithmetic.rate(rate=rate)
    )
    if _swaps(relation, sampling) == 2:
        with np.errstate(over="ignore", invalid="ignore"):
            delta = np.where(delta == 0, 0.0, _arithmetic.up((1 + np.exp(epsilon)) * delta, 1.0))
            epsilon = 2 * epsilon
    test = special.expit(epsilon) + delta * special.expit(-epsilon)
    blind = np.maximum(rate + (1 - rate) * delta, (1 - rate) + rate * delta)
    nothing = (epsilon == 0) & (delta == 0) & (rate == 0.5)
    return _arithmetic.plain(np.where(nothing, 0.5, _arithmetic.up(np.maximum(test, blind), 1.0)))


@proves("currency")
def from_zcdp(rho: npt.ArrayLike, relation: str = "replace_one", sampling: str = "fixed_size") -> Numbers:
    """Highest success at guessing one person's participation, either way as likely, when the release is rho-zCDP.

    Neighbourhoods as in `from_dp`. Under add/remove zCDP a swap costs 4 rho.

    Guarantee: the success `p` with `(2p - 1) log(p/(1-p)) = rho`, rounded up, against the attacker of `from_dp`. It is
    below `1/2 + sqrt(rho/8)`, which Pinsker's inequality gives.

    Args:
        rho: parameter of zero-concentrated DP, at least 0.
        relation: neighbourhood of the claim, "replace_one" or "add_remove".
        sampling: how participants are drawn from the pool, "fixed_size" or "poisson".

    Returns:
        The bound on the probability of a right guess.

    Raises:
        InputError: replace-one zCDP with Poisson sampling.

    Examples:
        >>> round(from_zcdp(0.02), 4), round(from_zcdp(0.02, relation="add_remove"), 4)
        (0.5499, 0.5993)
    """
    each = np.asarray(_arithmetic.nonnegative(rho=rho), dtype=np.float64) * _swaps(relation, sampling) ** 2
    low, high = np.zeros_like(each), np.minimum(np.sqrt(each / 2) * (1 + 2.0**-40), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(64):
            middle = (low + high) / 2
            enough = 2 * middle * np.arctanh(middle) * (1 - 2.0**-45) >= each
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return _arithmetic.plain(np.where(each == 0, 0.5, _arithmetic.up(0.5 + high / 2, 1.0)))


@proves("pool")
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Least epsilon at which mu-Gaussian differential privacy is (epsilon, delta)-differential privacy; rounded up.

    Guarantee: whatever is told apart no better than two normal laws at distance `mu` is (epsilon, delta)-private.

    Args:
        mu: distance of the two normal laws, in deviations, at least 0.
        delta: probability with which epsilon may fail, above 0 and below 1.

    Returns:
        Epsilon, for the same neighbours as those of `mu`.

    Examples:
        >>> gaussian_epsilon(1, 1e-5) < 4.38
        True
    """
    checks.nonnegative(mu=mu)
    checks.fraction(delta=delta)
    if mu == 0:
        return 0.0

    def excess(epsilon: float) -> float:
        tail = special.log_ndtr(-epsilon / mu - mu / 2) + epsilon
        return float(special.ndtr(-epsilon / mu + mu / 2) - np.exp(tail))

    low, high = 0.0, mu * mu / 2 + mu * float(-special.ndtri(delta)) + 1.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > delta * (1 - 1e-9) else (low, middle)
    return high * (1 + 1e-9)


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

    Args:
        epsilon: privacy parameter, at least 0.
        rate: probability with which everybody takes part.
        relation: neighbourhood of the DP claim, "replace_one" or "add_remove".
        sampling: how participants are drawn from the pool, "fixed_size" or "poisson".

    Returns:
        The lower bound on the probability of a wrong claim.

    Raises:
        InputError: replace-one DP with Poisson sampling.

    Examples:
        >>> round(dp_identification_failure(1, rate=0.02), 4)
        0.9474
    """
    epsilon, rate = np.broadcast_arrays(_arithmetic.nonnegative(epsilon=epsilon), _arithmetic.rate(rate=rate))
    with np.errstate(over="ignore"):
        return _arithmetic.plain(
            _arithmetic.down((1 - rate) / ((1 - rate) + rate * np.exp(_swaps(relation, sampling) * epsilon)))
        )


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

    Args:
        epsilon: privacy parameter, at least 0.
        n: number of records.

    Returns:
        The bound, in nats.

    Examples:
        >>> round(dp_mutual_information(0.01, 100), 4)
        0.1233
    """
    each, count = np.broadcast_arrays(_arithmetic.nonnegative(epsilon=epsilon), _arithmetic.counts(n=n))
    total = _arithmetic.up(each * count)
    # Differs from the paper (e^2/2, after Corollary 1): at most e^2/8, which also serves where k - 1 cancels.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        k = total / -np.expm1(-total)
        exact = k - 1 - np.log(k) + 2.0**-48 * k
        return _arithmetic.plain(np.where(each == 0, 0.0, np.fmin(exact, _arithmetic.up(total * total / 8))))


@proves("currency")
def zcdp_mutual_information(xi: npt.ArrayLike, n: npt.ArrayLike) -> Numbers:
    """Nats that a replace-one xi-zCDP release of `n` *independent* records carries about them.

    Guarantee: `n xi`, if the records are independent of each other. The members of a random half are not.

    Args:
        xi: parameter of zero-concentrated DP, at least 0.
        n: number of records.

    Returns:
        The bound, in nats.

    Examples:
        >>> round(zcdp_mutual_information(0.001, 100), 6)
        0.1
    """
    each, count = np.broadcast_arrays(_arithmetic.nonnegative(xi=xi), _arithmetic.counts(n=n))
    return _arithmetic.plain(np.where(each == 0, 0.0, _arithmetic.up(each * count)))


@proves("currency")
def rdp_reconstruction(prior: npt.ArrayLike, epsilon: npt.ArrayLike, alpha: npt.ArrayLike) -> Numbers:
    """Highest success at reconstructing one record when the release is replace-one (alpha, epsilon)-Renyi DP.

    Guarantee: `(prior e^epsilon)^((alpha-1)/alpha)`, against an attacker who knows all other records; `prior` is the
    best success without the release (Balle, Cherubin and Hayes 2022). `alpha` may be infinite: pure DP.

    Args:
        prior: probability of the best guess without the release.
        epsilon: privacy parameter, at least 0.
        alpha: order of the Renyi divergence, above 1; infinite for pure DP.

    Returns:
        The bound on the probability of a right guess with the release.

    Examples:
        >>> round(rdp_reconstruction(1e-6, epsilon=2, alpha=8), 8)
        3.236e-05
    """
    prior, epsilon, alpha = np.broadcast_arrays(
        _arithmetic.prior(prior=prior), _arithmetic.nonnegative(epsilon=epsilon), _arithmetic.order(alpha=alpha)
    )
    exponent = (np.log(prior) + epsilon) * (1 - 1 / alpha)
    margin = 2.0**-50 * (8 - np.log(prior) + epsilon)
    return _arithmetic.plain(_arithmetic.up(np.exp(np.minimum(exponent + margin, 0.0)), 1.0))
