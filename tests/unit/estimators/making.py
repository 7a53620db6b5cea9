"""Small private estimators of every kind, and data for them."""

from __future__ import annotations

from typing import Any

from sklearn import linear_model, model_selection, preprocessing
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import leakcap as lc
from leakcap import estimators as le
from leakcap.synthetic import Gaussian

IRIS, KINDS = load_iris(return_X_y=True)
# The cap whose noise is found fastest, and little of it: sixteen worlds hold 2.8 nats.
SMALL: dict[str, Any] = {"cap": lc.mutual_information(2), "worlds": 16, "random_state": 0, "options": {"draws": 256}}


def every(**settings: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Estimators by name, each with the data to fit it to."""
    common = SMALL | settings
    return {
        "Mean": (le.Mean(**common), (IRIS,)),
        "Covariance": (le.Covariance(**common), (IRIS,)),
        "StandardScaler": (le.StandardScaler(**common), (IRIS,)),
        "KMeans": (le.KMeans(3, **common), (IRIS,)),
        "balanced KMeans": (le.KMeans(3, class_weight="balanced", **common), (IRIS, KINDS)),
        "LinearSVC": (le.LinearSVC(0.05, **common), (IRIS, KINDS)),
        "LogisticRegression": (le.LogisticRegression(0.1, **common), (IRIS, KINDS)),
        "two classes": (le.LogisticRegression(0.1, **common), (IRIS[50:], KINDS[50:])),
        "GaussianNB": (le.GaussianNB(**common), (IRIS, KINDS)),
        "NearestClassMean": (le.NearestClassMean(**common), (IRIS, KINDS)),
        "RandomForestClassifier": (le.RandomForestClassifier(2, max_depth=2, **common), (IRIS, KINDS)),
        "Ridge": (le.Ridge(1.0, **common), (IRIS[:, :3], IRIS[:, 3])),
        "LinearRegression": (le.LinearRegression(**common), (IRIS[:, :2], IRIS[:, 2:])),
        "PCA": (le.PCA(2, **common), (IRIS,)),
        "synthetic Gaussian": (Gaussian(ranges={0: (0, 10)}, integers=[1], **common), (IRIS,)),
        "Private": (le.Private(linear_model.Ridge(), **common), (IRIS[:, :3], IRIS[:, 3])),
        "Private pipeline": (
            le.Private(
                make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(C=0.1)),
                **{"strata": "y"} | common,
            ),
            (IRIS, KINDS),
        ),
        "Private search": (
            le.Private(model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [0.1, 100.0]}, cv=2), **common),
            (IRIS[:, :3], IRIS[:, 3]),
        ),
    }
