"""Estimators made of sums: what they are worth with a coin for everybody and under a pool cap, beside plain fits.

`python -m benchmarks.sums_estimators [diabetes] [breast] [adult] [tables]`. A quarter of the rows is held back to score
on. Means of several simulated fits, in which split and noise differ. Bounds of columns are round numbers beyond which
few lie; classes are declared. Worlds are 256 here.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import covariance, datasets, decomposition, linear_model, naive_bayes, neighbors
from sklearn.base import clone

import leakcap as lc
from benchmarks.records import record, slug
from leakcap import estimators
from leakcap.datasets import adult
from leakcap.synthetic import Tables

CAP, FITS, WORLDS = 0.6, 5, 256
TOPIC = "Private estimators"
Score = Callable[[Any, Any, Any], float]


@dataclass(frozen=True, eq=False)
class Case:
    """A question, for each of the three promises."""

    private: Any
    plain: Any
    data: tuple[Any, Any]
    bounds: Any
    needed: dict[str, Any]
    score: Score
    unit: str


def own(model: Any, X: Any, y: Any) -> float:
    return float(model.score(X, y))


def restored(model: Any, X: Any, _: Any) -> float:
    apart = model.inverse_transform(model.transform(X)) - X
    return 1 - float((apart**2).sum() / ((X - X.mean(axis=0)) ** 2).sum())


def likelihood(model: Any, X: Any, _: Any) -> float:
    return float(model.score(X))


def cases() -> dict[str, Case]:
    cancer = datasets.load_breast_cancer()
    tumours = np.log(cancer.data[:, :10] + 0.001)
    tumours = (tumours - [2.6, 2.9, 4.5, 6.4, -2.3, -2.3, -2.6, -3.2, -1.7, -2.8]) / 0.5
    diabetes = datasets.load_diabetes()
    census = adult()
    numbers = census[["age", "education_num", "hours_per_week", "capital_gain", "capital_loss"]].to_numpy(float)
    people = np.hstack([(numbers[:, :3] - [40, 10, 40]) / [20, 3, 20], np.log1p(numbers[:, 3:]) / 4])
    kinds = {"classes": [0, 1]}
    rich = (census["income"].to_numpy(str) == ">50K").astype(int)
    patients = tumours, cancer.target
    return {
        "diabetes: Ridge": Case(
            estimators.Ridge(0.1),
            linear_model.Ridge(0.1),
            (diabetes.data, diabetes.target),
            (-0.15, 0.15),
            {"target_bounds": (0, 350)},
            own,
            "R2",
        ),
        "diabetes: LinearRegression": Case(
            estimators.LinearRegression(),
            linear_model.LinearRegression(),
            (diabetes.data, diabetes.target),
            (-0.15, 0.15),
            {"target_bounds": (0, 350)},
            own,
            "R2",
        ),
        "breast cancer: GaussianNB": Case(
            estimators.GaussianNB(), naive_bayes.GaussianNB(), patients, (-4, 4), kinds, own, "accuracy"
        ),
        "breast cancer: NearestClassMean": Case(
            estimators.NearestClassMean(), neighbors.NearestCentroid(), patients, (-4, 4), kinds, own, "accuracy"
        ),
        "breast cancer: PCA, 2 of 10": Case(
            estimators.PCA(2), decomposition.PCA(2), patients, (-4, 4), {}, restored, "variance restored"
        ),
        "Adult: GaussianNB": Case(
            estimators.GaussianNB(), naive_bayes.GaussianNB(), (people, rich), (-3, 3), kinds, own, "accuracy"
        ),
        "Adult: NearestClassMean": Case(
            estimators.NearestClassMean(), neighbors.NearestCentroid(), (people, rich), (-3, 3), kinds, own, "accuracy"
        ),
        "Adult: Covariance": Case(
            estimators.Covariance(),
            covariance.EmpiricalCovariance(),
            (people, rich),
            (-3, 3),
            {},
            likelihood,
            "log-likelihood of a row",
        ),
    }


def measured(name: str, case: Case) -> None:
    X, y = case.data
    promises: dict[str, dict[str, Any]] = {
        "worlds": {"cap": lc.membership(CAP), "worlds": WORLDS},
        "bits": {"cap": lc.membership(CAP), "options": {"design": "bits"}},
        "pool": {"cap": lc.pool_membership(CAP), "options": {"bounds": case.bounds}, **case.needed},
    }
    found: dict[str, list[float]] = {"plain": []} | {promise: [] for promise in promises}
    seconds = dict.fromkeys(promises, 0.0)
    for fit in range(FITS):
        order = np.random.default_rng(fit).permutation(len(X))
        test, train = np.split(order, [len(X) // 4])
        found["plain"].append(case.score(clone(case.plain).fit(X[train], y[train]), X[test], y[test]))
        for promise, settings in promises.items():
            began = time.perf_counter()
            made = clone(case.private).set_params(random_state=fit, **settings).fit(X[train], y[train])
            seconds[promise] += (time.perf_counter() - began) / FITS
            found[promise].append(case.score(made, X[test], y[test]))
    shown = [f"plain {np.mean(found.pop('plain')):.3f}"]
    shown += [f"{how} {np.mean(scores):.3f} ± {np.std(scores):.3f}" for how, scores in found.items()]
    print(f"{name}: {', '.join(shown)}", {how: round(took, 1) for how, took in seconds.items()}, flush=True)
    record(
        f"sums-{slug(name)}",
        ", ".join(shown),
        topic=TOPIC,
        claim=f"{name}, cap {CAP:.2f}: {case.unit} on rows held back, of a plain fit and under three promises",
        command=f"python -m benchmarks.sums_estimators {slug(name).partition('-')[0]}",
        asked="-",
    )


def tables() -> None:
    """Synthetic rows of Adult: a model that is trained on them, and tested on real rows."""
    census = adult()
    cells = {
        "bins": {"age": [17, 25, 35, 45, 55, 65, 90], "education_num": [0.5, 8.5, 9.5, 10.5, 12.5, 13.5, 16.5]},
        "levels": {"sex": ["Female", "Male"], "income": ["<=50K", ">50K"]},
    }
    test, train = census.iloc[::4], census.drop(index=census.index[::4])

    def worth(rows: Any) -> float:
        X, again = (np.column_stack([t["age"], t["education_num"], t["sex"] == "Male"]) for t in (rows, test))
        made = naive_bayes.GaussianNB().fit(X.astype(float), rows["income"])
        right = made.predict(again.astype(float)) == np.asarray(test["income"])
        return float(np.mean([right[test["income"] == kind].mean() for kind in ("<=50K", ">50K")]))

    shown = [f"real rows {worth(train):.3f}"]
    promises: dict[str, dict[str, Any]] = {
        "worlds": {"cap": lc.membership(CAP), "worlds": WORLDS},
        "bits": {"cap": lc.membership(CAP), "options": {"design": "bits"}},
        "pool": {"cap": lc.pool_membership(CAP)},
    }
    for promise, settings in promises.items():
        began = time.perf_counter()
        law = Tables(**cells, random_state=0, **settings).fit(train)
        seconds = time.perf_counter() - began
        shown.append(f"{promise} {worth(law.sample(len(train), random_state=0)):.3f}")
        print(shown[-1], f"{seconds:.1f} s", flush=True)
    record(
        "sums-adult-tables",
        ", ".join(shown),
        topic=TOPIC,
        claim=f"Adult: balanced accuracy on real rows of a naive Bayes trained on synthetic ones, cap {CAP:.2f}",
        command="python -m benchmarks.sums_estimators tables",
        asked="-",
    )


PARTS = ("diabetes", "breast", "adult", "tables")


def main(wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    for name, case in cases().items():
        if slug(name).partition("-")[0] in wanted:
            measured(name, case)
    if "tables" in wanted:
        tables()


if __name__ == "__main__":
    main(sys.argv[1:] or list(PARTS))
