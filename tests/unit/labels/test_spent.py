"""Labels are spent at every fit: what would fit clones to them is refused, whoever calls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.learning.votes import NoisedVotes
from leakcap.labels.statistics.sums import SumsMechanism
from tests.later import others_later
from tests.unit.labels.learning import BLOBS, KINDS

VOTES = {"epsilon": 4.0, "n_classes": 3, "n_teachers": 60}
MODELS = [
    lc.labels.Ridge(1.0, 3),
    lc.labels.NaiveBayes(1.0, 3),
    lc.labels.PATE(GaussianNB(), GaussianNB(), **VOTES),
    lc.labels.PATE(GaussianNB(), GaussianNB(), **VOTES, prior=lc.labels.Ridge(1.0)),
]
AROUND: list[Callable[[Any], Any]] = [
    lambda model: cross_val_score(model, BLOBS, KINDS, cv=2, error_score="raise"),
    lambda model: cross_val_score(model, BLOBS, KINDS, cv=2, n_jobs=2, error_score="raise"),
    lambda model: GridSearchCV(model, {"delta": [1e-6, 1e-5]}, cv=2, error_score="raise").fit(BLOBS, KINDS),
    lambda model: BaggingClassifier(model, n_estimators=2).fit(BLOBS, KINDS),
    lambda model: CalibratedClassifierCV(model, cv=2).fit(BLOBS, KINDS),
    lambda model: VotingClassifier([("one", model), ("other", clone(model))]).fit(BLOBS, KINDS),
]


# Two processes are started where folds are fitted in processes: for one of the models always.
FITS = list(product(range(len(AROUND)), range(len(MODELS))))
ALWAYS = [(around, model) for around, model in FITS if around != 1 or model == 0]


@pytest.mark.parametrize("fits", others_later(FITS, *ALWAYS), ids=str)
def test_what_fits_clones_is_refused_before_anything_is_drawn(
    fits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    around, model = AROUND[fits[0]], MODELS[fits[1]]
    for mechanism in (NoisedVotes, SumsMechanism):
        monkeypatch.setattr(mechanism, "release", lambda *given: pytest.fail("labels were used"))
    with pytest.raises(InputError, match="would spend epsilon at every fit"):
        around(clone(model))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_pipelines_fit_once(model: Any) -> None:
    assert make_pipeline(StandardScaler(), clone(model)).fit(BLOBS, KINDS).score(BLOBS, KINDS) > 0.8


def test_private_fits_are_refused_and_those_to_observations_are_not() -> None:
    model = lc.labels.Classifier(LogisticRegression(), lc.labels.KRR(3.0, 3))
    observed = model.mechanism.privatize(KINDS)
    assert cross_val_score(model, BLOBS, observed, cv=2).mean() > 0.6

    class Private(lc.labels.Classifier):
        """Takes labels for what it is fitted to, as a careless wrapper would."""

        def fit(self, X: Any, y: Any) -> Any:
            return self.fit_private(X, y)

    with pytest.raises(InputError, match="would spend epsilon at every fit"):
        cross_val_score(Private(LogisticRegression(), lc.labels.KRR(3.0, 3)), BLOBS, KINDS, cv=2, error_score="raise")
