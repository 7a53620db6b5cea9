"""Exact chances that a statistic errs."""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

GRID = np.unique(np.concatenate([np.linspace(0, 1, 41), [1e-6, 1e-3, 0.01, 0.99, 0.999, 1 - 1e-6]]))


def chances(n, p):
    """Binomial chances of 0 to n wins, from factorials."""
    k = np.arange(n + 1)
    return np.array([math.comb(n, int(one)) for one in k], dtype=float) * float(p) ** k * (1 - float(p)) ** (n - k)


def wald(k, n, alpha):
    """The twin: mean plus or minus normal errors."""
    half = stats.norm.isf(alpha / 2) * np.sqrt(k / n * (1 - k / n) / n)
    return k / n - half, k / n + half


def worst_excess(p_of, trials, bound):
    """How much likelier than a, at most, p-values up to a are, over all a, for rates up to the bound."""
    found = np.array([p_of(k) for k in range(trials + 1)])
    return max((chances(trials, rate)[found <= a].sum() - a) for a in np.unique(found) for rate in (bound, bound / 2))


def joint_chances(members, others, tpr, fpr):
    return np.outer(chances(members, tpr), chances(others, fpr))


def gaussian_curve(distance):
    return lambda fpr: special.ndtr(special.ndtri(fpr) + distance)


def highest_roc(epsilon, delta):
    """The ROC of the least private mechanism that is (epsilon, delta)-private."""
    e = math.exp(epsilon)
    return lambda fpr: np.clip(np.minimum(e * fpr + delta, 1 - (1 - fpr - delta) / e), 0.0, 1.0)
