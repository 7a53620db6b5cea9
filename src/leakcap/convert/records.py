"""One record that was drawn from a law: how well it is guessed from what a release tells about all of them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from leakcap.convert import _arithmetic
from leakcap.convert._arithmetic import Numbers
from leakcap.convert.information import posterior
from leakcap.errors import InputError
from leakcap.ground.proofs import proves

__all__ = ["each_record", "one_record"]

TOLERANCE = 1e-6  # by which a law may miss 1


@proves("currency")
def one_record(mi: npt.ArrayLike, law: npt.ArrayLike) -> Numbers:
    """Highest success at naming one record that was drawn from a known law (PAC Privacy, Definition 6).

    Guarantee: against every attacker who knows the law and the mechanism, whatever the other records are and however
    they depend on this one, if the release carries at most `mi` nats about *this record*. What it carries about all
    records together is no less, so that figure may be given, too.

    Args:
        mi: mutual information between the release and the record, in nats.
        law: the probability of each value that the record may have; they add up to 1 within a millionth.

    Returns:
        The bound on the probability of a right guess.

    Raises:
        InputError: `law` is no list of probabilities that add up to 1.

    Examples:
        >>> round(one_record(1, [0.01] * 100), 5)
        0.35729
    """
    try:
        chances = np.asarray(law, dtype=np.float64)
    except (TypeError, ValueError):
        chances = np.empty(0)
    if chances.ndim != 1 or not chances.size or not ((chances >= 0) & (chances <= 1)).all():
        raise InputError("law must be a list of probabilities, one for each value that the record may have")
    total = math.fsum(chances)
    if abs(total - 1) > TOLERANCE:
        raise InputError("law must add up to 1, within a millionth: divide it by its sum")
    return posterior(mi, float(_arithmetic.up(chances.max() / total, 1.0)))


@proves("currency")
def each_record(mi: npt.ArrayLike, prior: npt.ArrayLike, n: int) -> Numbers:
    """Highest success at guessing any one of `n` records, drawn independently from one law (PAC Privacy, Theorem 2).

    Guarantee: for records that are independent and of one law, and a mechanism that does not care for their order, if
    the release carries at most `mi` nats about all of them together. A mechanism that does care: on average over the
    records. A random half of a pool is *not* of this kind: its records are drawn without replacement.

    Args:
        mi: mutual information between the release and all records, in nats.
        prior: probability of a right guess at one record without the release.
        n: number of records.

    Returns:
        The bound on the probability of a right guess, at most that for a single record.

    Raises:
        InputError: an argument is out of range.

    Examples:
        >>> [round(each_record(1, 0.01, n), 5) for n in (1, 10, 50)]
        [0.35729, 0.14892, 0.0679]
    """
    count = int(_arithmetic.counts(n=n))
    mi, prior = np.broadcast_arrays(_arithmetic.nonnegative(mi=mi), _arithmetic.prior(prior=prior))
    return _arithmetic.plain(np.vectorize(_each, otypes=[np.float64])(mi, prior, count))


def _each(mi: float, prior: float, n: int) -> float:
    """The mean over j of the bound on guessing j records or more, whose prior is binomial."""
    tails = np.array([_at_least(n, j, prior) for j in range(1, n + 1)])
    mean = float(_arithmetic.up(np.asarray(np.mean(posterior(mi, tails)) * (1 + n * 2.0**-52)), 1.0))
    return min(mean, float(posterior(mi, prior)))


def _at_least(n: int, j: int, p: float) -> float:
    """The chance that j or more of n independent guesses of chance p are right, rounded up."""
    if p == 1:
        return 1.0
    right = np.arange(j, n + 1)
    logs = _arithmetic.log_comb(n, right) + right * math.log(p) + (n - right) * math.log1p(-p)
    margin = 2.0**-47 * n * (1 - math.log(p) - math.log1p(-p))
    return min(1.0, _arithmetic.sum_up(n, logs) * (1 + margin))
