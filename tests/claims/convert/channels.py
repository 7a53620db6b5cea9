"""Random channels, and conversions computed in plain or exact numbers."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
from hypothesis import settings

patient = settings(max_examples=150)


def exact_kl(a: float | Decimal, p: float | Decimal) -> Decimal:
    """KL(Bern(a) || Bern(p)) with the textbook formula and digits to spare."""
    a, p = Decimal(a), Decimal(p)
    with localcontext() as context:
        context.prec = 50 - 2 * min(x.adjusted() for x in (a, p) if x > 0)
        return sum((x * (x / y).ln() for x, y in ((a, p), (1 - a, 1 - p)) if x > 0), Decimal(0))


def plain_information(joint: np.ndarray) -> float:
    """Mutual information of a table of probabilities."""
    joint = np.asarray(joint, dtype=float)
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / product[seen])).sum())


def ceil_to(value: float, digits: int) -> float:
    return math.ceil(value * 10**digits) / 10**digits


def random_channels(count: int, inputs: int, outputs: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.dirichlet(np.full(inputs * outputs, 0.3)).reshape(inputs, outputs) for _ in range(count)]


GENERATORS = {
    "kl": lambda t: np.where(t > 0, t * np.log(np.maximum(t, 1e-300)), 0.0),
    "tv": lambda t: np.abs(t - 1) / 2,
    "chi2": lambda t: (t - 1) ** 2,
    "hellinger": lambda t: (np.sqrt(t) - 1) ** 2 / 2,
}
