"""Known features, secret labels."""

from __future__ import annotations

import pandas
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from tests.everyday.desk import Desk
from tests.everyday.lists import task
from tests.everyday.models import NUMBERS, split, standardised


@task("Train on incomes that nobody may see", within=8, points=True)
def learnt(desk: Desk) -> float:
    adult = desk.adult()
    X, X_test, y, y_test = split(standardised(adult[NUMBERS]), (adult["income"] == ">50K").astype(int))
    mechanism = lc.labels.auto(epsilon=1, n_classes=2)
    model = lc.labels.Classifier(LogisticRegression(), mechanism).fit_private(X, y)
    return 100 * (LogisticRegression().fit(X, y).score(X_test, y_test) - model.score(X_test, y_test))


@task("Privatise the label column of a file", within=4, points=True)
def column(desk: Desk) -> float:
    adult = desk.adult()[["age", "income"]]
    adult.to_csv(desk.folder / "adult.csv", index=False)
    code, said = desk.run("leakcap labels adult.csv --column income --classes '<=50K,>50K' --epsilon 2 --out labels")
    assert code == 0, said
    observed = pandas.read_csv(desk.folder / "labels" / "public" / "labels.csv")
    kept = (observed["income"] == adult["income"]).mean()
    return float(100 * abs(kept - lc.convert.from_dp(2)))
