"""Rounds of learning: the likelihood, penalties, consensus and mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.labels.learning import likelihood as soft
from leakcap.labels.learning.classifier import Classifier
from tests.unit.labels.learning import BLOBS, KINDS, LINEAR, fitted


def test_linear_models_are_predicted_as_fitted() -> None:
    assert fitted(2.0).learned_.folds == 0


@pytest.mark.parametrize("mechanism", [lc.labels.KRR(1.0, 3), lc.labels.UnaryBits(1.0, 3), lc.labels.Laplace(1.0, 3)])
def test_the_likelihood_never_falls(mechanism: Any) -> None:
    """Of the observations, less the penalty of the fit: what expectation maximisation climbs."""
    scores = mechanism.scores(mechanism.privatize(KINDS)).astype(float)
    reached, log_prior = [], soft.even(3)
    for _ in range(12):
        model = soft.fit_weighted(
            LogisticRegression(C=0.1, tol=1e-8, max_iter=1000), BLOBS, informed(scores, log_prior)
        )
        log_prior = soft.predicted(model, BLOBS, 3)
        reached.append(float(soft.marginal(scores, log_prior).sum() - (model.coef_**2).sum() / 2 / 0.1))
    assert np.diff(reached).min() > -1e-4
    assert reached[-1] > reached[0] + 1


informed = soft.informed


def test_the_likelihood_falls_when_observations_are_read_the_wrong_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    monkeypatch.setattr("tests.unit.labels.test_rounds.informed", lambda scores, prior: soft.informed(-scores, prior))
    with pytest.raises(AssertionError):
        test_the_likelihood_never_falls(lc.labels.KRR(1.0, 3))


def test_rounds_end_where_the_likelihood_is_largest() -> None:
    """Against a direct search over the coefficients of the same penalised likelihood."""
    from scipy.optimize import minimize

    mechanism = lc.labels.UnaryBits(1.0, 3)
    observed = mechanism.privatize(KINDS)
    scores = mechanism.scores(observed).astype(float)
    ones = np.column_stack([BLOBS, np.ones(len(BLOBS))])

    def loss(v: np.ndarray) -> float:
        table = v.reshape(3, 3)
        log_prior = ones @ table - np.log(np.exp(ones @ table).sum(axis=1, keepdims=True))
        return -soft.marginal(scores, log_prior).sum() + (table[:2] ** 2).sum() / 2

    best = minimize(loss, np.zeros(9), method="L-BFGS-B").x.reshape(3, 3)
    sure = np.exp(ones @ best) / np.exp(ones @ best).sum(axis=1, keepdims=True)
    model = Classifier(LogisticRegression(C=1.0, tol=1e-6, max_iter=1000), mechanism, rounds=40, folds=0, holdout=0)
    assert np.abs(model.fit(BLOBS, observed).predict_proba(BLOBS) - sure).mean() < 0.01


def test_the_first_round_is_naive_training_under_randomised_response() -> None:
    krr = lc.labels.KRR(1.0, 3)
    observed = krr.privatize(KINDS)
    model = Classifier(LINEAR, krr, rounds=0, folds=0, holdout=0).fit(BLOBS, observed)
    naive = clone(LINEAR).fit(BLOBS, observed)
    assert np.allclose(model.model_.coef_, naive.coef_, atol=1e-3)


def test_probabilities_are_those_of_true_labels() -> None:
    """Mean predicted chance of the second class is near its share: not near the share of randomised labels."""
    draw = np.random.default_rng(0)
    table = draw.normal(size=(6000, 2))
    kinds = (draw.random(6000) < 1 / (1 + np.exp(2.5 - table[:, 0]))).astype(int)
    model = Classifier(LINEAR, lc.labels.KRR(1.0, 2), random_state=0).fit_private(table, kinds)
    seen = np.mean(model.observed_)
    assert abs(model.predict_proba(table)[:, 1].mean() - kinds.mean()) < 0.05 < seen - kinds.mean() - 0.05


def test_a_stronger_penalty_is_chosen_under_more_noise() -> None:
    draw = np.random.default_rng(6)
    table = draw.normal(size=(1200, 100))
    kinds = (table[:, 0] + draw.normal(size=1200) > 0).astype(int)
    grid = {"C": [100.0, 0.01]}
    model = Classifier(LINEAR, lc.labels.KRR(1.0, 2), grid=grid, folds=0, random_state=0)
    # Seeded: naive training hardly depends on the penalty here, and in some draws it counts most.
    model.fit(table, kinds ^ (draw.random(1200) > np.e / (1 + np.e)))
    assert model.best_params_ == {"C": 0.01}


def test_consensus_retraining_is_judged_like_any_round() -> None:
    model = fitted(2.0, retrain="consensus")
    assert model.score(BLOBS, KINDS) > 0.85
    again = clone(model).set_params(retrain=None).fit(BLOBS, model.observed_)
    assert list(model.learned_.held_out) == ["naive", "refined", "consensus"]
    assert list(again.learned_.held_out) == ["naive", "refined"]
    better = model.learned_.held_out["consensus"] > again.learned_.held_out["refined"]
    naive_alone = all(one.undo is not None for one in model.learned_.members)
    assert model.learned_.consensus == (better and not naive_alone)


def test_a_mixture_makes_held_out_observations_at_least_as_likely_as_either_model() -> None:
    """Against a search over a grid; a planted share (that of the other model) does worse."""
    draw = np.random.default_rng(0)
    for _ in range(20):
        one, other = draw.normal(size=(2, 300))
        one += 2 * draw.normal()

        def reached(share: float, one: np.ndarray = one, other: np.ndarray = other) -> float:
            return float(np.log((1 - share) * np.exp(one) + share * np.exp(other)).sum())

        found = soft.share(one, other)
        best = max(reached(share) for share in np.linspace(0, 1, 201))
        assert reached(found) > best - 0.2
        assert reached(soft.share(other, one)) < best - 1 or abs(found - 0.5) < 0.1


def test_predictions_are_the_mixture_of_the_members_and_the_shares_follow_the_likelihood() -> None:
    """Noise of which the features say nothing: refined predictions, which fit it, must not count much."""
    draw = np.random.default_rng(0)
    table = draw.normal(size=(1500, 60))
    told = (table[:, 0] > 0).astype(int)
    krr = lc.labels.KRR(1.0, 2)
    flipped = draw.random(1500) > np.e / (1 + np.e)
    base = LogisticRegression(C=100.0, max_iter=300)
    lost = Classifier(base, krr, random_state=0).fit(table, draw.integers(0, 2, 1500) ^ flipped)
    good = Classifier(base, krr, random_state=0).fit(table, told ^ flipped)
    shares = [sum(one.share for one in model.learned_.members if one.undo is None) for model in (lost, good)]
    assert shares[0] < 0.5 < shares[1]
    for model in (lost, good):
        mixed = sum(one.share * np.exp(one.log_proba(table, 2)) for one in model.learned_.members)
        np.testing.assert_allclose(model.predict_proba(table), mixed)
        assert sum(one.share for one in model.learned_.members) == pytest.approx(1)
