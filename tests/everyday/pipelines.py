"""Pipelines of scikit-learn, as they are, inside Private."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

import leakcap as lc
from leakcap.estimators import Private
from tests.everyday.desk import Desk, error
from tests.everyday.lists import task

NUMBERS = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
WORDS = ["workclass", "marital_status", "occupation", "relationship", "race", "sex"]


def accuracies(desk: Desk) -> tuple[float, float]:
    """Of the private pipeline and of the plain one, on the rows that Adult holds back."""
    adult = desk.all_adults()
    train, test = adult[adult["split"] == "train"], adult[adult["split"] == "test"]
    pipeline = make_pipeline(
        ColumnTransformer(
            [("words", OneHotEncoder(handle_unknown="ignore"), WORDS), ("numbers", StandardScaler(), NUMBERS)]
        ),
        LogisticRegression(max_iter=1000),
    )
    model = Private(pipeline, cap=0.55).fit(train[WORDS + NUMBERS], train["income"])
    plain = pipeline.fit(train[WORDS + NUMBERS], train["income"])
    return model.score(test[WORDS + NUMBERS], test["income"]), plain.score(test[WORDS + NUMBERS], test["income"])


@task("Adult with its categories: who earns more than 50,000?", within=2, points=True)
def categories(desk: Desk) -> float:
    private, plain = accuracies(desk)
    return 100 * (plain - private)


def patients(desk: Desk) -> Any:
    heart = desk.heart()
    X, y = heart.drop(columns="num"), heart["num"] > 0
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


@task("Heart patients with missing measurements", within=15, points=True)
def imputed(desk: Desk) -> float:
    X, X_test, y, y_test = patients(desk)
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.01))
    model = Private(pipeline, cap=0.6).fit(X, y)
    return 100 * (pipeline.fit(X, y).score(X_test, y_test) - model.score(X_test, y_test))


@task("A search for the best setting, inside", within=60, points=True)
def search(desk: Desk) -> float:
    X, X_test, y, y_test = patients(desk)
    X, X_test = X[["age", "cp", "thalach", "oldpeak"]], X_test[["age", "cp", "thalach", "oldpeak"]]
    pipeline = make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [0.01, 0.1]}, cv=2))
    model = Private(pipeline, cap=lc.membership(0.6)).fit(X, y)
    return 100 * (pipeline.fit(X, y).score(X_test, y_test) - model.score(X_test, y_test))


@task("Bins and a ridge: days in hospital, several stays of a patient", within=0.2)
def binned(desk: Desk) -> float:
    visits = desk.diabetes()
    X = visits[["num_lab_procedures", "num_medications"]]
    pipeline = make_pipeline(KBinsDiscretizer(5), PlainRidge())
    model = Private(pipeline, cap=0.55).fit(X, visits["time_in_hospital"], unit=visits["patient_nbr"])
    return error(model.predict(X), pipeline.fit(X, visits["time_in_hospital"]).predict(X))
