"""How many nats one observation carries about its label, for any prior: by sums, or by one smooth integral.

Where entries are noised alone, the likelihood of an observation, over that of pure noise, is a sum
`W = sum_c prior_c L_c` of independent terms, and the information is `E log L - E log W`. From
`log w = integral of (e^-t - e^-tw)/t` the second mean becomes an integral over products of C one-dimensional means:
C classes cost C terms, not 2^C.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import xlogy

from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves

__all__ = ["of_coordinates", "of_even_subsets", "of_subsets"]

_STEP = 0.2  # of log t: the integrand is analytic in a strip of half-width pi/2, so the error is about exp(-pi^2/step)


@proves("label-information")
def of_coordinates(prior: Floats, zero: Floats, one: Floats) -> float:
    """For a one-hot vector whose entries are noised alone; `zero` and `one` are the laws of a 0 and of the 1."""
    ratio = one / zero
    kinds, members = np.unique(prior[prior > 0], return_counts=True)

    def moment(t: Floats) -> Floats:
        """E exp(-t W) over observations of labels by the prior."""
        total, share = np.zeros(len(t)), np.zeros(len(t))
        for p, many in zip(kinds, members, strict=True):
            decay = np.exp(-np.outer(t * p, ratio))
            without, with_label = np.maximum(decay @ zero, 1e-300), decay @ one
            total += many * np.log(without)
            share += many * p * (with_label / without)
        return np.asarray(np.exp(total) * share)

    return max(0.0, float(one @ np.log(ratio)) - _mean_log(moment, float(ratio.min()), float(ratio.max())))


@proves("label-information")
def of_subsets(prior: Floats, size: int, inside: float, outside: float) -> float:
    """For a random set of `size` classes.

    A set is `inside` times likelier than even with the label in it, and `outside` times with the label outside.
    """
    gap = inside - outside
    share = inside * size / len(prior)

    def moment(t: Floats) -> Floats:
        """E exp(-t W): means over uniform sets, built up class by class."""
        plain = np.zeros((size + 1, len(t)))  # mean of exp(-t gap T) over sets of each size, T their prior mass
        held = np.zeros((size + 1, len(t)))  # mean of T exp(-t gap T)
        plain[0] = 1
        for i, p in enumerate(prior, start=1):
            decay = np.exp(-t * gap * p)
            enters = np.minimum(np.arange(1, size + 1) / i, 1)[:, None]
            held[1:] = (1 - enters) * held[1:] + enters * decay * (held[:-1] + p * plain[:-1])
            plain[1:] = (1 - enters) * plain[1:] + enters * decay * plain[:-1]
        return np.asarray(np.exp(-t * outside) * (outside * plain[size] + gap * held[size]))

    known = share * np.log(inside) + (1 - share) * np.log(outside)
    if prior.min() == prior.max():
        return max(0.0, float(known))  # every set has the same prior mass: W = 1
    return max(0.0, float(known) - _mean_log(moment, outside, inside))


def of_even_subsets(epsilon: float, n_classes: int, size: int) -> float:
    """The information of a random set about labels of which nothing is known, in nats."""
    inside = 1 / (1 + (n_classes - size) / size * np.exp(-epsilon))
    return float(
        xlogy(inside, inside * n_classes / size) + xlogy(1 - inside, (1 - inside) * n_classes / (n_classes - size))
    )


def _mean_log(moment: Callable[[Floats], Floats], least: float, most: float) -> float:
    """E log W from E exp(-t W), for W between `least` and `most`."""
    s = np.arange(-np.log(max(most, 1)) - 42, -np.log(min(least, 1)) + 5, _STEP)
    t = np.exp(s)
    return float(_STEP * (np.exp(-t) - moment(t)).sum())
