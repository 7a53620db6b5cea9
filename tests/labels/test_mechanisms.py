"""Mechanisms draw what they claim, and epsilon is a fact about whole numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from leakcap import labels
from leakcap.errors import InputError
from leakcap.labels import coordinates, gaussian, subset
from leakcap.labels.gaussian import hockey_stick, least_sigma
from leakcap.labels.krr import response

from . import laws

EPSILONS = [1e-6, 0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0]
PRIOR = [0.5, 0.3, 0.15, 0.05]


def made(epsilon, n_classes=4):
    return {
        "krr": labels.KRR(epsilon, n_classes),
        "unary": labels.UnaryBits(epsilon, n_classes),
        "optimised": labels.UnaryBits(epsilon, n_classes, optimised=True),
        "subset": labels.SubsetSelection(epsilon, n_classes, size=2),
        "prior": labels.RRWithPrior(epsilon, PRIOR),
    }


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


# Epsilon, exactly


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


# Bad input

GOOD = {"epsilon": 1.0, "n_classes": 3}


@pytest.mark.parametrize("epsilon", [0, -1, np.inf, np.nan, "1", None, True, 1e-9])
@pytest.mark.parametrize(
    "kind", [labels.KRR, labels.UnaryBits, labels.Laplace, labels.Gaussian, labels.SubsetSelection]
)
def test_a_wrong_epsilon_is_refused(kind, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        kind(epsilon=epsilon, n_classes=3)


@pytest.mark.parametrize("more", [{"n_classes": 1}, {"n_classes": 0}, {"n_classes": 2.5}, {}, {"classes": ["a"]}])
def test_fewer_than_two_classes_are_refused(more):
    with pytest.raises(InputError, match="class"):
        labels.KRR(1.0, **more)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 1, 3], "from 0 to 2"),
        ([-1, 0], "from 0 to 2"),
        ([0.5, 1], "from 0 to 2"),
        ([0, np.nan], "missing"),
        ([None, 1], "missing"),
        ([0, np.inf], "from 0 to 2"),
        (["a", "b"], "classes="),
        (np.array(["a", 1], dtype=object), "classes="),
        ([], "at least one"),
        ([[0, 1], [1, 2]], "one column"),
        (1, "one column"),
        (np.array([{}], dtype=object), "whole numbers"),
        (np.array([10**400, 1], dtype=object), "whole numbers"),
        (np.ma.array([0, 1], mask=[True, False]), "missing"),
        ([[0], [0, 1]], "one column"),
    ],
)
def test_wrong_labels_are_refused_and_not_quoted(y, words):
    with pytest.raises(InputError, match=words):
        labels.KRR(**GOOD).privatize(y)


def test_errors_keep_no_label_behind_them():
    with pytest.raises(InputError) as caught:
        labels.KRR(1.0, 3).privatize(np.array([b"a secret", 1], dtype=object))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("names", [[1, "a"], [2**53 + 1, 0.5], ["a\0", "b"], [True, "x"]])
def test_names_of_several_types_come_back_as_they_are(names):
    mechanism = labels.KRR(40.0, classes=names)
    seen = mechanism.privatize(np.array([*names, names[0]], dtype=object))
    assert seen.tolist() == [*names, names[0]]
    assert mechanism.scores(seen).argmax(axis=1).tolist() == [0, 1, 0]


@pytest.mark.parametrize("names", ["yes", {"a", "b"}, [["a"], ["b"]], [("a",), ("b",)]])
def test_classes_without_an_order_or_a_name_are_refused(names):
    with pytest.raises(InputError, match="classes="):
        labels.KRR(1.0, classes=names)


def test_epsilon_is_read_only():
    with pytest.raises(AttributeError):
        labels.KRR(1.0, 3).epsilon = 0.1


@pytest.mark.parametrize("prior", [0.5, "a", [[0.5, 0.5], [1.0]], [], [0.7, 0.7]])
def test_a_prior_that_is_none_is_refused(prior):
    for made in (lambda: labels.auto(1.0, prior=prior), lambda: labels.RRWithPrior(1.0, prior)):
        with pytest.raises(InputError, match="prior"):
            made()


def test_names_may_come_one_by_one():
    assert labels.auto(1.0, classes=(name for name in "abc")).classes == ("a", "b", "c")


def test_names_stand_for_classes():
    mechanism = labels.KRR(12.0, classes=["no", "yes", "unknown"])
    seen = mechanism.privatize(["yes", "no", "unknown"] * 10)
    assert (seen == np.array(["yes", "no", "unknown"] * 10)).mean() > 0.9
    assert mechanism.posterior(["yes"], np.zeros(3)).argmax() == 1
    with pytest.raises(InputError, match="not among"):
        mechanism.privatize(["Yes"])
    with pytest.raises(InputError, match="missing"):
        mechanism.privatize(["yes", None])
    for wrong in (["a", "a"], ["a", float("nan")]):
        with pytest.raises(InputError, match="different names"):
            labels.KRR(1.0, classes=wrong)


def test_labels_of_every_usual_type_are_taken():
    pandas = pytest.importorskip("pandas")
    y = [0, 2, 1, 1]
    krr = labels.KRR(40.0, 3)
    for given in (y, np.array(y, dtype=np.uint8), np.array(y, dtype=float), np.array(y)[:, None], pandas.Series(y)):
        assert krr.privatize(given).tolist() == y  # at epsilon 40 a label is replaced once in 10^17 draws
    assert labels.KRR(40.0, classes=["a", "b"]).privatize(pandas.Categorical(["b", "a"])).tolist() == ["b", "a"]
    assert labels.KRR(40.0, 2).privatize(np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("mechanism", "observed"),
    [
        (labels.UnaryBits(1.0, 3), [[0, 1]]),
        (labels.UnaryBits(1.0, 3), [0, 1, 2]),
        (labels.Laplace(1.0, 3), [[0, 1, np.nan]]),
        (labels.UnaryBits(1.0, 3), [[0.5, 0, 1]]),
        (labels.SubsetSelection(1.0, 4, size=2), [[1, 1, 1, 0]]),
        (labels.SubsetSelection(1.0, 4, size=2), [[2, 0, 0, 0]]),
        (labels.KRR(1.0, 3), [3]),
        (labels.RRWithPrior(1.0, [0.96, 0.02, 0.01, 0.01]), [3]),
    ],
)
def test_observations_of_another_mechanism_are_refused(mechanism, observed):
    with pytest.raises(InputError):
        mechanism.posterior(observed, np.zeros(mechanism.n_classes))


def test_a_prior_for_other_rows_is_refused():
    mechanism = labels.RRWithPrior(1.0, np.full((5, 3), 1 / 3))
    with pytest.raises(InputError, match="5 rows"):
        mechanism.privatize([0, 1])
    for wrong in ([0.5, 0.6], [-0.1, 1.1], [np.nan, 1]):
        with pytest.raises(InputError, match="prior"):
            labels.RRWithPrior(1.0, wrong)
