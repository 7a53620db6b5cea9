"""Logistic regression of noised sums: the same as of labels where noise is small, and a penalty where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.labels.statistics.components import principal_components
from leakcap.labels.statistics.logistic_sums import LogisticSums, LogisticWeights
from leakcap.labels.statistics.sums import SumsMechanism, class_sums
from leakcap.labels.statistics.white_rows import white_rows


def choices(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four unequal classes by a logistic law that follows features closely."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, 8)) @ np.random.default_rng(50).standard_normal((8, 8))
    scores = 1.5 * table @ np.random.default_rng(51).standard_normal((8, 4)) + [0, 0, 1, 2]
    return table, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def test_with_little_noise_it_is_logistic_regression_of_the_labels() -> None:
    table, kinds = choices(6000)
    plain = LogisticRegression(C=100, max_iter=2000).fit(table, kinds)
    model = lc.labels.Logistic(12.0, 4, clip=1.0, random_state=0).fit(table, kinds)
    assert (model.predict(table) == plain.predict(table)).mean() > 0.97
    assert abs(model.predict_proba(table) - plain.predict_proba(table)).mean() < 0.015


def test_where_labels_follow_features_closely_it_is_right_more_often_than_ridge() -> None:
    """Five draws each at epsilon 2: four points, with an error below one."""
    table, kinds = choices(6000)
    judged, right = choices(4000, seed=1)

    def score(kind: type) -> float:
        return float(np.mean([kind(2.0, 4, random_state=0).fit(table, kinds).score(judged, right) for _ in range(5)]))

    assert score(lc.labels.Logistic) > score(lc.labels.Ridge) + 0.02


@pytest.mark.parametrize("quantile", [1.0, 0.5])
def test_the_likelihood_by_sums_is_that_of_the_labels(quantile: float) -> None:
    """Written out row by row, each counted as far as shortening keeps it; classes of short rows by their shares."""
    table, kinds = choices(300)
    made = white_rows(principal_components(table), table, 1.0, quantile)
    rng = np.random.default_rng(0)
    model = LogisticWeights(30 * rng.standard_normal((made.white.shape[1], 4)), rng.standard_normal(4))
    one_hot = np.eye(4)[kinds]
    shares = made.kept @ one_hot / made.kept.sum()
    found = LogisticSums(made, shares).log_likelihood(model, made.rows[:, 1:].T @ one_hot)
    scores = made.white @ model.weights
    whole = (one_hot * (scores + model.offsets)).sum(axis=1) - logsumexp(scores + model.offsets, axis=1)
    assert found == pytest.approx(float(made.kept @ whole), rel=1e-4)


def test_predictions_have_the_shares_of_the_classes() -> None:
    """Also where long rows, which are shortened, are of one class."""
    rng = np.random.default_rng(3)
    kinds = (rng.random(4000) < 0.15).astype(int)
    table = rng.standard_normal((4000, 3)) * (1 + 4 * kinds)[:, None] + kinds[:, None]
    model = lc.labels.Logistic(8.0, 2, random_state=0).fit(table, kinds)
    assert abs(model.predict_proba(table)[:, 1].mean() - kinds.mean()) < 0.01


def test_noise_calls_for_a_heavier_penalty() -> None:
    """Sums of ten thousand rows at epsilon 8, and of a few hundred at .3."""
    table, kinds = choices(10_000)
    clear = lc.labels.Logistic(8.0, 4, random_state=0).fit(table, kinds).penalty_
    noisy = [lc.labels.Logistic(0.3, 4, random_state=seed).fit(table[:400], kinds[:400]).penalty_ for seed in range(5)]
    assert np.median(noisy) > clear


def test_discriminants_are_taken_where_they_are_likelier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a penalty leaves no weights they are, as `LDA` makes them; where labels follow a logistic law not."""
    table, kinds = choices(3000)
    assert not lc.labels.Logistic(8.0, 4, random_state=0).fit(table, kinds).by_rule_
    monkeypatch.setattr(SumsMechanism, "release", lambda given, rows, codes: class_sums(rows, codes, 4))
    monkeypatch.setattr("leakcap.labels.statistics.logistic.PENALTIES", (1e9,))
    model = lc.labels.Logistic(8.0, 4, random_state=0).fit(table, kinds)
    rule = lc.labels.LDA(8.0, 4, random_state=0).fit(table, kinds)
    assert model.by_rule_
    assert model.predict_proba(table) == pytest.approx(rule.predict_proba(table), abs=1e-6)
