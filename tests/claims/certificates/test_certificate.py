"""What a certificate answers between and beyond its figures, against brute force on small pools."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from tests.claims.leakage.oracle import Line, all_halves
from tests.claims.worlds.laws import halves, stratified_halves, table

X = np.random.default_rng(11).standard_normal((8, 1))


def mean(X):
    return X.mean(axis=0)


@pytest.fixture(scope="module")
def confident():
    """Any certificate of confidence mode; the tests put their own figures into it."""
    return lc.plan(mean, X, cap=lc.membership(0.7), worlds=64, mode="confidence", seed=1).certificate


# ---- known memberships in confidence mode -------------------------------------------------------------------------

DESIGNS = {
    "even": (6, halves(6)),
    "odd": (7, halves(7)),
    "eight": (8, halves(8)),
    "two strata": (8, stratified_halves([0, 0, 0, 0, 1, 1, 1, 1])),
    "odd strata": (8, stratified_halves([0, 0, 0, 1, 1, 1, 1, 1])),
    "one odd stratum": (7, stratified_halves([0, 0, 0, 0, 1, 1, 1])),
    "three odd strata": (9, stratified_halves([0, 0, 0, 1, 1, 1, 2, 2, 2])),
    "pairs": (6, stratified_halves([0, 0, 1, 1, 2, 2])),
}


class Told:
    """One output on a line in each world of a law that need not be uniform; the attacker is told `k` memberships."""

    def __init__(self, n, law, spread):
        self.masks, self.weight = table(law, n)
        self.n = n
        z = self.masks @ np.random.default_rng(n).standard_normal(n)
        z = spread * (z - self.weight @ z)
        y, step = np.linspace(z.min() - 8, z.max() + 8, 600, retstep=True)
        # Without an output all releases are alike: one of them is enough.
        self.joint = norm.pdf(y[:, None] - z) * step * self.weight if spread else self.weight[None, :]

    def information(self):
        total = self.joint.sum(axis=1, keepdims=True)
        used = self.joint > 1e-200
        ratio = self.joint / (total * self.weight)
        return float((self.joint[used] * np.log(ratio[used])).sum())

    def success(self, k, unit, sets=None):
        """The mean over sets of `k` others of the best guess of the unit's membership, given release and answers."""
        others = [u for u in range(self.n) if u != unit]
        found = []
        for told in itertools.combinations(others, k) if sets is None else sets:
            answers = self.masks[:, list(told)] @ (1 << np.arange(len(told)))
            _, group = np.unique(answers, return_inverse=True)
            group = group.ravel() * 2 + self.masks[:, unit]
            both = self.joint @ np.eye(group.max() + 2)[group]
            both = both[:, : 2 * (both.shape[1] // 2)].reshape(len(both), -1, 2)
            found.append(both.max(axis=2).sum())
        return float(np.mean(found))


@pytest.mark.parametrize("name", DESIGNS)
def test_given_in_confidence_mode_covers_halves_and_strata(name, confident):
    n, law = DESIGNS[name]
    # Without any output: the mean of the best blind success is the prior of the page.
    blind = Told(n, law, 0.0)
    for k in range(1, n):
        nothing = replace(confident, units=n, mutual_information=0.0)
        worst = max(blind.success(k, unit) for unit in range(n))
        assert worst <= min(1.0, ceil(n / 2) / (n - k)) + 1e-12
        assert worst <= nothing.given(k) + 1e-12
    # With one: the certificate's answer holds if its information does.
    for spread in (0.3, 1.0):
        game = Told(n, law, spread)
        certificate = replace(confident, units=n, mutual_information=game.information())
        for k in (1, 2, n // 2):
            units = range(n) if k == 1 else (0, n - 1)
            assert max(game.success(k, unit) for unit in units) <= certificate.given(k) + 1e-6


@pytest.mark.parametrize("n", [6, 7, 8])
def test_without_strata_the_prior_holds_for_every_set_and_every_answer(n):
    masks, weight = table(halves(n), n)
    for k in range(1, n):
        told = list(range(k))  # all sets of one size are alike
        answers, group = np.unique(masks[:, told], axis=0, return_inverse=True)
        for each in range(len(answers)):
            alike = group.ravel() == each
            share = weight[alike] @ masks[alike, k] / weight[alike].sum()
            assert max(share, 1 - share) <= min(1.0, ceil(n / 2) / (n - k)) + 1e-12


def test_a_planted_prior_of_one_half_is_beaten(confident):
    """Known memberships of a fixed-size half raise the prior of the rest: forgetting that would be wrong."""
    game = Told(*DESIGNS["even"], 0.3)
    forgetful = lc.convert.posterior(game.information(), 0.5)
    assert max(game.success(4, unit) for unit in range(6)) > forgetful
    assert replace(confident, units=6, mutual_information=game.information()).given(4) > forgetful


def test_nothing_is_promised_where_nothing_was_proved(confident):
    assert replace(confident, units=6).given(6) == 1
    assert replace(confident, units=6).given(60) == 1
    assert replace(confident, rate="1/3").given(1) == 1
    assert confident.given(0) == confident.membership_success
    figures = [confident.given(k) for k in range(9)]
    assert (np.diff(figures) >= 0).all()


# ---- the curve between its points ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def line():
    """All 70 halves of eight people, one output: summed over the grid, so that no margin hides a fault."""
    worlds = all_halves(8)
    plan = lc.plan(mean, X, cap=[lc.membership(0.66), lc.identification(0.5)], worlds=worlds, seed=2)
    assert plan.certificate.integrated
    return plan, Line(plan.outputs[:, 0], plan.noise.covariance()[0, 0] ** 0.5)


def exact_curve(oracle, priors):
    m = oracle.joint.shape[1]
    ordered = np.sort(oracle.joint, axis=1)[:, ::-1].sum(axis=0) * oracle.step
    return np.interp(np.asarray(priors) * m, np.arange(m + 1), np.concatenate([[0], np.cumsum(ordered)]))


PRIORS = np.concatenate([np.geomspace(1e-7, 0.5, 150), np.linspace(0.5, 1 - 1e-9, 150)])


def test_posterior_between_grid_points_is_never_below_the_curve(line):
    plan, oracle = line
    certificate = plan.certificate
    truth = exact_curve(oracle, PRIORS)
    stated = certificate.posterior(PRIORS)
    assert (stated >= truth - 1e-6).all()
    assert (stated >= PRIORS).all() and (stated <= 1).all()
    assert (np.diff(stated) >= -1e-12).all()
    assert (stated <= 1.25 * truth + 0.01)[PRIORS >= 1 / 70].all()  # not by promising nothing
    for p, bound in certificate.leakage_curve:
        assert certificate.posterior(p) == pytest.approx(bound, abs=1e-9)
    assert certificate.posterior(0.0) == 0
    assert certificate.posterior(1.0) == 1


def test_a_planted_straight_line_between_grid_points_is_beaten(line):
    """The curve is concave: chords lie below it. A few points of it are enough to show."""
    plan, oracle = line
    some = plan.certificate.leakage_curve[::6]
    chords = np.interp(PRIORS, [0, *(p for p, _ in some), 1], [0, *(s for _, s in some), 1])
    assert (chords < exact_curve(oracle, PRIORS) - 1e-3).any()
    coarse = replace(plan.certificate, leakage_curve=some, mutual_information=np.log(70))
    assert (coarse.posterior(PRIORS) >= exact_curve(oracle, PRIORS) - 1e-6).all()


def test_the_curve_of_confidence_mode_holds_for_all_halves(line, confident):
    _, oracle = line
    certificate = replace(
        confident,
        mutual_information=oracle.information(),
        leakage_curve=tuple((p, lc.convert.posterior(oracle.information(), p)) for p in (1e-3, 0.03, 0.5, 0.9)),
    )
    assert (certificate.posterior(PRIORS) >= exact_curve(oracle, PRIORS) - 1e-6).all()


# ---- true positive rates ------------------------------------------------------------------------------------------

FPRS = (1e-4, 0.001, 0.01, 0.1, 0.4)


def best_rates(plan, fprs):
    """The optimal attacker's true positive rate against the most exposed person, by quadrature and sorting."""
    oracle = Line(plan.outputs[:, 0], plan.noise.covariance()[0, 0] ** 0.5, points=2**13)
    masks, q = plan.worlds.masks(), plan.worlds.rate
    found = np.zeros(len(fprs))
    for mask in masks.T:
        inside = oracle.joint[:, mask].sum(axis=1) * oracle.step / q
        outside = oracle.joint[:, ~mask].sum(axis=1) * oracle.step / (1 - q)
        order = np.argsort(-inside / (outside + 1e-300))
        rates = np.interp(fprs, np.cumsum(outside[order]), np.cumsum(inside[order]))
        found = np.maximum(found, rates)
    return found


@pytest.mark.parametrize("rate", [1 / 2, 1 / 3, 2 / 3, 1 / 4])
def test_true_positive_rate_agrees_with_the_measure_at_every_rate(rate):
    data = np.random.default_rng(5).standard_normal((12, 1))
    caps = [lc.membership(0.7), *(lc.true_positive_rate(f, 0.999) for f in FPRS)]
    plan = lc.plan(mean, data, cap=caps, worlds=24, rate=rate, seed=3)
    certificate = plan.certificate
    assert certificate.integrated
    stated = certificate.true_positive_rate(np.array(FPRS))
    measured = np.array([figure.certified for figure in certificate.capped[1:]])
    # The certificate also knows the summed information, so it may be lower; it is never lower than the truth.
    assert (stated <= measured + 1e-12).all()
    assert (stated >= best_rates(plan, FPRS) - 1e-4).all()
    helped = lc.convert.true_positive_rate(certificate.mutual_information, np.array(FPRS), rate)
    assert np.allclose(stated, np.minimum(measured, helped), atol=1e-9)
    assert [certificate.true_positive_rate(f) for f in FPRS] == pytest.approx(stated.tolist())


def test_planted_formulas_of_another_rate_are_beaten():
    """At rate 1/4 the formula for 1/2, planted, would promise less than the attacker reaches."""
    data = np.random.default_rng(5).standard_normal((12, 1))
    plan = lc.plan(mean, data, cap=lc.membership(0.7), worlds=24, rate=1 / 4, seed=3)
    wrong = replace(plan.certificate, rate="1/2", mutual_information=10.0)
    right = replace(plan.certificate, mutual_information=10.0)
    truth = best_rates(plan, FPRS)
    assert (right.true_positive_rate(np.array(FPRS)) >= truth - 1e-4).all()
    assert (wrong.true_positive_rate(np.array(FPRS)) < truth - 1e-3).any()
