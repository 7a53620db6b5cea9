"""Models of anybody's: an over-fitted one gives its training data away, one that learns nothing does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from leakcap import audit
from leakcap.errors import InputError, OutputError

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
rng = np.random.default_rng(0)
X, y = X[:200], y[:200] ^ (rng.random(200) < 0.1)  # labels with mistakes: what can only be learnt by heart


def log_likelihood(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    likely = model.predict_proba(X)[np.arange(len(y)), y]
    return np.log(np.maximum(likely, 1e-6))


def audited(make: Any, models: int = 60, **options: Any) -> audit.AuditReport:
    return audit.model(
        train=lambda X, y: make().fit(X, y), score=log_likelihood, data=(X, y), models=models, seed=1, **options
    )


@pytest.mark.parametrize(
    "make",
    [
        DecisionTreeClassifier,
        lambda: KNeighborsClassifier(1),
        pytest.param(lambda: MLPClassifier((64,), max_iter=2000, random_state=0), marks=pytest.mark.slow),
    ],
    ids=["tree", "one neighbour", "network"],
)
def test_what_an_overfitted_model_learnt_by_heart_is_told(make: Any) -> None:
    report = audited(make)
    worst = [one for one in report.findings if "most exposed" in one.question]
    assert max(one.interval[0] for one in worst) > 0.75
    everybody = [one for one in report.findings if "all rows" in one.question]
    assert max(one.measured for one in everybody) > 0.53
    assert "clearly more often than by guessing" in report.sentence and report.verdict == "no promise"


def test_a_claim_that_an_overfitted_model_breaks_is_refuted() -> None:
    report = audited(lambda: KNeighborsClassifier(1), models=100, claimed=0.55)
    assert report.verdict == "refuted"
    assert "REFUTED" in report.sentence


class Nothing:
    """The twin: a model that learns nothing of its rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Nothing:
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.random.default_rng().dirichlet([1, 1], size=len(X))


def test_a_model_that_learns_nothing_is_not_accused() -> None:
    report = audited(Nothing, models=100, claimed=0.5)
    assert report.holds
    assert all(abs(one.measured - 0.5) < 0.03 for one in report.findings if "all rows" in one.question)


def test_a_model_that_generalises_gives_less_away_than_one_that_remembers() -> None:
    def mean_success(make: Any) -> float:
        found = audited(make, attacks=["lira"]).findings
        return next(one.measured for one in found if "all rows" in one.question)

    assert mean_success(lambda: LogisticRegression(C=0.01)) + 0.05 < mean_success(lambda: KNeighborsClassifier(1))


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(OutputError, match="a number for each"):
        audit.model(train=lambda X: None, score=lambda made, X: 0.0, data=X, models=20)
    with pytest.raises(InputError, match="equal length"):
        audit.model(train=lambda *_: None, score=lambda *_: 0.0, data=(X, y[:5]), models=20)
