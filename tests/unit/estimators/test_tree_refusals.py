"""Trees inside `Private` are refused when it is made, with the name of what to use; nothing is fitted before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import ensemble, linear_model, preprocessing, tree
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import leakcap as lc
from leakcap.estimators import Private

LOGISTIC = linear_model.LogisticRegression()
TREE, FOREST, BOOSTING = (
    f"leakcap.estimators.{name}"
    for name in ("DecisionTreeClassifier", "RandomForestClassifier", "HistGradientBoostingClassifier")
)
REFUSED: dict[str, tuple[Any, str]] = {
    "tree": (tree.DecisionTreeClassifier(), TREE),
    "random tree": (tree.ExtraTreeClassifier(), TREE),
    "forest": (ensemble.RandomForestClassifier(), FOREST),
    "extra trees": (ensemble.ExtraTreesClassifier(), FOREST),
    "outliers": (ensemble.IsolationForest(), FOREST),
    "embedding": (ensemble.RandomTreesEmbedding(), FOREST),
    "boosting": (ensemble.GradientBoostingClassifier(), BOOSTING),
    "histograms": (ensemble.HistGradientBoostingClassifier(), BOOSTING),
    "stumps by default": (ensemble.AdaBoostClassifier(), BOOSTING),
    "bags of trees by default": (ensemble.BaggingClassifier(), FOREST),
    "bags of trees": (ensemble.BaggingClassifier(tree.DecisionTreeClassifier()), TREE),
    "votes": (ensemble.VotingClassifier([("a", LOGISTIC), ("b", ensemble.RandomForestClassifier())]), FOREST),
    "a pipeline": (make_pipeline(preprocessing.StandardScaler(), tree.DecisionTreeClassifier()), TREE),
    "a search": (GridSearchCV(ensemble.GradientBoostingClassifier(), {"max_depth": [1, 2]}), BOOSTING),
    "what a search tries": (
        GridSearchCV(make_pipeline(LOGISTIC), {"logisticregression": [LOGISTIC, tree.DecisionTreeClassifier()]}),
        TREE,
    ),
    "a regression": (tree.DecisionTreeRegressor(), "leakcap.estimators.Ridge"),
    "boosted regression": (ensemble.HistGradientBoostingRegressor(), "leakcap.estimators.Ridge"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_trees_are_refused_when_private_is_made(name: str) -> None:
    inner, instead = REFUSED[name]
    with pytest.raises(lc.InputError, match=instead.replace(".", r"\.")) as refusal:
        Private(inner, cap=lc.membership(0.55))
    assert "which splits a tree has depends on the data" in str(refusal.value)


@pytest.mark.parametrize(
    "inner",
    [
        ensemble.BaggingClassifier(LOGISTIC),
        ensemble.AdaBoostClassifier(LOGISTIC),
        ensemble.VotingClassifier([("a", LOGISTIC)]),
        GridSearchCV(LOGISTIC, {"C": [0.1, 1.0]}),
    ],
)
def test_others_are_taken(inner: Any) -> None:
    assert Private(inner, cap=lc.membership(0.55)).estimator is inner


def test_a_tree_that_is_set_later_is_refused_before_any_world(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []
    monkeypatch.setattr(tree.DecisionTreeClassifier, "fit", lambda self, *rows, **how: fitted.append(1))
    model = Private(LOGISTIC, cap=lc.membership(0.55)).set_params(estimator=tree.DecisionTreeClassifier())
    with pytest.raises(lc.InputError, match="DecisionTreeClassifier"):
        model.fit(np.eye(8), np.arange(8) % 2)
    assert not fitted
