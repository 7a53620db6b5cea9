"""The classifier as scikit-learn knows one, and what it must refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.learning.classifier import Classifier
from tests.unit.labels.learning import BLOBS, KINDS, LINEAR


@pytest.mark.parametrize(
    "mechanism",
    [
        lc.labels.Gaussian(3.0, 3, delta=1e-5),
        lc.labels.SubsetSelection(2.0, 3),
        lc.labels.RRWithPrior(2.0, [0.5, 0.3, 0.2]),
    ],
)
def test_every_mechanism_serves(mechanism: Any) -> None:
    model = Classifier(LINEAR, mechanism, random_state=0).fit_private(BLOBS, KINDS)
    assert model.score(BLOBS, KINDS) > 0.6
    assert np.allclose(model.predict_proba(BLOBS).sum(axis=1), 1)


def test_names_stay_names() -> None:
    names = np.array(["pear", "apple", "fig"])[KINDS]
    model = Classifier(LINEAR, lc.labels.auto(3.0, classes=["pear", "apple", "fig"]), random_state=0)
    model.fit_private(BLOBS, names)
    assert model.classes_.tolist() == ["apple", "fig", "pear"]
    assert model.score(BLOBS, names) > 0.85
    assert model.classes_[model.predict_proba(BLOBS).argmax(axis=1)].tolist() == model.predict(BLOBS).tolist()


def test_pipelines_sparse_tables_frames_and_forests_serve() -> None:
    pandas = pytest.importorskip("pandas")
    mechanism = lc.labels.KRR(3.0, 3)
    frame = pandas.DataFrame(BLOBS, columns=["a", "b"])
    bases = [make_pipeline(StandardScaler(), LINEAR), RandomForestClassifier(5, min_samples_leaf=10)]
    for base in bases:
        model = Classifier(base, mechanism, random_state=0).fit_private(frame, KINDS)
        assert model.score(frame, KINDS) > 0.8 and model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["a", "b"]
    thin = scipy.sparse.coo_array(BLOBS)
    assert Classifier(LINEAR, mechanism, random_state=0).fit_private(thin, KINDS).score(thin, KINDS) > 0.8


def test_it_can_be_scored_by_cross_validation_on_observations() -> None:
    krr = lc.labels.KRR(4.0, 3)
    model = Classifier(LINEAR, krr, random_state=0)
    assert cross_val_score(model, BLOBS, krr.privatize(KINDS), cv=3).mean() > 0.7


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"base": RidgeClassifier()}, "predict_proba"),
        ({"base": KNeighborsClassifier()}, "sample_weight"),
        ({"base": LogisticRegression}, "scikit-learn classifier"),
        ({"mechanism": "krr"}, "mechanism must be"),
        ({"rounds": -1}, "rounds"),
        ({"folds": 1}, "folds"),
        ({"holdout": 0.9}, "holdout"),
        ({"retrain": "always"}, "retrain"),
        ({"grid": {"C": [1, 2]}, "holdout": 0}, "grid"),
    ],
)
def test_bad_settings_are_refused_before_a_label_is_drawn(
    settings: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lc.labels.KRR, "privatize", lambda *given: pytest.fail("labels were privatised"))
    given = {"base": LINEAR, "mechanism": lc.labels.KRR(1.0, 3), **settings}
    with pytest.raises(InputError, match=says):
        Classifier(**given).fit_private(BLOBS, KINDS)


@pytest.mark.parametrize(
    ("table", "observed", "says"),
    [
        (BLOBS[:-1], KINDS, "rows"),
        (BLOBS, np.eye(3)[KINDS], "one column"),
        (BLOBS[:, 0], KINDS, "table"),
        (BLOBS[:1], KINDS[:1], "one sample"),
        (BLOBS, KINDS + 1, "whole numbers"),
        (BLOBS, None, "requires y"),
    ],
)
def test_bad_data_are_refused(table: Any, observed: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Classifier(LINEAR, lc.labels.KRR(1.0, 3)).fit(table, observed)


def test_few_rows_and_observations_of_one_class_give_something_defined() -> None:
    krr = lc.labels.KRR(1.0, 3)
    model = Classifier(LINEAR, krr, random_state=0).fit(BLOBS[:5], [0, 1, 2, 0, 1])
    assert np.isfinite(model.predict_proba(BLOBS)).all()
    one = Classifier(LINEAR, krr, random_state=0).fit(BLOBS[:100], np.zeros(100, dtype=int))
    assert (one.predict(BLOBS) == 0).all()
