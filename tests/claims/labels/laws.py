"""Every mechanism written out: the probability of each observation under each class, from closed forms.

Shares no code with the mechanisms: only their public settings (epsilon, size, prior) are read.
"""

from __future__ import annotations

from itertools import combinations, pairwise, product
from math import comb, erf, exp, sqrt

import numpy as np

from leakcap import labels


def normal(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


def entry_laws(mechanism) -> tuple[list[float], list[float]]:
    """Laws of an entry that is 0 and of the entry that is 1, over the values it may take."""
    eps = mechanism.epsilon
    if isinstance(mechanism, labels.UnaryBits):
        if mechanism.optimised:
            false_set = 1 / (1 + exp(eps))
            return [1 - false_set, false_set], [0.5, 0.5]
        flip = 1 / (1 + exp(eps / 2))
        return [1 - flip, flip], [flip, 1 - flip]
    steps = np.asarray(mechanism.values, dtype=float)
    if isinstance(mechanism, labels.Laplace):
        # noise z/256 with probability proportional to exp(-|z| eps / 512), cut to 0..256
        reach = 40_000
        z = np.arange(-reach, reach + 1)
        mass = np.exp(-np.abs(z) * eps / 512)
        mass /= mass.sum()
        zero = np.zeros(257)
        np.add.at(zero, np.clip(z, 0, 256), mass)
        return zero.tolist(), zero[::-1].tolist()
    assert isinstance(mechanism, labels.Gaussian)
    cuts = [-np.inf, *((steps[1:] + steps[:-1]) / 2), np.inf]
    laws = []
    for centre in (0, 1):
        ends = [normal((cut - centre) / mechanism.sigma) for cut in cuts]
        laws.append([high - low for low, high in pairwise(ends)])
    return laws[0], laws[1]


def channel(mechanism) -> tuple[np.ndarray, list]:
    """`(classes, observations)` probabilities, and the observations as `privatize` writes them."""
    C, eps = mechanism.n_classes, mechanism.epsilon
    if isinstance(mechanism, labels.RRWithPrior):
        order = sorted(range(C), key=lambda c: (-mechanism.prior[c], c))
        best = max(
            range(1, C + 1), key=lambda k: sum(sorted(mechanism.prior)[::-1][:k]) * exp(eps) / (exp(eps) + k - 1)
        )
        likely = order[:best]
        rows = np.zeros((C, C))
        for c in range(C):
            for o in likely:
                if c not in likely:
                    rows[c, o] = 1 / best
                else:
                    rows[c, o] = (exp(eps) if o == c else 1) / (exp(eps) + best - 1)
        return rows[:, likely], likely
    if isinstance(mechanism, labels.KRR):
        kept = exp(eps) / (exp(eps) + C - 1)
        return np.where(np.eye(C, dtype=bool), kept, (1 - kept) / (C - 1)), list(mechanism.classes)
    if isinstance(mechanism, labels.SubsetSelection):
        k = mechanism.size
        sets = list(combinations(range(C), k))
        inside = k * exp(eps) / (k * exp(eps) + C - k)
        rows = [
            [inside / comb(C - 1, k - 1) if c in one else (1 - inside) / comb(C - 1, k) for one in sets]
            for c in range(C)
        ]
        marks = [[c in one for c in range(C)] for one in sets]
        return np.array(rows), marks
    zero, one = entry_laws(mechanism)
    values = np.asarray(mechanism.values)
    places = list(product(range(len(values)), repeat=C))
    rows = np.ones((C, len(places)))
    at = np.array(places)
    for c in range(C):
        for entry in range(C):
            rows[c] *= np.asarray(one if entry == c else zero)[at[:, entry]]
    return rows, [values[list(place)].tolist() for place in places] if len(places) < 10_000 else values[at]
