"""Bounds of several releases, and of all releases that somebody might make: numbers in, numbers out."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from leakcap.convert import _arithmetic
from leakcap.convert._arithmetic import Numbers
from leakcap.convert.information import posterior
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves

__all__ = ["add_up", "worst_case_noise"]


@proves("composition")
def add_up(mi: npt.ArrayLike, gamma: npt.ArrayLike = 0.0) -> tuple[float, float]:
    """Nats that several releases of one secret carry together, and the probability that one of the bounds fails.

    Guarantee: for bounds by average distances (Algorithm 2 of PAC Privacy, Theorem 7) or by covariances, if questions
    and noise were fixed beforehand and every release has noise and seeds of its own. Not for certified information as
    such: of one secret, that does not add up.

    Args:
        mi: the bound of each release, in nats, at least 0.
        gamma: probability that each bound fails, a number or one for each.

    Returns:
        The sums, rounded up.

    Raises:
        InputError: there are no bounds.

    Examples:
        >>> add_up([0.5, 0.25], gamma=[1e-6, 1e-6])[0] < 0.7500001
        True
    """
    nats, risks = np.broadcast_arrays(_arithmetic.nonnegative(mi=mi), _arithmetic.probability(gamma=gamma))
    if not nats.size:
        raise InputError("give the bounds of two releases or more")
    up = 1 + 2.0**-48
    return math.fsum(nats.ravel()) * up, min(1.0, math.fsum(risks.ravel()) * up)


@proves("comparisons")
def worst_case_noise(mi: npt.ArrayLike, radius: float, dimensions: int) -> Numbers:
    """The least mean length of Gaussian noise that keeps `mi` nats whatever is computed, within a ball.

    Nobody who adds one law of Gaussian noise to every answer in the ball, without looking at data or function, does
    with less. For comparison: noise that was found for one function is often far smaller.

    Guarantee: below it some function and some law of the data tell more than `mi` nats; rounded down.
    Differs from the paper: Theorem 9 of PAC Privacy leaves the constant open.

    Args:
        mi: nats that may be told, above 0.
        radius: of the ball that holds all answers.
        dimensions: number of outputs.

    Returns:
        The bound on the mean length of the noise, in the answers' own units; 0 from log 2 nats on, which one of two
        answers cannot exceed.

    Examples:
        >>> worst_case_noise(0.01, radius=1.0, dimensions=1) > 4
        True
    """
    nats = _arithmetic.nonnegative(mi=mi)
    if (nats == 0).any():
        raise InputError("mi must be above 0: no noise hides everything")
    size, d = checks.positive(radius=radius), checks.count(dimensions=dimensions)
    # Two opposite answers on an axis, each as likely: told apart with success Phi(radius / deviation) at least.
    far = special.ndtri(np.minimum(posterior(nats, 0.5), 1.0))
    length = math.sqrt(2) * math.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2)) * (1 - 1e-9)
    return _arithmetic.plain(np.where(np.isinf(far), 0.0, size * length / np.maximum(far, 1e-300) * (1 - 1e-9)))
