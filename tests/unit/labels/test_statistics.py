"""Classifiers made of noised sums: what they learn, and how they sit in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.labels.statistics.components import principal_components, strength_of
from leakcap.labels.statistics.shrink import best_round, shares_of, shrunk
from tests.unit.labels.learning import BLOBS, KINDS

DIGITS, NUMBERS = load_digits(return_X_y=True)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("kind", [lc.labels.Ridge, lc.labels.LDA, lc.labels.Logistic, lc.labels.NaiveBayes])
def test_sums_are_enough_to_learn_from(kind: Any, epsilon: float) -> None:
    model = kind(epsilon, 3).fit(BLOBS, KINDS)
    assert model.score(BLOBS, KINDS) > 0.85
    chances = model.predict_proba(BLOBS)
    assert np.allclose(chances.sum(axis=1), 1) and chances.min() > 0
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(BLOBS)).all()
    assert (model.decision_function(BLOBS).argmax(axis=1) == model.predict(BLOBS)).all()


def test_with_little_noise_ridge_is_as_good_as_without() -> None:
    plain = RidgeClassifier().fit(DIGITS[:1200], NUMBERS[:1200]).score(DIGITS[1200:], NUMBERS[1200:])
    model = lc.labels.Ridge(12.0, 10, random_state=0).fit(DIGITS[:1200], NUMBERS[:1200])
    assert model.score(DIGITS[1200:], NUMBERS[1200:]) > plain - 0.02


def test_refining_helps_where_noise_hides_much() -> None:
    """Ten draws each at epsilon 1, a gain of about five points with an error below one."""
    scores = {
        rounds: [lc.labels.Ridge(1.0, 10, refine=rounds).fit(DIGITS, NUMBERS).score(DIGITS, NUMBERS) for _ in range(10)]
        for rounds in (0, 2)
    }
    assert np.mean(scores[2]) > np.mean(scores[0])


def test_discriminants_are_those_of_plain_analysis_where_noise_is_small() -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 8000, p=[0.2, 0.3, 0.5])
    table = rng.standard_normal((8000, 5)) @ rng.standard_normal((5, 5)) + 2 * rng.standard_normal((3, 5))[labels]
    plain = LinearDiscriminantAnalysis().fit(table, labels)
    model = lc.labels.LDA(10.0, 3, clip=1.0).fit(table, labels)
    assert (model.predict(table) == plain.predict(table)).mean() > 0.98
    assert abs(model.predict_proba(table) - plain.predict_proba(table)).mean() < 0.02


def test_naive_bayes_without_noise_counts_bins() -> None:
    """Against counts written out: columns with few values are categories, others have eight bins."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    few, many = (rng.integers(0, 3, 4000) + labels) % 3, rng.standard_normal(4000) + labels
    table = np.column_stack([few, many])
    model = lc.labels.NaiveBayes(12.0, 2).fit(table, labels)
    assert [len(edges) for edges in model.edges_] == [2, 7]
    expected = [np.mean(few[labels == c] == b) for c in range(2) for b in range(3)]
    assert np.allclose(np.exp(model._log_chances[:3]).T.ravel(), expected, atol=0.01)
    assert model.certificate_.settings[-1] == ("bins", 11.0)


def test_names_are_sorted_and_columns_follow() -> None:
    names = np.array(["plum", "apple", "fig"])
    model = lc.labels.Ridge(4.0, classes=names).fit(BLOBS, names[KINDS])
    assert model.classes_.tolist() == ["apple", "fig", "plum"] and model.score(BLOBS, names[KINDS]) > 0.9
    assert model.certificate_.classes == ("plum", "apple", "fig")


def test_two_classes_have_one_score() -> None:
    model = lc.labels.Ridge(2.0, 2).fit(BLOBS, KINDS == 1)
    assert model.decision_function(BLOBS).shape == (len(BLOBS),)
    assert ((model.decision_function(BLOBS) > 0) == model.predict(BLOBS).astype(bool)).all()


def test_rare_classes_are_counted() -> None:
    """A constant is summed too: without features that tell, the frequent class is named."""
    rng = np.random.default_rng(0)
    table, labels = rng.standard_normal((3000, 3)), (rng.random(3000) < 0.2).astype(int)
    model = lc.labels.Ridge(2.0, 2).fit(table, labels)
    assert abs(model.intercept_[1] - labels.mean()) < 0.03 and (model.predict(table) == 0).mean() > 0.95


@pytest.mark.parametrize("table", [DIGITS, DIGITS.astype(np.float32), DIGITS[:40], 1e9 + DIGITS, DIGITS[:, :3]])
def test_tables_of_all_shapes_are_taken(table: Any) -> None:
    model = lc.labels.Ridge(8.0, 10).fit(table, NUMBERS[: len(table)])
    assert np.isfinite(model.decision_function(table)).all()


def test_components_are_white_and_constant_columns_left_out() -> None:
    table = np.hstack([DIGITS, np.full((len(DIGITS), 1), 7.0), DIGITS[:, 20:21]])
    found = principal_components(table)
    white = found.of(table)
    assert len(found.values) <= 61
    assert np.allclose(white.T @ white, np.eye(len(found.values)), atol=2e-2) and abs(white.sum(axis=0)).max() < 0.05
    wide = principal_components(DIGITS[:30])
    assert np.allclose(wide.of(DIGITS[:30]).T @ wide.of(DIGITS[:30]), np.eye(len(wide.values)), atol=2e-2)


def test_strength_has_the_degrees_of_freedom_asked_for() -> None:
    values = 1000.0 / np.arange(1, 65) ** 2
    for freedom in (3.0, 20.0, 60.0):
        assert np.isclose((values / (values + strength_of(values, freedom))).sum(), freedom)
    assert strength_of(values, 64.0) == 0.0


def test_shrinking_keeps_the_signal_and_drops_the_noise() -> None:
    rng = np.random.default_rng(0)
    truth = np.zeros((200, 10))
    truth[:20] = 30 * rng.standard_normal((20, 10))
    noised = truth + rng.standard_normal(truth.shape)
    found = shrunk(noised, 1.0)
    assert np.square(found - truth).sum() < 0.25 * np.square(noised - truth).sum()
    assert np.square(shrunk(noised, 1.0, guess=truth) - truth).sum() < 0.5 * np.square(found - truth).sum()


def test_a_guess_that_repeats_the_noise_is_not_followed() -> None:
    rng = np.random.default_rng(1)
    truth = np.where(np.arange(200) < 40, 5.0, 0.0)[:, None] * rng.standard_normal((200, 10))
    noised = truth + 3 * rng.standard_normal(truth.shape)
    noised -= noised.mean(axis=1, keepdims=True)
    assert best_round(noised, 9 * 0.9, lambda sums: truth, rounds=1, rng=np.random.RandomState(0)) == 1
    assert best_round(noised, 9 * 0.9, lambda sums: 1000 * sums, rounds=1, rng=np.random.RandomState(0)) == 0


def test_shares_are_shrunk_to_even_ones() -> None:
    assert np.allclose(shares_of(np.array([0.7, 0.2, 0.1]), 1e-9), [0.7, 0.2, 0.1], atol=1e-6)
    assert np.allclose(shares_of(np.array([0.35, 0.35, 0.3]), 0.1), 1 / 3)
    assert shares_of(np.array([1.2, 0.0, -0.2]), 1e-6).min() > 0


def test_it_sits_in_pipelines_and_says_when_it_is_not_fitted() -> None:
    model = make_pipeline(StandardScaler(), lc.labels.Ridge(2.0, 3))
    assert model.fit(BLOBS, KINDS).score(BLOBS, KINDS) > 0.9
    ridge = lc.labels.Ridge(2.0, 3, components=2, strength=1.0, clip=0.9, refine=1, random_state=3)
    assert clone(ridge).get_params() == ridge.get_params()
    with pytest.raises(NotFittedError, match=r"call fit\(X, y\) first"):
        ridge.predict(BLOBS)
    assert dict(ridge.fit(BLOBS, KINDS).certificate_.settings)["components"] == 2
    with pytest.raises(InputError, match="features"):
        ridge.predict(BLOBS[:, :1])


@pytest.mark.parametrize(
    "wrong", [{"components": 0}, {"strength": -1}, {"clip": 0}, {"clip": 2}, {"refine": -1}, {"random_state": "a"}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((InputError, ValueError)):
        lc.labels.Ridge(1.0, 3, **wrong).fit(BLOBS, KINDS)


def test_the_certificate_tells_of_sums_and_is_read_again() -> None:
    cert = lc.labels.Ridge(1.0, 3).fit(BLOBS, KINDS).certificate_
    words = " ".join(str(cert).split())
    assert "summed by class" in words and "was replaced" not in words and len(words.split()) <= 350
    assert LabelCertificate.from_json(cert.to_json()) == cert
    assert "noised sums" in cert.to_html() and "observations" not in cert.to_html()
    plain = str(lc.labels.KRR(1.0, 3).certificate(10))
    assert "was replaced" in plain and "summed" not in plain


@pytest.mark.parametrize("kind", [lc.labels.Ridge, lc.labels.LDA, lc.labels.Logistic])
def test_a_linear_model_in_plain_numbers_has_the_same_scores(kind: Any) -> None:
    model = kind(epsilon=2.0, n_classes=3).fit(BLOBS, KINDS)
    plain = model.portable()
    scores = (BLOBS - np.array(plain["mean"])) @ np.array(plain["weights"]) + plain["intercept"]
    np.testing.assert_allclose(scores, model.decision_function(BLOBS), rtol=1e-4, atol=1e-4)
    assert plain["sums"]["noised"] == model.sums_.sums.tolist() and plain["sums"]["labels"] == len(KINDS)


def test_naive_bayes_in_plain_numbers_has_the_same_scores() -> None:
    model = lc.labels.NaiveBayes(epsilon=2.0, n_classes=3).fit(BLOBS, KINDS)
    plain = model.portable()
    scores = np.tile(plain["log_shares"], (len(BLOBS), 1))
    for column, edges, chances in zip(BLOBS.T, plain["edges"], plain["log_chances"], strict=True):
        scores += np.array(chances)[np.searchsorted(edges, column, side="right")]
    np.testing.assert_allclose(scores, model.decision_function(BLOBS))


def test_a_model_in_plain_numbers_must_have_learnt() -> None:
    with pytest.raises(NotFittedError):
        lc.labels.Ridge(epsilon=1.0, n_classes=3).portable()


def test_sums_say_which_readout_they_are_nearer_to() -> None:
    """Classes that lie far apart are for discriminants; sums that are hardly more than noise are not."""
    rng = np.random.default_rng(5)
    kinds = rng.integers(8, size=6000)
    apart = 2.0 * rng.standard_normal((8, 12))[kinds] + rng.standard_normal((6000, 12))
    clear = lc.labels.LDA(2.0, 8, readout="auto", random_state=0).fit(apart, kinds)
    plain = lc.labels.LDA(2.0, 8, readout="ridge", random_state=0).fit(apart, kinds)
    assert clear.readout_ == "discriminant" and clear.score(apart, kinds) > plain.score(apart, kinds) + 0.004
    noisy = lc.labels.LDA(0.02, 8, readout="auto", random_state=0).fit(apart, kinds)
    assert noisy.readout_ == "ridge" and noisy.predict_proba(apart).sum(axis=1) == pytest.approx(np.ones(6000))
    with pytest.raises(InputError, match="readout must be one of"):
        lc.labels.LDA(1.0, 8, readout="best").fit(apart, kinds)
