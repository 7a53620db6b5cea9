"""Logistic regression that sees every row once is the one that sees a copy for each class."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from leakcap.labels.learning.likelihood import fit_weighted
from leakcap.labels.learning.soft_logistic import fits_rows_once, fitted_rows_once

ROWS, COLUMNS, CLASSES = 300, 4, 5


def _given(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(ROWS, COLUMNS))
    own = np.eye(CLASSES)[(rows @ rng.normal(size=(COLUMNS, CLASSES))).argmax(axis=1)]
    return rows, own + rng.dirichlet(np.ones(CLASSES), ROWS)


def _copied(base: LogisticRegression, rows: np.ndarray, weights: np.ndarray) -> LogisticRegression:
    row, code = np.nonzero(weights > 0)
    return base.fit(rows[row], code, sample_weight=weights[row, code])


@pytest.mark.parametrize("settings", [{}, {"C": 0.01}, {"fit_intercept": False}, {"C": np.inf}], ids=str)
def test_both_find_the_same_fit(settings):
    rows, weights = _given()
    base = LogisticRegression(tol=1e-8, max_iter=1000, **settings)
    assert fits_rows_once(base, rows, CLASSES)
    mine, other = fitted_rows_once(base, rows, weights), _copied(base, rows, weights)
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.predict_proba(rows), other.predict_proba(rows), atol=1e-6)


def test_a_class_without_weight_is_not_learnt():
    rows, weights = _given()
    weights[:, 2] = 0
    model = fitted_rows_once(LogisticRegression(), rows, weights)
    assert list(model.classes_) == [0, 1, 3, 4] and model.coef_.shape == (4, COLUMNS)


def test_a_start_nearby_saves_steps_and_leads_to_the_same_place():
    rows, weights = _given()
    base = LogisticRegression(tol=1e-7)
    first = fitted_rows_once(base, rows, weights)
    again = fitted_rows_once(base, rows, weights, near=first)
    assert again.n_iter_[0] < first.n_iter_[0] / 2
    np.testing.assert_allclose(first.coef_, again.coef_, atol=1e-5)


@pytest.mark.parametrize(
    "base",
    [
        LogisticRegression(solver="saga"),
        LogisticRegression(class_weight="balanced"),
        LogisticRegression(l1_ratio=0.5, solver="saga"),
    ],
    ids=str,
)
def test_other_settings_go_to_the_library(base):
    assert not fits_rows_once(base, np.zeros((3, 2)), CLASSES)


@pytest.mark.parametrize(
    "rows", [np.zeros((3, 2), dtype=np.float32), np.full((3, 2), np.nan), np.zeros((3, 2)).tolist()], ids=lambda _: ""
)
def test_rows_that_scikit_learn_would_convert_or_refuse_go_to_the_library(rows):
    assert not fits_rows_once(LogisticRegression(), rows, CLASSES)


def test_two_classes_have_one_row_of_coefficients_as_ever():
    rows, weights = _given()
    assert fit_weighted(LogisticRegression(), rows, weights[:, :2]).coef_.shape == (1, COLUMNS)


def test_a_fit_that_does_not_come_to_rest_warns():
    rows, weights = _given()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted_rows_once(LogisticRegression(max_iter=2), rows, weights)
