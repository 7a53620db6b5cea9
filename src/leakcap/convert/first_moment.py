"""Membership inference privacy from a first moment: how large noise of density `exp(-|x|/s)` must be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.convert import _arithmetic
from leakcap.convert._arithmetic import Numbers
from leakcap.errors import InputError
from leakcap.ground.proofs import proves

__all__ = ["from_first_moment", "scale_for_mip"]


@proves("first-moment")
def from_first_moment(first_moment: npt.ArrayLike, scale: npt.ArrayLike) -> Numbers:
    """Highest success at guessing one person's participation under noise of density `exp(-|x|/scale)`.

    Guarantee: `1/2 + 1/2 tanh(first_moment / scale)`, for everybody in the pool, where a half of it takes part (a
    random one of all halves, or by independent fair coins) and the release is `answer + noise`. The norm is the same in
    both places, any norm, in any number of coordinates.

    Args:
        first_moment: a bound on `E|answer - c|` over the random half, for any fixed centre `c`, at least 0.
        scale: of the noise, above 0. Its length has the law Gamma(number of coordinates, scale).

    Returns:
        The bound on the probability of a right guess.

    Raises:
        InputError: the moment is below 0, or the scale is not above 0.

    Examples:
        >>> round(from_first_moment(1, 4.9326), 5)
        0.6
    """
    moment, size = np.broadcast_arrays(
        _arithmetic.nonnegative(first_moment=first_moment), _arithmetic.nonnegative(scale=scale)
    )
    if not (size > 0).all():
        raise InputError("scale must be above 0")
    with np.errstate(over="ignore"):
        advantage = _arithmetic.up(np.tanh(_arithmetic.up(moment / size)), 1.0)
    return _arithmetic.plain(np.where(moment == 0, 0.5, _arithmetic.up(0.5 + advantage / 2, 1.0)))


@proves("first-moment")
def scale_for_mip(first_moment: npt.ArrayLike, eta: npt.ArrayLike) -> Numbers:
    """Least scale of noise of density `exp(-|x|/scale)` that gives eta-MIP by a first moment.

    Guarantee: `first_moment / artanh(2 eta)`, rounded up: with it, `from_first_moment` is at most 1/2 + eta. (The paper
    asks for `(6.16 / eta)^(1 + 2/M)` times the M-th root of an M-th moment, which is never less than the first.)

    Args:
        first_moment: a bound on `E|answer - c|` over the random half, for any fixed centre `c`, at least 0.
        eta: highest success above 1/2, above 0 and below 1/2.

    Returns:
        The scale; 0 where the moment is 0.

    Raises:
        InputError: the moment is below 0, or eta does not lie strictly between 0 and 1/2.

    Examples:
        >>> round(scale_for_mip(1, 0.1), 2), round((6.16 / 0.1) ** 2)
        (4.93, 3795)
    """
    moment, advantage = np.broadcast_arrays(
        _arithmetic.nonnegative(first_moment=first_moment), _arithmetic.nonnegative(eta=eta)
    )
    if not ((advantage > 0) & (advantage < 0.5)).all():
        raise InputError("eta must lie strictly between 0 and 1/2: success is at most 1/2 + eta")
    # Of an advantage that is smaller by what `from_first_moment` rounds up.
    kept = _arithmetic.down(_arithmetic.down(2 * advantage) - 2.0**-46)
    if not (kept > 0).all():
        raise InputError("this eta is too close to 0: choose a larger one")
    return _arithmetic.plain(np.where(moment == 0, 0.0, _arithmetic.up(moment / _arithmetic.down(np.arctanh(kept)))))
