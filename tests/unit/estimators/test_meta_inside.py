"""The way that refusals of meta-estimators name: inside `Private` they are fitted in every world, and leave once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import calibration, compose, ensemble, feature_selection, multiclass, multioutput, pipeline
from sklearn import semi_supervised as semi
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler, scale

import leakcap as lc
from leakcap import estimators as le
from tests.later import others_later
from tests.unit.estimators.making import IRIS, KINDS

SOME = np.arange(150) % 3 == 0
X, Y = scale(IRIS)[SOME], KINDS[SOME]
FEATURES, WIDTH, TARGETS = X[:, :3], X[:, 3], X[:, 2:]
BOTH = np.c_[Y > 0, Y > 1].astype(int)
UNKNOWN = np.where(np.arange(len(Y)) % 5 == 0, -1, Y)
LOGISTIC = LogisticRegression(C=0.1, tol=0.01)
TWO = [("a", LOGISTIC), ("b", LogisticRegression(C=1.0, tol=0.01))]
RIDGES = [("a", Ridge()), ("b", Ridge(10.0))]
COLUMNS = compose.make_column_transformer((StandardScaler(), [0, 1]), (MinMaxScaler(), [2]))
TINY: dict[str, Any] = {"cap": lc.mutual_information(1.5), "worlds": 8, "options": {"draws": 256}}

INSIDE: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "OneVsRestClassifier": (multiclass.OneVsRestClassifier(LOGISTIC), (X, Y)),
    "OneVsOneClassifier": (multiclass.OneVsOneClassifier(LOGISTIC), (X, Y)),
    "OutputCodeClassifier": (multiclass.OutputCodeClassifier(LOGISTIC, random_state=0), (X, Y)),
    "BaggingClassifier": (ensemble.BaggingClassifier(LOGISTIC, 2, random_state=0), (X, Y)),
    "BaggingRegressor": (ensemble.BaggingRegressor(Ridge(), 2, random_state=0), (FEATURES, WIDTH)),
    "MultiOutputClassifier": (multioutput.MultiOutputClassifier(LOGISTIC), (X, BOTH)),
    "MultiOutputRegressor": (multioutput.MultiOutputRegressor(Ridge()), (X[:, :2], TARGETS)),
    "ClassifierChain": (multioutput.ClassifierChain(LOGISTIC), (X, BOTH)),
    "RegressorChain": (multioutput.RegressorChain(Ridge()), (X[:, :2], TARGETS)),
    "CalibratedClassifierCV": (calibration.CalibratedClassifierCV(LOGISTIC, cv=2), (X, Y)),
    "VotingClassifier": (ensemble.VotingClassifier(TWO, voting="soft"), (X, Y)),
    "VotingRegressor": (ensemble.VotingRegressor(RIDGES), (FEATURES, WIDTH)),
    "StackingClassifier": (ensemble.StackingClassifier(TWO, LOGISTIC, cv=2), (X, Y)),
    "StackingRegressor": (ensemble.StackingRegressor(RIDGES, Ridge(), cv=2), (FEATURES, WIDTH)),
    "AdaBoostClassifier": (ensemble.AdaBoostClassifier(LOGISTIC, n_estimators=2, random_state=0), (X, Y)),
    "AdaBoostRegressor": (ensemble.AdaBoostRegressor(Ridge(), n_estimators=2, random_state=0), (FEATURES, WIDTH)),
    "SelectFromModel": (feature_selection.SelectFromModel(Ridge()), (FEATURES, WIDTH)),
    "TransformedTargetRegressor": (
        compose.TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
        (FEATURES, WIDTH),
    ),
    "SelfTrainingClassifier": (semi.SelfTrainingClassifier(LOGISTIC), (X, UNKNOWN)),
    "ColumnTransformer": (COLUMNS, (X,)),
    "FeatureUnion": (pipeline.make_union(StandardScaler(), MinMaxScaler()), (X,)),
    "Pipeline": (pipeline.make_pipeline(COLUMNS, LOGISTIC), (X, Y)),
}


# One of each kind: of several classes, targets, parts and folds, of rows without labels, of columns.
ALWAYS = (
    *("OneVsOneClassifier", "BaggingRegressor", "MultiOutputRegressor", "ClassifierChain", "CalibratedClassifierCV"),
    *("StackingClassifier", "AdaBoostClassifier", "TransformedTargetRegressor", "SelfTrainingClassifier", "Pipeline"),
)


@pytest.mark.filterwarnings("ignore::leakcap.errors.UselessReleaseWarning")  # few worlds of few people
@pytest.mark.parametrize("name", others_later(INSIDE, *ALWAYS))
def test_meta_estimators_inside_private_leave_with_one_certificate(name: str) -> None:
    inner, data = INSIDE[name]
    strata = Y if len(data) == 2 and data[1].dtype.kind == "i" else None
    model = le.Private(inner, **TINY).fit(*data, strata=strata)
    assert type(model.estimator_) is type(inner)
    assert model.certificate_.kind == "exact"
    use = "predict" if hasattr(inner, "predict") else "transform"
    used = getattr(pickle.loads(pickle.dumps(model.estimator_)), use)(data[0])
    assert np.array_equal(used, getattr(model, use)(data[0]))
    if not hasattr(inner, "score"):
        assert len(used) == len(X)


def test_a_choice_of_columns_that_differs_between_worlds_stays_inside() -> None:
    meaningless = np.random.default_rng(0).normal(size=(len(X), 3))
    with pytest.raises(lc.OutputError, match="support_ varies between worlds"):
        le.Private(feature_selection.RFE(Ridge(), n_features_to_select=1), **TINY).fit(meaningless, WIDTH)


def test_a_wrapped_estimators_own_estimator_is_not_taken_for_the_released_one() -> None:
    inner, data = INSIDE["SelectFromModel"]
    model = le.Private(inner, **TINY).fit(*data)
    assert isinstance(model.estimator_, feature_selection.SelectFromModel)
    assert isinstance(model.estimator_.estimator_, Ridge)
