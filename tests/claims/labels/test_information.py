"""Nats and guesses against sums over every observation; which mechanism tells most."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from leakcap import labels
from leakcap.errors import InputError
from tests.claims.labels import laws

PRIORS = [
    np.full(4, 0.25),
    np.array([0.6, 0.2, 0.15, 0.05]),
    np.array([0.5, 0.5, 0, 0]),
    np.array([0.97, 0.01, 0.01, 0.01]),
]


def brute_information(prior, rows):
    joint = prior[:, None] * rows
    mixed = joint.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(rows / mixed), 0.0)
    return terms.sum()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("prior", PRIORS, ids=["even", "skew", "pair", "sure"])
def test_information_and_guesses_equal_sums_over_every_observation(epsilon, prior):
    tried = [
        labels.KRR(epsilon, 4),
        labels.UnaryBits(epsilon, 4),
        labels.UnaryBits(epsilon, 4, optimised=True),
        labels.SubsetSelection(epsilon, 4, size=2),
        labels.SubsetSelection(epsilon, 4, size=3),
        labels.RRWithPrior(epsilon, [0.5, 0.3, 0.15, 0.05]),
    ]
    for mechanism in tried:
        rows, _ = laws.channel(mechanism)
        np.testing.assert_allclose(
            mechanism.mutual_information(prior),
            brute_information(prior, rows),
            rtol=1e-6,
            atol=1e-9,
            err_msg=repr(mechanism),
        )
        np.testing.assert_allclose(
            mechanism.guess_success(prior),
            (prior[:, None] * rows).max(axis=0).sum(),
            rtol=1e-7,
            err_msg=repr(mechanism),
        )


@pytest.mark.parametrize("kind", [labels.Laplace, labels.Gaussian])
@pytest.mark.parametrize("prior", [np.array([0.5, 0.5]), np.array([0.9, 0.1])], ids=["even", "skew"])
def test_information_of_noised_entries_equals_the_sum_over_all_pairs(kind, prior):
    for epsilon in (0.5, 4.0):
        mechanism = kind(epsilon, 2)
        zero, one = (np.array(law) for law in laws.entry_laws(mechanism))
        rows = np.stack([np.outer(one, zero).ravel(), np.outer(zero, one).ravel()])
        np.testing.assert_allclose(mechanism.mutual_information(prior), brute_information(prior, rows), rtol=1e-5)
        np.testing.assert_allclose(mechanism.guess_success(prior), (prior[:, None] * rows).max(axis=0).sum(), rtol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 20.0, 45.0, 100.0, 1e4])
@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.9, 0.1], [1e-12, 1 - 1e-12]])
def test_guesses_are_right_at_any_epsilon(epsilon, prior):
    """Against exact sums over the four pairs of bits, in fractions."""
    for mechanism in (labels.UnaryBits(epsilon, 2), labels.UnaryBits(epsilon, 2, optimised=True)):
        zero, one = ([Fraction(w, 2**64) for w in law.weights] for law in (mechanism.zero, mechanism.one))
        known = [Fraction(p) for p in prior]
        exact = sum(max(known[0] * one[a] * zero[b], known[1] * zero[a] * one[b]) for a in (0, 1) for b in (0, 1))
        found = mechanism.certificate(labels=1, prior=prior).guess_success
        assert float(exact) <= found <= float(exact) * (1 + 1e-8) + 1e-12


@pytest.mark.parametrize(
    "mechanism", [labels.Gaussian(200.0, 3), labels.Laplace(100.0, 3), labels.SubsetSelection(0.5, 2000)]
)
def test_no_guess_is_worse_than_the_prior(mechanism):
    assert max(1 / mechanism.n_classes, 0.0) < mechanism.guess_success() <= 1
    if mechanism.n_classes == 3:
        assert mechanism.guess_success() > 0.999
    else:
        assert mechanism.guess_success() < 2 / 2000


def test_rows_of_priors_are_averaged():
    rows = np.array([[0.9, 0.1, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    for mechanism in (labels.KRR(1.0, 3), labels.UnaryBits(1.0, 3), labels.SubsetSelection(1.0, 3, size=2)):
        apart = [mechanism.mutual_information(row) for row in rows]
        assert mechanism.mutual_information(rows) == pytest.approx(np.mean(apart))
        assert mechanism.mutual_information() == pytest.approx(apart[1])
    with_prior = labels.RRWithPrior(1.0, rows)
    assert with_prior.mutual_information() == pytest.approx(
        np.mean([labels.RRWithPrior(1.0, row).mutual_information() for row in rows])
    )


@pytest.mark.parametrize("n_classes", [10, 100])
@pytest.mark.parametrize("epsilon", range(1, 9))
def test_unary_bits_tell_more_than_laplace_everywhere(n_classes, epsilon):
    rng = np.random.default_rng(epsilon)
    bits, noise = labels.UnaryBits(epsilon, n_classes), labels.Laplace(epsilon, n_classes)
    for prior in (None, rng.dirichlet(np.ones(n_classes)), rng.dirichlet(np.full(n_classes, 0.1))):
        assert bits.mutual_information(prior) > noise.mutual_information(prior)


def test_a_laplace_entry_is_a_coarser_view_of_a_flipped_bit():
    """The reason: some random map turns the flipped bit into the noised entry, for a 0 and for a 1 alike."""
    epsilon = 1.3
    flip = 1 / (1 + np.exp(epsilon / 2))
    zero, one = (np.array(law) for law in laws.entry_laws(labels.Laplace(epsilon, 2)))
    from_unset = ((1 - flip) * zero - flip * one) / (1 - 2 * flip)
    from_set = ((1 - flip) * one - flip * zero) / (1 - 2 * flip)
    assert from_unset.min() > -1e-12 and from_set.min() > -1e-12
    assert from_unset.sum() == pytest.approx(1) and from_set.sum() == pytest.approx(1)


# The choice


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 5.0, 8.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_auto_tells_as_much_as_any_size_of_subset(epsilon, n_classes):
    best = labels.auto(epsilon, n_classes).mutual_information()
    for size in range(1, n_classes, 1 + n_classes // 20):
        assert best >= labels.SubsetSelection(epsilon, n_classes, size=size).mutual_information() * (1 - 1e-8)
    assert best >= labels.UnaryBits(epsilon, n_classes).mutual_information() * (1 - 1e-8)


def test_auto_takes_the_simplest_of_equals_and_heeds_a_public_prior():
    assert isinstance(labels.auto(1.0, 2), labels.KRR)
    assert isinstance(labels.auto(8.0, 10), labels.KRR)
    assert isinstance(labels.auto(1.0, 10), labels.SubsetSelection)
    pair = np.zeros(10)
    pair[:2] = 0.5
    told = labels.auto(1.0, 10, prior=pair)
    assert isinstance(told, labels.RRWithPrior)
    assert told.mutual_information(pair) == pytest.approx(labels.KRR(1.0, 2).mutual_information(), rel=1e-6)
    named = labels.auto(1.0, classes=["a", "b", "c"])
    assert named.classes == ("a", "b", "c")
    with pytest.raises(InputError):
        labels.auto(1.0)


# Without a prior


def test_projection_is_the_nearest_point_of_the_simplex():
    rng = np.random.default_rng(0)
    noised = rng.normal(size=(200, 5)) * 2
    found = labels.project(noised)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for rival in rng.dirichlet(np.full(5, 0.5), 300):  # no other point is nearer
        assert (((noised - found) ** 2).sum(axis=1) <= ((noised - rival) ** 2).sum(axis=1) + 1e-9).all()
    with pytest.raises(InputError):
        labels.project([[np.nan, 1.0]])
