"""Epsilon, exactly: as ratios of chances in whole numbers."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest

from leakcap import labels
from leakcap.errors import InputError
from leakcap.labels.mechanisms import gaussian
from leakcap.labels.mechanisms.gaussian import hockey_stick, least_sigma
from leakcap.labels.mechanisms.krr import response

EPSILONS = [1e-6, 0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0]


def exceeds(ratio: Fraction, epsilon: float) -> bool:
    with mpmath.workdps(60):
        return mpmath.mpf(ratio.numerator) / ratio.denominator > mpmath.exp(mpmath.mpf(epsilon))


def worst_ratio(mechanism) -> Fraction:
    """Largest likelihood ratio of any observation under any two classes, in whole numbers."""
    if isinstance(mechanism, labels.RRWithPrior):
        worst = Fraction(1)
        for k in map(int, mechanism.sizes):
            kept, replaced = response(mechanism._working_epsilon, k).weights
            inside = [Fraction(kept, 2**64), Fraction(replaced, 2**64) / max(k - 1, 1)] if k > 1 else [Fraction(1)]
            outside = [Fraction(1, k)] if k < mechanism.n_classes else []
            values = inside + outside
            worst = max(worst, max(values) / min(values))
        return worst
    if isinstance(mechanism, labels.KRR):
        kept, replaced = mechanism.chances.weights
        each = Fraction(replaced, mechanism.n_classes - 1)
        return max(kept / each, each / kept)
    if isinstance(mechanism, labels.SubsetSelection):
        C, k = mechanism.n_classes, mechanism.size
        inside, outside = mechanism.chances.weights
        pair = Fraction(inside, comb(C - 1, k - 1)), Fraction(outside, comb(C - 1, k))
        return max(pair[0] / pair[1], pair[1] / pair[0])
    # Two entries differ: (one, zero) against (zero, one), over every pair of outcomes.
    up = [Fraction(b, a) for a, b in zip(mechanism.zero.weights, mechanism.one.weights, strict=True)]
    return max(up) / min(up)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n_classes", [2, 4, 100])
def test_no_observation_exceeds_epsilon_on_the_whole_grid(epsilon, n_classes):
    sizes = {1, n_classes // 2, n_classes - 1} - {0}
    tried = [labels.KRR(epsilon, n_classes), labels.UnaryBits(epsilon, n_classes)]
    tried += [labels.UnaryBits(epsilon, n_classes, optimised=True), labels.Laplace(epsilon, n_classes)]
    tried += [labels.SubsetSelection(epsilon, n_classes, size=size) for size in sorted(sizes)]
    for mechanism in tried:
        ratio = worst_ratio(mechanism)
        assert not exceeds(ratio, epsilon), mechanism
        assert epsilon > 40 or exceeds(ratio, epsilon * (1 - 1e-6)), mechanism  # and none is wasted


def test_small_epsilons_are_kept_to_the_last_digit():
    for epsilon in np.exp(np.random.default_rng(5).uniform(np.log(1e-6), np.log(1e-3), 60)).tolist():
        for kind in (labels.KRR, labels.UnaryBits, labels.Laplace):
            assert not exceeds(worst_ratio(kind(epsilon, 3)), epsilon), (kind, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_observation_of_a_prior_response_exceeds_epsilon(epsilon):
    priors = np.random.default_rng(3).dirichlet(np.full(6, 0.4), 50)
    assert not exceeds(worst_ratio(labels.RRWithPrior(epsilon, priors)), epsilon)


def test_planted_flip_probabilities_exceed_epsilon():
    """The scale 1/epsilon, as if a label moved one entry only, is caught by the same check."""
    bits, noise = labels.UnaryBits(2.0, 4), labels.Laplace(2.0, 4)
    assert exceeds(worst_ratio(bits), 1.0)
    assert exceeds(worst_ratio(noise), 1.0)
    nudged = labels.KRR(1.0 + 1e-7, 4)
    assert exceeds(worst_ratio(nudged), 1.0)


def hockey_stick_in_long_numbers(zero, one, epsilon):
    a, b = (np.array([float(w) for w in weights], dtype=np.longdouble) / 2.0**64 for weights in (zero, one))
    return float(np.maximum(np.outer(b, a) - np.exp(np.longdouble(epsilon)) * np.outer(a, b), 0).sum())


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (3.7, 1e-5), (8.0, 1e-6), (19.0, 1e-5), (1.0, 0.05)]
)
def test_gaussian_noise_keeps_delta_and_wastes_none(epsilon, delta):
    mechanism = labels.Gaussian(epsilon, 3, delta=delta)
    found = hockey_stick_in_long_numbers(mechanism.zero.weights, mechanism.one.weights, epsilon)
    assert 0.98 * delta < found <= delta
    zero, one = mechanism.zero.probabilities, mechanism.one.probabilities
    assert hockey_stick(zero, one, epsilon) == pytest.approx(found, rel=1e-6, abs=2e-14)
    assert hockey_stick(zero, one, 0.9 * epsilon) > 1.2 * found  # a region that ignored epsilon would be noticed


def test_noise_that_is_too_small_for_its_delta_is_enlarged(monkeypatch):
    """Planted: a calibration that is a ten-thousandth off is mended by the sum over the grid."""
    honest = labels.Gaussian(1.0, 3)
    monkeypatch.setattr(gaussian, "least_sigma", lambda epsilon, delta: least_sigma(epsilon, delta) * (1 - 1e-4))
    mended = labels.Gaussian(1.0, 3)
    assert hockey_stick_in_long_numbers(mended.zero.weights, mended.one.weights, 1.0) <= mended.delta
    assert mended.sigma == pytest.approx(honest.sigma, rel=3e-4)


@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_gaussian_noise_without_a_grid_is_refused(epsilon):
    with pytest.raises(InputError, match="grid"):
        labels.Gaussian(epsilon, 3)


@pytest.mark.parametrize("epsilon", [0.001, 1000.0])
def test_gaussian_noise_reaches_far(epsilon):
    mechanism = labels.Gaussian(epsilon, 3)
    assert len(mechanism.values) < 2**16
    assert mechanism.privatize([0, 1, 2]).shape == (3, 3)


def test_the_papers_gaussian_rule_would_not_keep_delta():
    """Sensitivity 1 in place of sqrt 2 (section 5.1), at an epsilon where its rule is meant to hold."""
    epsilon, delta = 0.9, 1e-5
    sigma = np.sqrt(2 * np.log(1.25 / delta)) / epsilon
    with mpmath.workdps(40):
        d = mpmath.sqrt(2) / sigma
        cost = mpmath.ncdf(d / 2 - epsilon / d) - mpmath.exp(epsilon) * mpmath.ncdf(-d / 2 - epsilon / d)
    assert cost > 3 * delta
    assert least_sigma(epsilon, delta) > 1.05 * sigma
