"""scikit-learn's own checks, of the classifiers that learn from privatised labels or noised sums."""

from __future__ import annotations

import pytest
from sklearn.utils import estimator_checks

import leakcap as lc
from leakcap.labels.learning.classifier import Classifier
from tests.claims.estimators.test_conformance import outcomes
from tests.later import others_later
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


BY_SUMS = {
    "check_pipeline_consistency": "fits the same object twice, which is refused: it would spend epsilon again",
    "check_classifiers_train": "the same",
    "check_supervised_y_2d": "the same",
    "check_fit_idempotent": "the same",
    "check_classifier_data_not_an_array": "compares two fits, which have different noise",
    "check_classifiers_one_label": "expects the one class of ten rows, which drown in the noise",
    "check_decision_proba_consistency": "takes classes from y: scores of four classes are more than one column",
    "check_classifiers_classes": "classes are declared, not those that occur",
    "check_classifiers_regression_target": "what is no declared class is refused in our own words",
    "check_dtype_object": "the same",
}


@pytest.mark.parametrize("name", others_later(["Ridge", "Logistic", "NaiveBayes"], "Ridge", "NaiveBayes"))
def test_of_sums_too_but_for_second_fits_and_classes_in_y(name: str) -> None:
    if not hasattr(estimator_checks, "estimator_checks_generator"):
        pytest.skip("tags differ before scikit-learn 1.6")
    failed = outcomes(getattr(lc.labels, name)(8.0, 4))
    assert set(failed) <= set(BY_SUMS), failed


def test_of_linear_teachers_but_for_the_class_that_stands_for_no_label() -> None:
    if not hasattr(estimator_checks, "estimator_checks_generator"):
        pytest.skip("tags differ before scikit-learn 1.6")
    assert set(outcomes(lc.labels.LinearTeacher())) == {"check_classifiers_classes"}
