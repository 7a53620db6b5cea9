"""Models by a change of the import; errors in points of accuracy lost on rows that were held back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, tree
from sklearn.model_selection import train_test_split

from leakcap.estimators import (
    PCA,
    DecisionTreeClassifier,
    GaussianNB,
    HistGradientBoostingClassifier,
    KMeans,
    LogisticRegression,
    Ridge,
)
from tests.everyday.desk import Desk, error
from tests.everyday.lists import task

PREPARED = ("Columns were standardised.",)
NUMBERS = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


def split(X: Any, y: Any) -> Any:
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def standardised(table: Any) -> Any:
    return (table - table.mean()) / table.std()


def beans(desk: Desk) -> Any:
    table = desk.all_beans()
    return split(standardised(table.drop(columns="Class")), table["Class"])


@task("Logistic regression: which bean is it?", within=35, points=True)
def logistic(desk: Desk) -> float:
    X, X_test, y, y_test = beans(desk)
    model = LogisticRegression(C=0.1, cap=0.55, pool_public=PREPARED, options={"design": "bits"}).fit(X, y)
    plain = linear_model.LogisticRegression(C=0.1, max_iter=1000).fit(X, y)
    return 100 * (plain.score(X_test, y_test) - model.score(X_test, y_test))


@task("Naive Bayes: which bean is it?", within=45, points=True)
def bayes(desk: Desk) -> float:
    X, X_test, y, y_test = beans(desk)
    model = GaussianNB(cap=0.55, options={"design": "bits"}).fit(X, y)
    return 100 * (naive_bayes.GaussianNB().fit(X, y).score(X_test, y_test) - model.score(X_test, y_test))


@task("Ridge regression of a bean's area on its lengths", within=0.2)
def ridge(desk: Desk) -> float:
    table = standardised(desk.beans().drop(columns="Class"))
    X, y = table[["MajorAxisLength", "MinorAxisLength", "Perimeter"]], table["Area"]
    model = Ridge(alpha=10.0, cap=0.55).fit(X, y)
    return error(model.predict(X), linear_model.Ridge(alpha=10.0).fit(X, y).predict(X))


@task("K-Means: three kinds of beans", within=0.5)
def kmeans(desk: Desk) -> float:
    X = standardised(desk.beans()[["Area", "roundness", "Compactness"]]).to_numpy()
    model = KMeans(n_clusters=3, cap=0.55, worlds=1024).fit(X)
    plain = cluster.KMeans(n_clusters=3, n_init=10, random_state=0).fit(X)
    return float(-model.score(X) / plain.inertia_ - 1)


@task("Principal components of beans", within=0.1)
def components(desk: Desk) -> float:
    X = standardised(desk.beans().drop(columns="Class"))
    model = PCA(n_components=2, cap=0.55, options={"design": "bits"}).fit(X)
    plain = decomposition.PCA(n_components=2).fit(X)
    kept = np.linalg.svd(plain.components_ @ model.components_.T, compute_uv=False)
    return float(1 - kept.min())


@task("A decision tree: who earns more than 50,000?", within=8, points=True)
def decision_tree(desk: Desk) -> float:
    adult = desk.adult()
    X, X_test, y, y_test = split(adult[NUMBERS], adult["income"])
    options = {"bounds": ([17, 1, 0, 0, 1], [90, 16, 99999, 4356, 99]), "design": "bits"}
    model = DecisionTreeClassifier(max_depth=3, cap=0.55, classes=["<=50K", ">50K"], options=options).fit(X, y)
    plain = tree.DecisionTreeClassifier(max_depth=3).fit(X, y)
    return 100 * (plain.score(X_test, y_test) - model.score(X_test, y_test))


@task("Gradient boosting: who earns more than 50,000?", within=8, points=True)
def boosting(desk: Desk) -> float:
    adult = desk.adult()
    X, X_test, y, y_test = split(adult[NUMBERS], adult["income"])
    options = {"bounds": ([17, 1, 0, 0, 1], [90, 16, 99999, 4356, 99]), "design": "bits"}
    model = HistGradientBoostingClassifier(cap=0.55, classes=["<=50K", ">50K"], options=options).fit(X, y)
    plain = ensemble.HistGradientBoostingClassifier().fit(X, y)
    return 100 * (plain.score(X_test, y_test) - model.score(X_test, y_test))
