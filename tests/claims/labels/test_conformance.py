"""scikit-learn's own checks, of the classifier that learns from privatised labels."""

from __future__ import annotations

import pytest
from sklearn.utils import estimator_checks

import leakcap as lc
from leakcap.labels.learning.classifier import Classifier
from tests.claims.estimators.test_conformance import outcomes
from tests.unit.labels.learning import LINEAR

EXCUSED = {
    "check_fit_score_takes_y": "the second argument is called `observed`, so that nobody takes it for the labels",
    "check_complex_data": "refuses the observations before the base sees the table",
    "check_classifiers_classes": "classes are those of the mechanism, not those that occur",
    "check_classifiers_train": "the same",
    "check_classifiers_regression_target": "what is no class of the mechanism is refused in the mechanism's words",
    "check_supervised_y_2d": "mechanisms take a single column as it is, without a warning",
}


def test_scikit_learns_checks_pass_but_for_those_about_classes_in_y() -> None:
    if not hasattr(estimator_checks, "estimator_checks_generator"):
        pytest.skip("tags differ before scikit-learn 1.6")
    failed = outcomes(Classifier(LINEAR, lc.labels.KRR(8.0, 4), random_state=0, rounds=1, holdout=0))
    assert set(failed) == set(EXCUSED), failed
