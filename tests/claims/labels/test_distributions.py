"""Mechanisms draw from the laws they state, and read them by Bayes' rule."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from leakcap import labels
from leakcap.errors import InputError
from leakcap.labels.mechanisms import coordinates, subset
from tests.claims.labels import laws
from tests.claims.labels.making import made

# Distributions


def agrees(mechanism, law_of, n=200_000) -> float:
    """Smallest p-value over the classes, that observations follow the law written out for `law_of`."""
    rows, seen = laws.channel(law_of)
    codes = _code(np.asarray(seen))
    found = []
    for c in range(mechanism.n_classes):
        counted = np.bincount(_code(mechanism.privatize(np.full(n, c))), minlength=codes.max() + 1)
        assert counted.sum() == counted[codes].sum()  # nothing else was drawn
        found.append(chisquare(counted[codes], rows[c] / rows[c].sum() * n).pvalue)
    return min(found)


def _code(observed):
    """Observations as whole numbers: labels as they are, bits as binary numbers."""
    return observed.astype(int) @ (1 << np.arange(observed.shape[1])) if observed.ndim == 2 else observed.astype(int)


@pytest.mark.parametrize("name", ["krr", "unary", "optimised", "subset", "prior"])
def test_observations_follow_the_law_written_out_and_a_planted_epsilon_does_not(name):
    assert agrees(made(1.0)[name], made(1.0)[name]) > 1e-7
    assert agrees(made(1.08)[name], made(1.0)[name]) < 1e-9


@pytest.mark.parametrize("kind", [labels.Laplace, labels.Gaussian])
def test_noised_entries_follow_the_law_written_out_and_a_planted_scale_does_not(kind):
    honest, planted = kind(1.0, 2), kind(1.05, 2)
    zero, one = laws.entry_laws(honest)
    for mechanism, low, high in ((honest, 1e-7, 1.0), (planted, 0.0, 1e-9)):
        drawn = mechanism.privatize(np.zeros(400_000, dtype=int))
        worst = 1.0
        for entry, law in ((0, one), (1, zero)):
            places = np.rint((drawn[:, entry] - honest.values[0]) / np.diff(honest.values[:2].astype(float)))
            places = np.clip(places.astype(int), 0, len(law) - 1)
            counted = np.bincount(places // 32, minlength=len(law) // 32 + 1).astype(float)
            expected = np.bincount(np.arange(len(law)) // 32, weights=law) * len(drawn)
            large = expected > 20
            rest = [counted[~large].sum()], [max(expected[~large].sum(), 1e-9)]
            seen, awaited = np.append(counted[large], rest[0]), np.append(expected[large], rest[1])
            if awaited[-1] < 20:
                seen, awaited = seen[:-1], awaited[:-1]
            worst = min(worst, chisquare(seen, awaited / awaited.sum() * seen.sum()).pvalue)
        assert low <= worst <= high


@pytest.mark.parametrize(("n_classes", "size"), [(6, 3), (6, 4), (5, 4)])
def test_larger_sets_are_uniform_too(n_classes, size):
    mechanism = labels.SubsetSelection(1.0, n_classes, size=size)
    assert agrees(mechanism, mechanism, n=60_000) > 1e-7
    assert agrees(labels.SubsetSelection(1.2, n_classes, size=size), mechanism, n=60_000) < 1e-9


def fits_of_rows(rows: np.ndarray, epsilon: float, turn: int = 0) -> list[float]:
    """For each class and row that leaves a choice: the p-value of its observations under the law of that row alone.

    Rows take turns; `turn` reads each row's observations off another row's places.
    """
    n = 60_000
    mechanism = labels.RRWithPrior(epsilon, np.tile(rows, (n, 1)))
    found = []
    for c in range(rows.shape[1]):
        seen = np.roll(mechanism.privatize(np.full(len(rows) * n, c)).reshape(n, len(rows)), turn, axis=1)
        for row in range(len(rows)):
            law, outcomes = laws.channel(labels.RRWithPrior(1.5, rows[row]))
            counted = np.bincount(seen[:, row], minlength=rows.shape[1])
            if counted[outcomes].sum() < n:
                found.append(0.0)  # something the row rules out
            elif len(outcomes) > 1:
                found.append(float(chisquare(counted[outcomes], law[c] * n).pvalue))
    return found


def test_every_row_of_a_prior_has_its_own_law_and_planted_faults_do_not():
    rows = np.array([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5], [0.01, 0.48, 0.01, 0.5]])
    assert min(fits_of_rows(rows, 1.5)) > 1e-7
    assert min(fits_of_rows(rows, 1.5, turn=1)) < 1e-9
    assert min(fits_of_rows(rows, 1.6)) < 1e-9
    few = labels.RRWithPrior(1.5, rows)
    seen = np.array([outcomes[0] for outcomes in (laws.channel(labels.RRWithPrior(1.5, row))[1] for row in rows)])
    alone = [labels.RRWithPrior(1.5, rows[i]).scores(seen[i : i + 1])[0] for i in range(3)]
    np.testing.assert_allclose(few.scores(seen), alone)


@pytest.mark.parametrize(
    "made", [labels.UnaryBits(30.0, 4), labels.SubsetSelection(30.0, 4, size=2), labels.Laplace(60.0, 4)]
)
def test_blocks_hold_the_observations_of_their_own_labels(made, monkeypatch):
    """At this epsilon the label can be read off every observation, whatever block it was drawn in."""
    monkeypatch.setattr(coordinates, "_ENTRIES", 40)
    monkeypatch.setattr(subset, "_ENTRIES", 40)
    y = np.random.default_rng(0).integers(0, 4, 95)
    assert (made.privatize(y)[np.arange(95), y] > 0.5).mean() > 0.99


def correlation(drawn: np.ndarray) -> float:
    """The largest between two entries of one observation."""
    return float(np.abs(np.corrcoef(drawn.astype(float).T) - np.eye(drawn.shape[1])).max())


def test_entries_of_one_observation_are_independent_and_planted_copies_are_not():
    drawn = labels.UnaryBits(1.0, 3).privatize(np.zeros(300_000, dtype=int))
    assert correlation(drawn) < 0.01  # 5.5 standard errors
    copied = np.random.default_rng(0).random(len(drawn)) < 0.02  # one observation in fifty repeats its second entry
    drawn[copied, 2] = drawn[copied, 1]
    assert correlation(drawn) > 0.01


def test_two_calls_draw_afresh():
    y = np.zeros(200, dtype=int)
    assert (labels.UnaryBits(1.0, 5).privatize(y) != labels.UnaryBits(1.0, 5).privatize(y)).any()


# Bayes' rule


@pytest.mark.parametrize("name", ["krr", "unary", "optimised", "subset", "prior"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_posterior_is_bayes_rule_on_the_law_written_out(name, epsilon):
    mechanism = made(epsilon)[name]
    rows, seen = laws.channel(mechanism)
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    joint = prior[:, None] * rows
    expected = (joint / joint.sum(axis=0)).T
    np.testing.assert_allclose(mechanism.posterior(np.asarray(seen), np.log(prior)), expected, atol=2e-6)
    even = mechanism.posterior(np.asarray(seen), np.zeros((len(seen), 4)))
    assert np.abs(even - expected).max() > 0.05  # a prior that is ignored would be noticed


@pytest.mark.parametrize("kind", [labels.Laplace, labels.Gaussian])
def test_the_posterior_of_noised_entries_is_bayes_rule(kind):
    mechanism = kind(1.5, 2)
    zero, one = laws.entry_laws(mechanism)
    values, prior = mechanism.values, np.array([0.3, 0.7])
    places = np.arange(0, len(values), 7)
    places = places[(np.array(zero)[places] > 1e-9) & (np.array(one)[places] > 1e-9)]
    pairs = np.array(list(product(places, repeat=2)))
    first = prior[0] * np.array(one)[pairs[:, 0]] * np.array(zero)[pairs[:, 1]]
    second = prior[1] * np.array(zero)[pairs[:, 0]] * np.array(one)[pairs[:, 1]]
    found = mechanism.posterior(values[pairs], np.log(prior))
    np.testing.assert_allclose(found[:, 0], first / (first + second), atol=3e-5)


def test_a_prior_may_rule_classes_out_and_the_posterior_keeps_its_precision():
    krr = labels.KRR(1.0, 3)
    found = krr.posterior([0, 2], np.array([[0, -np.inf, 0], [-np.inf, 0, 0]], dtype=np.float32))
    assert found.dtype == np.float32
    assert found[0, 1] == found[1, 0] == 0
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    for wrong in ([[-np.inf] * 3], [[np.nan, 0, 0]], [[np.inf, 0, 0]]):
        with pytest.raises(InputError):
            krr.posterior([0], wrong)


def test_more_epsilon_never_tells_less():
    for name in ("krr", "unary", "subset"):
        told = [made(epsilon)[name].mutual_information() for epsilon in (0.1, 0.5, 1, 2, 4, 8)]
        assert (np.diff(told) > 0).all()
